package process

// Foreign reports whether one of the two newest scans saw a process that is not the job's in
// either. It reports false for one that neither saw, or whose parents could not be followed.
func (t *Tree) Foreign(pid int) bool {
	seen := false
	for _, list := range [][]proc{t.all, t.spare} { // spare is the scan before, until the next begins
		p := find(list, int32(pid))
		switch {
		case p == nil:
		case p.class == ours:
			return false
		case p.class == foreign || p.class == ignored:
			seen = true
		}
	}
	return seen
}

// Ours reports whether the newest scan saw a process, and it is the job's.
func (t *Tree) Ours(pid int) bool {
	p := find(t.all, int32(pid))
	return p != nil && p.class == ours
}
