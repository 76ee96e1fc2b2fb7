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
	// Bound is the job's limit in Unit, and BoundText describes it. They are 0 and "" if no limit is known.
	Bound     float64
	BoundText string
	// Capacity is how much of the resource the node has, in Unit, for a stacked chart; 0 if unknown.
	Capacity float64
	// Peak is a peak of the job, in Unit, that was between two samples and is in none of them. PeakText describes it.
	// They are 0 and "" if there was no such peak.
	Peak     float64
	PeakText string
	// Lanes are the GPUs, in a chart of many GPUs.
	Lanes []Lane
}

// chartPlan is a chart without measured values. Fields with a tag are for the page's script.
type chartPlan struct {
	ID    string `json:"id"` // cpu, memory, disk_io, … (see chartPlans), or a key
	Title string `json:"title"`
	Unit  string `json:"unit"` // of the values: "%", "MiB/s", "1/s"; "" if unknown
	// Top is the end of the axis; 0 means the largest value.
	Top    float64  `json:"top"`
	Series []Series `json:"series"`
	// TooltipSeries are not drawn, but shown in the tooltip: memory in MiB next to its percentage.
	TooltipSeries []Series `json:"asides"`
	Optional      bool     `json:"maybe,omitempty"`  // omitted if none of its series was measured
	Signed        bool     `json:"signed,omitempty"` // values may be negative

	column collector.Column           // determines the unit, the range and the bound
	line   reporter.OperationTimeline // of a chart of operations, instead of column; it has no series
	stack  stackPlan
	level  bool // a level: nothing happened if it did not change
}

// Series is one line of a chart with the band around it. The lists of the band are as long as the timeline; NaN means
// not measured.
type Series struct {
	Label string `json:"label"`
	// Spread reports whether the series is only a band, between the values of two sample keys.
	Spread bool          `json:"spread,omitempty"`
	Color  int           `json:"color,omitempty"` // index into the palette
	Dash   int           `json:"dash,omitempty"`  // kind of line: 0 is solid, see dashes
	Part   Part          `json:"part,omitempty"`
	Unit   string        `json:"unit,omitempty"` // of a tooltip series, unless its label has it
	Key    string        `json:"-"`              // of samples or envelope; for a spread of its lower edge
	Band   reporter.Band `json:"-"`

	column collector.Column           // of Key
	upper  collector.Column           // of a spread; otherwise zero
	line   reporter.OperationTimeline // of an operation, instead of column; otherwise zero
}

// dashes returns the dash patterns, in pixels on and off, by Series.Dash. Solid is nil.
func dashes() [][]float64 { return [][]float64{nil, {4, 3}, {1.5, 2.5}, {9, 3, 2, 3}} }

// complete derives the other fields of a plan from its columns and lines.
func (p *chartPlan) complete() {
	p.Unit, p.Signed = unitOf(p.column, p.line), p.line.Signed()
	if !p.needsLegend() && infoOf(p.column).Kind == collector.Share {
		p.Top = 100
	}
	p.each(func(s *Series) {
		s.Spread = s.upper != 0
		if s.Key = s.column.Key(); s.line.Kind != "" {
			s.Key = s.line.Key()
		}
	})
	for i := range p.TooltipSeries {
		s := &p.TooltipSeries[i]
		s.Color, s.Dash = 0, 0
		if unit := unitOf(s.column, s.line); unit != s.Label {
			s.Unit = unit
		}
	}
}

// needsLegend reports whether even a single series needs a legend, because the title does not name it.
func (p *chartPlan) needsLegend() bool { return p.line.Kind != "" }

// unitOf returns the unit of c or, if line is not zero, of that line of operations.
func unitOf(c collector.Column, line reporter.OperationTimeline) string {
	if line.Kind != "" {
		return line.Unit().Symbol()
	}
	return infoOf(c).Unit.Symbol()
}

// infoOf returns the ColumnInfo of c, but for a GPU without its number in the names: names with the number would be
// built for all columns.
func infoOf(c collector.Column) collector.ColumnInfo {
	if _, key, gpu := c.GPU(); gpu {
		return key.Info()
	}
	return c.Info()
}

