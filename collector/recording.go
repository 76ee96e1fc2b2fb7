package collector

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/collector/series"
)

// A Recording is the result of a run: exact summaries of all samples, the ring, and the quality of the sampling. During
// the run it belongs to the Sampler.
type Recording struct {
	Host       host.Info
	Start, End host.Instant // times of the baseline and of the newest Reading
	Interval   time.Duration
	Ring       *series.Ring
	Summaries  []*series.Summary // by Column, NumColumns() of them
	Samples    int64
	// MissedTicks counts the ticks of the grid without a Reading.
	MissedTicks int64
	// LongestGap is the longest time between two Readings, including suspends.
	LongestGap  time.Duration
	ClockEvents []ClockEvent
	Failures    []Failure
	ReaderName  string   // name of the host.Reader; "" if unknown
	DiskPaths   []string // the measured file systems
	Disks       []string // block devices that were counted at any time
	NICs        []string // interfaces that were counted at any time, including lo
	// BootMB are the counters since boot at the last good Reading, in MiB, in the order of Counters. NaN or a missing
	// entry means that the counter was never read.
	BootMB []float64
	// CPUSeconds is the CPU time since the baseline, over all CPUs, by CPUMode. NaN means unknown. The journal does not
	// keep it.
	CPUSeconds [host.NumCPUModes]float64
	// LateStarts maps each source that could not be read at the baseline to the time when its counters began.
	LateStarts map[string]time.Duration
	// PerfPy is perf.py's own ring of samples; nil unless requested.
	PerfPy *series.Decimator[Sample]
	// Account is the account of the job and its limits.
	Account Account
	// Processes is the newest table of the job's processes; nil before the first table. The slice is replaced, never
	// modified.
	Processes []process.Process
	// Deaths are the deaths of the job's processes so far; nil = unknown. It is immutable.
	Deaths *process.Deaths
	// Mounts are the network file systems that were used.
	Mounts []Mount
	// GPUs are the GPUs of the node, in the order of their columns.
	GPUs []GPU
	// GPUError is the reason why the newest Reading could not read the GPUs; "" if it could.
	GPUError string
	// Baseline is the state of the counters before the first sample; nil if no Sampler made the Recording. It is
	// immutable.
	Baseline *Baseline
	// Missing are the parts of sources that could not be measured.
	Missing []series.Missing
	// Marks are the marks and phases of the job; nil if there are none.
	Marks *Marks
	// MarksUpdate is the part of Marks that the newest sample added.
	MarksUpdate marks.Update
	// Operations are the operations reported by the job; nil if they are not recorded.
	Operations *Operations
}

// A Baseline is the state of a run's counters at its beginning. A counter is 0 if it could be read.
type Baseline struct {
	Sample  Sample
	Account Account
}

// maxMissing bounds Recording.Missing.
const maxMissing = 100

// addMissing adds gap to Missing. It keeps only the newest reason for each part, because a reason with a changing
// duration would fill the list.
func (rec *Recording) addMissing(gap series.Missing) {
	i := slices.IndexFunc(rec.Missing, func(g series.Missing) bool { return g.What == gap.What })
	switch {
	case i >= 0:
		rec.Missing[i] = gap
	case len(rec.Missing) < maxMissing:
		rec.Missing = append(rec.Missing, gap)
	}
}

// NumColumns returns the number of columns of the host, the job, and the devices found so far.
func (rec *Recording) NumColumns() Column { return Column(len(rec.Summaries)) }

// EnsureColumn adds column c of a device, the other columns of the same GPU or source, and all columns before them.
// Earlier samples have no values in them.
func (rec *Recording) EnsureColumn(c Column) {
	if c < rec.NumColumns() {
		return
	}
	for width := ColumnsUpTo(c); rec.NumColumns() < width; {
		rec.Summaries = append(rec.Summaries, newSummary(rec.NumColumns()))
	}
	rec.Ring.Widen(len(rec.Summaries))
}

// ColumnsUpTo returns the smallest number of columns of a Recording with column c.
func ColumnsUpTo(c Column) Column {
	device, _, gpu := c.GPU()
	switch {
	case gpu:
		return GPUColumn(device+1, 0)
	case c < numBaseColumns():
		return numBaseColumns()
	}
	for source := c.row().Source; c < NumColumns && c.row().Source == source; {
		c++
	}
	return c
}

