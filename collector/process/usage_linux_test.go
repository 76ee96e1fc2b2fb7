package process

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

func TestUsageReader_SelfIsThisProcess(t *testing.T) {
	var r UsageReader
	u := r.Self()
	check.True(t, u.Processes == 1 && u.Threads >= 1 && u.Private > 0 && u.Private <= 1<<32,
		"usage of this process %+v, want 1 process and its memory", u)
	treeBurn(50)
	if again := r.Self(); again.CPUSeconds < u.CPUSeconds || again.CPUSeconds < 0.03 {
		t.Errorf("usage after 50 ms of work %+v, want at least 0.03 s and at least %+v", again, u)
	}
}

// A subtree is a process and all its descendants, even while they sleep.
func TestUsageReader_SubtreeIncludesDescendants(t *testing.T) {
	if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid())); err != nil {
		t.Skip("needs a kernel that lists children (CONFIG_PROC_CHILDREN)")
	}
	cmd := exec.Command("sh", "-c", "sleep 600 & sleep 600 & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})

	var r UsageReader
	var u Usage
	for begin := time.Now(); u.Processes != 3 && time.Since(begin) < 5*time.Minute; time.Sleep(time.Millisecond) {
		u = r.Subtree(cmd.Process.Pid)
	}
	check.True(t, u.Processes == 3 && u.Threads == 3 && u.Private > 0,
		"usage of a shell with two children %+v, want 3 processes, 3 threads and some memory", u)
}

func TestUsageReader_SubtreeOfMissingProcessIsZero(t *testing.T) {
	var r UsageReader
	u := r.Subtree(1 << 30)
	check.True(t, u == (Usage{}), "usage of a missing process %+v, want zero", u)
}

// The CPU time of sleeping processes differs from the scheduler's statistics by much less than a tick.
func TestTree_CPUTimeIsAccurateWithinATick(t *testing.T) {
	const n = 5
	tree := treeOwn(t)
	tree.Next.Now = true
	before := check.Value(tree.Read())(t)
	var pids []int
	for range n {
		j := treeStart(t, exec.Command("sh", "-c", treeShort+"; echo ready; read x"))
		j.line(t)
		pids = append(pids, j.cmd.Process.Pid)
	}

	var want float64
	for _, pid := range pids {
		for treeWaits(t, pid) != "S" {
			time.Sleep(time.Millisecond)
		}
		data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
		var ns float64
		if _, scanErr := fmt.Sscan(string(data), &ns); err != nil || scanErr != nil {
			t.Skipf("cannot read schedstat: read error %v, parse error %v", err, scanErr)
		}
		want += ns / 1e9
	}

	tree.Next.Now = true
	u, err := tree.Read()
	if got := u.CPUSeconds - before.CPUSeconds; err != nil || got < want-0.0005 || got > want+0.0005 {
		t.Errorf("CPU time of %d processes = %.4f s, want the scheduler's %.4f s within 0.5 ms; error %v", n, got, want, err)
	}
}

// treeWaits returns the state of a process, a letter such as "S".
func treeWaits(t *testing.T, pid int) string {
	t.Helper()
	data := check.Value(os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"))(t)
	s := check.Value(parseStat(data, int32(pid)))(t)
	return string(s.state)
}

func TestTree_MeasuresMemoryOnlyIfRequested(t *testing.T) {
	tree := treeOwn(t)
	treeStart(t, exec.Command("sh", "-c", "echo ready; read x")).line(t)
	for _, wanted := range []bool{false, true, false} {
		tree.Next.NoMemory = !wanted
		u, err := tree.Read()
		check.True(t, err == nil && u.MemoryFresh == wanted && u.Processes >= 1,
			"usage %+v, error %v; want MemoryFresh = %v", u, err, wanted)
	}
}

// A process that waits for its children is not a worker. A process without children is, and so is a process that uses
// CPU time while its children run.
func TestTree_WorkersExcludesWaitingParents(t *testing.T) {
	p := treeFixture(t)
	shell := treeLine{pid: 200, parent: 100, start: 60, ticks: [4]int{3, 0, 0, 0}}
	p.put(shell)
	p.put(treeLine{pid: 210, parent: 200, start: 70, ticks: [4]int{100, 0, 0, 0}})
	p.put(treeLine{pid: 220, parent: 210, start: 80})
	p.put(treeLine{pid: 230, parent: 220, start: 80, state: "Z"})
	tree := p.tree(nil)
	workers := func(want ...int) {
		t.Helper()
		treeRead(t, tree)
		got := tree.Workers()
		check.True(t, slices.Equal(got, want), "workers = %v, want %v", got, want)
	}
	treeRead(t, tree)
	tree.Workers()

	workers(220)
	shell.ticks[0] += 100
	p.put(shell)
	workers(200, 220)
	workers(220)

	p.replace(treeLine{pid: 220, parent: 200, start: 99})
	workers(210, 220)
}