// chartPlans returns the charts of a node with the given number of GPUs and lines of operations, in order: the charts
// of the GPUs, five that every node has, and those that only some nodes have.
func chartPlans(gpus int, lines []reporter.OperationTimeline) []chartPlan {
	plans := append(gpuPlans(gpus), cpuPlan())
	plans = append(plans, operationPlans(lines)...) // next to the CPUs, so that both are visible together
	plans = slices.Concat(plans, hostPlans(), optionalPlans(), groupPlans())
	for i := range plans {
		plans[i].complete()
	}
	return plans
}

func cpuPlan() chartPlan {
	return chartPlan{
		ID: "cpu", Title: "CPU", column: collector.JobCPU,
		stack: stackPlan{restLabel: "idle", totalLabel: "busy", shareLabel: "mean of all CPUs"},
		Series: []Series{
			{Label: "job", column: collector.JobCPU, Part: PartJob},
			{Label: "all busy", column: collector.CPUAvg, Part: PartShare},
		},
		TooltipSeries: []Series{
			{Label: "least to most busy CPU", column: collector.CPUMin, upper: collector.CPUMax},
			{Label: "idle and waiting for storage", column: collector.CPUIowait},
			{Label: "stolen by other virtual machines", column: collector.CPUSteal},
			{Label: "processes of the job", column: collector.JobProcesses},
			{Label: "threads of the job", column: collector.JobThreads},
			{Label: "throttled periods", column: collector.JobThrottled},
		},
	}
}

// hostPlans returns the charts that every node has, except the CPU's.
func hostPlans() []chartPlan {
	return []chartPlan{
		{
			ID: "memory", Title: "Memory", column: collector.JobMemory, stack: stackPlan{restLabel: "free", totalLabel: "used"},
			Series: []Series{
				{Label: "job", column: collector.JobMemory, Part: PartJob},
				{Label: "all used", column: collector.MemUsed, Part: PartTotal},
				{Label: "all used", column: collector.MemPercent, Part: PartShare},
				{Label: "cache", column: collector.JobPageCache, Part: PartCache},
				{Label: "used of the limit", column: collector.LimitMemory, Color: 1, Dash: 1},
			},
			TooltipSeries: []Series{{Label: "used", column: collector.MemPercent}},
		},
		{
			ID: "disk_io", Title: "Disk reads and writes", column: collector.DiskReadRate,
			Series: append(
				ratesOf(collector.TrafficDisk, Series{}),
				Series{Label: "read by the job", column: collector.JobReadRate, Dash: 1},
				Series{Label: "written by the job", column: collector.JobWriteRate, Color: 1, Dash: 1},
			),
		},
		{
			ID: "network", Title: "Network", column: collector.NetExtRecvRate,
			Series: slices.Concat(
				ratesOf(collector.TrafficNetwork, Series{}),
				ratesOf(collector.TrafficLoopback, Series{Color: 2, Dash: 1}),
				ratesOf(collector.TrafficInfiniBand, Series{Dash: 2}),
			),
		},
		{
			ID: "disk_space", Title: "Disk space", column: collector.DiskPercent, level: true,
			Series:        []Series{{Label: "used", column: collector.DiskPercent}},
			TooltipSeries: []Series{{Label: "free", column: collector.DiskFree}},
		},
	}
}

