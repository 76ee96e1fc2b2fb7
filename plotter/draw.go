package plotter

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// point is a position in a picture, in pixels from the upper left corner.
type point struct{ x, y float64 }

// ink is the style of a shape: a kind and, for series, their color.
type ink struct {
	kind  inkKind
	color int    // index into the palette
	dash  int    // see dashes
	tone  string // replaces color for parts that are not the job's: see Part
	// data and name identify what a shape shows: "mark" and its text. In an SVG they are an attribute data-mark.
	data string
	name string
}

type inkKind int

const (
	inkGrid inkKind = iota
	inkLevel
	inkText
	inkTitle
	inkLine
	inkBand
	inkSpread // the band between two series
	inkMark
	inkPhase // the band of a phase, over the height of the chart
	inkStrip // the strip at the top of that band
	inkLayer // an area of a stack
	inkHeat  // a color from 0 to heatSteps
)

// inks holds the look of each kind of shape: its class in an SVG, and for pixels its opacity and its gray, where 0
// means the color of the series.
var inks = [...]struct {
	class       string
	gray, alpha uint8
}{
	{"grid", 0xcc, 0xff}, {"level", 0x99, 0xff}, {"text", 0x33, 0xff}, {"title", 0x33, 0xff}, {"line", 0, 0xff},
	{"band", 0, 0x59}, {"spread", 0x88, 0x4c}, {"mark", 0x33, 0xff}, {"phase", 0, 0x12}, {"strip", 0, 0x99},
	{"layer", 0, 0xb3}, {"heat", 0, 0xff},
}

// anchor is the position of a text relative to its point.
type anchor int

const (
	anchorStart anchor = iota
	anchorMiddle
	anchorEnd
)

// canvas is a target for charts: SVG or pixels.
type canvas interface {
	line(points []point, with ink)
	area(points []point, with ink)
	text(at point, s string, a anchor, with ink)
}

// box is the area of one chart in a picture.
type box struct{ x, y, width, height float64 }

const (
	marginLeft   = 52
	marginRight  = 28
	marginTop    = 26
	marginBottom = 20
	legendHeight = 15
	letterWidth  = 6.8 // of most letters, approximately
	columnWidth  = 2.5 // minimum width of a bucket: narrower ones cannot be distinguished
	minColumns   = 300 // every picture may have this many buckets
)

// figure is a chart in its box with its axes.
type figure struct {
	chart  Chart
	time   Timeline
	plot   box // without the margins
	xs, ys Axis
	shape  []point // buffer for the shape of a series
}

// drawChart draws one chart.
func drawChart(c canvas, chart Chart, t Timeline, in box) {
	if chart.Lanes != nil {
		drawLanes(c, chart, t, in)
		return
	}

	f, k := newFigure(chart, t, in)
	rows := chart.legendRows(f.plot.width)
	f.plot.y += rows * legendHeight
	f.plot.height -= rows * legendHeight
	f.chart.Series = make([]Series, len(chart.Series))
	for i, s := range chart.Series {
		s.Band = folded(s.Band, k, t)
		f.chart.Series[i] = s
	}

	f.ys = chart.valueAxis(max(2, int(f.plot.height/32)))
	f.layers(c)
	f.phases(c)
	f.axes(c)
	for _, s := range f.chart.Series {
		if !s.derived() {
			f.series(c, s)
		}
	}

	f.phaseNames(c)
	f.marks(c)
	f.peak(c)
	f.drawText(c, rows)
}

// newFigure returns the figure of chart in the box in, and k, the number of neighboring buckets that it merges.
func newFigure(chart Chart, t Timeline, in box) (f figure, k int) {
	k = foldFactor(len(t.Ends), max(minColumns, int(in.width/columnWidth)))
	f = figure{time: t.thin(k), chart: chart, plot: box{
		in.x + marginLeft, in.y + marginTop, in.width - marginLeft - marginRight, in.height - marginTop - marginBottom,
	}}
	f.xs = newTimeAxis(t.Length(), int(f.plot.width/80))
	return f, k
}

// folded returns b with every k neighboring buckets merged. The result must not be changed.
func folded(b reporter.Band, k int, t Timeline) reporter.Band {
	if k == 1 {
		return b
	}
	return b.Fold(k, t.width)
}

