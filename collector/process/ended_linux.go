package process

import "github.com/perfagent/perfagent/internal/procfile"

// endedUsage is the last known usage of ended processes of the job that no living process of the job includes: their
// parent was not in the job, or did not wait for them.
type endedUsage struct {
	cpu float64 // seconds
	io  IO
}

// waitedSlack is by how many ticks the time of a process's reaped children may seem to grow less than they had used:
// user and system time are each cut to a tick.
const waitedSlack = 2

// keepEnded adds the processes of the job that have ended since the previous scan to ended.
func (t *Tree) keepEnded() {
	owed := map[*proc]float64{} // ticks of ended descendants, by nearest living ancestor
	for i := range t.all {
		p := &t.all[i]
		if p.class != inJob || t.findLiving(p) != nil {
			continue
		}
		if ancestor := t.livingAncestor(p); ancestor != nil {
			owed[ancestor] += p.ticks
			continue
		}
		t.ended.cpu += p.ticks/procfile.UserHZ + p.tickRemainder.Seconds()
		t.ended.io = t.ended.io.Plus(p.io)
	}

	for before, ticks := range owed {
		p := t.findLiving(before)
		waited := (p.ticks - p.own) - (before.ticks - before.own)
		if lost := ticks - waited; lost > waitedSlack { // SIGCHLD is ignored
			t.ended.cpu += lost / procfile.UserHZ
		}
	}
}

// findLiving returns the newest scan's entry of a process of the previous scan, or nil if it has ended or left the job.
func (t *Tree) findLiving(old *proc) *proc {
	p := findProc(t.next, old.pid)
	if p == nil || p.class != inJob || p.start != old.start {
		return nil
	}
	return p
}

// livingAncestor returns the nearest living ancestor in the job of an ended process of the previous scan. If each
// process in between was waited for, the ancestor includes their usage.
func (t *Tree) livingAncestor(p *proc) *proc {
	for range t.all {
		p = findProc(t.all, p.ppid)
		if p == nil || p.class != inJob {
			return nil
		}
		if t.findLiving(p) != nil {
			return p
		}
	}
	return nil
}