// optionalPlans returns the charts of optional devices and counters. For waiting tasks, colors show the resource, and
// dashes show the owner of the tasks, and some or all.
func optionalPlans() []chartPlan {
	return []chartPlan{
		{
			ID: "pressure", Title: "Tasks that wait", column: collector.PSICPUSome, Optional: true,
			Series: []Series{
				{Label: "CPU, some", column: collector.PSICPUSome},
				{Label: "memory, some", column: collector.PSIMemorySome, Color: 1},
				{Label: "memory, all", column: collector.PSIMemoryFull, Color: 1, Dash: 1},
				{Label: "storage, some", column: collector.PSIIOSome, Color: 2},
				{Label: "storage, all", column: collector.PSIIOFull, Color: 2, Dash: 1},
				{Label: "job: CPU, some", column: collector.JobPSICPUSome, Dash: 2},
				{Label: "job: CPU, all", column: collector.JobPSICPUFull, Dash: 3},
				{Label: "job: memory, some", column: collector.JobPSIMemorySome, Color: 1, Dash: 2},
				{Label: "job: memory, all", column: collector.JobPSIMemoryFull, Color: 1, Dash: 3},
				{Label: "job: storage, some", column: collector.JobPSIIOSome, Color: 2, Dash: 2},
				{Label: "job: storage, all", column: collector.JobPSIIOFull, Color: 2, Dash: 3},
			},
		},
		{
			ID: "network_file_systems", Title: "Network file systems", column: collector.NFSReadRate, Optional: true,
			Series: append(ratesOf(collector.TrafficNFS, Series{}), ratesOf(collector.TrafficLustre, Series{Dash: 1})...),
		},
		{
			ID: "node_power", Title: "CPU and memory power", column: collector.NodePower, Optional: true,
			Series: []Series{{Label: "packages and memory", column: collector.NodePower}},
		},
		{
			ID: "cpu_temperature", Title: "CPU temperature", column: collector.CPUTemperature, level: true, Optional: true,
			Series: []Series{{Label: "hottest package", column: collector.CPUTemperature}},
			TooltipSeries: []Series{
				{Label: "clocked down", column: collector.CPUThrottleEvents},
				{Label: "clocked down for", column: collector.CPUThrottleSeconds},
			},
		},
	}
}

// ratesOf returns the series of the rates of a group's counters. The first has the given style, each of the rest the
// next color. Labels are the counters' directions: "received". If several groups share a chart, labels also name the
// group: "loopback received".
func ratesOf(group collector.TrafficGroup, style Series) (list []Series) {
	for i, counter := range collector.TrafficByGroup()[group] {
		row, s := counter.Info(), style
		s.column, s.Label, s.Color = row.Rate, row.Direction, (style.Color+i)%len(seriesColors)
		switch group {
		case collector.TrafficLoopback, collector.TrafficInfiniBand, collector.TrafficNFS, collector.TrafficLustre:
			s.Label = string(group) + " " + row.Direction
		}
		list = append(list, s)
	}
	return list
}

// groupPlans returns the charts of the groups of counters that no other chart has.
func groupPlans() (plans []chartPlan) {
	groups := collector.TrafficByGroup()
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if slices.Contains(collector.Traffic(), groups[group][0]) {
			continue
		}
		name, series := string(group), ratesOf(group, Series{})
		plans = append(plans, chartPlan{
			ID: strings.ReplaceAll(name, " ", "_"), Title: strings.ToUpper(name[:1]) + name[1:],
			column: series[0].column, Optional: true, Series: series,
		})
	}
	return plans
}

// gpuCharts is the number of charts of GPUs, which come first.
const gpuCharts = 3

// gpuPlans returns the charts of the GPUs, with a line for each device.
func gpuPlans(gpus int) []chartPlan {
	plans := []chartPlan{
		{ID: "gpu_utilization", Title: "GPU busy"},
		{ID: "gpu_memory", Title: "GPU memory"},
		{ID: "gpu_power", Title: "GPU power"},
	}
	lines := func(key collector.GPUKey) (list []Series) {
		for i := range gpus {
			s := Series{Label: fmt.Sprintf("GPU %d", i), column: collector.GPUColumn(i, key)}
			list = append(list, s.styled(i))
		}
		return list
	}
	for k := range plans {
		key := collector.GPUKey(k)
		plans[k].column, plans[k].Optional, plans[k].Series = collector.GPUColumn(0, key), true, lines(key)
	}
	plans[gpuCharts-1].TooltipSeries = lines(collector.GPUTemperature)
	return plans
}

// styled returns the series in the style for its place among many: first the colors change, then the dashes.
func (s Series) styled(place int) Series {
	colors := len(seriesColors)
	s.Color, s.Dash = place%colors, place/colors%len(dashes())
	return s
}

