package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// The CPU time of sleeping processes differs from the scheduler's statistics by much less than a tick.
func TestTree_CPUTimeIsAccurateWithinATick(t *testing.T) {
	const n = 5
	tree := treeOwn(t)
	tree.Next.Now = true
	before, err := tree.Read()
	must(t, err)
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
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	must(t, err)
	s, err := parseStat(data, int32(pid))
	must(t, err)
	return string(s.state)
}

func TestTree_MeasuresMemoryOnlyIfRequested(t *testing.T) {
	tree := treeOwn(t)
	treeStart(t, exec.Command("sh", "-c", "echo ready; read x")).line(t)
	for _, wanted := range []bool{false, true, false} {
		tree.Next.NoMemory = !wanted
		u, err := tree.Read()
		if err != nil || u.MemoryFresh != wanted || u.Processes < 1 {
			t.Errorf("usage %+v, error %v; want MemoryFresh = %v", u, err, wanted)
		}
	}
}
