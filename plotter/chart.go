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

// A Chart is what one picture shows: series over the time since the start of the run.
type Chart struct {
	ID    string // cpu, memory, disk_io, … (see chartPlans), or a key
	Title string
	Unit  string // of the values: "%", "MiB/s", "1/s"; "" if unknown
	// Top is the end of the axis; 0 means that of the largest value.
	Top float64
	// Bound is the most that the job may use, in Unit, and BoundText describes it. They are 0 and
	// "" if no limit is known.
	Bound     float64
	BoundText string
	// Whole is how much the node has of what a stacked chart shows, in Unit; 0 if it is not known.
	Whole float64
	// Peak is a peak of the job that lay between two samples, in Unit, and PeakText describes it.
	// They are 0 and "" if there was none.
	Peak     float64
	PeakText string
	Series   []Series
	// Named reports whether the title does not say what a single series is, so that it needs a legend.
	Named bool
	// Signed reports whether values may be below 0.
	Signed bool
	// Asides are not drawn, but shown where a value is asked for: memory in MiB beside its
	// percentage.
	Asides []Series
	// Lanes are the GPUs, in the chart of many of them.
	Lanes []Lane

	stack        stackPlan
	level        bool // it is a level, in which nothing happens unless it changes
	whenMeasured bool // it is left out if nothing of it was measured
}

// A Series is one line of a chart with the band around it. The lists of the band are as long as the
// timeline; NaN means not measured.
type Series struct {
	Label string
	Key   string // of samples or envelope; for a spread that of its lower edge
	Unit  string // of an aside
	Band  reporter.Band
	// Spread reports whether there is only a band, between two sample keys.
	Spread bool
	Color  int // index into the palette
	Dash   int // kind of line: 0 is solid, see dashes
	Part   Part
}

// dashes returns the dash patterns, in pixels on and off, by Series.Dash. Solid is nil.
func dashes() [][]float64 { return [][]float64{nil, {4, 3}, {1.5, 2.5}, {9, 3, 2, 3}} }

// A seriesPlan says which sample key becomes which series of a chart.
type seriesPlan struct {
	label string
	key   collector.Column
	upper collector.Column  // of a spread; otherwise the zero value
	line  reporter.WorkLine // of an operation, instead of key; otherwise the zero value
	color int
	dash  int
	part  Part
}

// name returns the key of the samples or of the envelope.
func (p seriesPlan) name() string {
	if p.line.Kind != "" {
		return p.line.Key()
	}
	return p.key.Key()
}

// unit returns the unit of the values.
func (p seriesPlan) unit() string {
	if p.line.Kind != "" {
		return p.line.Unit().Symbol()
	}
	return infoOf(p.key).Unit.Symbol()
}

type chartPlan struct {
	id, title string
	of        collector.Column  // gives the chart its unit, its range and its bound
	line      reporter.WorkLine // gives the unit to a chart of operations, instead of of; it has no series
	stack     stackPlan
	level     bool
	series    []seriesPlan
	aside     []seriesPlan
	// whenMeasured charts are left out if nothing of them was measured.
	whenMeasured bool
}

// unit returns the unit of the chart's values.
func (p chartPlan) unit() string { return seriesPlan{key: p.of, line: p.line}.unit() }

// top returns the end of the axis, or 0 for that of the largest value.
func (p chartPlan) top() float64 {
	if p.line.Kind == "" && infoOf(p.of).Kind == collector.Share {
		return 100
	}
	return 0
}

// infoOf returns what there is to know of a column but its names, which a GPU's have its number in: to look these up,
// all of them are made.
func infoOf(c collector.Column) collector.ColumnInfo {
	if _, key, gpu := c.GPU(); gpu {
		return key.Info()
	}
	return c.Info()
}

// bound returns the limit of the job that bounds the chart, and its text; 0 and "" if there is none.
func (p chartPlan) bound(l *reporter.Limits) (float64, string) {
	if p.line.Kind != "" {
		return 0, ""
	}
	return jobBound(infoOf(p.of).Bound, l)
}

