package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/procfile"
)

// A process continues to run after its first thread has ended, and its memory can still be measured.
func TestTree_MeasuresMemoryWithoutFirstThread(t *testing.T) {
	tree := treeOwn(t)
	j := treeStart(t, treeSelf("leaderless 32"))
	j.line(t)

	u := treeWant(t, tree, j.cmd.Process.Pid)
	if p := tree.jobProcs[0]; p.state != 'Z' || p.dead() || u.Processes != 1 {
		t.Errorf("process in state %c with %v threads, usage %+v; want state Z, but 1 living process", p.state, p.threads, u)
	}
	check.True(t, u.MemoryKind == "pss" && u.Memory >= 32<<20 && u.Memory <= 256<<20 && !treeFailed(u),
		"usage %+v, want a PSS of 32 to 256 MiB without failures", u)
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
		t.Errorf("usage of both processes %+v, want a PSS at least 32 MiB above the usage of one, %+v", u, alone)
	}

	treeKeepEnding(t, pid)
	for range 2 {
		tree := treeOwn(t) // a new Tree does not defer its first measurement
		u := treeRead(t, tree)
		if p := findProc(tree.all, int32(pid)); p == nil || p.class != inJob || p.state != 'Z' || p.dead() {
			t.Errorf("entry of the ending process %+v, want class inJob and state Z, but not dead", p)
		}
		check.True(t, u.MemoryKind == "pss" && !treeFailed(u) && u.Memory > 0 && u.Memory <= alone.Memory+16<<20,
			"usage during the end of a process %+v, want about the same PSS as without it, %+v", u, alone)
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

// treeAwait waits until process pid is in the given state.
func treeAwait(t *testing.T, pid int, state string) {
	t.Helper()
	for treeWaits(t, pid) != state {
		time.Sleep(time.Millisecond)
	}
}

// The stat of a process that has not run is read in only one of ten scans; in the others, a value that the test has set
// remains. Once the process runs, the next scan reads its stat.
func TestTree_DoesNotReadProcessThatHasNotRun(t *testing.T) {
	tree := treeOwn(t)
	j := treeStart(t, exec.Command("sh", "-c", "echo ready; read x; "+treeShort+"; echo ready; read x"))
	j.line(t)
	pid := j.cmd.Process.Pid
	treeAwait(t, pid, "S")
	before := treeRead(t, tree)

	const mark = 1 << 40
	stays := func() bool {
		findProc(tree.all, int32(pid)).faults = mark
		u := treeRead(t, tree)
		check.True(t, u.Processes == 1 && u.CPUSeconds == before.CPUSeconds,
			"CPU time = %v s, want %v s as before, and 1 process; usage %+v", u.CPUSeconds, before.CPUSeconds, u)
		return findProc(tree.all, int32(pid)).faults == mark
	}
	kept := 0
	for range 3 * reread {
		if stays() {
			kept++
		}
	}
	check.True(t, kept == 3*(reread-1), "%d of %d scans did not read the stat, want %d", kept, 3*reread, 3*(reread-1))

	for (pid+tree.scans)%reread == 0 { // the next scan would read the stat even if the process had not run
		treeRead(t, tree)
	}
	findProc(tree.all, int32(pid)).faults = mark
	check.Value(j.input.Write([]byte("go\n")))(t)
	j.line(t)
	treeAwait(t, pid, "S")
	u, want := treeRead(t, tree), treeStat(pid)
	if p := findProc(tree.all, int32(pid)); p.faults != want.faults || p.own != want.own || !(u.CPUSeconds > before.CPUSeconds) {
		t.Errorf("stat %+v, want %+v; CPU time %v s, want more than %v s", p.stat, want, u.CPUSeconds, before.CPUSeconds)
	}
}

// A sleeping process has a new parent after its parent has ended.
func TestTree_NoticesAdoptionOfSleepingProcess(t *testing.T) {
	treeAdopt(t)
	for _, reaped := range []bool{true, false} {
		tree := treeOwn(t)
		j := treeStart(t, treeSelf("middle"))
		j.line(t)
		for range 2 {
			treeRead(t, tree)
		}
		middle := j.cmd.Process.Pid
		var daemon int
		for _, p := range tree.jobProcs {
			if int(p.pid) != middle {
				daemon = int(p.pid)
			}
		}

		treeMust(j.cmd.Process.Kill())
		for s := treeStat(middle); !s.dead(); s = treeStat(middle) {
			time.Sleep(time.Millisecond)
		}
		if reaped {
			j.cmd.ProcessState, _ = j.cmd.Process.Wait() // cmd.Wait would close the daemon's input
		}
		treeRead(t, tree)
		if p := findProc(tree.all, int32(daemon)); p == nil || int(p.ppid) != os.Getpid() {
			t.Errorf("parent reaped: %v; entry of the daemon %+v, want parent %d", reaped, p, os.Getpid())
		}
		treeMust(j.input.Close()) // ends the daemon
		var status unix.WaitStatus
		if _, err := unix.Wait4(daemon, &status, 0, nil); err != nil {
			t.Error(err)
		}
		tree.Close()
	}
}
