package collector

import (
	"math"

	"github.com/perfagent/perfagent/collector/series"
)

// GPUIdle is the utilization, in percent, up to which a GPU counts as idle. GPUGap is for how long, in
// seconds, it must be so at a time: between two steps of its work every GPU waits for a moment.
const (
	GPUIdle = 5
	GPUGap  = 1
)

// Idleness says for how long a GPU was idle in gaps of GPUGap or longer, and what else was busy in them. Every
// sample counts.
type Idleness struct {
	Seconds float64 `json:"seconds"`
	Gaps    int64   `json:"gaps"`
	// LongestSeconds is the length of the longest gap.
	LongestSeconds float64 `json:"longest_seconds"`
	// JobCPUs are the CPUs that the job kept busy, DiskRate what the node's disks moved in MiB/s, and Waiting
	// the share of time in which a task of the job, or where that is not known of the node, waited for
	// storage.
	JobCPUs  Meanwhile `json:"job_cpus"`
	DiskRate Meanwhile `json:"disk_rate"`
	Waiting  Meanwhile `json:"waiting"`
}

// A Meanwhile is the mean of a value over the time of the gaps.
type Meanwhile struct {
	Sum     float64 `json:"sum"`     // Σ value · seconds
	Seconds float64 `json:"seconds"` // for which there is a value
}

// Mean returns the mean; NaN if nothing was measured.
func (m Meanwhile) Mean() series.Optional { return series.Optional(m.Sum / m.Seconds) }

func (m *Meanwhile) add(o Meanwhile) { m.Sum, m.Seconds = m.Sum+o.Sum, m.Seconds+o.Seconds }

// note adds a value that stands for so many seconds.
func (m *Meanwhile) note(value, seconds float64) {
	if !math.IsNaN(value) && value >= 0 && seconds > 0 {
		m.add(Meanwhile{value * seconds, seconds})
	}
}

// noteIdle adds a sample of this device, which has the given number and is one of the job's.
func (g *GPU) noteIdle(s *Sample, device int) {
	use := GPUColumn(device, GPUUtilization)
	if !(s.Values[use] <= GPUIdle) { // false for NaN
		g.gap = Idleness{}
		return
	}

	var now Idleness
	now.Seconds = s.Weights[use]
	now.JobCPUs.note(s.Values[JobCPU], now.Seconds)
	now.DiskRate.note(s.Values[DiskReadRate]+s.Values[DiskWriteRate], now.Seconds)
	waiting := s.Values[JobPSIIOSome]
	if math.IsNaN(waiting) {
		waiting = s.Values[PSIIOSome]
	}
	now.Waiting.note(waiting, now.Seconds)

	before := g.gap.Seconds
	g.gap.add(now)
	switch {
	case before >= GPUGap:
		g.Idle.add(now)
	case g.gap.Seconds >= GPUGap: // it counts from its beginning
		g.Idle.add(g.gap)
		g.Idle.Gaps++
	default:
		return
	}
	g.Idle.LongestSeconds = max(g.Idle.LongestSeconds, g.gap.Seconds)
}

// add adds the time of another Idleness, without its gaps.
func (i *Idleness) add(o Idleness) {
	i.Seconds += o.Seconds
	i.JobCPUs.add(o.JobCPUs)
	i.DiskRate.add(o.DiskRate)
	i.Waiting.add(o.Waiting)
}