// chartPlans returns the charts of a node with so many GPUs and with these lines of operations, in
// order: those of GPUs, five that every node has, and those that only some nodes have.
func chartPlans(gpus int, lines []reporter.WorkLine) []chartPlan {
	plans := make([]chartPlan, 0, 16) // about as many as there are
	plans = append(append(plans, gpuPlans(gpus)...), cpuPlan())
	plans = append(plans, workPlans(lines)...) // beside the CPUs, so that both can be seen together
	plans = append(
		plans,
		memoryPlan(),
		diskPlan(),
		networkPlan(),
		chartPlan{
			id:     "disk_space",
			title:  "Disk space",
			of:     collector.DiskPercent,
			level:  true,
			series: []seriesPlan{{label: "used", key: collector.DiskPercent}},
			aside:  []seriesPlan{{label: "free", key: collector.DiskFree}},
		},
		pressurePlan(),
		serverPlan(),
		powerPlan(),
		temperaturePlan(),
	)
	return append(plans, groupPlans()...)
}

func cpuPlan() chartPlan {
	return chartPlan{
		id:    "cpu",
		title: "CPU",
		of:    collector.JobCPU,
		stack: stackPlan{
			rest:  "idle",
			alone: "busy",
			share: "mean of all CPUs",
			whole: func(h *reporter.Host) float64 { return float64(h.CPUs) },
		},
		series: []seriesPlan{
			{label: "job", key: collector.JobCPU, part: PartJob},
			{label: "all busy", key: collector.CPUAvg, part: PartShare},
		},
		aside: []seriesPlan{
			{label: "least to most busy CPU", key: collector.CPUMin, upper: collector.CPUMax},
			{label: "idle and waiting for storage", key: collector.CPUIowait},
			{label: "stolen by other virtual machines", key: collector.CPUSteal},
			{label: "processes of the job", key: collector.JobProcesses},
			{label: "threads of the job", key: collector.JobThreads},
			{label: "throttled periods", key: collector.JobThrottled},
		},
	}
}

func memoryPlan() chartPlan {
	return chartPlan{
		id:    "memory",
		title: "Memory",
		of:    collector.JobMemory,
		stack: stackPlan{
			rest:  "free",
			alone: "used",
			whole: func(h *reporter.Host) float64 { return h.MemoryMB },
		},
		series: []seriesPlan{
			{label: "job", key: collector.JobMemory, part: PartJob},
			{label: "all used", key: collector.MemUsed, part: PartAll},
			{label: "all used", key: collector.MemPercent, part: PartShare},
			{label: "cache", key: collector.JobPageCache, part: PartCache},
			{label: "used of the limit", key: collector.LimitMemory, color: 1, dash: 1},
		},
		aside: []seriesPlan{{label: "used", key: collector.MemPercent}},
	}
}

func diskPlan() chartPlan {
	return chartPlan{
		id:    "disk_io",
		title: "Disk reads and writes",
		of:    collector.DiskReadRate,
		series: append(
			ratesOf(collector.GroupDisk, seriesPlan{}),
			seriesPlan{label: "read by the job", key: collector.JobReadRate, dash: 1},
			seriesPlan{label: "written by the job", key: collector.JobWriteRate, color: 1, dash: 1},
		),
	}
}

func networkPlan() chartPlan {
	return chartPlan{
		id:    "network",
		title: "Network",
		of:    collector.NetExtRecvRate,
		series: slices.Concat(
			ratesOf(collector.GroupNetwork, seriesPlan{}),
			ratesOf(collector.GroupLoopback, seriesPlan{color: 2, dash: 1}),
			ratesOf(collector.GroupInfiniBand, seriesPlan{dash: 2}),
		),
	}
}

