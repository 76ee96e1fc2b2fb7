package plotter

import (
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// point is a position in a chart: (0, 0) is the lower left corner, and (1, 1) the upper right corner. The strip of
// phases has negative y.
type point struct{ x, y float64 }

// ink is the style of a shape: a kind and, for series and phases, their color.
type ink struct {
	kind  inkKind
	color int // index into the palette of the series or of the phases
	dash  int // see dashes
	// data and name identify the content of a shape, such as "mark" and the text of the mark. In an SVG they become the
	// attribute data-mark.
	data, name string
}

type inkKind int

const (
	inkGrid   inkKind = iota
	inkBase           // the time axis
	inkWash           // the area below the job's line
	inkBand           // the area from least to greatest values
	inkLine           // a series
	inkOthers         // usage of others
	inkLimit          // the limit of the job
	inkUnseen         // a rise that was not measured
	inkDeath          // the time of a kill
	inkDot            // the value at the kill
	inkPeak           // a peak at an unknown time
	inkMark           // a mark of the job
	inkEdge           // the beginning of a phase
	inkPhase          // a phase in the strip below the time axis
	inkHeat           // a color from 0 to heatSteps
)

// labelKind is the role of a text in a chart. It determines the position of the text relative to its point.
type labelKind int

const (
	labelValue labelKind = iota // left of the axis or of a row
	labelTime                   // below the axis
	labelLimit                  // above a line, at the left
	labelPeak                   // right of a tick
	labelDeath                  // above the chart
)

// canvas is a target for charts: the page, an SVG file, or pixels.
type canvas interface {
	line(points []point, with ink)
	area(points []point, with ink)
	label(at point, words string, kind labelKind)
}

// figure is a chart with its axes, ready to be drawn.
type figure struct {
	chart  *Chart
	time   *Timeline
	xs, ys Axis
	shape  []point // buffer for the shape of a series
}

// newFigure returns the figure of chart, with the given numbers of ticks on its axes.
func newFigure(chart *Chart, t *Timeline, columns, rows int) *figure {
	own := *chart
	own.dropUnseen()
	chart = &own
	f := &figure{chart: chart, time: t, xs: newTimeAxis(t.Length(), columns)}
	top, exact := chart.limits()
	f.ys = valueAxis(chart.Unit, chart.bottom(), top, exact, rows)
	if chart.Rows && chart.Unit == "%" {
		f.ys.Max = 100
	}
	return f
}

// draw draws the chart.
func (f *figure) draw(c canvas) {
	drawn := *f
	if drawn.chart, f = f.chart.stack(), &drawn; f.chart.Rows {
		f.rows(c)
	} else {
		f.grid(c)
		for i := range f.chart.Series {
			f.band(c, i)
		}
		for _, s := range slices.Backward(f.chart.Series) { // draw the job's series last, on top of the others
			f.series(c, &s)
		}
		f.bounds(c)
	}
	f.phases(c)
	f.marks(c)
	c.line([]point{{0, 0}, {1, 0}}, ink{kind: inkBase})
	for i, v := range f.xs.Ticks {
		words := f.xs.label(v)
		if i == len(f.xs.Ticks)-1 {
			words += " " + f.xs.Unit
		}
		c.label(point{v / f.xs.Max, 0}, words, labelTime)
	}
	f.death(c)
}

// at returns the position of value y at time x.
func (f *figure) at(x, y float64) point {
	share := y / f.ys.Max
	if least := f.ys.Min; least < 0 { // halved, because the difference of two huge numbers may overflow
		share = (y/2 - least/2) / (f.ys.Max/2 - least/2)
	}
	return point{min(1, max(0, x/f.xs.Max)), min(1, max(0, share))}
}

// grid draws the horizontal grid lines.
func (f *figure) grid(c canvas) {
	for _, v := range f.ys.Ticks {
		p := f.at(0, v)
		c.line([]point{p, {1, p.y}}, ink{kind: inkGrid})
		c.label(p, f.ys.label(v), labelValue)
	}
}

// band draws the area between the least and the greatest values of a series. For the job's series, it also draws the
// area below.
func (f *figure) band(c canvas, i int) {
	s := &f.chart.Series[i]
	if s.Others {
		return
	}
	ofJob := !slices.ContainsFunc(f.chart.Series, func(s Series) bool { return s.Color > 0 })
	if i == 0 && !f.chart.Signed && ofJob { // all series except the usage of others belong to the job
		for from, to := range measuredSpans(s.Band.Mean) {
			area := f.outline(f.shape[:0], s.Band.Mean, from, to)
			f.shape = append(area, point{area[len(area)-1].x, 0}, point{area[0].x, 0})
			c.area(f.shape, ink{kind: inkWash})
		}
	}
	for from, to := range measuredSpans(s.Band.Max) {
		upper := f.outline(f.shape[:0], s.Band.Max, from, to)
		top := len(upper)
		area := f.outline(upper, s.Band.Min, from, to)
		f.shape = area
		slices.Reverse(area[top:])
		if !flat(area) {
			c.area(area, ink{kind: inkBand, color: s.Color})
		}
	}
}

// flat reports whether the area inside an outline is too small to be visible.
func flat(area []point) bool {
	for i, p := range area[:len(area)/2] {
		if math.Abs(p.y-area[len(area)-1-i].y) > 0.003 {
			return false
		}
	}
	return true
}

// series draws the line of s, one shape for each measured span.
func (f *figure) series(c canvas, s *Series) {
	if s.Others && s.top() > f.ys.Max { // above the axis
		return
	}
	fall := f.fall(s)
	for from, to := range measuredSpans(s.Band.Mean) {
		f.shape = f.shape[:0]
		if from < fall && fall < to {
			c.line(f.outline(nil, s.Band.Mean, from, fall), s.ink())
			f.shape, from = append(f.shape, f.at(f.time.Death.At, f.time.Death.Limit)), fall
		}
		f.shape = f.outline(f.shape, s.Band.Mean, from, to)
		c.line(f.shape, s.ink())
	}
}

// fall returns the index of the sample at which the line of the job's memory falls from the limit: the first sample
// after the kill of a process at its memory limit, if the job survived the kill. Otherwise it returns 0.
func (f *figure) fall(s *Series) int {
	if d := f.time.Death; d != nil && !d.last && d.Limit > 0 && f.chart.ID == "memory" && s == &f.chart.Series[0] {
		return f.time.samplesBefore(d)
	}
	return 0
}

// ink returns the style of the line of s.
func (s *Series) ink() ink {
	if s.Others {
		return ink{kind: inkOthers}
	}
	return ink{kind: inkLine, color: s.Color, dash: s.Dash}
}

// measuredSpans yields the ranges [from, to) of list in which every value was measured.
func measuredSpans(list reporter.Numbers) func(yield func(from, to int) bool) {
	return func(yield func(from, to int) bool) {
		for to := 0; to < len(list); to++ {
			from := to
			for to < len(list) && !math.IsNaN(list[to]) {
				to++
			}
			if from < to && !yield(from, to) {
				return
			}
		}
	}
}

// outline appends the line of the values in [from, to) to out. Levels are connected from sample to sample. A rate, or a
// single level, is a horizontal segment over its bucket.
func (f *figure) outline(out []point, list reporter.Numbers, from, to int) []point {
	first, level := len(out), f.chart.Level && to-from > 1
	memory := strings.HasPrefix(f.chart.ID, "memory") && f.chart.Series[0].Key == f.chart.column.Key()
	if level && from == 0 && f.time.fresh && memory {
		out = append(out, f.at(0, 0))
	}
	for i := from; i < min(to, len(list), len(f.time.Ends)); i++ {
		b := f.at(f.time.Ends[i], list[i])
		if level {
			out = append(out, b)
			continue
		}
		a := f.at(f.time.begin(i), list[i])
		if len(out) > first+1 && out[len(out)-1].y == a.y { // extend the last segment
			out[len(out)-1] = b
			continue
		}
		out = append(out, a, b)
	}
	if len(out) == first { // the timeline is shorter than the list
		return append(out, point{0, 0})
	}
	return out
}

// bounds draws the job's limit and the peak at an unknown time, if there are any.
func (f *figure) bounds(c canvas) {
	chart := f.chart
	if b := chart.Bound; b > 0 && b <= f.ys.Max && chart.Level {
		p := f.at(0, b)
		c.line([]point{p, {1, p.y}}, ink{kind: inkLimit})
		c.label(p, "limit "+chart.BoundText, labelLimit)
	}
	if chart.Peak > 0 && chart.Peak <= f.ys.Max {
		p := f.at(0, chart.Peak)
		c.line([]point{p, {0.015, p.y}}, ink{kind: inkPeak})
		c.label(point{0.015, p.y}, "peak "+text.SizeText(chart.Peak)+", time not known", labelPeak)
	}
}

// rectangle returns the outline of a rectangle between two opposite corners.
func rectangle(x1, y1, x2, y2 float64) []point {
	return []point{{x1, y1}, {x2, y1}, {x2, y2}, {x1, y2}}
}

// phaseColors is the number of colors for phases. Further phases are gray.
const phaseColors = 6

// phases draws the strip of phases below the time axis, and a line at the beginning of each phase.
func (f *figure) phases(c canvas) {
	const top, bottom = -0.025, -0.07
	drawn := math.Inf(-1)
	for _, p := range f.time.Phases {
		from, to := f.at(p.From, 0).x, f.at(p.To, 0).x
		if to-drawn < 0.0005 { // too narrow to be visible
			continue
		}
		drawn = to
		c.line([]point{{from, 0}, {from, 1}}, ink{kind: inkEdge})
		c.area(rectangle(from, top, to, bottom),
			ink{kind: inkPhase, color: min(p.Color, phaseColors), data: "phase", name: p.Name})
	}
}

// marks draws the marks as lines.
func (f *figure) marks(c canvas) {
	drawn := math.Inf(-1)
	for _, m := range f.time.Marks {
		if x := f.at(m.At, 0).x; x-drawn >= 0.003 {
			c.line([]point{{x, 0}, {x, 1}}, ink{kind: inkMark, data: "mark", name: m.Text})
			drawn = x
		}
	}
}

// death draws the time of a kill and, in the memory chart, the unmeasured rise to the limit.
func (f *figure) death(c canvas) {
	d := f.time.Death
	if d == nil {
		return
	}
	x := f.at(d.At, 0).x
	c.line([]point{{x, 0}, {x, 1}}, ink{kind: inkDeath})
	words := d.Words
	if f.chart.ID == "memory" {
		words += " at " + text.Seconds(d.At)
		f.lastRise(c, d)
	}
	c.label(point{x, 1}, words, labelDeath)
}

// lastRise draws the rise of memory from the last sample before a kill to the limit.
func (f *figure) lastRise(c canvas, d *Death) {
	if d.Limit == 0 || len(f.chart.Series) == 0 {
		return
	}
	end := f.at(d.At, d.Limit)
	list := f.chart.Series[0].Band.Mean
	for i := min(len(list), f.time.samplesBefore(d)) - 1; i >= 0; i-- {
		if !math.IsNaN(list[i]) {
			if last := f.at(f.time.Ends[i], list[i]); last.y <= end.y {
				c.line([]point{last, end}, ink{kind: inkUnseen})
			}
			break
		}
	}
	c.line([]point{end, end}, ink{kind: inkDot})
}

// rows draws a row of colors for each series.
func (f *figure) rows(c canvas) {
	height := 1 / float64(len(f.chart.Series))
	for k, s := range f.chart.Series {
		bottom := 1 - float64(k+1)*height
		c.label(point{0, bottom + height/2}, strings.TrimPrefix(s.Label, "GPU "), labelValue)
		list := s.Band.Mean[:min(len(s.Band.Mean), len(f.time.Ends))]
		for i := 0; i < len(list); {
			j := i
			for j+1 < len(list) && f.heat(list[j+1]) == f.heat(list[i]) {
				j++
			}
			if level := f.heat(list[i]); level >= 0 {
				from, to := f.at(f.time.begin(i), 0).x, f.at(f.time.Ends[j], 0).x
				c.area(rectangle(from, bottom, to, bottom+0.85*height), ink{kind: inkHeat, color: level})
			}
			i = j + 1
		}
	}
}

// heatSteps is the number of colors in a row, in addition to the color of 0.
const heatSteps = 10

// heat returns the color of a value, or -1 if it was not measured.
func (f *figure) heat(v float64) int {
	if math.IsNaN(v) {
		return -1
	}
	return int(math.Round(min(1, max(0, v/f.ys.Max)) * heatSteps))
}

// caption returns the title of the chart, and the unit of its axis with remarks that a reader needs.
func (f *figure) caption() (title, unit string) {
	c := f.chart
	unit = f.ys.Unit
	switch {
	case c.column == 0 && c.line.Kind == "":
	case c.Unit == "CPUs":
		unit = "CPUs busy" + c.allowed(f.ys.Max)
		if last := len(c.Series) - 1; c.Series[last].Others && c.Series[last].top() > f.ys.Max {
			unit += "; others kept up to " + text.UsedCPUs(c.Series[last].top()) + " busy"
		}
	case c.ID == "network":
		unit += ", including other jobs"
	case c.Bound > f.ys.Max:
		unit += "; the limit, " + c.BoundText + ", is above this scale"
	case c.Rows:
		unit = "a row for each GPU, dark is " + short(math.Round(f.ys.Max/f.ys.Scale)) + " " + f.ys.Unit
	}
	return c.Title, unit
}

// allowed describes the CPUs that the job may use, relative to the end of the axis.
func (c *Chart) allowed(end float64) string {
	number, words := c.Bound, c.BoundText+" allowed"
	if number == 0 {
		number, words = c.Capacity, text.CPUs(c.Capacity)+" of the node"
	}
	switch {
	case number == 0:
		return ""
	case number > end:
		return "; the " + words + " are above this scale"
	}
	if c.Bound == 0 {
		return ", of " + text.CPUs(number)
	}
	return ", of the " + words
}

// needsKey reports whether a key must name the series.
func (c *Chart) needsKey() bool {
	return !c.Rows && len(c.Series) > 0 && (c.line.Kind != "" || len(c.own()) > 1)
}

// dropUnseen removes the memory of others, which is visible only at the scale of the node.
func (c *Chart) dropUnseen() {
	if c.ID == "memory" && len(c.own()) > 0 {
		c.Series = c.own()
	}
}

// own returns all series except the usage of others.
func (c *Chart) own() []Series {
	return slices.DeleteFunc(slices.Clone(c.Series), func(s Series) bool { return s.Others })
}
