package collector

import (
	"maps"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// Recording is what a run leaves: exact summaries of every sample, the ring, and
// how well the sampling went. While the run goes on it belongs to the Sampler.
type Recording struct {
	Host       host.Info
	Start, End host.Instant // of the baseline and of the newest Reading
	Interval   time.Duration
	Ring       *series.Ring
	Summaries  []*series.Summary // by Column, as many as Columns()
	Samples    int64
	// MissedTicks counts the points of the grid that passed without a Reading.
	MissedTicks int64
	// LongestGap is the longest time between two Readings, suspends included.
	LongestGap time.Duration
	Clock      []ClockEvent
	Failures   []Failure
	DiskPaths  []string // the file systems whose fill is measured
	Disks      []string // the block devices that were counted, ever
	NICs       []string // the interfaces that were counted, ever, lo included
	// BootMB are the counters since boot at the last good Reading, in MiB, by the
	// order of Counters; NaN = never read.
	BootMB [NumCounters]float64
	// CPUSeconds is the CPU time since the baseline, over all CPUs, by CPUMode; NaN =
	// not known. The journal does not keep it.
	CPUSeconds [host.NumCPUModes]float64
	// Late says from when on a source's counters run that could not be read at
	// the baseline.
	Late map[string]time.Duration
	// PerfPy is perf.py's own ring of perf.py's own samples; nil unless asked for.
	PerfPy *series.Decimator[Sample]
	// Account is what the kernel's counters say of the job and its limits.
	Account Account
	// GPUs are the node's, in the order of their columns.
	GPUs []GPU
	// GPUTrouble is why nothing new is known of the GPUs at the newest Reading; "" = it is.
	GPUTrouble string
	// Gaps are parts of a source that could not be measured, with the reason.
	Gaps []series.Gap
}

// maxGaps bounds what is remembered of them.
const maxGaps = 100

// addGap remembers the newest reason of each part, so that one which tells how long it has
// lasted does not fill the list.
func (rec *Recording) addGap(gap series.Gap) {
	i := slices.IndexFunc(rec.Gaps, func(g series.Gap) bool { return g.What == gap.What })
	switch {
	case i >= 0:
		rec.Gaps[i].Why = gap.Why
	case len(rec.Gaps) < maxGaps:
		rec.Gaps = append(rec.Gaps, gap)
	}
}

// Columns is how many columns the Recording has: those of the host and the job, and
// those of each GPU.
func (rec *Recording) Columns() Column { return Column(len(rec.Summaries)) }

// Widen makes room for the columns of n GPUs. What was recorded before is not measured
// in them.
func (rec *Recording) Widen(n int) {
	width := int(GPUColumn(min(n, MaxGPUs), 0))
	for c := rec.Columns(); int(c) < width; c++ {
		rec.Summaries = append(rec.Summaries, newSummary(c))
	}
	rec.Ring.Widen(len(rec.Summaries))
}

// ClockEvent is a step of the wall clock or a suspend of the machine.
type ClockEvent struct {
	Suspend bool
	// At is when it was noticed, on the time axis of the samples.
	At time.Time
	// By is how far the wall clock was moved, or how long the machine slept.
	By time.Duration
}

// Suspended is how long the machine slept during the run.
func (rec *Recording) Suspended() time.Duration {
	var sum time.Duration
	for _, e := range rec.Clock {
		if e.Suspend {
			sum += e.By
		}
	}
	return sum
}

// CPUThresholds are the levels of the mean over CPUs whose time is kept. The
// last is what rounds to 100.0.
var CPUThresholds = []float64{20, 40, 80, 99.95}

// NewRecording returns an empty Recording; maxLength is the ring's capacity.
func NewRecording(start host.Instant, interval time.Duration, maxLength int) *Recording {
	rec := &Recording{Start: start, End: start, Interval: interval, Ring: series.NewRing(maxLength, int(NumColumns)),
		CPUSeconds: (&Progress{}).CPUSeconds(), Account: NoAccount()}
	for c := range NumColumns {
		rec.Summaries = append(rec.Summaries, newSummary(c))
	}
	return rec
}

func newSummary(c Column) *series.Summary {
	switch {
	case c == CPUAvg:
		return series.NewPercentSummary(CPUThresholds...)
	case c.Percent():
		return series.NewPercentSummary()
	}
	return series.NewSummary()
}

// Add takes one Sample into the summaries and the ring. It allocates nothing.
func (rec *Recording) Add(s *Sample) {
	rec.Samples++
	for c, sum := range rec.Summaries {
		sum.Add(s.Values[c], s.Weights[c])
	}
	rec.Ring.Add(s.Values[:rec.Columns()], s.Weights[:rec.Columns()])
}

// Clone returns a copy that shares nothing which still changes, for another
// goroutine.
func (rec *Recording) Clone() *Recording {
	c := *rec
	c.Ring = rec.Ring.Clone()
	c.Summaries = make([]*series.Summary, len(rec.Summaries))
	for i, s := range rec.Summaries {
		c.Summaries[i] = s.Clone()
	}
	c.Account.Victims = slices.Clone(rec.Account.Victims)
	c.GPUs = slices.Clone(rec.GPUs)
	for i := range c.GPUs {
		c.GPUs[i].Throttle = slices.Clone(rec.GPUs[i].Throttle)
	}
	c.Gaps = slices.Clone(rec.Gaps)
	c.Clock = slices.Clone(rec.Clock)
	c.Failures = slices.Clone(rec.Failures)
	c.Disks = slices.Clone(rec.Disks)
	c.NICs = slices.Clone(rec.NICs)
	c.Late = maps.Clone(rec.Late)
	if rec.PerfPy != nil {
		c.PerfPy = rec.PerfPy.Clone()
	}
	return &c
}
