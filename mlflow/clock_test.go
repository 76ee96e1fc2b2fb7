package mlflow

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"
)

// ClockAhead reports only the difference that the Date of a response proves.
func TestClockAhead_ReportsOnlyAProvenDifference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		server      time.Duration // how far the server's clock is ahead
		age         string
		least, most time.Duration
	}{
		{name: "same time"},
		{name: "Date one second old", server: -time.Second},
		{name: "this clock behind", server: time.Minute, least: -time.Minute, most: -59 * time.Second},
		{name: "this clock ahead", server: -time.Minute, least: 58 * time.Second, most: 61 * time.Second},
		{name: "cached response", server: -time.Minute, age: "60"},
	} {
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(c.server).UTC().Format(http.TimeFormat))
			if c.age != "" {
				w.Header().Set("Age", c.age)
			}
			io.WriteString(w, `{"run":{"info":{"run_id":"r"}}}`)
		})
		if got := client.ClockAhead(); got != 0 {
			t.Errorf("%s: ClockAhead() = %v before any response, want 0", c.name, got)
		}
		begin := time.Now()
		if _, err := client.Run(context.Background(), "r"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); c.least != 0 { // the Date may have aged by the duration of the request
			c.least, c.most = c.least-took, c.most+took
		}
		if got := client.ClockAhead(); got < c.least || got > c.most {
			t.Errorf("%s: ClockAhead() = %v, want %v to %v", c.name, got, c.least, c.most)
		}
	}
}

// A busy server's Date is sometimes old, so only a difference that all responses show is reported.
func TestClockAhead_IgnoresOldDates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	client := Client{clock: new(clock)}
	for _, old := range []time.Duration{5 * time.Second, 0} {
		header := http.Header{"Date": {now.Add(-old).Format(http.TimeFormat)}}
		client.clock.note(now, now, header)
	}
	if got := client.ClockAhead(); got != 0 {
		t.Errorf("ClockAhead() = %v, want 0: one Date was old", got)
	}
}