// ratesOf returns the series of the rates of a group's counters. The first is drawn in a style, and the others in the
// colors after it. Labels are the counters' words: "received". Those of groups that share a chart name the group, too:
// "loopback received".
func ratesOf(group collector.Group, style seriesPlan) (list []seriesPlan) {
	for i, counter := range collector.Grouped()[group] {
		row, s := counter.Info(), style
		s.key, s.label, s.color = row.Rate, row.Word, (style.color+i)%len(seriesColors())
		switch group {
		case collector.GroupLoopback, collector.GroupInfiniBand, collector.GroupNFS, collector.GroupLustre:
			s.label = string(group) + " " + row.Word
		}
		list = append(list, s)
	}
	return list
}

// groupPlans returns the charts of the groups of counters that no other chart has.
func groupPlans() (plans []chartPlan) {
	groups := collector.Grouped()
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if slices.Contains(collector.Traffic(), groups[group][0]) {
			continue
		}
		name, series := string(group), ratesOf(group, seriesPlan{})
		plans = append(plans, chartPlan{
			id:           strings.ReplaceAll(name, " ", "_"),
			title:        strings.ToUpper(name[:1]) + name[1:],
			of:           series[0].key,
			whenMeasured: true,
			series:       series,
		})
	}
	return plans
}

// pressurePlan returns the chart of the time in which tasks waited. Colors show what for, dashes
// show who.
func pressurePlan() chartPlan {
	return chartPlan{
		id:           "pressure",
		title:        "Tasks that wait",
		of:           collector.PSICPUSome,
		whenMeasured: true,
		series: []seriesPlan{
			{label: "CPU, some", key: collector.PSICPUSome},
			{label: "memory, some", key: collector.PSIMemorySome, color: 1},
			{label: "memory, all", key: collector.PSIMemoryFull, color: 1, dash: 1},
			{label: "storage, some", key: collector.PSIIOSome, color: 2},
			{label: "storage, all", key: collector.PSIIOFull, color: 2, dash: 1},
			{label: "job: CPU, some", key: collector.JobPSICPUSome, dash: 2},
			{label: "job: CPU, all", key: collector.JobPSICPUFull, dash: 3},
			{label: "job: memory, some", key: collector.JobPSIMemorySome, color: 1, dash: 2},
			{label: "job: memory, all", key: collector.JobPSIMemoryFull, color: 1, dash: 3},
			{label: "job: storage, some", key: collector.JobPSIIOSome, color: 2, dash: 2},
			{label: "job: storage, all", key: collector.JobPSIIOFull, color: 2, dash: 3},
		},
	}
}

// serverPlan returns the chart of the bytes that moved between the node and file systems of servers.
func serverPlan() chartPlan {
	return chartPlan{
		id:           "network_file_systems",
		title:        "Network file systems",
		of:           collector.NFSReadRate,
		whenMeasured: true,
		series: slices.Concat(
			ratesOf(collector.GroupNFS, seriesPlan{}),
			ratesOf(collector.GroupLustre, seriesPlan{dash: 1}),
		),
	}
}

// powerPlan returns the chart of what the node's CPU packages and their memory draw.
func powerPlan() chartPlan {
	return chartPlan{
		id:           "node_power",
		title:        "CPU and memory power",
		of:           collector.NodePower,
		whenMeasured: true,
		series:       []seriesPlan{{label: "packages and memory", key: collector.NodePower}},
	}
}

// temperaturePlan returns the chart of the temperature of the node's CPUs.
func temperaturePlan() chartPlan {
	return chartPlan{
		id:           "cpu_temperature",
		title:        "CPU temperature",
		of:           collector.CPUTemperature,
		level:        true,
		whenMeasured: true,
		series:       []seriesPlan{{label: "hottest package", key: collector.CPUTemperature}},
		aside: []seriesPlan{
			{label: "clocked down", key: collector.CPUThrottleEvents},
			{label: "clocked down for", key: collector.CPUThrottleSeconds},
		},
	}
}

