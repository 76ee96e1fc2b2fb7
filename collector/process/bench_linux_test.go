package process

import (
	"os"
	"runtime"
	"testing"
	"time"
)

func BenchmarkTree300(b *testing.B)  { treeBenchmark(b, 300) }
func BenchmarkTree5000(b *testing.B) { treeBenchmark(b, 5000) }

// treeBenchmark measures the cost of a scan that reads n sleeping processes. The cost of a pass over their PSS and the
// cost of a pass over their storage I/O are reported separately, because these passes are less frequent.
func treeBenchmark(b *testing.B, n int) {
	treeSleepers(b, n)
	runtime.LockOSThread() // the benchmark reads the thread's CPU clock
	defer runtime.UnlockOSThread()
	t := NewTree(Options{Root: os.Getpid()})
	t.pageCost = 0
	defer t.Close()
	treeReadFreely(t)
	if u, err := t.Read(); err != nil || u.Processes < float64(n) || u.Failed["stat"] != nil {
		b.Fatalf("usage %+v, error %v; want at least %d processes without errors", u, err, n)
	}
	must(b, t.dir.open(t.o.Proc, false))
	t.dir.close()
	b.ReportAllocs()
	var cost [3]time.Duration
	measure := func(i int, what func()) {
		must(b, t.dir.open(t.o.Proc, false))
		begin := now()
		what()
		cost[i] += now().cpu - begin.cpu
		t.dir.close()
	}

	runs := 0
	for b.Loop() {
		measure(0, func() {
			must(b, t.scan())
			t.sum()
			t.addTickRemainders()
		})
		runs++
	}

	for range runs {
		t.rssOnly = nil
		measure(1, func() { t.readPSS(now()) })
		measure(2, func() { t.readIO(now()) })
	}

	for i, name := range []string{"scan-cpu-ms", "pss-cpu-ms", "io-cpu-ms"} {
		b.ReportMetric(cost[i].Seconds()*1e3/float64(runs), name)
	}
	b.ReportMetric(float64(len(t.all)), "processes-of-host")
}
