package host

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
)

// A bound is to what the processes of the job have bound themselves, below what the job was given. Those that only
// wait for others (process.Tree.Workers) do not count.
type bound struct {
	cpus int // on how many some thread of them may run; 0 = not known
	// known reports whether the control groups of all of them are known and the same. Then groups is their list in
	// procfs, and pid one of them; groups is "" for those of the job's beginning.
	known    bool
	groups   string
	pid      int
	environs [][]string // see JobUse
}

// takeBound takes what was read of the processes. What is not known of them stays as it was.
func (j *jobReader) takeBound(b bound) {
	if b.cpus > 0 {
		j.bound.cpus = b.cpus
	}
	if !b.known {
		return
	}
	if j.entered == nil || b.groups != j.bound.groups {
		j.leave()
		j.bound.groups = b.groups
		if b.groups == "" {
			return
		}
		group, err := cgroup.Find(cgroup.Options{PID: b.pid, Groups: b.groups})
		if err != nil { // it has ended, or its groups are not visible
			return
		}
		group.Count(false)
		j.entered = group
	}
	j.within = j.entered.Limits()
}

// leave forgets the group that the processes had entered.
func (j *jobReader) leave() {
	if j.entered != nil {
		j.entered.Close()
		j.entered = nil
	}
}

// bind replaces the limits that the job was given by those that its processes have bound themselves to.
func (j *jobReader) bind(use *JobUse, out *Reading) {
	given, l := use.Limits, &use.Limits
	if j.entered != nil {
		l.take(&j.within)
		use.MemoryInner = j.within.MemoryInner
		j.readEntered(use, out)
	}
	if j.bound.cpus > 0 {
		l.AffinityCPUs = j.bound.cpus
	}
	l.CPUs = l.minCPUs()
	j.readHeld(use, out.At.Mono)
	if j.Running { // what it was given is not known
		return
	}
	if given.CPUs > l.CPUs {
		l.GivenCPUs = given.CPUs
	}
	if given.MemoryMB > l.MemoryMB {
		l.GivenMemoryMB = float64(given.MemoryMB)
	}
}

// heldEvery is how often it is read what held the job's memory down.
const heldEvery = 4900 * time.Millisecond

// readHeld reads what held the job's memory down.
func (j *jobReader) readHeld(use *JobUse, now time.Duration) {
	group := j.Group
	if j.entered != nil {
		group = j.entered
	}
	if group == nil || j.heldAt > 0 && now-j.heldAt < heldEvery && !j.closing {
		return
	}
	j.heldAt = now
	use.Held = new(group.Held())
}

// readEntered reads the counters of limits in the group that the processes have entered. Kills are those in the group
// of the job's beginning and below it.
func (j *jobReader) readEntered(use *JobUse, out *Reading) {
	c := j.entered.Read()
	if use.Group == nil {
		c.OOMKills, c.OOMs, c.UnderOOM = math.NaN(), math.NaN(), false
		out.room.group = c
		use.Group, use.Shared = &out.room.group, true
		return
	}
	use.Group.TakeLimits(&c)
}
