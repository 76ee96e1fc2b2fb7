package plotter

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Chart is one picture: series over the time since the start of the run.
type Chart struct {
	chartPlan
	Unit string
	// Signed reports whether values may be negative.
	Signed bool
	// Bound is the job's limit in Unit, and BoundText describes it. They are 0 and "" if no limit is known.
	Bound     float64
	BoundText string
	// Capacity is the amount of the resource that the node has, in Unit; 0 if unknown.
	Capacity float64
	// Peak is a peak of the job, in Unit, that fell between two samples, so that neither shows it; 0 if there was none.
	Peak    float64
	reached float64 // the limit at which the job was killed between two samples; 0 = none
	// Rows reports whether each series is a row of colors, because there are many.
	Rows bool
}

// maxLineGPUs is the maximum number of GPUs that are drawn as lines. If there are more, each GPU is a row of colors.
const maxLineGPUs = 3

// jobBound returns the job's limit b for a chart, and the text of the limit. If the limit changed, jobBound returns the
// highest value. It returns 0 and "" if there is no limit.
func jobBound(b collector.Bound, l *reporter.Limits) (float64, string) {
	switch {
	case l == nil:
		return 0, ""
	case b == collector.BoundCPUs && l.CPUs > 0 && !math.IsInf(l.CPUs, 0):
		return l.MostCPUs(), reporter.CPUsText(l)
	case b == collector.BoundMemory && l.MostMemoryMB() > 0 && !math.IsInf(float64(l.MostMemoryMB()), 0):
		return float64(l.MostMemoryMB()), reporter.MemoryLimitText(l, text.SizeText)
	}
	return 0, ""
}

// gpusOf returns the number of GPUs of n up to the last one with measurements.
func gpusOf(n *reporter.Node) int {
	gpus := 0
	for _, key := range slices.AppendSeq(slices.Clone(n.Samples.Keys), maps.Keys(n.Envelope)) {
		c, known := collector.ColumnByKey(key)
		if device, _, ofGPU := c.GPU(); known && ofGPU && device >= gpus {
			if _, ok := bandOf(n, key); ok {
				gpus = device + 1
			}
		}
	}
	return gpus
}

// Charts returns the charts of n: the five that every node has, and any other chart with at least one measured series.
// A series without any measured value is omitted, so one of the five may be empty.
func Charts(n *reporter.Node) []Chart {
	lines, _ := chosenLines(n)
	var out []Chart
	for _, p := range chartPlans(gpusOf(n), lines) {
		if c := p.chart(n); len(c.Series) > 0 || !c.optional {
			out = append(out, c)
		}
	}
	return out
}

// chart returns the chart of n for the plan, measured or not.
func (p chartPlan) chart(n *reporter.Node) Chart {
	c := Chart{chartPlan: p, Unit: infoOf(p.column).Unit.Symbol(), Signed: p.line.Signed(), Capacity: p.capacityOf(n)}
	if p.line.Kind != "" {
		c.Unit = p.line.Unit().Symbol()
	}
	c.Bound, c.BoundText = jobBound(infoOf(p.column).Bound, n.Limits)
	c.Series = measured(n, p.Series)
	if len(c.Series) == 0 && len(p.node) > 0 {
		c.Series, c.Title = measured(n, p.node), p.Title+" of the node"
	}
	if len(c.Series) > 1 && p.column == collector.JobMemory { // do not draw two numbers for the same memory
		job := c.Series[0].top()
		c.Series = slices.DeleteFunc(c.Series, func(s Series) bool {
			return s.column == collector.LimitMemory && s.top() <= alike*job && job <= alike*s.top()
		})
	}
	for i := range c.Series {
		if n.Job != nil { // without a job, the node's lines are in color
			c.Series[i] = c.Series[i].ofNode()
		}
	}
	c.greyOtherGPUs(n)
	c.addWhole(n)
	c.Rows = len(c.Series) > maxLineGPUs && strings.HasPrefix(c.ID, "gpu")
	if p.column == collector.JobMemory && len(c.Series) > 0 {
		c.Peak = jobPeak(n, &c.Series[0])
	}
	return c
}

