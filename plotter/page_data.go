package plotter

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// planData is the script's data about all nodes.
type planData struct {
	Charts  []chartData `json:"charts"`
	Run     string      `json:"run"` // identifies the run among those served at one address
	First   string      `json:"first"`
	Nodes   []string    `json:"nodes"`
	Hosts   []string    `json:"hosts"` // of several nodes
	Start   any         `json:"start"`
	Length  any         `json:"length"`
	Live    int64       `json:"live"` // milliseconds between two updates
	Packed  bool        `json:"packed,omitempty"`
	Columns int         `json:"columns"`
}

// chartData is the script's data about a chart of all nodes.
type chartData struct {
	chartPlan
	Stack  []string `json:"stack,omitempty"`
	Lanes  bool     `json:"lanes,omitempty"`  // this chart has a lane for each GPU
	Within bool     `json:"within,omitempty"` // this chart is part of the chart with lanes
}

// nodeData is the script's data about a node. The names are short because a thousand nodes repeat them.
type nodeData struct {
	Start any `json:"s"`
	*nodeTexts
	Bounds        map[string][]any `json:"b,omitempty"` // the limits of charts, with their texts
	Capacities    map[string]any   `json:"w,omitempty"` // capacities of stacked charts
	Tops          map[string]any   `json:"z,omitempty"` // ends of the axes that do not show the capacity
	Peaks         map[string][]any `json:"o,omitempty"` // peaks between two samples, with their texts
	Quiet         []string         `json:"q,omitempty"` // charts in which nothing happened
	Scales        [][2]float64     `json:"l,omitempty"` // the memory and the power of each GPU
	Marks         [][]any          `json:"e,omitempty"` // times and texts
	Phases        [][]any          `json:"h,omitempty"` // times of beginnings and ends, names, colors
	Ends          any              `json:"t"`           // of the buckets
	Charts        [][]any          `json:"c"`           // the bands of each chart
	TooltipSeries [][]any          `json:"a"`
}

// nodeTexts are shown when the node is selected. The page itself contains the texts of a single node.
type nodeTexts struct {
	Cards    [][]string      `json:"k"`
	Facts    [][]string      `json:"f"`
	Metrics  reporter.Values `json:"m"`
	Missing  [][]string      `json:"x"`
	Listed   int             `json:"y,omitempty"` // of Missing
	Phases   [][]string      `json:"p,omitempty"` // the cells of their table
	Messages [][]any         `json:"v"`           // how the job ended, and whether that is bad
	Advice   [][]any         `json:"g"`           // what to change, in the form of Messages
}