// jobBound returns the job's limit b for a chart, the highest if it changed, and its text; 0 and "" if there is none.
func jobBound(b collector.Bound, l *reporter.Limits) (float64, string) {
	switch {
	case l == nil:
		return 0, ""
	case b == collector.BoundCPUs && l.CPUs > 0 && !math.IsInf(l.CPUs, 0):
		return l.MostCPUs(), "may use " + reporter.CPUsText(l)
	case b == collector.BoundMemory && l.MostMemoryMB() > 0 && !math.IsInf(float64(l.MostMemoryMB()), 0):
		return float64(l.MostMemoryMB()), "limit " + reporter.MemoryLimitText(l, text.SizeText)
	}
	return 0, ""
}

// SampleKeys returns the keys of the samples that the page draws, except the lines of operations.
func SampleKeys() []string {
	keys := []string{collector.Timestamp.Key()}
	for _, p := range chartPlans(collector.MaxGPUs, nil) {
		p.each(func(s *Series) {
			keys = append(keys, s.Key)
			if s.Spread {
				keys = append(keys, s.upper.Key())
			}
		})
	}

	return keys
}

// gpusOf returns the number of GPUs of n up to the last measured one.
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
	gpus := gpusOf(n)
	all := chartsOf(n, gpus, lines)
	if gpus >= minLanes {
		all = withLanes(all, laneScales(n))
	}
	var out []Chart
	for _, c := range all {
		if len(c.Series) > 0 || !c.Optional {
			out = append(out, c.Stacked())
		}
	}
	return out
}

// chartsOf returns all charts of n, measured or not, with the given number of GPUs and lines of operations.
func chartsOf(n *reporter.Node, gpus int, lines []reporter.OperationTimeline) []Chart {
	return mapSlice(chartPlans(gpus, lines), func(p chartPlan) Chart { return p.chart(n) })
}

// chart returns the chart of n for the plan, measured or not.
func (p chartPlan) chart(n *reporter.Node) Chart {
	c := Chart{chartPlan: p, Capacity: p.capacityOf(n)}
	c.Bound, c.BoundText = jobBound(infoOf(p.column).Bound, n.Limits)
	c.Series, c.TooltipSeries = nil, nil
	for _, s := range p.Series {
		if s.measure(n) && !(s.Part == PartShare && c.part(PartTotal) != nil) {
			c.Series = append(c.Series, s)
		}
	}
	for _, s := range p.TooltipSeries {
		if len(c.Series) > 0 && s.measure(n) {
			c.TooltipSeries = append(c.TooltipSeries, s)
		}
	}
	if p.column == collector.JobMemory {
		if c.Peak = jobPeak(n, c.part(PartJob)); c.Peak > 0 {
			c.PeakText = "peak " + text.SizeText(c.Peak) + " between samples"
		}
	}
	return c
}

// ChartOf returns the chart of the given key of the samples or of the envelope.
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
		c.Unit = column.Info().Unit.Symbol()
		if column.IsPercent() {
			c.Top = 100
		}
	}
	if line, work := reporter.ParseTimelineKey(key); work {
		c.Unit, c.Signed = line.Unit().Symbol(), line.Signed()
	}

	return c, nil
}

// measuredKeys lists the keys that ChartOf can draw, but only the first lines of operations.
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

// keyLetters is the maximum length of a key on a picture.
const keyLetters = 100

// measure sets the band of s from n, and reports whether anything was measured.
func (s *Series) measure(n *reporter.Node) (ok bool) {
	if s.Band, ok = bandOf(n, s.Key); ok && s.Spread {
		var upper reporter.Band
		upper, ok = bandOf(n, s.upper.Key())
		s.Band = reporter.Band{Min: s.Band.Min, Max: upper.Max}
	}
	return ok
}

// bandOf returns the envelope of the given key. If a report has no envelope, like perf.py's, the samples replace all
// three lists.
func bandOf(n *reporter.Node, key string) (reporter.Band, bool) {
	band, ok := n.Envelope[key]
	if !ok {
		column := reporter.Numbers(n.Samples.Column(key))
		band = reporter.Band{Min: column, Mean: column, Max: column}
	}
	measured := func(v float64) bool { return !math.IsNaN(v) }
	return band, slices.ContainsFunc(band.Max, measured)
}

