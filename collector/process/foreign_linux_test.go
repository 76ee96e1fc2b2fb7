package process

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// The relation of a process is known if one of the two newest scans found the process.
func TestTree_ScannedRelationCoversTwoScans(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 80})
	p.put(treeLine{pid: 210, parent: 100, start: 81}) // ignored
	p.put(treeLine{pid: 300, parent: 1, start: 60})
	p.put(treeLine{pid: 301, parent: 300, start: 61})
	tree := p.tree(func(pid int) bool { return pid == 210 })
	want := func(relation Relation, pids ...int) {
		t.Helper()
		for _, pid := range pids {
			if got := tree.ScannedRelation(pid); got != relation {
				t.Errorf("ScannedRelation(%d) = %v, want %v", pid, got, relation)
			}
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
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var below int
	if _, err := fmt.Fscan(out, &below); err != nil {
		t.Fatal(err)
	}
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
		if got := NewTree(c.o).CurrentRelation(c.pid); got != c.want {
			t.Errorf("%s: CurrentRelation(%d) = %v, want %v", name, c.pid, got, c.want)
		}
	}

	if p, err := os.FindProcess(below); err != nil || p.Kill() != nil {
		t.Errorf("cannot kill process %d: %v", below, err)
	}
	in.Close()
	if cmd.Wait(); NewTree(Options{Root: self}).CurrentRelation(child) != UnknownRelation {
		t.Error("CurrentRelation of an ended process is not UnknownRelation")
	}
}
