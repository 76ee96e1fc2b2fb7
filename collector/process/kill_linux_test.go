package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// A process with an ended parent is known from the previous scan. A clone in another goroutine finds and kills it, but
// not the other children of the root.
func TestTree_CloneKillsKnownProcesses(t *testing.T) {
	other := treeStart(t, exec.Command("sh", "-c", "echo ready; read x; exit 7"))
	other.line(t)
	job := treeStart(t, exec.Command("sh", "-c", "sleep 300 </dev/null & echo $!; read x"))
	left := check.Value(strconv.Atoi(job.line(t)))(t)
	t.Cleanup(func() { _ = syscall.Kill(left, syscall.SIGKILL) })
	tree := NewTree(Options{Root: os.Getpid(), Ignore: func(pid int) bool { return pid == other.cmd.Process.Pid }})
	defer tree.Close()
	for range 2 { // the second scan keeps descriptors open
		u := treeRead(t, tree)
		check.True(t, u.Processes == 2, "usage before the kill %+v, want 2 processes", u)
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
	met := <-ended
	check.True(t, met == 1, "the clone killed %d processes, want 1", met)
	n, err := tree.CountLiving()
	check.True(t, n == 0 && err == nil, "CountLiving = %d, %v; want 0, nil", n, err)
	if other.end(); other.cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("other child of the root: %v, want exit status 7", other.cmd.ProcessState)
	}
}

func TestTree_CloneEmptyFindsProcessesBelowRoot(t *testing.T) {
	treeStart(t, exec.Command("sh", "-c", "echo ready; read x")).line(t)
	tree := NewTree(Options{Root: os.Getpid()})
	defer tree.Close()
	treeRead(t, tree)

	n, err := tree.CloneEmpty().CountLiving()
	check.True(t, n == 1 && err == nil, "CountLiving of an empty clone = %d, %v; want 1, nil", n, err)
	_, err = NewTree(Options{Root: 1 << 30}).CloneEmpty().Kill()
	check.True(t, err != nil, "Kill with a missing root returned no error")
}

// The relation of a process is known if one of the two newest scans found the process.
func TestTree_ScannedRelationCoversTwoScans(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 80})
	p.put(treeLine{pid: 210, parent: 100, start: 81}) // ignored
	p.family("300<1@60 301<300@61")
	tree := p.tree(func(pid int) bool { return pid == 210 })
	want := func(relation Relation, pids ...int) {
		t.Helper()
		for _, pid := range pids {
			same(t, fmt.Sprintf("ScannedRelation(%d)", pid), tree.ScannedRelation(pid), relation)
		}
	}

	want(UnknownRelation, 200, 300)
	treeRead(t, tree)
	want(Foreign, 1, 210, 300, 301)
	want(InJob, 200)
	want(UnknownRelation, 299, 0, -1, 1<<40)
	p.end(200)
	p.end(300)
	p.end(301)
	treeRead(t, tree)
	want(Foreign, 300, 301)
	want(InJob, 200)
	p.put(treeLine{pid: 300, parent: 100, start: 90}) // a new process with the same ID
	treeRead(t, tree)
	want(InJob, 300)
	want(UnknownRelation, 301)
}

// CurrentRelation follows the current parents of a process, without a scan.
func TestTree_CurrentRelationFollowsParents(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & echo $!; read -r x")
	in := check.Value(cmd.StdinPipe())(t)
	out := check.Value(cmd.StdoutPipe())(t)
	must(t, cmd.Start())
	var below int
	check.Value(fmt.Fscan(out, &below))(t)
	self, child := os.Getpid(), cmd.Process.Pid
	is := func(ignored int) func(int) bool { return func(pid int) bool { return pid == ignored } }
	for name, c := range map[string]struct {
		o    Options
		pid  int
		want Relation
	}{
		"child of the root":           {Options{Root: self}, child, InJob},
		"grandchild of the root":      {Options{Root: self, Ignore: is(0)}, below, InJob},
		"ignored child":               {Options{Root: self, Ignore: is(child)}, child, Foreign},
		"child of an ignored process": {Options{Root: self, Ignore: is(child)}, below, Foreign},
		"root":                        {Options{Root: self}, self, Foreign},
		"process 1":                   {Options{Root: self}, 1, Foreign},
		"child of another root":       {Options{Root: child}, below, InJob},
		"another root":                {Options{Root: child}, child, Foreign},
		"missing process":             {Options{Root: self}, 1 << 30, UnknownRelation},
		"member":                      {Options{Members: []int{child}}, child, InJob},
		"child of a member":           {Options{Members: []int{child}, Ignore: is(self)}, below, InJob},
		"ignored parent of a member":  {Options{Members: []int{child}, Ignore: is(self)}, self, Foreign},
		"parent of a member":          {Options{Members: []int{below}}, child, Foreign},
	} {
		same(t, fmt.Sprintf("%s: CurrentRelation(%d)", name, c.pid), NewTree(c.o).CurrentRelation(c.pid), c.want)
	}

	p, err := os.FindProcess(below)
	check.True(t, err == nil && p.Kill() == nil, "cannot kill process %d: %v", below, err)
	in.Close()
	if cmd.Wait(); NewTree(Options{Root: self}).CurrentRelation(child) != UnknownRelation {
		t.Error("CurrentRelation of an ended process is not UnknownRelation")
	}
}
