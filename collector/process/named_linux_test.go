package process

import (
	"math"
	"testing"
)

// named returns a Tree with Members that never defers a scan.
func (p treeProc) named(ignore func(int) bool, pids ...int) *Tree {
	t := NewTree(Options{Proc: p.dir, Members: pids, Ignore: ignore})
	treeReadFreely(t)
	p.tb.Cleanup(t.Close)
	return t
}

// wantUse reads the tree, and fails the test unless CPU time and storage I/O are as given.
func wantUse(tb testing.TB, t *Tree, seconds, read, written float64) {
	tb.Helper()
	u := treeRead(tb, t)
	if math.Abs(u.CPUSeconds-seconds) > 1e-9 || u.ReadBytes != read || u.WriteBytes != written {
		tb.Errorf("CPU time %v s, %v bytes read, %v written; want %v s, %v, %v", u.CPUSeconds, u.ReadBytes, u.WriteBytes, seconds, read, written)
	}
}

func TestTree_IncludesMembersAndDescendants(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 110, parent: 100, start: 60})
	p.put(treeLine{pid: 120, parent: 110, start: 70})
	p.put(treeLine{pid: 121, parent: 120, start: 71})
	p.put(treeLine{pid: 200, parent: 1, start: 60})
	p.put(treeLine{pid: 210, parent: 200, start: 60})
	p.put(treeLine{pid: 300, parent: 1, start: 60})
	tree := p.named(func(pid int) bool { return pid == 120 }, 100, 200)
	treeWant(t, tree, 100, 110, 200, 210)

	p.put(treeLine{pid: 121, parent: 110, start: 71}) // its ignored parent has ended, and a member has adopted it
	p.end(120)
	treeWant(t, tree, 100, 110, 200, 210)

	p.end(100)
	p.put(treeLine{pid: 110, parent: 1, start: 60})
	p.put(treeLine{pid: 111, parent: 110, start: 90})
	treeWant(t, tree, 110, 111, 200, 210)

	p.put(treeLine{pid: 100, parent: 1, start: 95}) // a new process with the ID of the ended member
	p.put(treeLine{pid: 101, parent: 100, start: 96})
	treeWant(t, tree, 110, 111, 200, 210)
}

func TestTree_MissingMemberIsAnError(t *testing.T) {
	p := treeFixture(t)
	if _, err := p.named(nil, 100, 555).Read(); err == nil {
		t.Error("Read with a missing member returned no error")
	}
}

// An ended process counts once: as part of the parent that waited for it, or with its last known usage.
func TestTree_CountsEndedMemberOnce(t *testing.T) {
	const root = 28 // ticks of the fixture's process 100
	grown := func(children int) treeLine {
		return treeLine{pid: 100, parent: 1, start: 50, ticks: [4]int{7, 7, 7 + children, 7}, read: 9, written: 9}
	}
	child := treeLine{pid: 110, parent: 100, start: 60, ticks: [4]int{10, 10, 0, 0}, read: 5, written: 6}
	below := treeLine{pid: 120, parent: 110, start: 70, ticks: [4]int{30, 0, 0, 0}, read: 1, written: 1}
	for _, c := range []struct {
		name                   string
		end                    []int
		after                  treeLine
		seconds, read, written float64
	}{
		{"waited for", []int{120, 110}, grown(55), (root + 55) / 100., 9, 9},
		{"within the kernel's rounding", []int{120, 110}, grown(49), (root + 49) / 100., 9, 9},
		{"not waited for", []int{120, 110}, grown(0), (root + 50) / 100., 9, 9},
		{"only one waited for", []int{120, 110}, grown(20), (root + 50) / 100., 9, 9},
		{"all ended", []int{120, 110, 100}, treeLine{}, (root + 50) / 100., 15, 16},
		{"only the grandchild left", []int{110, 100}, treeLine{}, (root + 50) / 100., 15, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := treeFixture(t)
			p.put(child)
			p.put(below)
			tree := p.named(nil, 100)
			wantUse(t, tree, (root+50)/100., 15, 16)
			if c.after.pid != 0 {
				p.put(c.after)
			}
			for _, pid := range c.end {
				p.end(pid)
			}
			for range 2 { // the second Read must not add it again
				wantUse(t, tree, c.seconds, c.read, c.written)
			}
		})
	}
}

// Storage I/O that could not be read remains unknown after the process has ended.
func TestTree_UnreadableIOOfEndedMemberStaysUnknown(t *testing.T) {
	p := treeFixture(t)
	p.file(100, "io", "nothing\n")
	tree := p.named(nil, 100)
	for range 2 {
		if u := treeRead(t, tree); !math.IsNaN(u.ReadBytes) || !math.IsNaN(u.WriteBytes) || u.IOFresh {
			t.Errorf("read %v, written %v, fresh %v; want NaN, NaN, false", u.ReadBytes, u.WriteBytes, u.IOFresh)
		}
		p.end(100)
	}
}
