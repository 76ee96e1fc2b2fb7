package plotter

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// writeData writes the page's data for its script: what it knows about all nodes, then each node. It is JSON, written
// by hand: encoding/json takes as long for it as the rest of the page takes.
func (p *Page) writeData(w *htmlWriter, run *reporter.Run, shown []int) {
	gpus := 0
	for _, n := range p.nodes {
		gpus = max(gpus, n.gpus)
	}
	plans := chartPlans(gpus, p.lines())
	for i := range plans {
		plans[i].series = slices.DeleteFunc(plans[i].series, p.lacks)
	}

	w.ours(`<script type="application/json" id="plan">{"charts":[`)
	for k, i := range shown {
		w.nth(k, "")
		p.writePlan(w, i, &plans[i])
	}
	w.ours(`],"run":`).quoted(run.ID + "@" + strconv.FormatInt(run.Start.UnixMicro(), 10)) // of those at one address
	w.ours(`,"first":`).quoted(p.nodes[0].name).ours(`,"nodes":[`)
	for i, n := range p.nodes {
		w.nth(i, "").quoted(n.name)
	}
	many := len(p.nodes) > 1
	w.ours(`],"hosts":`).when(!many, "null")
	for i := 0; i < len(p.nodes) && many; i++ {
		w.nth(i, "[").quoted(p.nodes[i].host)
	}
	w.when(many, "]")

	start, length := p.span()
	w.ours(`,"start":`).number(start).ours(`,"length":`).number(length)
	w.ours(`,"live":`).whole(int(p.options.Live.Milliseconds())) // between two updates
	w.when(p.limit > 0, `,"packed":true`).ours(`,"columns":`).whole(p.heatColumns()).ours("}</script>\n")
	for _, n := range p.nodes {
		n.writeData(w, plans, shown, many)
	}
}

// writePlan writes what the script knows about chart i of all nodes.
func (p *Page) writePlan(w *htmlWriter, i int, plan *chartPlan) {
	w.ours(`{"id":`).quoted(plan.id).ours(`,"title":`).quoted(plan.title).ours(`,"unit":`).quoted(plan.unit())
	w.ours(`,"top":`).number(plan.top()).ours(`,"series":`)
	writePlans(w, plan.series, func(s *seriesPlan) {
		w.when(s.upper != 0, `,"spread":true`)
		if s.color != 0 {
			w.ours(`,"color":`).whole(s.color)
		}
		if s.dash != 0 {
			w.ours(`,"dash":`).whole(s.dash)
		}
		if s.part != PartLine {
			w.ours(`,"part":`).whole(int(s.part))
		}
	})
	w.ours(`,"asides":`)
	writePlans(w, plan.aside, func(s *seriesPlan) {
		w.when(s.upper != 0, `,"spread":true`)
		if unit := s.asideUnit(); unit != "" {
			w.ours(`,"unit":`).quoted(unit)
		}
	})

	w.when(plan.whenMeasured, `,"maybe":true`).when(plan.line.Signed(), `,"signed":true`)
	if plan.stack.rest != "" {
		w.ours(`,"stack":`).strings(plan.stack.rest, plan.stack.alone, plan.stack.share)
	}
	lanes := p.lanes() // the first chart has one for each GPU, with the next two charts in it
	w.when(lanes && i == 0, `,"lanes":true`).when(lanes && i > 0 && i < gpuCharts, `,"within":true`).ours("}")
}

// writePlans writes an array of series, each with its label and what more writes; null if there are none.
func writePlans(w *htmlWriter, plans []seriesPlan, more func(*seriesPlan)) {
	if len(plans) == 0 {
		w.ours("null")
		return
	}

	for i := range plans {
		w.nth(i, "[").ours(`{"label":`).quoted(plans[i].label)
		more(&plans[i])
		w.ours("}")
	}
	w.ours("]")
}

// lacks reports whether a series is that of a device, other than a GPU, that no node has.
func (p *Page) lacks(s seriesPlan) bool {
	_, _, gpu := s.key.GPU()
	if gpu || s.key.Info().Since != collector.Device {
		return false
	}
	return !slices.ContainsFunc(p.nodes, func(n *pageNode) bool {
		return slices.ContainsFunc(n.charts, func(c Chart) bool {
			return slices.ContainsFunc(c.Series, func(have Series) bool { return have.Key == s.key.Key() })
		})
	})
}