// Timeline is the time axis of a node's series.
type Timeline struct {
	// Start is when the run began, in seconds since 1970; 0 if unknown.
	Start float64
	// Ends holds the end of each bucket in seconds from Start. A bucket begins where the previous one ends, the first
	// at 0. Ends never decrease.
	Ends []float64
	// Marks and Phases are the job's marks and the spans of its phases, by time.
	Marks  []Mark
	Phases []PhaseSpan
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
		if len(times.Max) > 1 && times.Max[1] > start { // the first window is assumed to be as long as the next one
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

	return t
}

func unixSeconds(t reporter.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// withSuspendGaps returns the time axis of n and its charts, with an empty bucket wherever the machine was suspended,
// so that values from before and after do not extend into it.
func withSuspendGaps(run *reporter.Run, n *reporter.Node, charts []Chart) (Timeline, []Chart) {
	t := NewTimeline(run, n)
	stops := suspends(n, t)
	if len(stops) == 0 {
		return t, charts
	}

	unknown := func(float64) float64 { return math.NaN() }
	eachSeries(charts, func(s *Series) {
		b := &s.Band
		b.Min, b.Mean, b.Max = insertSuspends(b.Min, stops, unknown), insertSuspends(b.Mean, stops, unknown),
			insertSuspends(b.Max, stops, unknown)
	})
	t.Ends = insertSuspends(t.Ends, stops, func(end float64) float64 { return end })
	return t, charts
}

// eachSeries calls do for all series of the charts, including tooltip series.
func eachSeries(charts []Chart, do func(*Series)) {
	for i := range charts {
		charts[i].each(do)
	}
}

// each calls do for all series of the plan, including tooltip series.
func (p *chartPlan) each(do func(*Series)) {
	for _, list := range [][]Series{p.Series, p.TooltipSeries} {
		for i := range list {
			do(&list[i])
		}
	}
}

// suspends returns the ends of the suspends, by the buckets that they precede.
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

// insertSuspends inserts of(end) into list for each suspend in stops.
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
func (t Timeline) Length() float64 {
	if len(t.Ends) == 0 {
		return 0
	}
	return t.Ends[len(t.Ends)-1]
}

// foldFactor returns how many neighbors to merge so that n values become at most limit values.
func foldFactor(n, limit int) int { return max(1, (n+limit-1)/limit) }

// thin merges every k neighboring buckets of a timeline.
func (t Timeline) thin(k int) Timeline {
	if k == 1 {
		return t
	}

	out := Timeline{Start: t.Start, Marks: t.Marks, Phases: t.Phases, Ends: make([]float64, 0, len(t.Ends)/k+1)}
	for i := 0; i < len(t.Ends); i += k {
		out.Ends = append(out.Ends, t.Ends[min(i+k, len(t.Ends))-1])
	}
	return out
}

// width returns the length of bucket i in seconds. It is never 0, so that it can serve as a weight.
func (t Timeline) width(i int) float64 {
	begin := 0.0
	if i > 0 {
		begin = t.Ends[i-1]
	}
	return max(t.Ends[i]-begin, 1e-9)
}

// Axes support values from minAxis to maxAxis: steps and round numbers of such values are still finite. Smaller values
// count as 0.
const (
	minAxis = 1e-100
	maxAxis = 1e300
)

// top returns the largest value of the chart's series, or the chart's limit if that is larger and near enough to be
// drawn. It returns 0 if no value is above 0.
func (c *Chart) top() float64 {
	greatest := 0.0
	for _, s := range c.Series {
		greatest = max(greatest, s.top())
	}

	greatest = max(greatest, c.Peak)
	if c.Bound > 0 && c.Bound <= maxBoundRatio*greatest {
		greatest = max(greatest, c.Bound)
	}

	return greatest
}

// top returns the largest value of the series, or 0 if none is above 0.
func (s *Series) top() float64 {
	greatest := 0.0
	for _, v := range s.Band.Max {
		if v >= minAxis {
			greatest = max(greatest, min(v, maxAxis))
		}
	}
	return greatest
}

// bottom returns the least value of the chart's series if values may be negative, otherwise 0.
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

// maxBoundRatio is the greatest ratio of a drawn limit to the largest value. Next to a higher limit the values would be
// a flat line.
const maxBoundRatio = 4