// gpuPlans returns the charts of the GPUs, with a line for each device.
func gpuPlans(gpus int) []chartPlan {
	keys := []collector.GPUKey{collector.GPUUtilization, collector.GPUMemoryUsed, collector.GPUPower}
	plans := []chartPlan{
		{id: "gpu_utilization", title: "GPU busy", whenMeasured: true},
		{id: "gpu_memory", title: "GPU memory", whenMeasured: true},
		{id: "gpu_power", title: "GPU power", whenMeasured: true},
	}

	for k, key := range keys {
		p := &plans[k]
		p.of = collector.GPUColumn(0, key)
		for i := range gpus {
			s := seriesPlan{label: fmt.Sprintf("GPU %d", i), key: collector.GPUColumn(i, key)}
			p.series = append(p.series, s.styled(i))
		}
	}

	power := &plans[2]
	for i := range gpus {
		power.aside = append(power.aside, seriesPlan{
			label: fmt.Sprintf("GPU %d", i),
			key:   collector.GPUColumn(i, collector.GPUTemperature),
		})
	}

	return plans
}

// styled returns the series in the style of one of many: first the colors change, then the dashes.
func (p seriesPlan) styled(place int) seriesPlan {
	colors := len(seriesColors())
	p.color, p.dash = place%colors, place/colors%len(dashes())
	return p
}

// jobBound returns the limit of the job that bounds a chart, of one that changed the highest, and its text; 0 and ""
// if there is none.
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

// Keys returns the sample keys that the page draws, apart from the lines of operations.
func Keys() []string {
	keys := []string{collector.Timestamp.Key()}
	for _, p := range chartPlans(collector.MaxGPUs, nil) {
		for _, s := range append(p.series, p.aside...) {
			keys = append(keys, s.key.Key())
			if s.upper != 0 {
				keys = append(keys, s.upper.Key())
			}
		}
	}

	return keys
}

// gpusOf returns how many GPUs of a node were measured.
func gpusOf(n *reporter.Node) int {
	ofGPU := func(key string) bool { return strings.HasPrefix(key, "gpu_") }
	some := slices.ContainsFunc(n.Samples.Keys, ofGPU)
	for key := range n.Envelope {
		some = some || ofGPU(key)
	}

	gpus := 0
	for i := 0; i < collector.MaxGPUs && some; i++ {
		for k := range collector.NumGPUKeys {
			if _, ok := bandOf(n, collector.GPUColumn(i, collector.GPUKey(k)).Key()); ok {
				gpus = i + 1
			}
		}
	}

	return gpus
}

// Charts returns the charts of a node: the five that every node has, and the others that have at
// least one measured series. A series without any measured value is left out, so one of the five
// may be empty.
func Charts(n *reporter.Node) []Chart {
	lines, _ := chosenLines(n)
	gpus := gpusOf(n)
	all, plans := chartsOf(n, gpus, lines)
	if gpus >= fewestLanes {
		all, plans = joined(all, laneScales(n)), append(plans[:1], plans[gpuCharts:]...)
	}
	var out []Chart
	for i, c := range all {
		if len(c.Series) > 0 || !plans[i].whenMeasured {
			out = append(out, c.Stacked())
		}
	}
	return out
}

// chartsOf returns all charts of a node with so many GPUs and with these lines of operations,
// measured or not, and their plans.
func chartsOf(n *reporter.Node, gpus int, lines []reporter.WorkLine) (charts []Chart, plans []chartPlan) {
	plans = chartPlans(gpus, lines)
	charts = make([]Chart, len(plans))
	for i := range plans {
		plans[i].chart(n, &charts[i])
	}

	return charts, plans
}

// chart makes the chart of a node, measured or not.
func (p *chartPlan) chart(n *reporter.Node, c *Chart) {
	*c = Chart{
		ID: p.id, Title: p.title, Unit: p.unit(), Top: p.top(), Whole: p.stack.wholeOf(n), Named: p.line.Kind != "",
		Signed: p.line.Signed(), stack: p.stack, level: p.level, whenMeasured: p.whenMeasured,
	}
	c.Bound, c.BoundText = p.bound(n.Limits)
	for i := range p.series {
		s := &p.series[i]
		if made, ok := s.of(n); ok && !(s.part == PartShare && c.part(PartAll) != nil) {
			c.Series = append(c.Series, made)
		}
	}

	for i := range p.aside {
		s := &p.aside[i]
		if made, ok := s.of(n); ok && len(c.Series) > 0 {
			made.Unit = s.asideUnit()
			c.Asides = append(c.Asides, made)
		}
	}

	if p.of == collector.JobMemory {
		if c.Peak = jobPeak(n, c.part(PartJob)); c.Peak > 0 {
			c.PeakText = peakText(c.Peak)
		}
	}
}

