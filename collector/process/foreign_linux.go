package process

import (
	"slices"

	"github.com/perfagent/perfagent/internal/procfile"
)

// Seen returns what the two newest scans say of a process. It is Foreign if one of them saw it as a
// process that is not the job's, and Ours if one of them saw it as the job's.
func (t *Tree) Seen(pid int) Relation {
	seen := NotKnown
	for _, list := range [][]proc{t.all, t.spare} { // spare is the scan before, until the next begins
		p := find(list, int32(pid))
		switch {
		case p == nil:
		case p.class == ours:
			return Ours
		case p.class == foreign || p.class == ignored:
			seen = Foreign
		}
	}
	return seen
}

// Look follows the parents of a process, as they are at this moment, up to the root of the job. It
// returns NotKnown if one of them is gone. It may be called while another goroutine uses the Tree.
func (t *Tree) Look(pid int) Relation {
	p, ok := procfile.ReadProcess(pid)
	switch {
	case slices.Contains(t.o.Named, pid):
		return Ours
	case !ok:
		return NotKnown
	}
	return t.LookAbove(pid, p.Parent)
}

// LookAbove does the same for a process that may be gone, and had that parent.
func (t *Tree) LookAbove(pid, parent int) Relation {
	for range maxAncestors {
		child := t.o.Root != 0 && parent == t.o.Root
		switch {
		case slices.Contains(t.o.Named, pid):
			return Ours
		case (child || t.o.Root == 0) && t.o.Ignore != nil && t.o.Ignore(pid):
			return Foreign
		case child:
			return Ours
		case parent == 0:
			return Foreign
		}

		p, ok := procfile.ReadProcess(parent)
		if !ok {
			return NotKnown
		}
		pid, parent = parent, p.Parent
	}
	return NotKnown
}

// Ours reports whether the newest scan saw a process, and it is the job's.
func (t *Tree) Ours(pid int) bool {
	p := find(t.all, int32(pid))
	return p != nil && p.class == ours
}
