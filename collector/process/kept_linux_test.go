package process

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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
		if u.Processes != 1 || u.CPUSeconds != before.CPUSeconds {
			t.Errorf("CPU time = %v s, want %v s as before, and 1 process; usage %+v", u.CPUSeconds, before.CPUSeconds, u)
		}
		return findProc(tree.all, int32(pid)).faults == mark
	}
	kept := 0
	for range 3 * reread {
		if stays() {
			kept++
		}
	}
	if kept != 3*(reread-1) {
		t.Errorf("%d of %d scans did not read the stat, want %d", kept, 3*reread, 3*(reread-1))
	}

	for (pid+tree.scans)%reread == 0 { // the next scan would read the stat even if the process had not run
		treeRead(t, tree)
	}
	findProc(tree.all, int32(pid)).faults = mark
	if _, err := j.input.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
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
