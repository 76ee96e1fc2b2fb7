package mlflow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// scripted returns a client for a server that sends the given responses in order and repeats the last one, and the
// times of the requests in seconds. It must be used in a synctest bubble.
func scripted(t *testing.T, cfg Config, answers ...func() (*http.Response, error)) (*Client, *[]float64) {
	t.Helper()
	cfg.URI = "http://h"
	c := client(t, cfg)
	start, asked := time.Now(), []float64{}
	c.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		n := min(len(asked), len(answers)-1)
		asked = append(asked, time.Since(start).Seconds())
		if r.Body != nil {
			io.Copy(io.Discard, r.Body)
		}
		return answers[n]()
	})
	return c, &asked
}

func answer(status int, body string, header ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return response(status, body, header...), nil }
}

func failing(err error) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, err }
}

func wantTimes(t *testing.T, got []float64, want ...float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("requests at %v s, want %v", got, want)
	}
	for i := range got {
		if got[i] < want[i]-1e-9 || got[i] > want[i]+1e-9 {
			t.Fatalf("requests at %v s, want %v", got, want)
		}
	}
}

func TestClient_WaitsLikeURLLib3BeforeRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := scripted(t, Config{MaxRetries: 7, BackoffFactor: 2}, answer(503, "busy"))
		if e := wantText(t, getRun(c), "503", "busy", "tried 8 times"); e == nil || !Temporary(e) {
			t.Errorf("Temporary(%v) = false, want true", e)
		}
		wantTimes(t, *asked, 0, 0, 4, 12, 28, 60, 124, 244) // the last wait is limited to 120 s
	})
}

func TestClient_AddsJitterToWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := scripted(t, Config{MaxRetries: 3, BackoffFactor: 0, BackoffJitter: 1}, answer(500, ""))
		if getRun(c) == nil {
			t.Error("Run returned no error, want an error after 3 retries")
		}
		if a := *asked; len(a) != 4 || a[1] != 0 || a[2] >= 1 || a[3]-a[2] >= 1 || a[3] == 0 {
			t.Errorf("requests at %v s, want 4: the second at 0, later ones within 1 s", a)
		}
	})
}

