package process

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// A process continues to run after its first thread has ended, and its memory can still be measured.
func TestTree_MeasuresMemoryWithoutFirstThread(t *testing.T) {
	tree := treeOwn(t)
	j := treeStart(t, treeSelf("leaderless 32"))
	j.line(t)

	u := treeWant(t, tree, j.cmd.Process.Pid)
	if p := tree.jobProcs[0]; p.state != 'Z' || p.dead() || u.Processes != 1 {
		t.Fatalf("process in state %c with %v threads, usage %+v; want state Z, but 1 living process", p.state, p.threads, u)
	}
	if u.MemoryKind != "pss" || u.Memory < 32<<20 || u.Memory > 256<<20 || treeFailed(u) {
		t.Errorf("usage %+v, want a PSS of 32 to 256 MiB without failures", u)
	}
}

// The sum omits a process that is about to end and has released its memory, so the memory of the other processes
// remains known.
func TestTree_OmitsMemoryOfEndingProcess(t *testing.T) {
	tree := treeOwn(t)
	other := treeStart(t, treeSelf("linger 1"))
	other.line(t)
	alone := treeRead(t, tree)

	ending := treeStart(t, treeSelf("leaderless 32"))
	ending.line(t)
	pid := ending.cmd.Process.Pid
	if u := treeRead(t, tree); u.MemoryKind != "pss" || u.Memory < alone.Memory+32<<20 {
		t.Fatalf("usage of both processes %+v, want a PSS at least 32 MiB above the usage of one, %+v", u, alone)
	}

	treeKeepEnding(t, pid)
	for range 2 {
		tree := treeOwn(t) // a new Tree does not defer its first measurement
		u := treeRead(t, tree)
		if p := findProc(tree.all, int32(pid)); p == nil || p.class != inJob || p.state != 'Z' || p.dead() {
			t.Fatalf("entry of the ending process %+v, want class inJob and state Z, but not dead", p)
		}
		if u.MemoryKind != "pss" || treeFailed(u) || u.Memory <= 0 || u.Memory > alone.Memory+16<<20 {
			t.Errorf("usage during the end of a process %+v, want about the same PSS as without it, %+v", u, alone)
		}
	}
}

// treeFailed reports whether a file could not be read. Only root may read the storage I/O of a process without its
// first thread.
func treeFailed(u TreeUsage) bool {
	return u.Failed["stat"] != nil || u.Failed["memory"] != nil || u.Failed["io"] != nil && os.Geteuid() == 0
}

// treeKeepEnding kills a process but keeps it from ending completely until the test is over: its first thread has
// ended, but another thread is traced and has not been waited for.
func treeKeepEnding(t *testing.T, pid int) {
	t.Helper()
	type tracee struct {
		tid int
		err error
	}
	traced, over := make(chan tracee), make(chan struct{})
	go func() {
		runtime.LockOSThread() // ptrace requires the same thread for all calls
		defer runtime.UnlockOSThread()
		tid, err := treeTrace(pid)
		traced <- tracee{tid, err}
		<-over
		if err == nil {
			_, _ = unix.Wait4(tid, nil, unix.WALL, nil)
		}
		close(traced)
	}()
	t.Cleanup(func() {
		close(over)
		<-traced
	})
	if thread := <-traced; thread.err != nil {
		t.Skipf("needs ptrace(2), which is not permitted here: %v", thread.err)
	}

	must(t, syscall.Kill(pid, syscall.SIGKILL))
	for begin := time.Now(); treeStates(pid) != "ZZ"; time.Sleep(time.Millisecond) {
		if time.Since(begin) > treePatience {
			t.Fatalf("thread states = %s, want ZZ", treeStates(pid))
		}
	}
}

// treeStates returns the states of a process's threads, one letter per thread.
func treeStates(pid int) (states string) {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		data, _ := os.ReadFile(path)
		var f [1][]byte
		procfile.SplitStat(data, f[:])
		states += string(f[0])
	}
	return states
}

// treeTrace traces a thread other than the first of a process, and returns its ID.
func treeTrace(pid int) (tid int, err error) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}

	for _, e := range threads {
		tid, err := strconv.Atoi(e.Name())
		if err != nil || tid == pid {
			continue
		}
		_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, 0, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		return tid, nil
	}
	return 0, fmt.Errorf("process %d has only one thread", pid)
}
