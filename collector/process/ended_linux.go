package process

import "github.com/perfagent/perfagent/internal/procfile"

// endedUsage is what processes of the job that have ended had used when they were read last, if no process
// of the job has it in its own account: their parent was not the job's, or did not wait for them.
type endedUsage struct {
	cpu float64 // seconds
	io  IO
}

// waitedSlack is by how many ticks the time of children that a process waited for may seem to grow by
// less than these had used: user and system time are cut to a tick each.
const waitedSlack = 2

// keepEnded accounts for the processes of the job that have ended since the scan before.
func (t *Tree) keepEnded() {
	owed := map[*proc]float64{} // ticks of ended descendants, by the nearest ancestor that lives
	for i := range t.all {
		p := &t.all[i]
		if p.class != inJob || t.living(p) != nil {
			continue
		}
		if heir := t.livingAncestor(p); heir != nil {
			owed[heir] += p.ticks
			continue
		}
		t.ended.cpu += p.ticks/procfile.UserHZ + p.cut.Seconds()
		t.ended.io = t.ended.io.Plus(p.io)
	}

	for before, ticks := range owed {
		p := t.living(before)
		waited := (p.ticks - p.own) - (before.ticks - before.own)
		if lost := ticks - waited; lost > waitedSlack { // SIGCHLD is ignored
			t.ended.cpu += lost / procfile.UserHZ
		}
	}
}

// living returns a process of the job of the scan before as the newest scan found it, or nil if it has
// ended.
func (t *Tree) living(old *proc) *proc {
	p := find(t.next, old.pid)
	if p == nil || p.class != inJob || p.start != old.start {
		return nil
	}
	return p
}

// livingAncestor returns the nearest ancestor of an ended process, of the scan before, that is the job's and
// lives. It has what those in between had used, if each was waited for.
func (t *Tree) livingAncestor(p *proc) *proc {
	for range t.all {
		p = find(t.all, p.ppid)
		if p == nil || p.class != inJob {
			return nil
		}
		if t.living(p) != nil {
			return p
		}
	}
	return nil
}
