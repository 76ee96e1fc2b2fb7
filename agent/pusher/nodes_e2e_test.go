//go:build e2e

package pusher

import (
	"testing"
	"time"
)

// A server gets about 20 requests a second from a thousand running nodes, and 40 when all nodes end at the same time.
// All measured values arrive in one run.
func TestE2E_Pace_LimitsRequestsOfAThousandNodes(t *testing.T) {
	t.Parallel()
	inCluster(t, thousand(), func(t *testing.T, c *cluster) {
		const known = 150  // seconds until all nodes send: 80 until the run exists, 50 to find it, 20 to spare
		c.run(known + 100) // each node sends two more times
		peak, mean := most(c.seconds[:known])
		t.Logf("until the run is known: %.1f requests a second, peak %d", mean, peak)
		if peak > 80 {
			t.Errorf("%d requests in a second until the run is known, want at most 80", peak)
		}
		peak, mean = most(c.seconds[known:])
		t.Logf("while the jobs run: %.1f requests a second, peak %d", mean, peak)
		if peak > 30 || mean > 21 || mean < 19 {
			t.Errorf("%.1f requests a second while the jobs run, peak %d; want 19 to 21, a peak of at most 30", mean, peak)
		}

		at := len(c.seconds)
		c.end(t, 3*time.Minute, func(node int) int { return map[bool]int{true: 9}[node == 123] })
		peak, mean = most(c.seconds[at:])
		t.Logf("at the end: %.1f requests a second, peak %d, for %d s", mean, peak, len(c.seconds)-at)
		if peak > 50 || mean > 42 {
			t.Errorf("%.1f requests a second at the end, peak %d; want at most 42, a peak of at most 50", mean, peak)
		}
		c.wantAll(t, "FAILED", "9")
	})
}
