package process

import "testing"

// A process is known not to be the job's while one of the two newest scans has it, and
// whose it is is known.
func TestTree_Foreign(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 80})
	p.put(treeLine{pid: 210, parent: 100, start: 81}) // ignored
	p.put(treeLine{pid: 300, parent: 1, start: 60})
	p.put(treeLine{pid: 301, parent: 300, start: 61})
	tree := p.tree(func(pid int) bool { return pid == 210 })
	want := func(foreign bool, pids ...int) {
		t.Helper()
		for _, pid := range pids {
			if got := tree.Foreign(pid); got != foreign {
				t.Errorf("process %d: foreign %v, want %v", pid, got, foreign)
			}
		}
	}

	want(false, 200, 300)
	treeRead(t, tree)
	want(true, 1, 210, 300, 301)
	want(false, 200, 299, 0, -1, 1<<40)
	p.end(200)
	p.end(300)
	p.end(301)
	treeRead(t, tree)
	want(true, 300, 301)
	want(false, 200)
	p.put(treeLine{pid: 300, parent: 100, start: 90}) // somebody took the id
	treeRead(t, tree)
	want(false, 300, 301)
}