// jsonNumber returns v for JSON: nil if it is not finite.
func jsonNumber(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

// mapSlice returns of(item) for each item. It is never nil, so that JSON has an empty array for no items.
func mapSlice[T, To any](list []T, of func(T) To) []To {
	out := make([]To, len(list))
	for i, item := range list {
		out[i] = of(item)
	}
	return out
}

// scripts yields the data for the page's script by the IDs of the elements that hold it: the data about all nodes, then
// about each node.
func (p *Page) scripts(run *reporter.Run, shown []int) iter.Seq2[string, any] {
	plans := chartPlans(p.gpus, p.lines())
	for i := range plans {
		plans[i].Series = slices.DeleteFunc(plans[i].Series, p.lacks)
	}

	return func(yield func(string, any) bool) {
		if !yield("plan", p.plan(run, plans, shown)) {
			return
		}
		for _, n := range p.nodes {
			if !yield("node-"+n.name, n.data(plans, shown, len(p.nodes) > 1)) {
				return
			}
		}
	}
}

// plan returns the script's data about all nodes.
func (p *Page) plan(run *reporter.Run, plans []chartPlan, shown []int) planData {
	start, length := p.span()
	d := planData{
		Charts: mapSlice(shown, func(i int) chartData { return plans[i].data(p.lanes(), i) }),
		Run:    run.ID + "@" + strconv.FormatInt(run.Start.UnixMicro(), 10),
		First:  p.nodes[0].name,
		Nodes:  mapSlice(p.nodes, func(n *pageNode) string { return n.name }),
		Start:  jsonNumber(start), Length: jsonNumber(length), Live: p.options.Live.Milliseconds(), Packed: p.limit > 0,
		Columns: p.heatColumns(),
	}
	if len(p.nodes) > 1 {
		d.Hosts = mapSlice(p.nodes, func(n *pageNode) string { return n.host })
	}
	return d
}

// data returns the script's data about chart i. lanes reports whether GPUs have lanes.
func (c *chartPlan) data(lanes bool, i int) chartData {
	d := chartData{chartPlan: *c, Lanes: lanes && i == 0, Within: lanes && i > 0 && i < gpuCharts}
	if c.stack.restLabel != "" {
		d.Stack = []string{c.stack.restLabel, c.stack.totalLabel, c.stack.shareLabel}
	}
	return d
}

// lacks reports whether s belongs to a device, other than a GPU, that no node has.
func (p *Page) lacks(s Series) bool {
	_, _, gpu := s.column.GPU()
	if gpu || s.column.Info().Scope != collector.ScopeDevice {
		return false
	}
	return !slices.ContainsFunc(p.nodes, func(n *pageNode) bool {
		return slices.ContainsFunc(n.charts, func(c Chart) bool {
			return slices.ContainsFunc(c.Series, func(have Series) bool { return have.Key == s.Key })
		})
	})
}

// data returns the script's data about the node.
func (p *pageNode) data(plans []chartPlan, shown []int, many bool) *nodeData {
	d := &nodeData{
		Start: jsonNumber(p.time.Start), Ends: encodeNumbers(p.time.Ends, p.thinned),
		Bounds: map[string][]any{}, Capacities: map[string]any{}, Tops: map[string]any{}, Peaks: map[string][]any{},
		Charts: mapSlice(shown, func(i int) []any { return p.bands(plans[i].Series, p.charts[i].Series) }),
		TooltipSeries: mapSlice(shown, func(i int) []any {
			return p.bands(plans[i].TooltipSeries,
				p.charts[i].TooltipSeries)
		}),
		Marks: mapSlice(p.time.Marks, func(m Mark) []any { return []any{jsonNumber(m.At), m.Text} }),
		Phases: mapSlice(p.time.Phases, func(s PhaseSpan) []any {
			return []any{jsonNumber(s.From), jsonNumber(s.To), s.Name, s.Color % len(seriesColors)}
		}),
	}
	if many {
		d.nodeTexts = p.texts()
	}
	if slices.ContainsFunc(p.charts[:gpuCharts], func(c Chart) bool { return len(c.Series) > 0 }) {
		d.Scales = mapSlice(p.scales, func(s laneScale) [2]float64 { return [2]float64{s.memory, s.power} })
	}

	for _, i := range shown {
		c := &p.charts[i]
		if c.BoundText != "" {
			d.Bounds[c.ID] = []any{jsonNumber(c.Bound), c.BoundText}
		}
		if c.Capacity > 0 {
			d.Capacities[c.ID] = jsonNumber(c.Capacity)
		}
		if c.cut() {
			d.Tops[c.ID] = jsonNumber(c.axisTop())
		}
		if c.Peak > 0 {
			d.Peaks[c.ID] = []any{jsonNumber(c.Peak), c.PeakText}
		}
		if c.Quiet() {
			d.Quiet = append(d.Quiet, c.ID)
		}
	}
	return d
}

// texts returns the texts that are shown when the node is selected.
func (p *pageNode) texts() *nodeTexts {
	message := func(m summary.Message) []any { return []any{m.Text, m.Bad} }
	return &nodeTexts{
		Cards:    mapSlice(p.cards, func(c summary.Highlight) []string { return []string{c.Label, c.Value, c.Note} }),
		Facts:    mapSlice(p.details, func(f summary.Highlight) []string { return []string{f.Label, f.Value} }),
		Metrics:  p.metrics,
		Missing:  mapSlice(p.missing, func(m reporter.Missing) []string { return []string{m.What, m.Why} }),
		Listed:   p.listed,
		Phases:   p.phases,
		Messages: mapSlice(p.messages, message), Advice: mapSlice(p.advice, message),
	}
}

// cut reports whether the axis of a stacked chart does not show the whole capacity.
func (c *Chart) cut() bool {
	measured := func(s Series) bool { return s.Part != PartCache }
	return c.Capacity > 0 && c.axisTop() != c.Capacity && slices.ContainsFunc(c.Series, measured)
}

// bands returns the bands of the series in the order of the plans. A band has lists of numbers: [mean] if minimum and
// maximum are the same, otherwise [min, mean, max]; for a spread [min, [], max]; null if nothing was measured.
func (p *pageNode) bands(plans, have []Series) []any {
	return mapSlice(plans, func(plan Series) any {
		at := slices.IndexFunc(have, func(s Series) bool { return s.Key == plan.Key })
		if at < 0 {
			return nil
		}

		b, packed := have[at].Band, p.thinned
		switch {
		case have[at].Spread:
			return []any{encodeNumbers(b.Min, packed), []any{}, encodeNumbers(b.Max, packed)}
		case same(b):
			return []any{encodeNumbers(b.Max, packed)}
		}
		return []any{encodeNumbers(b.Min, packed), encodeNumbers(b.Mean, packed), encodeNumbers(b.Max, packed)}
	})
}

// encodeNumbers encodes list, which belongs to a node's series, for the script. On a page of many nodes it is packed:
// [min, max, base64] with two bytes per number, little endian, from 0 for the minimum to 65534 for the maximum. 65535
// means not measured. A list with only one distinct number is [number, length].
func encodeNumbers(list reporter.Numbers, packed bool) any {
	if !packed {
		return list
	}

	least, greatest := math.Inf(1), math.Inf(-1)
	complete := true
	for _, v := range list {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			complete = false
			continue
		}
		least, greatest = min(least, v), max(greatest, v)
	}

	switch {
	case greatest < least: // nothing was measured
		least, greatest = 0, 0
	case least == greatest && complete:
		return []any{least, len(list)}
	}

	bytes := make([]byte, 0, 2*len(list))
	for _, v := range list {
		bytes = binary.LittleEndian.AppendUint16(bytes, packedNumber(v, least, greatest))
	}
	return []any{least, greatest, bytes}
}

const unmeasured = 65535

func packedNumber(v, least, greatest float64) uint16 {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return unmeasured
	case greatest == least:
		return 0
	}
	return uint16(math.Round((v/2 - least/2) / (greatest/2 - least/2) * (unmeasured - 1)))
}