func TestClient_RetriesOnlyTemporaryFailures(t *testing.T) {
	t.Parallel()
	check := func(name string, retry bool, first func() (*http.Response, error)) {
		synctest.Test(t, func(t *testing.T) {
			c, asked := scripted(t, Config{MaxRetries: 2, BackoffFactor: 1}, first, answer(200, goodRun))
			err := getRun(c)
			if retry != (err == nil) || retry != (len(*asked) == 2) {
				t.Errorf("%s: %d requests, error %v; want a retry: %v", name, len(*asked), err, retry)
			}
			c.config.MaxRetries = 0
			*asked = nil
			if err := getRun(c); Temporary(err) != retry {
				t.Errorf("%s: Temporary(%v) = %v, want %v", name, err, Temporary(err), retry)
			}
		})
	}
	for _, status := range []int{408, 429, 500, 502, 503, 504} {
		check(fmt.Sprint(status), true, answer(status, ""))
	}
	for _, status := range []int{400, 401, 403, 404, 409, 501} {
		check(fmt.Sprint(status), false, answer(status, ""))
	}
	for _, err := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, io.EOF, errors.New("odd")} {
		check(err.Error(), true, failing(err))
	}
	for _, body := range []string{"<html>", "[1]", `{"run":5}`, `{"run":{}}}`, ""} {
		check(body, false, answer(200, body))
	}
	check("disabled", false, answer(503, "Endpoint: /x disabled due to the mlflow server running in `--artifacts-only` mode."))
	check("JSON cut off", true, answer(200, `{"run":{"info":{"run_id":"r`))
	check("response cut off", true, func() (*http.Response, error) {
		r := response(200, "")
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"run"`), failingReader{}))
		return r, nil
	})
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestCreateRun_IsNotRetriedAfterABrokenResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := scripted(t, Config{MaxRetries: 3}, answer(200, `{"run":`), answer(200, goodRun))
		_, err := c.CreateRun(context.Background(), NewRun{ExperimentID: "1"})
		if !Temporary(err) || len(*asked) != 1 {
			t.Errorf("%d requests, error %v; want 1 and a temporary error", len(*asked), err)
		}
	})
}

func TestClient_HonorsRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		header string
		ignore bool
		want   float64 // seconds until the second try
	}{
		{"7", false, 7}, {" 7 ", false, 7}, {"0", false, 0}, {"7", true, 0}, {"soon", false, 0}, {"-3", false, 0},
		{"", false, 0},
		{"Sat, 01 Jan 2000 00:00:09 GMT", false, 9}, {"Fri, 31 Dec 1999 00:00:00 GMT", false, 0},
		{"999999999", false, 6 * 3600},
		{"99999999999999999999999", false, 0},
	} {
		synctest.Test(t, func(t *testing.T) { // the clock starts at 2000-01-01 00:00 UTC
			c, asked := scripted(t, Config{MaxRetries: 1, IgnoreRetryAfter: tt.ignore},
				answer(429, "", "Retry-After", tt.header), answer(200, goodRun))
			check.Must(t, getRun(c))
			wantTimes(t, *asked, 0, tt.want)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c, _ := scripted(t, Config{}, answer(503, "", "Retry-After", "11"))
		if d := RetryAfter(getRun(c)); d != 11*time.Second {
			t.Errorf("RetryAfter = %v, want 11s", d)
		}
	})
}

func TestClient_StartsNoWaitBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := scripted(t, Config{MaxRetries: 9, BackoffFactor: 2}, answer(503, "full"))
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		start := time.Now()
		_, err := c.Run(ctx, "r1")
		if e := wantText(t, err, "503", "full", "tried 3 times"); e == nil || e.Status != 503 ||
			errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the error of the last response, with status 503", err)
		}
		wantTimes(t, *asked, 0, 0, 4)
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("returned after %v, want 4s: the next wait would end at 12 s", took)
		}
	})
}

func TestClient_ErrorAtTheDeadlineHasTheLastFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{URI: "http://h", MaxRetries: 9, BackoffFactor: 1})
		asked := 0
		c.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			if asked++; asked == 1 {
				return response(502, "<title>Bad gateway</title>"), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		_, err := c.Run(ctx, "r1")
		wantText(t, err, `get run "r1"`, "http://h/api", "no response in time", "before that", "502", "Bad gateway")
		if !errors.Is(err, context.DeadlineExceeded) || !Temporary(err) {
			t.Errorf("error %v, temporary %v; want a temporary context.DeadlineExceeded", err, Temporary(err))
		}

		cause := errors.New("the job is over")
		ctx2, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		_, err = c.Run(ctx2, "r1")
		wantText(t, err, "gave up")
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("error %#v, want context.Canceled and its cause", err)
		}
	})
}

func TestClient_RetriesEndWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := scripted(t, Config{MaxRetries: 9, BackoffFactor: 100}, answer(503, "full"))
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		_, err := c.Run(ctx, "r1")
		wantText(t, err, "503", "full")
		if !errors.Is(err, context.Canceled) || len(*asked) != 2 || time.Since(start) != 3*time.Second {
			t.Errorf("error %v after %v and %d requests, want context.Canceled after 3s and 2 requests", err, time.Since(start), len(*asked))
		}
	})
}

func TestClient_TimeoutEndsARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Config{URI: "http://h", MaxRetries: 1, Timeout: 5 * time.Second})
		c.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		start, err := time.Now(), getRun(c)
		wantText(t, err, "no response within 5s", "MLFLOW_HTTP_REQUEST_TIMEOUT", "tried 2 times")
		if !Temporary(err) || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v, want a temporary error after 10s", err, time.Since(start))
		}
	})
}

// The timeout also ends a response body that arrives byte by byte.
func TestClient_TimeoutEndsASlowBody(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := io.WriteString(w, " "); err != nil || r.Context().Err() != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}))
	defer server.Close()
	c := client(t, Config{URI: server.URL, Timeout: 100 * time.Millisecond})
	start, err := time.Now(), getRun(c)
	wantText(t, err, "no response within 100ms")
	if !Temporary(err) || time.Since(start) > time.Minute {
		t.Errorf("%v after %v, want a temporary error within a minute", err, time.Since(start))
	}
}

// OnWait reports a long wait and its operation, once for each try.
func TestConfig_OnWaitReportsEachLongWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told, began := make(chan string, 9), time.Now()
		c := &Client{config: Config{URI: "http://host", Timeout: 30 * time.Second, MaxRetries: 1,
			OnWait: func(op string, limit time.Duration) {
				told <- fmt.Sprintf("%s, %v: after %v", op, limit, time.Since(began))
			}}, redactor: newRedactor(Config{}), clock: new(clock)}
		c.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		err := c.do(t.Context(), c.newGet("search experiments", "experiments/search", nil, new(struct{})))
		if err == nil || len(told) != 2 {
			t.Fatalf("OnWait was called %d times, error %v; want 2 times and an error", len(told), err)
		}
		if first, second := <-told, <-told; first != "search experiments, 30s: after 5s" || second != "search experiments, 30s: after 35s" {
			t.Errorf("OnWait got %q and %q, want the operation, 30s, and 5s and 35s after the start", first, second)
		}

		c.transport = roundTrip(func(r *http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED })
		_ = c.do(t.Context(), c.newGet("search experiments", "experiments/search", nil, new(struct{})))
		time.Sleep(time.Minute)
		if len(told) > 0 {
			t.Errorf("OnWait got %q, want no call: the server responds immediately", <-told)
		}
	})
}

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
		check.Value(client.Run(context.Background(), "r"))(t)
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
