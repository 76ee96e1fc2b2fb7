package process

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A process with an ended parent is known from the previous scan. A clone in another goroutine finds and kills it, but
// not the other children of the root.
func TestTree_CloneKillsKnownProcesses(t *testing.T) {
	other := treeStart(t, exec.Command("sh", "-c", "echo ready; read x; exit 7"))
	other.line(t)
	job := treeStart(t, exec.Command("sh", "-c", "sleep 300 </dev/null & echo $!; read x"))
	left, err := strconv.Atoi(job.line(t))
	must(t, err)
	t.Cleanup(func() { _ = syscall.Kill(left, syscall.SIGKILL) })
	tree := NewTree(Options{Root: os.Getpid(), Ignore: func(pid int) bool { return pid == other.cmd.Process.Pid }})
	defer tree.Close()
	for range 2 { // the second scan keeps descriptors open
		if u := treeRead(t, tree); u.Processes != 2 {
			t.Fatalf("usage before the kill %+v, want 2 processes", u)
		}
	}
	job.end()

	ended := make(chan int)
	go func() {
		rest := tree.Clone()
		met := 0
		for begin := time.Now(); time.Since(begin) < treePatience; time.Sleep(time.Millisecond) {
			n, err := rest.Kill()
			if err != nil {
				t.Error(err)
			}
			if n == 0 {
				break
			}
			met = max(met, n)
		}
		ended <- met
	}()
	if met := <-ended; met != 1 {
		t.Errorf("the clone killed %d processes, want 1", met)
	}
	if n, err := tree.CountLiving(); n != 0 || err != nil {
		t.Errorf("CountLiving = %d, %v; want 0, nil", n, err)
	}
	if other.end(); other.cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("other child of the root: %v, want exit status 7", other.cmd.ProcessState)
	}
}

func TestTree_CloneEmptyFindsProcessesBelowRoot(t *testing.T) {
	treeStart(t, exec.Command("sh", "-c", "echo ready; read x")).line(t)
	tree := NewTree(Options{Root: os.Getpid()})
	defer tree.Close()
	treeRead(t, tree)

	if n, err := tree.CloneEmpty().CountLiving(); n != 1 || err != nil {
		t.Errorf("CountLiving of an empty clone = %d, %v; want 1, nil", n, err)
	}
	if _, err := NewTree(Options{Root: 1 << 30}).CloneEmpty().Kill(); err == nil {
		t.Error("Kill with a missing root returned no error")
	}
}
