package host

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
)

// aChild starts a child process for the trees to find.
func aChild(t *testing.T) (pid int) {
	t.Helper()
	child := exec.Command("sleep", "60")
	must(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	environ := fmt.Sprintf("/proc/%d/environ", child.Process.Pid)
	for data := []byte(nil); len(data) == 0; { // empty during execve(2)
		data = check.Value(os.ReadFile(environ))(t)
	}
	return child.Process.Pid
}

// Only one Reading waits for the job's processes. A late result is not reported as current.
func TestJobTree_HungScanBlocksOnlyOneReading(t *testing.T) {
	aChild(t)
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var scans atomic.Int32
		tree := newJobTree(JobOptions{Tree: process.NewTree(process.Options{Root: os.Getpid(), Ignore: func(int) bool {
			scans.Add(1)
			<-release
			return false
		}})})
		var took []time.Duration
		read := func() (process.TreeUsage, error) {
			begin := time.Now()
			a, err := tree.read(treeRequest{Request: process.Request{NoMemory: true}})
			took = append(took, time.Since(begin))
			return a.use, err
		}
		for n := range 4 {
			tree.closing = n == 3
			_, err := read()
			wantError(t, fmt.Sprint("reading ", n), err, "no response within 2s")
			check.True(t, tree.scannedRelation(1) == process.UnknownRelation,
				"relation of process 1 is known while the scan hangs, want UnknownRelation")
		}
		same(t, "durations of the reads", took, []time.Duration{treeTimeout, 0, 0, treeTimeout})
		same(t, "number of scans", scans.Load(), int32(1))
		close(release)
		synctest.Wait()
		use, err := read()
		check.True(t, err == nil && use.Fresh && use.Processes >= 1 && math.IsNaN(use.Memory),
			"after the hang: usage = %+v, error = %v; want a fresh scan without memory", use, err)
		check.True(t, scans.Load() >= 2, "the late result was reported as the result of a new scan")
		seen := tree.scannedRelation(1)
		check.True(t, seen == process.Foreign, "relation of process 1 = %v, want Foreign (%v)", seen, process.Foreign)
	})
}

// At the end of a long scan, the values of the first processes are outdated. So its CPU time is not reported, unless
// all scans are long or it is the last one.
func TestJobTree_LongScanReportsNoCPUTime(t *testing.T) {
	aChild(t)
	synctest.Test(t, func(t *testing.T) {
		long, tree := true, newJobTree(JobOptions{})
		options := process.Options{Root: os.Getpid(), Ignore: func(int) bool {
			if long {
				time.Sleep(longScan + time.Millisecond)
			}
			return false
		}}
		tell := func() bool {
			tree.tree = process.NewTree(options) // the first scan of a tree is not deferred
			a, err := tree.read(treeRequest{})
			use, took := a.use, a.took
			check.True(t, err == nil && long == (took > longScan) && use.Processes >= 1,
				"scan of %v (long: %v): usage = %+v, error = %v; want a process and no error", took, long, use, err)
			return use.Fresh
		}
		var told []bool
		for n := range 6 {
			long, tree.closing = n < 3 || n == 5, n == 5
			told = append(told, tell())
		}
		same(t, "scans that report CPU time", told, []bool{false, true, false, true, true, true})
	})
}

// On a timeout, the helper's usage is the last known usage.
func TestHelper_TimeoutReturnsLastUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHelper()
		self := h.read(os.Getpid())
		check.True(t, self.Threads >= 1 && self.Processes >= 1,
			"usage of this process = %+v, want at least 1 process and 1 thread", self)
		hung := make(chan struct{})
		h.caller.Start(func() process.Usage { <-hung; return process.Usage{Processes: 100} })
		got := h.read(os.Getpid())
		check.True(t, got == self, "usage while the helper hangs = %+v, want the last known usage, %+v", got, self)
		if got, want := h.read(1<<30), (process.Usage{CPUSeconds: self.CPUSeconds}); got != want {
			t.Errorf("usage of a new helper that was not read = %+v, want the CPU time of the old helper, %+v", got, want)
		}
		close(hung)
		synctest.Wait()
		again := h.read(os.Getpid())
		check.True(t, again.Threads >= 1, "usage after the hang = %+v, want at least 1 thread", again)
	})
}

func TestJobTree_ReturnsPanicAsError(t *testing.T) {
	tree := newJobTree(JobOptions{}) // its methods panic
	for range 2 {
		_, err := tree.read(treeRequest{})
		wantError(t, "a tree whose methods panic", err, "damaged kernel file")
	}
}

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
