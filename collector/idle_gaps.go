package collector

import (
	"math"

	"github.com/perfagent/perfagent/collector/series"
)

// GPUIdleMaxPct is the highest utilization of an idle GPU, in percent. GPUGapMinSeconds is the length of the shortest
// idle gap; shorter pauses do not count, because every GPU waits for a moment between two steps of its work.
const (
	GPUIdleMaxPct    = 5
	GPUGapMinSeconds = 1
)

// IdleGaps sums up the idle gaps of a GPU of at least GPUGapMinSeconds, and the activity of the job and the node during
// these gaps. It is built from every sample.
type IdleGaps struct {
	Seconds float64 `json:"seconds"`
	Count   int64   `json:"gaps"`
	// LongestSeconds is the length of the longest gap.
	LongestSeconds float64 `json:"longest_seconds"`
	// JobCPUs are the CPUs that the job kept busy, DiskRate is the traffic of the node's disks in MiB/s, and Waiting
	// the percentage of time in which a task of the job (or, if unknown, of the node) waited for storage.
	JobCPUs  GapMean `json:"job_cpus"`
	DiskRate GapMean `json:"disk_rate"`
	Waiting  GapMean `json:"waiting"`
}

// A GapMean is the mean of a value over the time of the gaps.
type GapMean struct {
	Sum     float64 `json:"sum"`     // Σ value · seconds
	Seconds float64 `json:"seconds"` // time in the gaps for which the value was known
}

// Mean returns the mean; NaN if nothing was measured.
func (m GapMean) Mean() series.Optional { return series.Optional(m.Sum / m.Seconds) }

func (m *GapMean) add(o GapMean) { m.Sum, m.Seconds = m.Sum+o.Sum, m.Seconds+o.Seconds }

// addValue adds a value that stands for the given seconds.
func (m *GapMean) addValue(value, seconds float64) {
	if !math.IsNaN(value) && value >= 0 && seconds > 0 {
		m.add(GapMean{value * seconds, seconds})
	}
}

// noteIdle adds a sample to the idle gaps of g, a GPU of the job. device is the index of the GPU.
func (g *GPU) noteIdle(s *Sample, device int) {
	use := GPUColumn(device, GPUUtilization)
	if !(s.Values[use] <= GPUIdleMaxPct) { // false for NaN
		g.currentGap = IdleGaps{}
		return
	}

	var now IdleGaps
	now.Seconds = s.Weights[use]
	now.JobCPUs.addValue(s.Values[JobCPU], now.Seconds)
	now.DiskRate.addValue(s.Values[DiskReadRate]+s.Values[DiskWriteRate], now.Seconds)
	waiting := s.Values[JobPSIIOSome]
	if math.IsNaN(waiting) {
		waiting = s.Values[PSIIOSome]
	}
	now.Waiting.addValue(waiting, now.Seconds)

	before := g.currentGap.Seconds
	g.currentGap.add(now)
	switch {
	case before >= GPUGapMinSeconds:
		g.IdleGaps.add(now)
	case g.currentGap.Seconds >= GPUGapMinSeconds: // long enough: the gap counts from its beginning
		g.IdleGaps.add(g.currentGap)
		g.IdleGaps.Count++
	default:
		return
	}
	g.IdleGaps.LongestSeconds = max(g.IdleGaps.LongestSeconds, g.currentGap.Seconds)
}

// add adds the time and the activity of o, but not its number of gaps.
func (i *IdleGaps) add(o IdleGaps) {
	i.Seconds += o.Seconds
	i.JobCPUs.add(o.JobCPUs)
	i.DiskRate.add(o.DiskRate)
	i.Waiting.add(o.Waiting)
}
