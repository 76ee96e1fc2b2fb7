//go:build e2e

package campaign

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// hourFlag is the duration of TestHour: an hour, or less to try out the test.
var hourFlag = flag.Duration("hour", 0, "record for so long at 100 Hz: 1h")

// Limits for an hour at 100 Hz. They apply to any duration.
const (
	mostResident = 32
	mostJournal  = 2 << 20
)

// During an hour at 100 Hz, memory and journal stay small, and at most one tick in a thousand is missed. The totals are
// correct.
func TestHour(t *testing.T) {
	if *hourFlag == 0 {
		t.Skip("needs an hour: go test -tags e2e -timeout 2h ./e2e/campaign -run TestHour -hour 1h")
	}
	j := job{t.TempDir(), 500, 1024, int(hourFlag.Milliseconds()), 7}
	p := launch(t, clitest.Perfagent(t, append([]string{"run", "--interval", "10ms", "--run-id", "hour",
		"--out", "out", "--"}, j.words(t)...)...))

	largest, done := int64(0), make(chan int)
	go func() { done <- p.waitFor(t, *hourFlag+patience) }()
	code, look := 0, time.NewTicker(time.Second)
	for ended := false; !ended; {
		select {
		case code = <-done:
			ended = true
			look.Stop()
		case <-look.C:
			if st, err := os.Stat(filepath.Join(p.Dir, "out/hour/node-0.jsonl")); err == nil {
				largest = max(largest, st.Size())
			}
		}
	}
	path := filepath.Join(p.Dir, "out/hour/node-0.json")
	if code != j.end {
		t.Fatalf("exit code = %d, want %d: %s", code, j.end, p.stderr.String())
	}

	r := reportertest.ReadFile(t, path)
	wantReport(t, path, j.story(t), j.end, false)
	n, want := r.Nodes["0"], hourFlag.Seconds()*100
	t.Logf("%d samples, %d ticks missed, the longest gap %.3f s; %s MiB resident, %.1f CPU seconds; journal up to %d bytes",
		n.Sampling.Samples, n.Sampling.MissedTicks, n.Sampling.LongestGapSeconds,
		strconv.FormatFloat(n.Agent.MaxRSSMB, 'f', 1, 64), n.Agent.CPUSeconds, largest)
	if float64(n.Sampling.Samples) < 0.999*want || n.Agent.MaxRSSMB > mostResident || largest > mostJournal || largest == 0 {
		t.Errorf("%d of %.0f samples, %.1f MiB resident, journal of %d bytes; want 99.9 %%, at most %v MiB, at most %d bytes",
			n.Sampling.Samples, want, n.Agent.MaxRSSMB, largest, mostResident, mostJournal)
	}
}