// asideUnit returns the unit of an aside; "" if its label already says it.
func (p seriesPlan) asideUnit() string {
	if unit := p.unit(); unit != p.label {
		return unit
	}
	return ""
}

// ChartOf returns the chart of one key of the samples or of the envelope.
func ChartOf(n *reporter.Node, key string) (Chart, error) {
	if key == collector.Timestamp.Key() {
		return Chart{}, fmt.Errorf("%s is the time axis", key)
	}

	band, ok := bandOf(n, key)
	if !ok {
		return Chart{}, fmt.Errorf("nothing of %q was measured; there are: %s", text.Printable(key), measuredKeys(n))
	}

	name := text.Clip(text.Printable(key), keyLetters)
	c := Chart{ID: key, Title: name, Series: []Series{{Label: name, Key: key, Band: band}}}
	if column, known := collector.ColumnNamed(key); known {
		c.Unit = column.Info().Unit.Symbol()
		if column.Percent() {
			c.Top = 100
		}
	}
	if line, work := reporter.WorkLineOf(key); work {
		c.Unit, c.Signed = line.Unit().Symbol(), line.Signed()
	}

	return c, nil
}

// measuredKeys lists the keys that ChartOf can draw. Of the lines of operations it lists the first.
func measuredKeys(n *reporter.Node) string {
	var out []string
	for c := range collector.Column(collector.MaxColumns) {
		if _, ok := bandOf(n, c.Key()); ok && c != collector.Timestamp {
			out = append(out, c.Key())
		}
	}

	columns := len(out)
	for _, l := range n.WorkLines() {
		if _, ok := bandOf(n, l.Key()); ok {
			out = append(out, text.Clip(text.Printable(l.Key()), keyLetters))
		}
	}

	if len(out) == 0 {
		return "none"
	}

	return text.List(out, columns+mostLines)
}

// keyLetters is how much of a key is shown.
const keyLetters = 100

// of returns the series of a node. It reports false if nothing was measured.
func (p seriesPlan) of(n *reporter.Node) (Series, bool) {
	band, ok := bandOf(n, p.name())
	s := Series{Label: p.label, Key: p.name(), Band: band, Color: p.color, Dash: p.dash, Part: p.part}
	if p.upper == 0 || !ok {
		return s, ok
	}

	upper, ok := bandOf(n, p.upper.Key())
	s.Spread = true
	s.Band = reporter.Band{Min: band.Min, Max: upper.Max}
	return s, ok
}

// bandOf returns the envelope of a key. If a report has none, as perf.py's, the samples stand for
// all three lists.
func bandOf(n *reporter.Node, key string) (reporter.Band, bool) {
	band, ok := n.Envelope[key]
	if !ok {
		column := reporter.Numbers(n.Samples.Column(key))
		band = reporter.Band{Min: column, Mean: column, Max: column}
	}
	measured := func(v float64) bool { return !math.IsNaN(v) }
	return band, slices.ContainsFunc(band.Max, measured)
}

// A Timeline is the time axis of a node's series.
type Timeline struct {
	// Start is when the run began, in seconds since 1970; 0 if unknown.
	Start float64
	// Ends holds the end of each bucket in seconds from Start. A bucket begins where the one before
	// ends, the first at 0. Ends never decrease.
	Ends []float64
	// Marks and Phases are what the job said of itself, by time.
	Marks  []Moment
	Phases []Stretch
}

