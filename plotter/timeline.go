package plotter

import (
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/summary"
)

// Timeline is the time axis of a node's series.
type Timeline struct {
	// Start is when the run began, in seconds since 1970; 0 if unknown.
	Start float64
	// Ends holds the end of each bucket in seconds from Start. The first bucket begins at 0, and each other bucket
	// where the previous one ends. Ends never decrease.
	Ends []float64
	// Marks and Phases are the job's marks and the spans of its phases, by time.
	Marks  []Mark
	Phases []PhaseSpan
	// Death is the kill of the job or of a child of it; nil if there was none.
	Death *Death

	fresh bool // whether the job began with the timeline, so that its memory was 0 at the start
}

// Death is the kill of a job or of a child of it.
type Death struct {
	At    float64 // seconds from the start; the end of the axis if the job ended with the kill
	Limit float64 // in MiB, if the kill was at a memory limit; otherwise 0
	Words string  // "killed" or "stopped"

	// seen is the time at which the kernel killed the process. If the job ended with the kill, later samples show only
	// the remains of the job.
	seen float64
	last bool // whether the job ended with the kill
}

// NewTimeline returns the time axis of n. It begins with the baseline of the sampling or, if that is unknown, with the
// start of the run.
func NewTimeline(r *reporter.Run, n *reporter.Node) Timeline {
	times, _ := bandOf(n, collector.Timestamp.Key())
	start := 0.0
	switch {
	case n.Sampling != nil && !n.Sampling.Start.IsZero():
		start = unixSeconds(n.Sampling.Start)
	case !r.Start.IsZero() && n.Origin != reporter.OriginPerfPy:
		start = unixSeconds(r.Start)
	case len(times.Max) > 0 && !math.IsNaN(times.Max[0]):
		start = times.Max[0]
		if len(times.Max) > 1 && times.Max[1] > start { // assume that the first window is as long as the second
			start -= times.Max[1] - start
		}
	}

	t := Timeline{Start: start, Ends: make([]float64, len(times.Max))}
	last := 0.0
	for i, v := range times.Max {
		if end := v - start; end > last { // false for NaN
			last = end
		}
		t.Ends[i] = last
	}
	t.addAnnotations(n)
	t.addDeath(n)
	t.fresh = n.Job != nil && !n.Job.Attached && math.Abs(unixSeconds(n.Job.Start)-start) < 0.1

	return t
}