// EnsureGPUColumns adds the columns of n GPUs.
func (rec *Recording) EnsureGPUColumns(n int) {
	if n > 0 {
		rec.EnsureColumn(GPUColumn(min(n, MaxGPUs)-1, 0))
	}
}

// SinceBoot returns the device counter c since boot, in MiB; NaN if it was never read.
func (rec *Recording) SinceBoot(c Column) float64 {
	i := slices.Index(Counters(), c)
	if i < 0 || i >= len(rec.BootMB) {
		return math.NaN()
	}
	return rec.BootMB[i]
}

// A ClockEvent is a step of the wall clock or a suspend of the machine.
type ClockEvent struct {
	Suspend bool
	// At is the time of detection, on the time axis of the samples.
	At time.Time
	// By is the size of the step, or the duration of the suspend.
	By time.Duration
}

// Suspended returns the total time in suspend during the run.
func (rec *Recording) Suspended() time.Duration {
	var sum time.Duration
	for _, e := range rec.ClockEvents {
		if e.Suspend {
			sum += e.By
		}
	}
	return sum
}

// CPUThresholds are levels of the mean CPU utilization, in percent; the time at or above each level is summed. The last
// level is the least value that rounds to 100.0.
var CPUThresholds = []float64{20, 40, 80, 99.95}

// NewRecording returns an empty Recording with a ring of the given capacity.
func NewRecording(start host.Instant, interval time.Duration, maxLength int) *Recording {
	columns := numBaseColumns()
	rec := &Recording{Start: start, End: start, Interval: interval, Ring: series.NewRing(maxLength, int(columns)),
		CPUSeconds: (&CounterState{}).CPUSeconds(), Account: NoAccount()}
	for c := range columns {
		rec.Summaries = append(rec.Summaries, newSummary(c))
	}
	for i := range deviceCounters {
		boot := 0.
		if deviceCounters[i].optional {
			boot = math.NaN()
		}
		rec.BootMB = append(rec.BootMB, boot)
	}
	return rec
}

func newSummary(c Column) *series.Summary {
	switch {
	case c == CPUAvg:
		return series.NewPercentSummary(CPUThresholds...)
	case c.IsPercent():
		return series.NewPercentSummary()
	}
	return series.NewSummary()
}

// Add adds a Sample to the summaries, the ring, and the phases of the job. It allocates only for a phase's first
// Sample.
func (rec *Recording) Add(s *Sample) {
	if rec.Marks != nil {
		rec.Marks.addToPhases(s, rec)
	}
	rec.Samples++
	if parts, mb := NewMemoryParts(s, rec.Account.Source); mb > rec.Account.PartsPeakMB {
		rec.Account.MemoryAtPeak, rec.Account.PartsPeakMB = parts, mb
	}
	for c, sum := range rec.Summaries {
		sum.Add(s.Values[c], s.Weights[c])
	}
	rec.Ring.Add(s.Values[:rec.NumColumns()], s.Weights[:rec.NumColumns()])
}

// Clone returns a copy for another goroutine. The copy shares no mutable state with rec.
func (rec *Recording) Clone() *Recording {
	c := *rec
	c.Ring = rec.Ring.Clone()
	c.Summaries = make([]*series.Summary, len(rec.Summaries))
	for i, s := range rec.Summaries {
		c.Summaries[i] = s.Clone()
	}

	c.BootMB = slices.Clone(rec.BootMB)
	c.Account.Victims = slices.Clone(rec.Account.Victims)
	c.GPUs = slices.Clone(rec.GPUs)
	for i := range c.GPUs {
		c.GPUs[i].Throttle = slices.Clone(rec.GPUs[i].Throttle)
	}

	c.Mounts = cloneMounts(rec.Mounts)
	c.Missing = slices.Clone(rec.Missing)
	c.ClockEvents = slices.Clone(rec.ClockEvents)
	c.Failures = slices.Clone(rec.Failures)
	c.Disks = slices.Clone(rec.Disks)
	c.NICs = slices.Clone(rec.NICs)
	c.LateStarts = maps.Clone(rec.LateStarts)
	c.Marks = rec.Marks.Clone()
	c.Operations = rec.Operations.Clone()
	if rec.PerfPy != nil {
		c.PerfPy = rec.PerfPy.Clone()
	}

	return &c
}