// writeData writes the node for the page's script: s, when it began; t, the ends of its buckets; c, the bands of each
// chart; a, the bands of its asides. The names are short because a thousand nodes repeat them.
func (p *pageNode) writeData(w *htmlWriter, plans []chartPlan, shown []int, many bool) {
	w.ours(`<script type="application/json" id="node-`).text(p.name).ours(`">{"s":`).number(p.time.Start)
	if many { // otherwise it is on the page itself
		p.writeTexts(w)
	}
	p.writeCharts(w, shown)
	p.writeStory(w, many)

	w.ours(`,"t":`)
	writeNumbers(w, p.time.Ends, p.thinned)
	w.ours(`,"c":[`)
	for k, i := range shown {
		w.nth(k, "")
		p.writeBands(w, plans[i].series, p.charts[i].Series)
	}
	w.ours(`],"a":[`)
	for k, i := range shown {
		w.nth(k, "")
		p.writeBands(w, plans[i].aside, p.charts[i].Asides)
	}
	w.ours("]}</script>\n")
}

// writeTexts writes what is shown when the node is selected: k, its numbers; f, its facts; m, its metrics; x, what is
// missing, and y, how much of that is listed.
func (p *pageNode) writeTexts(w *htmlWriter) {
	w.ours(`,"k":[`)
	for i, c := range p.cards {
		w.nth(i, "").strings(c.Label, c.Value, c.Note)
	}
	w.ours(`],"f":[`)
	for i, f := range p.details {
		w.nth(i, "").strings(f.Label, f.Value)
	}
	w.ours(`],"m":{`)
	for i, name := range p.metrics.Names() {
		w.nth(i, "").quoted(name).ours(":").number(p.metrics[name])
	}
	w.ours(`},"x":[`)
	for i, m := range p.missing {
		w.nth(i, "").strings(m.What, m.Why)
	}
	w.ours("]")
	if p.listed > 0 {
		w.ours(`,"y":`).whole(p.listed)
	}
}

// writeCharts writes what the script cannot know of the charts from their numbers: b, their limits and the texts of
// these; w, how much the node has of what stacked charts show; z, the ends of their axes, where they do not show it
// all; o, the peaks that lay between two samples, with their texts; q, in which nothing happened; l, the memory and the
// power of each GPU.
func (p *pageNode) writeCharts(w *htmlWriter, shown []int) {
	each := func(begin markup, has func(*Chart) bool, write func(*Chart)) {
		n := 0
		for _, i := range shown {
			if c := &p.charts[i]; has(c) {
				w.nth(n, begin)
				write(c)
				n++
			}
		}
		w.when(n > 0, "}")
	}

	each(`,"b":{`, func(c *Chart) bool { return c.BoundText != "" }, func(c *Chart) {
		w.quoted(c.ID).ours(":[").number(c.Bound).ours(",").quoted(c.BoundText).ours("]")
	})
	each(`,"w":{`, func(c *Chart) bool { return c.Whole > 0 }, func(c *Chart) {
		w.quoted(c.ID).ours(":").number(c.Whole)
	})
	each(`,"z":{`, (*Chart).cut, func(c *Chart) { w.quoted(c.ID).ours(":").number(c.stackedTop()) })
	each(`,"o":{`, func(c *Chart) bool { return c.Peak > 0 }, func(c *Chart) {
		w.quoted(c.ID).ours(":[").number(c.Peak).ours(",").quoted(c.PeakText).ours("]")
	})

	quiet := 0
	for _, i := range shown {
		if c := &p.charts[i]; c.Quiet() {
			w.nth(quiet, `,"q":[`).quoted(c.ID)
			quiet++
		}
	}
	w.when(quiet > 0, "]")
	if slices.ContainsFunc(p.charts[:gpuCharts], func(c Chart) bool { return len(c.Series) > 0 }) {
		for i, s := range p.scales {
			w.nth(i, `,"l":[`).ours("[").number(s.memory).ours(",").number(s.power).ours("]")
		}
		w.when(len(p.scales) > 0, "]")
	}
}