// layers draws the areas of a stack, each on top of the previous ones. A layer takes no room at times when it was not
// measured.
func (f *figure) layers(c canvas) {
	base := make(reporter.Numbers, len(f.time.Ends))
	for _, s := range f.chart.Series {
		if !s.Part.layer() {
			continue
		}

		upper := slices.Clone(base)
		for i, v := range s.Band.Mean[:min(len(s.Band.Mean), len(upper))] {
			if !math.IsNaN(v) {
				upper[i] += max(0, v)
			}
		}

		for from, to := range measuredSpans(s.Band.Mean) {
			area, _ := f.between(upper, base, from, to)
			c.area(area, ink{kind: inkLayer, color: s.Color, tone: s.Part.tone()})
		}
		base = upper
	}
}

// derived reports whether the series was computed from means, so that it has neither band nor line.
func (s *Series) derived() bool {
	return s.Part.layer() && s.Part != PartJob
}

// peak marks the highest point of the chart and writes its value.
func (f *figure) peak(c canvas) {
	s, i := f.chart.highest()
	if s == nil {
		return
	}

	room := 8.0
	if len(f.time.Phases) > 0 { // their names are at the top
		room = 28
	}
	begin := 0.0
	if i > 0 {
		begin = f.time.Ends[i-1]
	}
	v := s.Band.Max[i]
	at, words := f.at((begin+f.time.Ends[i])/2, v), "peak "+f.ys.shortLabel(v, f.chart.Unit)
	side, dx := anchorStart, 4.0
	if at.x+dx+textWidth(words) > f.plot.x+f.plot.width {
		side, dx = anchorEnd, -4
	}
	c.line([]point{{at.x, at.y}, {at.x, at.y - 5}}, ink{kind: inkMark})
	c.text(point{at.x + dx, max(at.y-3, f.plot.y+room)}, words, side, ink{kind: inkText})
}

// highest returns the series of the chart that reaches highest, and where it does. Of a stack with a job it considers
// only the job's series. It returns nil if nothing happened.
func (c *Chart) highest() (of *Series, at int) {
	if c.Quiet() {
		return nil, 0
	}

	top := 0.0
	for k := range c.Series {
		s := &c.Series[k]
		if c.stack.restLabel != "" && s.Part != PartJob || c.Peak > 0 {
			continue
		}
		for i, v := range s.Band.Max {
			if v > top && v >= minAxis && v <= maxAxis {
				of, at, top = s, i, v
			}
		}
	}
	return of, at
}

// Quiet reports whether nothing happened in the chart, so that it needs little room: nothing was measured, all values
// are insignificant, or a level did not change.
func (c *Chart) Quiet() bool {
	if c.stack.restLabel != "" || c.gpu() {
		return len(c.Series) == 0
	}

	least, greatest := math.Inf(1), math.Inf(-1)
	for _, s := range c.Series {
		for i, v := range s.Band.Max {
			if !math.IsNaN(v) {
				greatest, least = max(greatest, v), min(least, s.Band.Min[i])
			}
		}
	}
	switch {
	case c.level:
		return !(greatest-least >= quietLevel || greatest >= fullLevel)
	case c.Unit == "%":
		return !(greatest >= quietPercent)
	case c.Unit == "MiB/s":
		return !(greatest >= quietRate)
	}
	return !(greatest > 0 || least < 0)
}

// The thresholds of significant values.
const (
	quietLevel   = 0.1  // percent of the disk
	fullLevel    = 90   // percent: a nearly full disk is significant
	quietPercent = 1    // percent of the time
	quietRate    = 0.01 // MiB/s
)

// gpu reports whether the chart is about GPUs.
func (c *Chart) gpu() bool { return strings.HasPrefix(c.ID, "gpu") }

func (f *figure) at(x, y float64) point {
	px := f.plot.x + f.plot.width*min(1, max(0, x/f.xs.Max))
	share := y / f.ys.Max
	if least := f.ys.Min; least < 0 { // halves, because the difference of two huge numbers may be infinite
		share = (y/2 - least/2) / (f.ys.Max/2 - least/2)
	}
	py := f.plot.y + f.plot.height*(1-min(1, max(0, share)))
	return point{math.Round(px*10) / 10, math.Round(py*10) / 10}
}

