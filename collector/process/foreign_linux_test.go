package process

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// The relation of a process is known while one of the two newest scans has it.
func TestTree_ScannedRelation(t *testing.T) {
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
	p.put(treeLine{pid: 300, parent: 100, start: 90}) // another process took the ID
	treeRead(t, tree)
	want(InJob, 300)
	want(UnknownRelation, 301)
}

// The relation of a process follows from its current parents, without a scan.
func TestTree_CurrentRelation(t *testing.T) {
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
		"a child of the root":           {Options{Root: self}, child, InJob},
		"below the root":                {Options{Root: self, Ignore: is(0)}, below, InJob},
		"an ignored child":              {Options{Root: self, Ignore: is(child)}, child, Foreign},
		"below an ignored child":        {Options{Root: self, Ignore: is(child)}, below, Foreign},
		"the root":                      {Options{Root: self}, self, Foreign},
		"the first process":             {Options{Root: self}, 1, Foreign},
		"below another root":            {Options{Root: child}, below, InJob},
		"above that root":               {Options{Root: child}, child, Foreign},
		"none":                          {Options{Root: self}, 1 << 30, UnknownRelation},
		"named":                         {Options{Members: []int{child}}, child, InJob},
		"below a named one":             {Options{Members: []int{child}, Ignore: is(self)}, below, InJob},
		"the one that follows the rest": {Options{Members: []int{child}, Ignore: is(self)}, self, Foreign},
		"not below a named one":         {Options{Members: []int{below}}, child, Foreign},
	} {
		if got := NewTree(c.o).CurrentRelation(c.pid); got != c.want {
			t.Errorf("%s: CurrentRelation(%d) = %v, want %v", name, c.pid, got, c.want)
		}
	}

	if p, err := os.FindProcess(below); err != nil || p.Kill() != nil {
		t.Errorf("process %d could not be killed: %v", below, err)
	}
	in.Close()
	if cmd.Wait(); NewTree(Options{Root: self}).CurrentRelation(child) != UnknownRelation {
		t.Error("the relation of a process that is gone is known")
	}
}