// greyOtherGPUs draws the lines of GPUs that the job could not see in grey, if it could see others.
func (c *Chart) greyOtherGPUs(n *reporter.Node) {
	if len(c.Series) > maxLineGPUs || !slices.ContainsFunc(n.GPUs, func(g reporter.GPU) bool { return g.OfJob }) {
		return
	}
	own := 0
	for i, s := range c.Series {
		device, _, gpu := s.column.GPU()
		switch {
		case !gpu || device >= len(n.GPUs):
			continue
		case n.GPUs[device].OfJob:
			c.Series[i] = s.styled(own)
			own++
		default:
			c.Series[i].Label += ", not the job's"
			c.Series[i].Color, c.Series[i].Dash = nodeColor, i-own
		}
	}
}

// alike is the maximum ratio between two memory peaks that look the same.
const alike = 1.05

// measured returns the measured series with their bands.
func measured(n *reporter.Node, plan []Series) (out []Series) {
	for _, s := range plan {
		if s.Key = s.column.Key(); s.line.Kind != "" {
			s.Key = s.line.Key()
		}
		if band, ok := bandOf(n, s.Key); ok {
			s.Band = band
			out = append(out, s)
		}
	}
	return out
}

// addWhole adds the usage of others on the node: the difference between the node's usage and the job's. If the job's
// usage is unknown, addWhole makes the node's usage the first series.
func (c *Chart) addWhole(n *reporter.Node) {
	for _, column := range c.whole {
		band, ok := bandOf(n, column.Key())
		percent := column.Info().Unit == collector.Percent
		if !ok || percent && c.Capacity == 0 && len(c.Series) > 0 {
			continue
		}
		switch {
		case percent && c.Capacity > 0:
			band = mapped(band, func(list reporter.Numbers) reporter.Numbers {
				list = slices.Clone(list)
				for i := range list {
					list[i] *= c.Capacity / 100
				}
				return list
			})
		case percent:
			c.Unit, c.Bound, c.BoundText = "%", 0, ""
		}
		if len(c.Series) == 0 {
			c.Series, c.Title = []Series{{Label: "the node", Key: column.Key(), Band: band}}, c.Title+" of the node"
			c.Bound, c.BoundText = 0, ""
			return
		}
		others := difference(band.Mean, c.Series[0].Band.Mean)
		c.Series = append(c.Series, Series{Label: "others on the node", Others: true,
			Band: reporter.Band{Min: others, Mean: others, Max: others}})
		return
	}
}

// difference returns all minus part, but at least 0, wherever both were measured.
func difference(all, part reporter.Numbers) reporter.Numbers {
	out := make(reporter.Numbers, len(all))
	for i, v := range all {
		out[i] = math.NaN()
		if i < len(part) && !math.IsNaN(v-part[i]) {
			out[i] = max(0, v-part[i])
		}
	}
	return out
}

// mapped returns b with each of its lists replaced by of(list).
func mapped(b reporter.Band, of func(reporter.Numbers) reporter.Numbers) reporter.Band {
	return reporter.Band{Min: of(b.Min), Mean: of(b.Mean), Max: of(b.Max)}
}

// capacityOf returns the amount of the chart's resource that n has; 0 if it is unknown.
func (p *chartPlan) capacityOf(n *reporter.Node) float64 {
	v := 0.0
	if n.Host != nil && p.column == collector.JobCPU {
		v = float64(n.Host.CPUs)
	} else if n.Host != nil && len(p.whole) > 0 {
		v = n.Host.MemoryMB
	}
	if v > 0 && v <= maxAxis {
		return v
	}
	return 0
}

// peakMargin is the minimum ratio of the kernel's peak to the highest sample. A lower peak is not drawn.
const peakMargin = 1.02

// jobPeak returns the job's peak memory as recorded by the kernel if it is above all samples, and 0 otherwise. Such a
// peak fell between two samples.
func jobPeak(n *reporter.Node, memory *Series) float64 {
	peak := n.Metric(reporter.MetricJobMemoryPeak)
	highest := memory.Band.MaxOf(0, len(memory.Band.Max))
	if memory.Key != collector.JobMemory.Key() || !(peak > 0 && peak > peakMargin*highest) || peak > maxAxis {
		return 0
	}
	return peak
}