// axes draws grid, ticks and levels.
func (f *figure) axes(c canvas) {
	right := f.plot.x + f.plot.width
	for _, v := range f.ys.Ticks {
		p := f.at(0, v)
		c.line([]point{p, {right, p.y}}, ink{kind: inkGrid})
		c.text(point{p.x - 5, p.y + 4}, f.ys.label(v), anchorEnd, ink{kind: inkText})
	}

	if b := f.chart.Bound; b > 0 && b <= f.ys.Max {
		p := f.at(0, b)
		c.line([]point{p, {right, p.y}}, ink{kind: inkLevel, dash: 1})
	}

	if peak := f.chart.Peak; peak > 0 && peak <= f.ys.Max {
		p := f.at(0, peak)
		c.line([]point{p, {right, p.y}}, ink{kind: inkLevel, dash: 2})
		c.text(point{right - 4, max(p.y-3, f.plot.y+8)}, f.chart.PeakText, anchorEnd, ink{kind: inkText})
	}

	f.timeTicks(c)
}

// timeTicks draws the ticks of the time axis.
func (f *figure) timeTicks(c canvas) {
	bottom := f.plot.y + f.plot.height
	for _, v := range f.xs.Ticks {
		p := point{f.at(v, 0).x, bottom}
		c.line([]point{{p.x, bottom}, {p.x, bottom + 4}}, ink{kind: inkGrid})
		c.text(point{p.x, bottom + 16}, f.xs.timeLabel(v), anchorMiddle, ink{kind: inkText})
	}
}

// hasLegend reports whether a legend names the series.
func (c *Chart) hasLegend() bool { return (len(c.Series) > 1 || c.needsLegend()) && !c.Quiet() }

// legendRows returns the number of rows that the legend takes below the title of a chart that is room pixels wide: 0 if
// it fits next to the title.
func (c *Chart) legendRows(room float64) float64 {
	if !c.hasLegend() {
		return 0
	}

	all, rows, x := textWidth(c.title(""))+10*letterWidth, 1.0, 0.0
	for _, s := range c.Series {
		width := legendEntry(s)
		if x > 0 && x+width > room {
			rows, x = rows+1, 0
		}
		x += width
		all += width
	}

	if all <= room {
		return 0
	}

	return rows
}

// legendRoom returns by how many pixels a chart of operations of the given width is higher than other charts, because
// of the rows of its legend.
func (c *Chart) legendRoom(width float64) float64 {
	const usual = 2
	if !c.needsLegend() {
		return 0
	}
	return legendHeight * max(0, c.legendRows(width-marginLeft-marginRight)-usual)
}

// legendEntry returns the width of the swatch of s, its label and a gap.
func legendEntry(s Series) float64 { return 32 + textWidth(s.Label) }

// legendBelow draws the legend in rows below the title.
func (f *figure) legendBelow(c canvas, y float64) {
	x := 0.0
	for _, s := range f.chart.Series {
		width := legendEntry(s)
		if x > 0 && x+width > f.plot.width {
			x, y = 0, y+legendHeight
		}
		f.swatch(c, s, point{f.plot.x + x + 16, y - 4})
		label := text.Clip(s.Label, int((f.plot.width-20)/letterWidth))
		c.text(point{f.plot.x + x + 20, y}, label, anchorStart, ink{kind: inkText})
		x += width
	}
}

// textWidth returns the approximate width of s in pixels. Viewers use other fonts, but similar ones differ little.
func textWidth(s string) float64 {
	width := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("ijl .,:;'|!", r):
			width += 3.3
		case strings.ContainsRune("frt()-/", r):
			width += 4.4
		case strings.ContainsRune("mwMW%", r):
			width += 10
		case unicode.IsUpper(r):
			width += 7.6
		default:
			width += letterWidth
		}
	}
	return width
}

// drawText draws title, unit and legend.
func (f *figure) drawText(c canvas, rows float64) {
	y := f.plot.y - 10 - rows*legendHeight
	title := f.chart.title(f.ys.Unit)
	c.text(point{f.plot.x, y}, title, anchorStart, ink{kind: inkTitle})
	if f.chart.Quiet() {
		words := "nothing to speak of"
		if len(f.chart.Series) == 0 {
			words = "not measured"
		}
		c.text(point{f.plot.x + f.plot.width, y}, words, anchorEnd, ink{kind: inkText})
		return
	}

	if rows > 0 {
		f.legendBelow(c, y+legendHeight)
		return
	}

	x := f.plot.x + f.plot.width
	for i := len(f.chart.Series) - 1; i >= 0 && f.chart.hasLegend(); i-- {
		s := f.chart.Series[i]
		c.text(point{x, y}, s.Label, anchorEnd, ink{kind: inkText})
		x -= textWidth(s.Label) + 6
		f.swatch(c, s, point{x, y - 4})
		x -= 28
	}
}

