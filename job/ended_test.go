//go:build linux && (amd64 || arm64)

package job

import (
	"math"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// TakeEnded returns a bounded number of processes without losing CPU time: the main process and the processes with the
// most CPU time are kept individually.
func TestJob_TakeEndedIsBoundedWithoutLosingCPUTime(t *testing.T) {
	j := &Job{pid: 7, last: lastStat{known: true, alone: true, start: time.Hour, children: 0}}
	end := func(pid int, ms int64) {
		j.keepEnded(pid, 0, syscall.Rusage{Utime: syscall.NsecToTimeval(ms * 1e6), Maxrss: 5})
	}
	const n = 10 * maxEnded
	end(7, 1)
	sum := 0.001
	for i := range int64(n) {
		end(1000+int(i), 10*i)
		sum += 0.01 * float64(i)
	}

	list := j.TakeEnded()
	if len(list) != maxEnded+1 {
		t.Fatalf("TakeEnded returned %d processes, want %d", len(list), maxEnded+1)
	}
	seen := make(map[int]bool)
	for _, e := range list {
		seen[e.PID] = true
		sum -= e.CPUSeconds
		if e.Main != (e.PID == 7) || e.Main && (e.Start != time.Hour || e.MaxRSS != 5<<10) {
			t.Errorf("%+v, want Main only for process 7, with Start 1h and MaxRSS 5 KiB", e)
		}
	}
	if !seen[7] || !seen[0] || !seen[1000+n-1] || !seen[1000+n-maxEnded+1] || math.Abs(sum) > 1e-9 {
		t.Errorf("%v s of CPU time lost, want 0; kept processes %v, want 7, 0 (the sum of the rest) and the last %d",
			sum, seen, maxEnded-1)
	}
	if again := j.TakeEnded(); len(again) != 0 {
		t.Errorf("second TakeEnded returned %v, want nothing", again)
	}
}

// TakeEnded separates the main process's usage from its children's, which rusage does not.
func TestJob_TakeEndedSeparatesMainProcessFromChildren(t *testing.T) {
	const burn = `i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done`
	for _, c := range []struct {
		name, script string
		own, others  bool
	}{
		{"alone", burn, true, false},
		{"with children", `sh -c '` + burn + `'; :`, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sh := check.Value(exec.LookPath("sh"))(t)
			j := check.Value(Start(Command{Args: []string{sh, "-c", c.script}}, nil))(t)
			status := j.Wait()
			list := j.TakeEnded()
			if len(list) != 1 || !list[0].Main || list[0].PID != status.PID || list[0].Start == 0 || list[0].At < list[0].Start {
				t.Fatalf("TakeEnded returned %+v, want only the main process %d, with start and end", list, status.PID)
			}
			e := list[0]
			if whole := status.Usage.UserSeconds + status.Usage.SystemSeconds; math.Abs(e.CPUSeconds-whole) > 1e-9 {
				t.Errorf("CPU time %v s, want %v s as in rusage", e.CPUSeconds, whole)
			}
			if children := e.ChildrenSeconds > 0.5*e.CPUSeconds; children != c.others {
				t.Errorf("%+v: most CPU time used by children: %v, want %v", e, children, c.others)
			}
			if j.last.alone != c.own {
				t.Errorf("alone (main process reaped no children) = %v, want %v", j.last.alone, c.own)
			}
		})
	}
}
