package host

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/process"
)

// aBusyChild starts a process that uses CPU time until the test ends. It returns after the process has used some.
func aBusyChild(t *testing.T) (pid int) {
	t.Helper()
	child := exec.Command("sh", "-c", "while :; do :; done")
	must(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	awaitCPU(t, child.Process.Pid, 100*time.Millisecond)
	return child.Process.Pid
}

// awaitCPU waits until the process pid has used more additional CPU time.
func awaitCPU(t *testing.T, pid int, more time.Duration) {
	t.Helper()
	begin, _ := process.CPUTime(pid)
	for {
		used, ok := process.CPUTime(pid)
		if !ok {
			t.Fatalf("process %d has no CPU clock; it may have ended", pid)
		}
		if used >= begin+more {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A group counts less than the job has certainly used if processes are in another group or the group's counter is a
// stub. In that case, the same Reading already uses the numbers of the processes.
func TestReader_UsesProcessesIfGroupCountsLess(t *testing.T) {
	busy := aBusyChild(t)
	for name, test := range map[string]struct {
		main, whole bool // whether the main process is known, and whether the processes can be found
		reaped      float64
		prove       bool
		want        bool
	}{
		"clock of the main process":            {main: true, want: true},
		"clock of the main process, processes": {main: true, whole: true, want: true},
		"wait4":                                {reaped: 1, want: true},
		"processes, verified in each Reading":  {whole: true, prove: true, want: true},
		"processes, verified occasionally":     {whole: true, want: true},
		"nothing known":                        {},
	} {
		for tries := 1; ; tries++ {
			root := t.TempDir()
			group := emptyGroupIn(t, root)
			write(t, root, "sys/fs/cgroup/job/memory.current", []byte("1048576\n"))
			reaped := ReapedUsage{}
			job := JobOptions{Source: JobFromCreated, Group: group, VerifyGroup: test.prove, Reaped: func() ReapedUsage { return reaped }}
			job.TreeErr = fmt.Errorf("they cannot be found")
			if test.whole {
				job.Tree, job.TreeErr = process.NewTree(process.Options{Root: os.Getpid()}), nil
			}
			now := time.Second
			r := openJob(t, job, &now)
			r.Baseline()

			if reaped.CPUSeconds = test.reaped; test.main {
				reaped.MainPID = busy
			}
			used, _ := process.CPUTime(busy)
			if !test.main && !test.whole {
				used = time.Duration(test.reaped * float64(time.Second))
			}
			now += tableEarly
			use := r.Read().Job
			counted := use.CPUSeconds - 7
			if use.Outside == test.want && counted >= 0.99*used.Seconds() && use.LateCPUSeconds == 0 {
				break
			}
			if tries == 5 { // on a busy machine, a scan may not end in time
				t.Errorf("%s: Outside = %v, want %v; counted %v s, want 99 %% of %v; LateCPUSeconds = %v, want 0",
					name, use.Outside, test.want, counted, used, use.LateCPUSeconds)
				break
			}
		}
	}
}

// If a group counts the whole job, its numbers are used, no matter what the processes do while they are read.
func TestReader_UsesGroupIfItCountsAll(t *testing.T) {
	busy := aBusyChild(t)
	root := t.TempDir()
	now := time.Second
	r := openJob(t, JobOptions{
		Source: JobFromCreated, Group: emptyGroupIn(t, root), VerifyGroup: true,
		Tree:   process.NewTree(process.Options{Root: os.Getpid()}),
		Reaped: func() ReapedUsage { return ReapedUsage{MainPID: busy} },
	}, &now)
	r.Baseline()
	for range 3 {
		now += time.Second
		used, _ := process.CPUTime(busy)
		counted := 7 + used.Seconds() + 1 // as counted by the kernel until the read
		write(t, root, "sys/fs/cgroup/job/cpu.stat", fmt.Appendf(nil, "usage_usec %.0f\n", counted*1e6))
		if use := r.Read().Job; use.Outside || math.Abs(use.CPUSeconds-counted) > 1e-5 {
			t.Errorf("CPUSeconds = %v, Outside = %v; want the group's %v, false", use.CPUSeconds, use.Outside, counted)
		}
		awaitCPU(t, busy, 10*time.Millisecond)
	}
}

// Usage that the group missed in several Readings is late, not part of the newest Reading.
func TestGroupCheck_ReportsEarlierUsageAsLate(t *testing.T) {
	var w groupCheck
	w.begin(0, &JobUsage{CPUSeconds: 7}, false)
	for _, c := range []struct {
		group, atLeast float64
		want           bool
	}{
		{7, 0, false}, {7, 0.019, false}, {7, 0.03, true}, {17, 10, false}, {17, 10.2, false}, {17, 11, true},
		{17, math.NaN(), false}, {math.NaN(), 10, false},
	} {
		if got := w.undercounts(c.group, c.atLeast); got != c.want {
			t.Errorf("undercounts(%v, %v) = %v, want %v", c.group, c.atLeast, got, c.want)
		}
	}

	for _, c := range []struct {
		last, scanned time.Duration
		late          float64
	}{{0, 0, 0}, {5, 5, 0}, {5, 1, 3}} {
		w := groupCheck{cpu: counterPair{7, 0}, last: c.last, scanned: c.scanned}
		use := JobUsage{CPUSeconds: 8}
		if w.addUncountedCPU(&use, 4); use.CPUSeconds != 11 || use.LateCPUSeconds != c.late {
			t.Errorf("%+v: CPUSeconds = %v, want 11; LateCPUSeconds = %v, want %v", c, use.CPUSeconds, use.LateCPUSeconds, c.late)
		}
		use = JobUsage{CPUSeconds: 9}
		if w.addUncountedCPU(&use, 6); use.CPUSeconds != 13 || use.LateCPUSeconds != 0 {
			t.Errorf("%+v, second call: CPUSeconds = %v, LateCPUSeconds = %v; want 13, 0", c, use.CPUSeconds, use.LateCPUSeconds)
		}
	}
}

// Memory without signs of a change is treated as measured in this Reading, and is also the lower bound.
func TestReader_UnchangedMemoryIsNotStale(t *testing.T) {
	aChild(t)
	now := time.Second
	r := openJob(t, JobOptions{Source: JobFromTree, Tree: process.NewTree(process.Options{Root: os.Getpid()})}, &now)
	r.Baseline()
	for range 4 {
		now += time.Second
		if use := r.Read().Job; use.MemoryStale || !(use.Memory > 0) || !(use.MemoryLowerBound > 0) {
			t.Errorf("Memory = %v, MemoryLowerBound = %v, MemoryStale = %v; want both known and not stale",
				use.Memory, use.MemoryLowerBound, use.MemoryStale)
		}
	}
}

func TestJobUsage_ReconcileTasksGivesEachProcessAThread(t *testing.T) {
	for _, c := range []struct{ processes, threads, wantProcesses, wantThreads float64 }{
		{1, 0, 1, 1}, {3, 2, 3, 3}, {2, 5, 2, 5}, {0, 1, nan, nan}, {0, 0, nan, nan}, {nan, nan, nan, nan}, {2, nan, 2, nan},
	} {
		use := JobUsage{Processes: c.processes, Threads: c.threads}
		use.reconcileTasks()
		same(t, fmt.Sprint(c), [2]float64{use.Processes, use.Threads}, [2]float64{c.wantProcesses, c.wantThreads})
	}
}

// While the main process lives, the job has at least one process, and at least as many threads as processes. If no
// process is visible, procfs hides them, so their usage is unknown rather than 0.
func TestReader_CountsLivingMainProcess(t *testing.T) {
	busy := aBusyChild(t)
	now, reaped := time.Second, ReapedUsage{MainPID: busy}
	for source, group := range map[string]func() *JobOptions{
		JobFromCreated: func() *JobOptions { return &JobOptions{Group: emptyGroup(t)} },
		JobFromTree: func() *JobOptions {
			return &JobOptions{Tree: process.NewTree(process.Options{Root: os.Getpid(), Ignore: func(int) bool { return true }})}
		},
	} {
		job := group()
		job.Source, job.Reaped = source, func() ReapedUsage { return reaped }
		r := openJob(t, *job, &now)
		r.Baseline()
		for n := range 3 {
			now += time.Second
			got := r.Read()
			if use := got.Job; source == JobFromCreated && (use.Processes != 1 || use.Threads < 1 && !math.IsNaN(use.Threads)) {
				t.Errorf("%s: %v processes, %v threads; want 1 process, and at least 1 thread or unknown",
					source, use.Processes, use.Threads)
			} else if source == JobFromTree && (!math.IsNaN(use.CPUSeconds) || (got.Failed[SourceJob] == errHidden) != (n > 0)) {
				t.Errorf("%s, reading %d: CPUSeconds = %v, want NaN; failures = %v, want errHidden only after the first reading",
					source, n, use.CPUSeconds, got.Failed)
			}
		}
	}
}
