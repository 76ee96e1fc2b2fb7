package process

import "github.com/perfagent/perfagent/internal/procfile"

// endedUsage is the last known usage of ended processes of the job that is not included in a living process of the job,
// because the parent was outside the job or did not wait for them.
type endedUsage struct {
	cpu float64 // seconds
	io  IO
}

// waitedSlack is the number of ticks by which the growth of a process's cutime + cstime may be less than the CPU time
// of its reaped children, because user and system time are each truncated to ticks.
const waitedSlack = 2

// keepEnded adds to t.ended the usage of the job's processes that have ended since the previous scan, unless it is
// included in a living process of the job.
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
		if lost := ticks - waited; lost > waitedSlack { // the ancestor ignores SIGCHLD
			t.ended.cpu += lost / procfile.UserHZ
		}
	}
}

// findLiving returns the newest scan's entry for old, a process of the previous scan, or nil if it has ended or left
// the job.
func (t *Tree) findLiving(old *proc) *proc {
	p := findProc(t.next, old.pid)
	if p == nil || p.class != inJob || p.start != old.start {
		return nil
	}
	return p
}

// livingAncestor returns the nearest ancestor of p, an ended process of the previous scan, that is alive and in the
// job. If every process between the two was waited for, the ancestor's times include the usage of p.
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
