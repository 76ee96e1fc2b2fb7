package reporter

import (
	"fmt"
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
)

// withAccount returns a copy of a Job, which has the numbers of wait4(2), with the counters of
// its control group or of its processes added. nil stays nil.
func withAccount(job *Job, rec *collector.Recording) *Job {
	if job == nil {
		return nil
	}
	a, j := &rec.Account, *job
	j.Source, j.MemoryKind, j.Cgroup = a.Source, a.MemoryKind, a.Group
	j.CPUSeconds, j.CPUAtLeast = wholeCPU(&j, a), a.CPUOpen || j.Attached && !a.CPUSeconds.Known()
	j.PeakMemoryMB = peakMemory(&j, rec)
	if a.Source == host.JobFromTree && a.UnownedMB >= leastUnowned {
		j.UnownedMB = float64(a.UnownedMB)
	}
	if j.PeakMemoryMB > 0 && j.MemoryKind == "" { // it ended before it was read: wait4's own peak
		j.MemoryKind = host.MemoryRSS
	}
	if a.Source != host.JobFromTree && a.PeakMB.Known() {
		j.CgroupPeakMB = float64(a.PeakMB)
	}
	return &j
}

// leastUnowned is by how much a node's shared memory must have grown to be mentioned, MiB: processes come and go on
// each.
const leastUnowned = 4

// wholeCPU returns all CPU time of the job. wait4 has the exact time of processes that have
// ended, except for children of parents that ignore SIGCHLD; the time of running processes is
// added. A control group counts all of it, unless processes left the group.
func wholeCPU(j *Job, a *collector.Account) float64 {
	ended := j.UserSeconds + j.SystemSeconds
	if a.Source == host.JobFromTree && a.Living.Known() {
		ended += float64(a.Living)
	}
	if a.CPUSeconds.Known() { // of a tree with what was seen of children whose parent did not wait for them
		return max(ended, float64(a.CPUSeconds))
	}
	return ended
}

// leftGroup returns a remark if the job used much CPU time that its control group did not count and that was known
// too late for the samples. Otherwise it returns "".
func leftGroup(j *Job, rec *collector.Recording) string {
	late := rec.Account.LateCPUSeconds
	if j == nil || late < 0.1*j.CPUSeconds+0.1 {
		return ""
	}
	return fmt.Sprintf("processes of the job used %s of CPU that its control group did not count, "+
		"which the samples do not have; --cgroup off follows them", text.Seconds(late))
}

// peakMemory returns the highest memory of the whole job, MiB; 0 = not known. Nothing is
// measured between samples, so it is the greatest of the values that were certainly reached:
// the samples' highest; the largest process (wait4); and the kernel's peak of the job's own
// control group less what is not the job's memory. That is the most page cache and the most
// memory of ours that were seen in it, and page cache that may have come and gone unseen.
func peakMemory(j *Job, rec *collector.Recording) float64 {
	a, peak := &rec.Account, 0.0
	if v, ok := rec.Summaries[collector.JobMemory].Max(); ok {
		peak = v
	}
	if largest := j.MaxRSSMB; !j.MaxRSSAtMost {
		if a.Source != host.JobFromTree && !a.Outside && a.PeakMB > 0 { // wait4 counts pages of files, too
			largest = min(largest, float64(a.PeakMB))
		}
		peak = max(peak, largest)
	}
	group := float64(a.PeakMB-a.CacheMB-a.OwnMB) - unseenCache(j, a)
	if a.Source != host.JobFromTree && !math.IsNaN(group) {
		peak = max(peak, group)
	}
	return peak
}

// unseenCache returns the most page cache, MiB, that can have come and gone between two samples: what
// the job has read from storage or written to files. Before it kills, the kernel reclaims all
// the page cache that it can.
func unseenCache(j *Job, a *collector.Account) float64 {
	switch {
	case a.FullAtKillMB.Known() && LimitKills(a, j) > 0:
		return 0
	case j.Attached: // these bytes are not known
		return math.NaN()
	}
	return j.BlockReadMB + j.BlockWriteMB
}

func newLimits(rec *collector.Recording) *Limits {
	a := &rec.Account
	if a.Source == "" {
		return nil
	}
	l := a.Limits
	if length := (rec.End.Mono - rec.Start.Mono).Seconds(); l.CPUsRange != nil && length > 0 && a.LimitCPUSeconds > 0 {
		l.CPUsRange = new(*l.CPUsRange)
		l.CPUsRange.Mean = series.Optional(a.LimitCPUSeconds / length)
	}
	return &l
}

// newGPUIdle returns when a GPU was idle; nil if it never was.
func newGPUIdle(i *collector.Idleness) *GPUIdle {
	if i.Gaps == 0 {
		return nil
	}
	mean := func(m collector.Meanwhile) series.Optional {
		return series.Optional(text.Round(float64(m.Mean()), 3))
	}
	return &GPUIdle{
		Seconds:            text.Round(i.Seconds, 3),
		Gaps:               i.Gaps,
		LongestGapSeconds:  text.Round(i.LongestSeconds, 3),
		JobCPUs:            mean(i.JobCPUs),
		DiskMBPerSecond:    mean(i.DiskRate),
		WaitingForStorePct: mean(i.Waiting),
	}
}

func newGPUs(rec *collector.Recording) []GPU {
	var out []GPU
	for _, g := range rec.GPUs {
		out = append(out, GPU{Index: g.Index, UUID: g.UUID, Name: g.Name, MemoryMB: g.MemoryMB,
			PowerLimitWatts: g.PowerLimitWatts, OfJob: g.OfJob, MIG: g.MIG,
			ClockMHz: g.ClockMHz, Throttle: g.Throttle, Idle: newGPUIdle(&g.Idle)})
	}
	return out
}
