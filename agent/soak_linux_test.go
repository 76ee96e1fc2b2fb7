package agent

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// soakFlag makes TestSoak simulate a whole week.
var soakFlag = flag.Bool("soak", false, "simulate seven days instead of two hours")

const (
	soakNet   = 64 << 10  // bytes received in each second
	soakBurst = 256 << 20 // extra bytes received in second burstAt
	soakBusy  = 25        // busy ticks of each CPU in each second
)

// A soak is a host under a known load. It is also an observer that advances the host by a second at each sample.
type soak struct {
	t       *testing.T
	proc    string
	journal func() string
	burstAt int
	began   time.Time

	seconds  int
	received int
	largest  int64    // largest size of the journal, in bytes
	heaps    []uint64 // heap bytes in use after each tenth of the time
	tenth    int
}

func (k *soak) now() host.Instant {
	d := time.Since(k.began)
	return host.Instant{Wall: k.began.Add(d), Mono: time.Hour + d, Boot: 2*time.Hour + d}
}

func (k *soak) begin(*collector.Recording) {}

func (k *soak) end() []reporter.Missing { return nil }

// observe advances the kernel files by a second.
func (k *soak) observe(*collector.Sample, *collector.Recording) {
	k.seconds++
	k.received += soakNet
	if k.seconds == k.burstAt {
		k.received += soakBurst
	}
	k.write()
	if st, err := os.Stat(k.journal()); err == nil {
		k.largest = max(k.largest, st.Size())
	}
	if k.seconds%k.tenth == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // empties pools
		runtime.ReadMemStats(&m)
		k.heaps = append(k.heaps, m.HeapAlloc)
	}
}

func (k *soak) write() {
	busy, idle := 1000+soakBusy*k.seconds, 100_000+(100-soakBusy)*k.seconds
	k.file("stat", "cpu 0 0 0 0 0 0 0\ncpu0 %d 0 0 %d 0 0 0\ncpu1 %d 0 0 %d 0 0 0\n", busy, idle, busy, idle)
	k.file("net/dev", "a|b\nc|d\nlo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\neth0: %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", k.received)
}

func (k *soak) file(name, format string, values ...any) {
	if err := os.WriteFile(filepath.Join(k.proc, name), fmt.Appendf(nil, format, values...), 0o644); err != nil {
		k.t.Error(err)
	}
}

// A recording of several days uses no more memory and disk than in its first hours, and its totals are exact.
func TestSoak(t *testing.T) {
	seconds := 2 * 3600
	if *soakFlag {
		seconds = 7 * 24 * 3600
	} else {
		testenv.SkipIfShort(t, "some seconds, to simulate two hours")
	}
	dir := soakDir(t)
	t.Setenv("TMPDIR", dir)
	proc, sys := collectortest.CopyOfTree(t)
	t.Setenv("HOST_PROC", proc)
	t.Setenv("HOST_SYS", sys)

	synctest.Test(t, func(t *testing.T) {
		s := newSession(Options{Out: dir, MLflow: Off}.withDefaults(), nil)
		k := &soak{t: t, proc: proc, burstAt: seconds * 4 / 7, tenth: seconds / 10, began: time.Now()}
		s.nodeRole.measuresHost, s.now = true, k.now
		check.Must(t, s.beginRecording(sidecarRuns))
		k.journal = s.output.journalPath
		s.addObserver(k)
		k.write()

		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second+time.Second/2)
		defer cancel()
		rec := check.Value(s.sample(ctx, host.JobOptions{}, func(*collector.Sampler) {}))(t)
		result := check.Value(s.finishRecording(s.input(rec, s.observers.end())))(t)
		k.check(t, result, seconds)
	})
}

// soakDir returns a directory for all files, in memory if possible, because a week has 200,000 syncs.
func soakDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "perfagent-soak-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// check checks the report and the resources used.
func (k *soak) check(t *testing.T, result *Result, seconds int) {
	t.Helper()
	const mib = 1 << 20
	n := reportertest.ReadFile(t, result.ReportPath).Nodes["0"]
	// The last second's sample is followed by the closing sample, half a second later.
	if n.Sampling.Samples != int64(seconds)+1 || n.Sampling.MissedTicks != 0 || n.Sampling.LongestGapSeconds != 1 {
		t.Errorf("sampling %+v, want %d samples, none missed, and no gap above 1 s", n.Sampling, seconds+1)
	}
	for name, want := range map[string]float64{
		"total_net_io_ext_recv_mb": float64(k.received-soakNet) / mib,
		"cpu_avg_utilization_pct":  soakBusy,
		"node_cpu_hours":           2 * float64(seconds) / 3600,
	} {
		if got, ok := n.Metrics[name]; !ok || math.Abs(got-want) > want/10_000 {
			t.Errorf("%s is %v, want %v within 0.01 %%", name, got, want)
		}
	}
	for _, m := range n.Missing {
		if m.Code != reporter.NoJob && m.Code != reporter.AgentNotApart && reportertest.WentWrong(m) {
			t.Errorf("the report lists the failure %+v in missing, want none", m)
		}
	}

	// A leak raises every reading, and momentary usage only some. So compare with the lowest of the last readings.
	first, last := k.heaps[1], slices.Min(k.heaps[len(k.heaps)-3:])
	st := check.Value(os.Stat(result.ReportPath))(t)
	t.Logf("%d samples; heap %.1f MiB after a fifth of the time and %.1f MiB at the end; journal up to %.2f MiB, report %.2f MiB",
		k.seconds, float64(first)/mib, float64(last)/mib, float64(k.largest)/mib, float64(st.Size())/mib)
	if last > first+mib || k.largest > 2*mib || st.Size() > 2*mib {
		t.Errorf("heap grew from %d to %d bytes, journal %d, report %d; want growth of at most 1 MiB, and at most 2 MiB each",
			first, last, k.largest, st.Size())
	}
}
