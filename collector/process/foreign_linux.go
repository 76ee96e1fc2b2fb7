package process

import (
	"slices"

	"github.com/perfagent/perfagent/internal/procfile"
)

// ScannedRelation returns the relation of process pid to the job according to the two newest scans. It is InJob if one
// of them found the process in the job, or else Foreign if one of them found it outside of the job.
func (t *Tree) ScannedRelation(pid int) Relation {
	seen := UnknownRelation
	for _, list := range [][]proc{t.all, t.spare} { // spare is the previous scan, until the next one begins
		p := findProc(list, int32(pid))
		switch {
		case p == nil:
		case p.class == inJob:
			return InJob
		case p.class == foreign || p.class == ignored:
			seen = Foreign
		}
	}
	return seen
}

// CurrentRelation returns the relation of process pid to the job, by following its current parents up to the root of
// the job. It returns UnknownRelation if the process or one of the parents is gone. It may be called while another
// goroutine uses the Tree.
func (t *Tree) CurrentRelation(pid int) Relation {
	p, ok := procfile.ReadProcess(pid)
	switch {
	case slices.Contains(t.o.Members, pid):
		return InJob
	case !ok:
		return UnknownRelation
	}
	return t.RelationByParent(pid, p.Parent)
}

// RelationByParent is like CurrentRelation, for a process that had the given parent and may have ended.
func (t *Tree) RelationByParent(pid, parent int) Relation {
	for range maxAncestors {
		child := t.o.Root != 0 && parent == t.o.Root
		switch {
		case slices.Contains(t.o.Members, pid):
			return InJob
		case (child || t.o.Root == 0) && t.o.Ignore != nil && t.o.Ignore(pid):
			return Foreign
		case child:
			return InJob
		case parent == 0:
			return Foreign
		}

		p, ok := procfile.ReadProcess(parent)
		if !ok {
			return UnknownRelation
		}
		pid, parent = parent, p.Parent
	}
	return UnknownRelation
}

// Contains reports whether the newest scan found process pid in the job.
func (t *Tree) Contains(pid int) bool {
	p := findProc(t.all, int32(pid))
	return p != nil && p.class == inJob
}
