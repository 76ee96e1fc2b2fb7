package plotter

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// From minLanes GPUs on, each GPU has a lane. Fewer GPUs share one chart each for utilization, memory and power.
const minLanes = 4

// Lane is one GPU in a chart of many GPUs: a row of colors for how busy it was, and below that lines for its memory and
// its power. Series that were not measured are nil.
type Lane struct {
	Label               string
	Busy, Memory, Power *Series
	laneScale
}

// laneScale holds the values at the top of a lane: the GPU's memory in MiB and its power limit in watts. 0 = unknown.
type laneScale struct{ memory, power float64 }

// laneScales returns the scales of n's GPUs.
func laneScales(n *reporter.Node) []laneScale {
	var out []laneScale
	for _, g := range n.GPUs[:min(len(n.GPUs), collector.MaxGPUs)] {
		out = append(out, laneScale{usable(float64(g.MemoryMB)), usable(float64(g.PowerLimitWatts))})
	}
	return out
}

// usable returns v if it can be the end of an axis, otherwise 0.
func usable(v float64) float64 {
	if v >= minAxis && v <= maxAxis {
		return v
	}
	return 0
}

// withLanes combines the first three charts of a node, which are the GPUs', into one chart of lanes. Without a GPU it
// returns charts unchanged.
func withLanes(charts []Chart, scales []laneScale) []Chart {
	var lanes []Lane
	for i := range collector.MaxGPUs {
		lane := Lane{Label: fmt.Sprintf("GPU %d", i)}
		for k, of := range []**Series{&lane.Busy, &lane.Memory, &lane.Power} {
			key := collector.GPUColumn(i, collector.GPUKey(k)).Key()
			if at := slices.IndexFunc(charts[k].Series, func(s Series) bool { return s.Key == key }); at >= 0 {
				*of = &charts[k].Series[at]
			}
		}
		if i < len(scales) {
			lane.laneScale = scales[i]
		}
		if lane.Busy != nil || lane.Memory != nil || lane.Power != nil {
			lanes = append(lanes, lane)
		}
	}
	if len(lanes) == 0 {
		return charts
	}

	c := charts[0]
	c.Title, c.Lanes = "GPUs", lanes
	return append([]Chart{c}, charts[gpuCharts:]...)
}

// fullest returns the greatest value of one kind in all lanes: the top of a lane if no limit is known.
func fullest(lanes []Lane, of func(*Lane) *Series) float64 {
	greatest := 0.0
	for i := range lanes {
		if s := of(&lanes[i]); s != nil {
			greatest = max(greatest, s.top())
		}
	}
	return greatest
}

// Sizes of a lane, in pixels.
const (
	laneHeight = 32
	laneHeat   = 12 // of the row of colors
	laneGap    = 3
)

// drawLanes draws a chart of lanes.
func drawLanes(c canvas, chart Chart, t Timeline, in box) {
	f, k := newFigure(chart, t, in)
	mostMemory := fullest(chart.Lanes, func(l *Lane) *Series { return l.Memory })
	mostPower := fullest(chart.Lanes, func(l *Lane) *Series { return l.Power })
	whole := f.plot
	f.phases(c)
	for i, lane := range chart.Lanes {
		top := whole.y + float64(i)*laneHeight
		c.text(point{whole.x - 5, top + laneHeat - 1}, lane.Label, anchorEnd, ink{kind: inkText})
		if lane.Busy != nil {
			f.heat(c, folded(lane.Busy.Band, k, t).Mean, top)
		}

		f.plot = box{whole.x, top + laneHeat + 1, whole.width, laneHeight - laneHeat - laneGap}
		f.laneLine(c, lane.Memory, k, t, cmp.Or(lane.memory, mostMemory), 2)
		f.laneLine(c, lane.Power, k, t, cmp.Or(lane.power, mostPower), 1)
		bottom := top + laneHeight - laneGap + 1
		c.line([]point{{whole.x, bottom}, {whole.x + whole.width, bottom}}, ink{kind: inkGrid})
	}

	f.plot = whole
	f.timeTicks(c)
	f.marks(c)
	f.laneTitle(c, mostMemory, mostPower)
}

// heat draws a row of colors for how busy a GPU was.
func (f *figure) heat(c canvas, busy reporter.Numbers, top float64) {
	level := func(i int) int { return int(math.Round(min(100, max(0, busy[i])) / 100 * heatSteps)) }
	begin := 0.0
	for i := 0; i < min(len(busy), len(f.time.Ends)); {
		j := i
		for j+1 < len(busy) && !math.IsNaN(busy[i]) && !math.IsNaN(busy[j+1]) && level(j+1) == level(i) {
			j++
		}
		if !math.IsNaN(busy[i]) {
			from, to := f.at(begin, 0).x, f.at(f.time.Ends[j], 0).x
			area := []point{{from, top}, {to, top}, {to, top + laneHeat}, {from, top + laneHeat}}
			c.area(area, ink{kind: inkHeat, color: level(i)})
		}
		begin, i = f.time.Ends[j], j+1
	}
}

// heatSteps is how many colors a row may have in addition to the color of 0.
const heatSteps = 10

// laneLine draws a value of a GPU as a line with its band, from 0 to full.
func (f *figure) laneLine(c canvas, s *Series, k int, t Timeline, full float64, color int) {
	if s == nil || !(full > 0) {
		return
	}
	f.ys = Axis{Max: full, Scale: 1}
	f.series(c, Series{Band: folded(s.Band, k, t), Color: color})
}

// laneTitle draws the title of a chart of lanes, and the legend.
func (f *figure) laneTitle(c canvas, mostMemory, mostPower float64) {
	y := f.plot.y - 10
	c.text(point{f.plot.x, y}, "GPUs", anchorStart, ink{kind: inkTitle})
	x := f.plot.x + f.plot.width
	for _, part := range []struct {
		label string
		color int
		there bool
	}{{"power", 1, mostPower > 0}, {"memory", 2, mostMemory > 0}} {
		if !part.there {
			continue
		}
		label := part.label + " of " + f.chart.full(part.label)
		c.text(point{x, y}, label, anchorEnd, ink{kind: inkText})
		x -= textWidth(label) + 6
		c.line([]point{{x - 16, y - 4}, {x, y - 4}}, ink{kind: inkLine, color: part.color})
		x -= 28
	}

	label := "busy, 0 to 100 %"
	c.text(point{x, y}, label, anchorEnd, ink{kind: inkText})
	x -= textWidth(label) + 6
	for i := range heatSteps {
		left := x - 5*float64(heatSteps-i)
		c.area([]point{{left, y - 9}, {left + 5, y - 9}, {left + 5, y}, {left, y}}, ink{kind: inkHeat, color: i + 1})
	}
}

// full describes the value at the top of a lane: "80 GiB", or that lanes differ.
func (c *Chart) full(of string) string {
	same := 0.0
	for i, l := range c.Lanes {
		v := l.memory
		if of == "power" {
			v = l.power
		}
		if i > 0 && v != same || v == 0 {
			return "its greatest"
		}
		same = v
	}
	if of == "power" {
		return short(same) + " W"
	}
	return text.SizeText(same)
}
