package plotter

import (
	"html"
	"math"
	"slices"
	"strconv"
)

// An svgCanvas writes SVG elements. Their style is set by classes, so that a page can show them in
// light and dark mode and in print.
type svgCanvas struct{ out []byte }

// class returns the classes of an ink: "line s0 dash".
func (i ink) class() string {
	name := [...]string{"grid", "level", "text", "title", "line", "band", "spread", "mark", "phase", "strip", "layer", "heat"}[i.kind]
	switch {
	case i.kind == inkHeat:
		name += " h" + strconv.Itoa(i.color)
	case i.tone != "":
		name += " " + i.tone
	case slices.Contains([]inkKind{inkLine, inkBand, inkPhase, inkStrip, inkLayer}, i.kind):
		name += " s" + strconv.Itoa(i.color%len(seriesColors()))
	}
	if i.dash > 0 {
		name += [...]string{"", " dash", " dot", " dashdot"}[i.dash%len(dashes())]
	}
	return name
}

func (c *svgCanvas) line(points []point, with ink) { c.path(points, with, "") }
func (c *svgCanvas) area(points []point, with ink) { c.path(points, with, "Z") }

// path writes a path. Horizontal and vertical segments use H and V, which are shorter.
func (c *svgCanvas) path(points []point, with ink, end string) {
	c.out = append(c.out, `<path class="`...)
	c.out = append(c.out, with.class()...)
	if with.data != "" {
		c.out = append(c.out, `" data-`+with.data+`="`+html.EscapeString(with.name)...)
	}
	c.out = append(c.out, `" d="`...)
	for i, p := range points {
		switch {
		case i == 0:
			c.number('M', p.x)
			c.number(' ', p.y)
		case p.y == points[i-1].y:
			c.number('H', p.x)
		case p.x == points[i-1].x:
			c.number('V', p.y)
		default:
			c.number('L', p.x)
			c.number(' ', p.y)
		}
	}

	c.out = append(c.out, end...)
	c.out = append(c.out, "\"/>\n"...)
}

// number writes a coordinate with at most one decimal.
func (c *svgCanvas) number(before byte, v float64) {
	c.out = append(c.out, before)
	tenths := math.Round(v * 10)
	if !(math.Abs(tenths) < 1e9) {
		c.out = strconv.AppendFloat(c.out, v, 'f', -1, 64)
		return
	}

	// Most of a page consists of these: strconv's shortest decimal takes three times as long.
	n := int64(tenths)
	if n < 0 {
		c.out, n = append(c.out, '-'), -n
	}

	c.out = strconv.AppendInt(c.out, n/10, 10)
	if n%10 != 0 {
		c.out = append(c.out, '.', byte('0'+n%10))
	}
}

func (c *svgCanvas) text(at point, s string, a anchor, with ink) {
	c.out = append(c.out, `<text class="`...)
	c.out = append(c.out, with.class()...)
	c.out = append(c.out, [...]string{"", " mid", " end"}[a]...)
	c.number2(`" x="`, at.x)
	c.number2(`" y="`, at.y)
	c.out = append(c.out, `">`...)
	c.out = append(c.out, html.EscapeString(s)...)
	c.out = append(c.out, "</text>\n"...)
}

func (c *svgCanvas) number2(before string, v float64) {
	c.out = append(c.out, before...)
	c.out = strconv.AppendFloat(c.out, v, 'f', 1, 64)
}

// open begins a picture of the given size in pixels. The label describes it for people who cannot
// see it.
func (c *svgCanvas) open(width, height float64, label string) {
	size := strconv.FormatFloat(width, 'f', -1, 64) + " " + strconv.FormatFloat(height, 'f', -1, 64)
	c.out = append(
		c.out,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 `+size+`" role="img" aria-label="`+html.EscapeString(
			label,
		)+`">`+"\n"...)
}

func (c *svgCanvas) close() { c.out = append(c.out, "</svg>\n"...) }
