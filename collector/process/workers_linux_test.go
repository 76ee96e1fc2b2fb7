package process

import (
	"slices"
	"testing"
)

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
		if got := tree.Workers(); !slices.Equal(got, want) {
			t.Errorf("workers = %v, want %v", got, want)
		}
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