// NewTimeline returns the time axis of a node. It begins with the baseline of the sampling or, if
// that is not known, with the start of the run.
func NewTimeline(r *reporter.Run, n *reporter.Node) Timeline {
	times, _ := bandOf(n, collector.Timestamp.Key())
	start := 0.0
	switch {
	case n.Sampling != nil && !n.Sampling.Start.IsZero():
		start = unixSeconds(n.Sampling.Start)
	case !r.Start.IsZero() && n.Origin != reporter.OriginPerfPy:
		start = unixSeconds(r.Start)
	case len(times.Max) > 0 && !math.IsNaN(times.Max[0]):
		start = times.Max[0] - firstStep(times.Max)
	}

	t := Timeline{Start: start, Ends: make([]float64, len(times.Max))}
	last := 0.0
	for i, v := range times.Max {
		if end := v - start; end > last { // false for NaN
			last = end
		}
		t.Ends[i] = last
	}
	t.tell(n)

	return t
}

// firstStep guesses the length of the first sample's window from the next one.
func firstStep(times reporter.Numbers) float64 {
	if len(times) > 1 && times[1] > times[0] {
		return times[1] - times[0]
	}
	return 0
}

func unixSeconds(t reporter.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// drawn returns the time axis of a node and its charts with an empty bucket wherever the machine
// was suspended, so that values from before and after do not extend into it.
func drawn(run *reporter.Run, n *reporter.Node, charts []Chart) (Timeline, []Chart) {
	t := NewTimeline(run, n)
	stops := suspends(n, t)
	if len(stops) == 0 {
		return t, charts
	}

	eachSeries(charts, func(s *Series) {
		b := &s.Band
		b.Min, b.Mean, b.Max = stopped(b.Min, stops), stopped(b.Mean, stops), stopped(b.Max, stops)
	})

	ends := make([]float64, 0, len(t.Ends)+len(stops))
	for i, end := range t.Ends {
		if stop, ok := stops[i]; ok {
			ends = append(ends, stop)
		}
		ends = append(ends, end)
	}

	t.Ends = ends
	return t, charts
}

// eachSeries calls do for all series of the charts, asides included.
func eachSeries(charts []Chart, do func(*Series)) {
	for i := range charts {
		for _, list := range [][]Series{charts[i].Series, charts[i].Asides} {
			for j := range list {
				do(&list[j])
			}
		}
	}
}

// suspends returns the buckets before which the machine was suspended, and until when.
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

// stopped inserts a value that was not measured wherever the machine was suspended.
func stopped(list reporter.Numbers, stops map[int]float64) reporter.Numbers {
	if list == nil { // the mean of a spread
		return nil
	}

	out := make(reporter.Numbers, 0, len(list)+len(stops))
	for i, v := range list {
		if _, ok := stops[i]; ok {
			out = append(out, math.NaN())
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

// group returns how many neighbors of n values to merge so that at most limit are left.
func group(n, limit int) int { return max(1, (n+limit-1)/limit) }

// thin merges each k neighboring buckets of a timeline.
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

// An axis is made for values from minAxis to maxAxis: steps and round numbers of such values are
// still finite. Smaller values count as 0.
const (
	minAxis = 1e-100
	maxAxis = 1e300
)

// top returns the largest value of a chart's series, or the limit if that is larger and near enough
// to be drawn. It returns 0 if no value is above 0.
func (c *Chart) top() float64 {
	greatest := 0.0
	for _, s := range c.Series {
		for _, v := range s.Band.Max {
			if v > greatest && v >= minAxis {
				greatest = min(v, maxAxis)
			}
		}
	}

	greatest = max(greatest, c.Peak)
	if c.Bound > 0 && c.Bound <= maxBoundRatio*greatest {
		greatest = max(greatest, c.Bound)
	}

	return greatest
}

// bottom returns the least value of a chart's series whose values may be below 0, or 0.
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

// maxBoundRatio is how many times the largest value a limit may be to be drawn. Beside a limit that
// is farther away the values would be a flat line.
const maxBoundRatio = 4