// cut reports whether the axis of a stacked chart does not show the whole.
func (c *Chart) cut() bool {
	measured := func(s Series) bool { return s.Part != PartCache }
	return c.Whole > 0 && c.stackedTop() != c.Whole && slices.ContainsFunc(c.Series, measured)
}

// writeStory writes what the job said: e, times and texts of marks; h, phases: times of beginnings and ends, names, and
// colors. What is on the page itself, if there is one node, follows: p, the cells of the table of phases; v and g, how
// the job ended and what to change, each with whether it is bad.
func (p *pageNode) writeStory(w *htmlWriter, many bool) {
	for i, m := range p.time.Marks {
		w.nth(i, `,"e":[`).ours("[").number(m.At).ours(",").quoted(m.Text).ours("]")
	}
	w.when(len(p.time.Marks) > 0, "]")
	for i, st := range p.time.Phases {
		w.nth(i, `,"h":[`).ours("[").number(st.From).ours(",").number(st.To).ours(",")
		w.quoted(st.Name).ours(",").whole(st.Color % len(seriesColors())).ours("]")
	}
	w.when(len(p.time.Phases) > 0, "]")
	if !many {
		return
	}

	for i, r := range p.phases {
		w.nth(i, `,"p":[`).strings(r.Name, r.Count, r.Seconds, r.CPUs, r.Memory, r.GPU)
	}
	w.when(len(p.phases) > 0, "]").ours(`,"v":[`)
	writeMessages(w, p.messages)
	w.ours(`],"g":[`)
	writeMessages(w, p.advice)
	w.ours("]")
}

// writeMessages writes texts, each with whether it is bad.
func writeMessages(w *htmlWriter, list []summary.Message) {
	for i, m := range list {
		w.nth(i, "").ours("[").quoted(m.Text).when(m.Bad, ",true]").when(!m.Bad, ",false]")
	}
}

// writeBands writes the bands of the series in the order of the plans. A band is the numbers of a series: [mean] if
// minimum and maximum are the same, otherwise [min, mean, max]; for a spread [min, [], max]; null if nothing was
// measured.
func (p *pageNode) writeBands(w *htmlWriter, plans []seriesPlan, have []Series) {
	w.ours("[")
	for i := range plans {
		w.nth(i, "")
		at := slices.IndexFunc(have, func(s Series) bool { return s.Key == plans[i].name() })
		if at < 0 {
			w.ours("null")
			continue
		}

		b := have[at].Band
		w.ours("[")
		switch {
		case have[at].Spread:
			writeNumbers(w, b.Min, p.thinned)
			w.ours(",[],")
		case !same(b):
			writeNumbers(w, b.Min, p.thinned)
			w.ours(",")
			writeNumbers(w, b.Mean, p.thinned)
			w.ours(",")
		}
		writeNumbers(w, b.Max, p.thinned)
		w.ours("]")
	}
	w.ours("]")
}

// writeNumbers writes a list of a node's series as an array. On a page of many nodes it is packed.
func writeNumbers(w *htmlWriter, list reporter.Numbers, packed bool) {
	if packed {
		writePacked(w, list)
		return
	}

	w.numbers(list)
}

// writePacked writes a list as [min, max, base64] with two bytes per number, little endian, from 0 for the minimum to
// 65534 for the maximum. 65535 means not measured. A list with only one distinct number is [number, length].
func writePacked(w *htmlWriter, list reporter.Numbers) {
	least, greatest := math.Inf(1), math.Inf(-1)
	whole := true
	for _, v := range list {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			whole = false
			continue
		}
		least, greatest = min(least, v), max(greatest, v)
	}

	switch {
	case greatest < least: // nothing was measured
		least, greatest = 0, 0
	case least == greatest && whole:
		w.ours("[").number(least).ours(",").whole(len(list)).ours("]")
		return
	}

	bytes := make([]byte, 0, 2*len(list))
	for _, v := range list {
		bytes = binary.LittleEndian.AppendUint16(bytes, packedNumber(v, least, greatest))
	}
	w.ours("[").number(least).ours(",").number(greatest).ours(`,"`).base64(bytes).ours(`"]`)
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
