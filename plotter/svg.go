package plotter

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"strconv"
)

// svgCanvas collects SVG elements. Classes determine their style, so that a page can show them in light and dark mode
// and in print.
type svgCanvas struct{ out []byte }

// addf appends markup. Text from a report must be escaped.
func (c *svgCanvas) addf(format string, args ...any) { c.out = fmt.Appendf(c.out, format, args...) }

// classes returns the CSS classes of an ink: "line s0 dash".
func (i ink) classes() string {
	out := inks[i.kind].class
	switch i.kind {
	case inkHeat:
		out += " h" + strconv.Itoa(i.color)
	case inkLine, inkBand, inkPhase, inkStrip, inkLayer:
		if i.tone != "" {
			out += " " + i.tone
		} else {
			out += " s" + strconv.Itoa(i.color%len(seriesColors))
		}
	}

	styles := [...]string{"", " dash", " dot", " dashdot"}
	return out + styles[i.dash%len(styles)]
}

func (c *svgCanvas) line(points []point, with ink) { c.path(points, with, "") }
func (c *svgCanvas) area(points []point, with ink) { c.path(points, with, "Z") }

// path writes a path through points. Horizontal and vertical segments use H and V, which are shorter.
func (c *svgCanvas) path(points []point, with ink, end string) {
	c.addf(`<path class="%s`, with.classes())
	if with.data != "" {
		c.addf(`" data-%s="%s`, with.data, template.HTMLEscapeString(with.name))
	}
	c.addf(`" d="`)
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

	c.addf("%s\"/>\n", end)
}

// number writes the character before and then v, a coordinate, with at most one decimal.
func (c *svgCanvas) number(before byte, v float64) {
	c.out = append(c.out, before)
	tenths := math.Round(v * 10)
	if !(math.Abs(tenths) < 1e9) {
		c.out = strconv.AppendFloat(c.out, v, 'f', -1, 64)
		return
	}

	const noSign = 0 // + 0 turns −0 into 0
	c.out = bytes.TrimSuffix(strconv.AppendFloat(c.out, tenths/10+noSign, 'f', 1, 64), []byte(".0"))
}

func (c *svgCanvas) text(at point, s string, a anchor, with ink) {
	sides := [...]string{"", " mid", " end"}
	c.addf("<text class=\"%s%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
		with.classes(), sides[a], at.x, at.y, template.HTMLEscapeString(s))
}

// open begins a picture of the given size in pixels. The label describes it for people who cannot see it.
func (c *svgCanvas) open(width, height float64, label string) {
	c.addf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0`)
	c.number(' ', width)
	c.number(' ', height)
	c.addf("\" role=\"img\" aria-label=\"%s\">\n", template.HTMLEscapeString(label))
}

func (c *svgCanvas) close() { c.addf("</svg>\n") }
