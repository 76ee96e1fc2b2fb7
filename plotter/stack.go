package plotter

import (
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// Part is the role of a series in a stacked chart, with layers on top of each other.
type Part int

// The parts. The first five are measured, and Stacked computes the others from them.
const (
	PartLine   Part = iota // a separate line, as in other charts
	PartJob                // the lowest layer
	PartTotal              // the job and all other processes together: the upper edge of both
	PartShare              // PartTotal in percent of the capacity; omitted if PartTotal was measured
	PartCache              // the page cache of the job
	PartOthers             // PartTotal without the job
	PartMixed              // PartTotal where the job was not measured
	PartRest               // the rest of the capacity: idle, or free
)

// layer reports whether the part is drawn as an area.
func (p Part) layer() bool { return p != PartLine && p != PartTotal }

// tone returns the name of the part's color; "" is the color of the series. Tones are neutral, so that the job stands
// out.
func (p Part) tone() string {
	return [...]string{
		PartTotal: "others", PartOthers: "others", PartMixed: "mixed", PartCache: "cache", PartRest: "rest",
	}[p]
}

// stackPlan is the plan of a stacked chart.
type stackPlan struct {
	// restLabel is the label of the rest of the capacity: idle, free. "" = not stacked.
	restLabel string
	// totalLabel is the label of PartTotal if the job was not measured.
	totalLabel string
	// shareLabel is the label of PartShare in the tooltip.
	shareLabel string
}

// capacityOf returns how much of the chart's resource n has; 0 if that is unknown, or if the chart is not stacked.
func (p *chartPlan) capacityOf(n *reporter.Node) float64 {
	if p.stack.restLabel == "" || n.Host == nil {
		return 0
	}
	v := n.Host.MemoryMB
	if p.column == collector.JobCPU {
		v = float64(n.Host.CPUs)
	}
	if v > 0 && v <= maxAxis {
		return v
	}
	return 0
}

// If the job's need is below smallPart of the capacity, the axis ends near the need, at fitRoom times it: next to a
// capacity more than four times as large, the job would be a flat line.
const (
	smallPart = 0.25
	fitRoom   = 1.25
	tinyPart  = 0.01 // a job without a limit that uses less looks negligible
)

// Stacked returns the chart with its layers, from the lowest to the highest, and then its lines. Means are stacked; the
// bands of the job and of the node's total keep their peaks. A chart that is not stacked is returned unchanged.
func (c Chart) Stacked() Chart {
	if c.stack.restLabel == "" {
		return c
	}

	all, job := c.part(PartTotal), c.part(PartJob)
	if share := c.part(PartShare); all == nil && share != nil {
		if c.Capacity == 0 {
			return c.inPercent(*share)
		}
		if c.stack.shareLabel != "" {
			tooltip := Series{Label: c.stack.shareLabel, Key: share.Key, Unit: "%", Band: share.Band}
			c.TooltipSeries = append([]Series{tooltip}, c.TooltipSeries...)
		}
		share.Part, share.Band = PartTotal, scaled(share.Band, c.Capacity/100)
		all = share
	}

	layers := c.layers(all, job)
	if all != nil && job != nil {
		layers = append(layers, *all)
	}
	for _, s := range c.Series {
		if s.Part == PartLine {
			layers = append(layers, s)
		}
	}
	c.Top, c.Series = c.axisTop(), layers

	return c
}

// layers returns the layers of the chart, given the node's total and the job, which may be nil.
func (c *Chart) layers(all, job *Series) []Series {
	var out []Series
	switch {
	case all == nil && job == nil:
		return nil
	case all == nil:
		return []Series{*job}
	case job == nil: // the total is the lowest layer
		lowest := *all
		lowest.Part, lowest.Label = PartJob, c.stack.totalLabel
		out = append(out, lowest)
	default:
		out = append(append(out, *job), splitUp(all.Band.Mean, job.Band.Mean)...)
	}

	if cache := c.part(PartCache); cache != nil {
		out = append(out, *cache)
	}
	if c.Capacity > 0 {
		out = append(out, c.rest(out, all))
	}
	return out
}

// inPercent returns c as a chart of share, in percent of a capacity that is unknown.
func (c Chart) inPercent(share Series) Chart {
	share.Part, share.Label = PartLine, c.stack.totalLabel
	c.Unit, c.Top, c.Bound, c.BoundText, c.stack = "%", 100, 0, "", stackPlan{}
	c.Series = []Series{share}
	c.TooltipSeries = slices.DeleteFunc(slices.Clone(c.TooltipSeries), func(s Series) bool { return s.Key == share.Key })
	return c
}

// axisTop returns the end of the axis: the capacity, or near the job's need if that is much less.
func (c *Chart) axisTop() float64 {
	job := c.part(PartJob)
	if job == nil {
		return c.Capacity
	}

	need := max(c.Peak, job.top())
	limited := c.Bound > 0 && c.Bound <= c.Capacity
	if limited {
		need = max(need, c.Bound)
	}

	if need < smallPart*c.Capacity && (limited || need >= tinyPart*c.Capacity) {
		return fitRoom * need
	}
	return max(c.Capacity, need)
}

// part returns a copy of the series for a part; nil if there is none.
func (c *Chart) part(p Part) *Series {
	i := slices.IndexFunc(c.Series, func(s Series) bool { return s.Part == p })
	if i < 0 {
		return nil
	}
	return new(c.Series[i])
}

// splitUp returns the layers above the job up to the total all: the part of other processes and, where the job was not
// measured, the whole total. Layers without any value are omitted.
func splitUp(all, job reporter.Numbers) []Series {
	others, mixed := absent(len(all)), absent(len(all))
	for i, v := range all {
		switch {
		case i < len(job) && !math.IsNaN(job[i]):
			others[i] = max(0, v-job[i])
		default:
			mixed[i] = v
		}
	}

	out := []Series{derived(PartOthers, "others", others)}
	if slices.ContainsFunc(mixed, func(v float64) bool { return !math.IsNaN(v) }) {
		out = append(out, derived(PartMixed, "job and others, not told apart", mixed))
	}
	return out
}

// rest returns the layer that fills the stack up to the capacity, where the total is known.
func (c *Chart) rest(layers []Series, all *Series) Series {
	rest := absent(len(all.Band.Mean))
	for i, v := range all.Band.Mean {
		if math.IsNaN(v) {
			continue
		}
		sum := 0.0
		for _, s := range layers {
			if i < len(s.Band.Mean) && !math.IsNaN(s.Band.Mean[i]) {
				sum += s.Band.Mean[i]
			}
		}
		rest[i] = max(0, c.Capacity-sum)
	}
	return derived(PartRest, c.stack.restLabel, rest)
}

// derived returns a layer computed from means. It has no band.
func derived(p Part, label string, mean reporter.Numbers) Series {
	return Series{Label: label, Part: p, Band: reporter.Band{Min: mean, Mean: mean, Max: mean}}
}

// absent returns n unmeasured values.
func absent(n int) reporter.Numbers {
	out := make(reporter.Numbers, n)
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

// scaled returns b with all values multiplied by the factor by.
func scaled(b reporter.Band, by float64) reporter.Band {
	times := func(list reporter.Numbers) reporter.Numbers {
		out := make(reporter.Numbers, len(list))
		for i, v := range list {
			out[i] = v * by
		}
		return out
	}
	return reporter.Band{Min: times(b.Min), Mean: times(b.Mean), Max: times(b.Max)}
}

// peakMargin is the minimum ratio of the kernel's peak to the highest sample: a lower peak is not drawn.
const peakMargin = 1.02

// jobPeak returns the peak of the job's memory that the kernel recorded if it is above all samples, and thus was
// between two of them; 0 otherwise.
func jobPeak(n *reporter.Node, memory *Series) float64 {
	peak := n.Metric(reporter.MetricJobMemoryPeak)
	if memory == nil || !(peak > 0) || peak > maxAxis {
		return 0
	}
	if highest := memory.Band.MaxOf(0, len(memory.Band.Max)); !(peak > peakMargin*highest) {
		return 0
	}
	return peak
}