// ChartOf returns the chart of one series. key is a key of the samples or of the envelope.
func ChartOf(n *reporter.Node, key string) (Chart, error) {
	if key == collector.Timestamp.Key() {
		return Chart{}, fmt.Errorf("%s is the time axis", key)
	}

	band, ok := bandOf(n, key)
	if !ok {
		return Chart{}, fmt.Errorf("nothing of %q was measured; there are: %s", text.Printable(key), measuredKeys(n))
	}

	name := text.Clip(text.Printable(key), keyLetters)
	c := Chart{chartPlan: chartPlan{ID: key, Title: name, Series: []Series{{Label: name, Key: key, Band: band}}}}
	if column, known := collector.ColumnByKey(key); known {
		info := infoOf(column)
		c.Unit = column.Info().Unit.Symbol()
		c.Level = column == collector.MemPercent || column == collector.DiskPercent ||
			column == collector.LimitMemoryPercent || info.Kind == collector.Gauge && info.Unit != collector.Percent &&
			info.Unit.Symbol() != "W" && column != collector.JobCPU
	}
	if line, work := reporter.ParseTimelineKey(key); work {
		c.Unit, c.Signed = line.Unit().Symbol(), line.Signed()
	}

	return c, nil
}

// measuredKeys lists the keys that ChartOf can draw. Of the operation series, it lists only the first ones.
func measuredKeys(n *reporter.Node) string {
	var out []string
	for c := range collector.Column(collector.MaxColumns) {
		if _, ok := bandOf(n, c.Key()); ok && c != collector.Timestamp {
			out = append(out, c.Key())
		}
	}

	columns := len(out)
	for _, l := range n.Timelines() {
		if _, ok := bandOf(n, l.Key()); ok {
			out = append(out, text.Clip(text.Printable(l.Key()), keyLetters))
		}
	}

	if len(out) == 0 {
		return "none"
	}
	return text.List(out, columns+maxLines)
}

// keyLetters is the maximum length of a key in a picture.
const keyLetters = 100

// bandOf returns the envelope of the given key. If a report has no envelope, as with perf.py, all three lists are the
// samples.
func bandOf(n *reporter.Node, key string) (reporter.Band, bool) {
	band, ok := n.Envelope[key]
	if !ok {
		column := reporter.Numbers(n.Samples.Column(key))
		band = reporter.Band{Min: column, Mean: column, Max: column}
	}
	return band, slices.ContainsFunc(band.Max, func(v float64) bool { return !math.IsNaN(v) })
}

// The thresholds above which usage is significant.
const (
	quietPercent = 1    // percent of the disk or of the time
	fullLevel    = 90   // percent of the disk: a nearly full disk is significant even if its usage does not change
	quietRate    = 0.01 // MiB/s
)

// quiet reports whether s shows no significant usage.
func (c *Chart) quiet(s *Series) bool {
	least, greatest := math.Inf(1), math.Inf(-1)
	for i, v := range s.Band.Max {
		if !math.IsNaN(v) {
			greatest = max(greatest, v)
			least = min(least, s.Band.Min[i])
		}
	}
	switch {
	case c.ID == "disk_space":
		return !(greatest-least >= quietPercent || greatest >= fullLevel)
	case len(c.whole) > 0: // CPU and memory are always shown
		return false
	case c.Unit == "%":
		return !(greatest >= quietPercent)
	case c.Unit == "MiB/s":
		return !(greatest >= quietRate)
	}
	return !(greatest > 0 || least < 0)
}

