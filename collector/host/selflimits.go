package host

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
)

// A selfLimits is to what the processes of the job have bound themselves, below what the job was given. Those that only
// wait for others (process.Tree.Workers) do not count.
type selfLimits struct {
	cpus int // on how many some thread of them may run; 0 = not known
	// known reports whether the control groups of all of them are known and the same. Then groups is their list in
	// procfs, and pid one of them; groups is "" for those of the job's beginning.
	known    bool
	groups   string
	pid      int
	environs [][]string // see JobUse
}

// setSelfLimits takes what was read of the processes. What is not known of them stays as it was.
func (j *jobReader) setSelfLimits(b selfLimits) {
	if b.cpus > 0 {
		j.selfLimits.cpus = b.cpus
	}
	if !b.known {
		return
	}
	if j.innerGroup == nil || b.groups != j.selfLimits.groups {
		j.closeInnerGroup()
		j.selfLimits.groups = b.groups
		if b.groups == "" {
			return
		}
		group, err := cgroup.Find(cgroup.Options{PID: b.pid, Groups: b.groups})
		if err != nil { // it has ended, or its groups are not visible
			return
		}
		group.CountTasks(false)
		j.innerGroup = group
	}
	j.innerLimits = j.innerGroup.Limits()
}

// closeInnerGroup forgets the group that the processes had entered.
func (j *jobReader) closeInnerGroup() {
	if j.innerGroup != nil {
		j.innerGroup.Close()
		j.innerGroup = nil
	}
}

// applySelfLimits replaces the limits that the job was given by those that its processes have bound themselves to.
func (j *jobReader) applySelfLimits(use *JobUsage, out *Reading) {
	given, l := use.Limits, &use.Limits
	if j.innerGroup != nil {
		l.take(&j.innerLimits)
		use.InnerMemoryGroup = j.innerLimits.InnerMemoryGroup
		j.readInnerGroup(use, out)
	}
	if j.selfLimits.cpus > 0 {
		l.AffinityCPUs = j.selfLimits.cpus
	}
	l.CPUs = l.minCPUs()
	j.readReclaim(use, out.At.Mono)
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

// reclaimInterval is how often it is read what held the job's memory down.
const reclaimInterval = 4900 * time.Millisecond

// readReclaim reads what held the job's memory down.
func (j *jobReader) readReclaim(use *JobUsage, now time.Duration) {
	group := j.Group
	if j.innerGroup != nil {
		group = j.innerGroup
	}
	if group == nil || j.heldAt > 0 && now-j.heldAt < reclaimInterval && !j.closing {
		return
	}
	j.heldAt = now
	use.Reclaim = new(group.Reclaim())
}

// readInnerGroup reads the counters of limits in the group that the processes have entered. Kills are those in the
// group of the job's beginning and below it.
func (j *jobReader) readInnerGroup(use *JobUsage, out *Reading) {
	c := j.innerGroup.Read()
	if use.Group == nil {
		c.OOMKills, c.OOMs, c.UnderOOM = math.NaN(), math.NaN(), false
		out.buffers.group = c
		use.Group, use.Shared = &out.buffers.group, true
		return
	}
	use.Group.CopyLimitCounters(&c)
}
