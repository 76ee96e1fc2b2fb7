package host

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
)

// A selfLimits holds limits that the job's processes have imposed on themselves, below the limits given to the job.
// Processes that only wait for other processes do not count (process.Tree.Workers).
type selfLimits struct {
	cpus int // CPUs that at least one thread may run on; 0 = unknown
	// known reports whether the control groups of all counted processes are known and equal. In that case, groups is the
	// list of the control groups in procfs, or "" for the job's initial groups, and pid is one of the processes.
	known    bool
	groups   string
	pid      int
	environs [][]string // see JobUsage
}

// setSelfLimits stores b and reads the limits of its groups. Values that are unknown in b are left unchanged.
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
		if err != nil { // the process has ended, or its groups are not visible
			return
		}
		group.CountTasks(false)
		j.innerGroup = group
	}
	j.innerLimits = j.innerGroup.Limits()
}

// closeInnerGroup closes and resets innerGroup.
func (j *jobReader) closeInnerGroup() {
	if j.innerGroup != nil {
		j.innerGroup.Close()
		j.innerGroup = nil
	}
}

// applySelfLimits replaces the limits given to the job with its self-imposed limits.
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
	if j.Running { // the given limits are unknown
		return
	}
	if given.CPUs > l.CPUs {
		l.GivenCPUs = given.CPUs
	}
	if given.MemoryMB > l.MemoryMB {
		l.GivenMemoryMB = float64(given.MemoryMB)
	}
}

// reclaimInterval is the interval at which the group's Reclaim is read.
const reclaimInterval = 4900 * time.Millisecond

// readReclaim reads, when due, the Reclaim of the inner group or, if there is none, of the job's group.
func (j *jobReader) readReclaim(use *JobUsage, now time.Duration) {
	group := j.Group
	if j.innerGroup != nil {
		group = j.innerGroup
	}
	if group == nil || j.reclaimAt > 0 && now-j.reclaimAt < reclaimInterval && !j.closing {
		return
	}
	j.reclaimAt = now
	use.Reclaim = new(group.Reclaim())
}

// readInnerGroup reads the limit counters of the group that the processes have entered. OOM kills still come from the
// job's initial group, which includes the groups below it.
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
