package host

import (
	"testing"
	"time"
)

// The processes of a job with a control group are scanned 1 s and 2 s after its start, then every 5 s, and at its end.
func TestJobReader_TableIsDueEarlyThenEveryFiveSeconds(t *testing.T) {
	for interval, want := range map[time.Duration][]time.Duration{
		time.Second:            {1e9, 2e9, 7e9, 12e9, 13e9},
		100 * time.Millisecond: {1e9, 2e9, 7e9, 12e9, 13e9},
		3 * time.Second:        {3e9, 9e9, 13e9},
	} {
		const begun = time.Hour
		j := jobReader{begun: begun}
		var got []time.Duration
		for at := interval; at < 13*time.Second; at += interval {
			if j.tableDue(begun + at) {
				got = append(got, at)
			}
		}
		if j.closing = true; j.tableDue(begun + 13*time.Second) {
			got = append(got, 13*time.Second)
		}
		same(t, interval.String(), got, want)
	}
}