// title returns the name of the chart with the unit of its axis, its limit, and its capacity.
func (c *Chart) title(unit string) string {
	title, of := c.Title, c.BoundText
	if unit != "" {
		title += ", " + unit
	}
	if c.Capacity > 0 {
		capacity := text.CPUs(c.Capacity)
		if strings.HasPrefix(c.Unit, "MiB") {
			capacity = text.SizeText(c.Capacity)
		}
		of = strings.TrimLeft(of+" of "+capacity, " ")
	}
	if of != "" {
		title += " (" + of + ")"
	}
	return title
}

// swatch draws a sample of s next to its label.
func (f *figure) swatch(c canvas, s Series, at point) {
	box := []point{{at.x - 16, at.y - 4}, {at.x, at.y - 4}, {at.x, at.y + 4}, {at.x - 16, at.y + 4}}
	switch {
	case s.Spread:
		c.area(box, ink{kind: inkSpread})
	case s.Part.layer():
		c.area(box, ink{kind: inkLayer, color: s.Color, tone: s.Part.tone()})
	default:
		c.line([]point{{at.x - 16, at.y}, at}, ink{kind: inkLine, color: s.Color, dash: s.Dash, tone: s.Part.tone()})
	}
}

// series draws the band and the line of s, one shape for each measured span. A bucket is as wide as its duration.
func (f *figure) series(c canvas, s Series) {
	band := ink{kind: inkBand, color: s.Color, tone: s.Part.tone()}
	kind := ink{kind: inkLine, color: s.Color, dash: s.Dash, tone: s.Part.tone()}
	if s.Spread {
		band = ink{kind: inkSpread}
	}

	for from, to := range measuredSpans(s.Band.Max) {
		if area, flat := f.between(s.Band.Max, s.Band.Min, from, to); !flat {
			c.area(area, band)
		}
	}

	for from, to := range measuredSpans(s.Band.Mean) {
		f.shape = f.steps(f.shape[:0], s.Band.Mean, from, to)
		c.line(f.shape, kind)
	}
}

// between returns the outline of the area between two lists in [from, to), and whether that is too flat to be visible.
// The outline is valid until the next one is made.
func (f *figure) between(upper, lower reporter.Numbers, from, to int) (area []point, flat bool) {
	area = f.steps(slices.Grow(f.shape[:0], 4*(to-from)), upper, from, to)
	top := len(area)
	area = f.steps(area, lower, from, to)
	f.shape = area
	bottom := area[top:]
	flat = top <= len(bottom)
	for i := 0; i < top && flat; i++ {
		flat = math.Abs(area[i].y-bottom[i].y) <= 0.5
	}
	slices.Reverse(bottom)
	return area, flat
}

// measuredSpans yields the ranges [from, to) of list in which every value was measured.
func measuredSpans(list reporter.Numbers) func(yield func(from, to int) bool) {
	return func(yield func(from, to int) bool) {
		from := -1
		for i := 0; i <= len(list); i++ {
			measured := i < len(list) && !math.IsNaN(list[i])
			switch {
			case measured && from < 0:
				from = i
			case !measured && from >= 0:
				if !yield(from, i) {
					return
				}
				from = -1
			}
		}
	}
}

// steps appends the outline of the values in [from, to), each over the time of its bucket.
func (f *figure) steps(out []point, list reporter.Numbers, from, to int) []point {
	begin := 0.0
	if from > 0 {
		begin = f.time.Ends[from-1]
	}

	first := len(out)
	for i := from; i < min(to, len(list)); i++ {
		a, b := f.at(begin, list[i]), f.at(f.time.Ends[i], list[i])
		begin = f.time.Ends[i]
		if len(out) > first+1 && out[len(out)-1].y == a.y { // extend the last segment
			out[len(out)-1] = b
			continue
		}
		out = append(out, a, b)
	}

	return out
}