// Settle removes the series without significant usage, and returns a sentence about the removed series. If no series
// is left, the sentence replaces the chart.
func (c *Chart) Settle() (sentence string) {
	if len(c.Series) == 0 {
		return c.Title + ": not measured."
	}
	all := c.Series
	c.Series = slices.DeleteFunc(slices.Clone(all), func(s Series) bool { return !c.Rows && c.quiet(&s) })
	switch removed := len(all) - len(c.Series); {
	case removed == len(all) && c.ID == "disk_space":
		return c.Title + ": at most " + text.Fixed(all[0].top(), 0) + " %."
	case removed == len(all) && c.nothing != "":
		return c.nothing
	case removed == len(all):
		return strings.TrimRight(c.Title+": always 0 "+c.Unit, " ") + "."
	case c.ID == "disk_io":
		shown := "Disk reads and writes"
		if removed > 0 && c.Series[0].Dash > 0 {
			shown, sentence, c.Series[0].Dash = "Disk writes", "Nothing read from disk.", 0
		} else if removed > 0 {
			shown, sentence = "Disk reads", "Nothing written to disk."
		}
		c.Title = strings.Replace(c.Title, "Disk", shown, 1)
	}
	return sentence
}

// Axes support values from minAxis to maxAxis: within this range, steps and round numbers are finite. Smaller values
// are treated as 0.
const (
	minAxis = 1e-100
	maxAxis = 1e300
)

// top returns the largest value of all series except the usage of others, or 0 if no value is positive.
func (c *Chart) top() float64 {
	if c.Stacked {
		return c.stack().top()
	}
	greatest := max(c.Peak, c.reached)
	for i := range c.Series {
		if s := &c.Series[i]; !s.Others {
			greatest = max(greatest, s.top())
		}
	}
	return greatest
}

// stack returns c as it is drawn: if c is Stacked, each series begins where the one before it ends. A part that was not
// measured together with the first one counts as 0.
func (c *Chart) stack() *Chart {
	if !c.Stacked {
		return c
	}
	out, below := *c, reporter.Numbers(nil)
	out.Stacked, out.Series = false, slices.Clone(c.Series)
	for k := range out.Series {
		top := slices.Clone(out.Series[k].Band.Mean)
		if k == 0 {
			below = make(reporter.Numbers, len(top))
		}
		for i, under := range below {
			if top[i] += under; k > 0 && math.IsNaN(top[i]) {
				top[i] = under
			}
		}
		out.Series[k].Band = reporter.Band{Min: below, Mean: top, Max: top}
		below = top
	}
	return &out
}

// top returns the largest value of the series, or 0 if no value is positive.
func (s *Series) top() float64 {
	greatest := 0.0
	for _, v := range s.Band.Max {
		if v >= minAxis {
			greatest = max(greatest, min(v, maxAxis))
		}
	}
	return greatest
}

// bottom returns the smallest value of the chart's series, or 0 if the chart cannot have negative values.
func (c *Chart) bottom() float64 {
	least := 0.0
	for _, s := range c.Series {
		for _, v := range s.Band.Min {
			if c.Signed && v < least && v <= -minAxis {
				least = max(v, -maxAxis)
			}
		}
	}
	return least
}

// The constants that determine the end of an axis. A limit or capacity is within the axis only up to a certain ratio to
// the peak, because the job would otherwise look like a flat line.
const (
	axisRoom    = 1.1 // ratio of the end of the axis to the highest value
	memoryRatio = 2   // maximum ratio of a memory limit to the peak
	cpuRatio    = 8   // maximum ratio of the allowed CPUs to the peak
	fewCPUs     = 16  // up to this number, the axis always shows all allowed CPUs
)

// limits returns the highest value that the axis must show. exact reports whether the axis ends at that value.
func (c *Chart) limits() (top float64, exact bool) {
	top = c.top()
	switch {
	case c.column == collector.JobCPU && len(c.whole) > 0 && c.Unit != "%":
		allowed := c.Bound
		if allowed == 0 {
			allowed = c.Capacity
		}
		if allowed > 0 && allowed <= max(fewCPUs, cpuRatio*top) {
			return max(allowed, top), top <= allowed
		}
	case c.Bound > 0 && c.Bound <= memoryRatio*top:
		return max(c.Bound, top), false
	case c.Unit == "%" && top >= 25 && top <= 100:
		return 100, true
	}
	return top, false
}