func unixSeconds(t reporter.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// addDeath adds the kill described by the verdict of n.
func (t *Timeline) addDeath(n *reporter.Node) {
	v := n.Verdict
	if v == nil || n.Job == nil || len(t.Ends) == 0 {
		return
	}
	d := &Death{Words: "killed"}
	switch {
	case diagnosis.IsOutOfMemory(v.Cause):
		if limit := summary.KillLimit(n); limit <= maxAxis {
			d.Limit = limit
		}
	case v.Cause == diagnosis.CauseExited && v.Evidence["time"] != nil && v.Number("limit_kills") > 0: // kill of a child
		if n.Limits != nil && float64(n.Limits.MemoryMB) < maxAxis {
			d.Limit = max(0, float64(n.Limits.MemoryMB))
		}
	case v.Cause == diagnosis.CauseSignal && n.Job.Signal == "SIGKILL":
	case v.Cause == diagnosis.CauseTimeLimit, v.Cause == diagnosis.CauseStopped, v.Cause == diagnosis.CauseSignal:
		d.Words = "stopped"
	default:
		return
	}

	length := t.Length()
	d.At, d.seen = length, length
	words, _ := v.Evidence["time"].(string)
	if at, err := time.Parse(time.RFC3339Nano, words); err == nil {
		d.seen = float64(at.UnixMicro())/1e6 - t.Start
	}
	if d.last = len(n.Ranks) < 2 && !(d.seen < length-t.goesOn(n)); !d.last {
		d.At = min(length, max(0, d.seen))
	}
	t.Death = d
}

// goesOn returns how long a job must continue after the kill of a process to have survived the kill: three sampling
// intervals, but at least one second. The result is in seconds.
func (t *Timeline) goesOn(n *reporter.Node) float64 {
	if n.Sampling == nil {
		return 3
	}
	return max(1, 3*n.Sampling.IntervalSeconds*float64(max(1, n.Sampling.Stride)))
}

// samplesBefore returns how many samples were taken before a kill.
func (t *Timeline) samplesBefore(d *Death) int {
	const slack = 1e-3 // the kill may have been noticed together with a sample
	n, _ := slices.BinarySearch(t.Ends, d.seen-slack)
	return n
}

// unmeasured removes the levels of the job that were sampled after its kill, because they show only the remains of the
// job. It also makes room for the limit at which the job was killed.
func (t *Timeline) unmeasured(c *Chart) {
	d := t.Death
	if d == nil || c.column != collector.JobMemory && !c.Stacked {
		return
	}
	if d.Limit > 0 && !c.Stacked {
		c.Peak, c.reached = 0, d.Limit
		if c.Bound < d.Limit {
			c.Bound, c.BoundText = d.Limit, text.SizeText(d.Limit)
		}
	}
	if !d.last {
		return
	}
	first := t.samplesBefore(d)
	for i := range c.Series {
		c.Series[i].Band = mapped(c.Series[i].Band, func(list reporter.Numbers) reporter.Numbers {
			list = slices.Clone(list)
			for i := first; i < len(list); i++ {
				list[i] = math.NaN()
			}
			return list
		})
	}
}

// withSuspendGaps returns the time axis of n and its charts, with an empty bucket wherever the machine was suspended,
// so that values from before and after a suspend do not extend into it.
func withSuspendGaps(run *reporter.Run, n *reporter.Node, charts []Chart) (Timeline, []Chart) {
	t := NewTimeline(run, n)
	for i := range charts {
		t.unmeasured(&charts[i])
	}
	stops := suspends(n, t)
	if len(stops) == 0 {
		return t, charts
	}

	unknown := func(float64) float64 { return math.NaN() }
	eachSeries(charts, func(s *Series) {
		s.Band = mapped(s.Band, func(list reporter.Numbers) reporter.Numbers { return insertSuspends(list, stops, unknown) })
	})
	t.Ends = insertSuspends(t.Ends, stops, func(end float64) float64 { return end })
	return t, charts
}

// eachSeries calls do for all series of the charts.
func eachSeries(charts []Chart, do func(*Series)) {
	for i := range charts {
		for k := range charts[i].Series {
			do(&charts[i].Series[k])
		}
	}
}

// suspends returns the end of each suspend, by the index of the bucket that follows it.
func suspends(n *reporter.Node, t Timeline) map[int]float64 {
	if n.Sampling == nil {
		return nil
	}

	stops := make(map[int]float64)
	for _, e := range n.Sampling.Suspends {
		i, _ := slices.BinarySearch(t.Ends, unixSeconds(e.At)-t.Start)
		if i >= len(t.Ends) || !(e.Seconds > 0) {
			continue
		}

		begin, seen := stops[i]
		if !seen && i > 0 {
			begin = t.Ends[i-1]
		}

		stops[i] = min(begin+e.Seconds, t.Ends[i])
	}

	return stops
}

// insertSuspends returns list with of(end) inserted for each suspend in stops.
func insertSuspends[L ~[]float64](list L, stops map[int]float64, of func(float64) float64) (out L) {
	for i, v := range list {
		if stop, ok := stops[i]; ok {
			out = append(out, of(stop))
		}
		out = append(out, v)
	}
	return out
}

// Length returns the end of the last bucket in seconds.
func (t *Timeline) Length() float64 {
	if len(t.Ends) == 0 {
		return 0
	}
	return t.Ends[len(t.Ends)-1]
}

// begin returns the beginning of bucket i in seconds.
func (t *Timeline) begin(i int) float64 {
	if i == 0 {
		return 0
	}
	return t.Ends[i-1]
}

// thin merges neighboring buckets in the timeline and in the charts until at most limit are left. If it merges any, it
// replaces the lists of the charts with copies.
func (t *Timeline) thin(charts []Chart, limit int) {
	k := (len(t.Ends) + limit - 1) / limit
	if k <= 1 {
		return
	}
	width := func(i int) float64 { return max(t.Ends[i]-t.begin(i), 1e-9) } // never 0, because it serves as a weight
	eachSeries(charts, func(s *Series) {
		s.Band = mapped(s.Band, func(list reporter.Numbers) reporter.Numbers {
			return list[:min(len(list), len(t.Ends))]
		}).Fold(k, width)
	})
	ends := make([]float64, 0, len(t.Ends)/k+1)
	for i := 0; i < len(t.Ends); i += k {
		ends = append(ends, t.Ends[min(i+k, len(t.Ends))-1])
	}
	t.Ends = ends
}
