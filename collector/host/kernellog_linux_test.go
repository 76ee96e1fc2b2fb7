package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// logOf is the kernel's log from now on.
func logOf(t testing.TB) *kernelLog {
	t.Helper()
	l := openKernelLog()
	if l == nil {
		t.Skip("the kernel's log cannot be read (/dev/kmsg): run the tests as root")
	}
	t.Cleanup(l.close)
	return l
}

// killForMemory has the kernel kill a process for want of memory in a group of its own, v1.
func killForMemory(t *testing.T) (group string, pid int) {
	t.Helper()
	const root = "/sys/fs/cgroup/memory"
	group = fmt.Sprintf("/perfagent-log-%d", time.Now().UnixNano())
	if err := os.Mkdir(root+group, 0o755); err != nil {
		t.Skipf("no control group of v1 can be made (%v): run the tests as root with systemd.unified_cgroup_hierarchy=0", err)
	}

	t.Cleanup(func() {
		for range 500 { // what was killed may still be on its way out
			if unix.Rmdir(root+group) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s cannot be removed", root+group)
	})

	for _, file := range []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"} {
		path := filepath.Join(root+group, file)
		if err := os.WriteFile(path, []byte("16777216"), 0); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}

	hog := exec.Command("/bin/sh", "-c", `echo $$ >"$0/cgroup.procs" && exec tail /dev/zero`, root+group)
	if err := hog.Run(); err == nil {
		t.Fatal("it was not killed")
	}
	return group, hog.Process.Pid
}

// What the log tells is of this run if it came after the beginning, whatever the clocks
// say: the log's own runs apart from the others.
// nobody is a foreign process.
func nobody(int) bool { return false }

func TestKernelLog_FindsVictims(t *testing.T) {
	l := logOf(t)
	start := Now()
	start.Mono += time.Hour // the log's clock is behind
	group, pid := killForMemory(t)
	now := start
	now.Mono += time.Second
	of := func(victims []Victim) *Victim {
		i := slices.IndexFunc(victims, func(v Victim) bool { return v.PID == pid })
		if i < 0 {
			return nil
		}
		return &victims[i]
	}

	l.read(start, now, nobody, maxKernelLog)
	v := of(l.victims())
	if v == nil || v.Process != "tail" || v.Host || v.Foreign {
		t.Fatalf("victim %+v, want process %d", v, pid)
	}

	if v.Group == "" && v.LimitGroup == "" {
		t.Log("the kernel left out the group, as it does after ten kills within 5 s")
	} else if v.Group != group || v.LimitGroup != group {
		t.Errorf("victim %+v, want it in %s", v, group)
	}

	if !v.At.Equal(start.Wall) {
		t.Errorf("time %v, want that of the start, %v: it cannot have been before", v.At, start.Wall)
	}
	if l.read(start, now, nobody, maxKernelLog); of(l.victims()) == nil {
		t.Error("what was found is forgotten")
	}
	later := logOf(t)
	later.read(Instant{}, now, nobody, maxKernelLog)
	if old := of(later.victims()); old != nil {
		t.Errorf("a log that was opened later tells %+v", old)
	}
}

// The newest kills are those that matter.
func TestKernelLog_IsBounded(t *testing.T) {
	l := logOf(t)
	for pid := range maxVictims {
		l.found = append(l.found, Victim{PID: -1 - pid})
	}
	_, pid := killForMemory(t)
	l.read(Now(), Now(), nobody, maxKernelLog)
	victims := l.victims()
	// Another test's may come after it, but none of those of before.
	at := slices.IndexFunc(victims, func(v Victim) bool { return v.PID == pid })
	if len(victims) != maxVictims || at < 0 || slices.ContainsFunc(victims[at:], func(v Victim) bool { return v.PID < 0 }) {
		t.Errorf("victims %+v, want %d, the newest of them process %d", victims, maxVictims, pid)
	}
}

// Where the log may not be read, nothing is told.
func TestReader_KernelLogUnreadable(t *testing.T) {
	r := NewReader(Options{})
	r.pollLog(Now())
	if v, whole := r.Victims(Now()); v != nil || whole {
		t.Errorf("victims %+v, all: %v", v, whole)
	}
	r.Close()
}

func BenchmarkPollKernelLog(b *testing.B) {
	l := logOf(b)
	for b.Loop() {
		l.read(Instant{}, Instant{}, nobody, maxKernelPoll)
	}
}

func BenchmarkOpenKernelLog(b *testing.B) {
	logOf(b)
	for b.Loop() {
		openKernelLog().close()
	}
}
