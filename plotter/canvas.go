package plotter

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"strconv"
)

// svgPaths collects the paths of an SVG. Their style depends only on CSS classes, so a page can show them in light
// mode, in dark mode and in print.
type svgPaths struct{ out []byte }

// addf appends markup. Text from a report must be escaped.
func (c *svgPaths) addf(format string, args ...any) { c.out = fmt.Appendf(c.out, format, args...) }

// path writes a path through points. It uses the shorter commands H and V for horizontal and vertical segments.
func (c *svgPaths) path(points []point, with ink, end string) {
	c.addf(`<path class="%s`, with.look().class)
	if with.data != "" {
		c.addf(`" data-%s="%s`, with.data, template.HTMLEscapeString(with.name))
	}
	c.addf(`" d="`)
	for i, p := range points {
		switch {
		case i == 0:
			c.number('M', p.x)
			c.number(' ', p.y)
		case with.kind == inkDot:
			c.addf("h.01")
		case p.y == points[i-1].y:
			c.number('H', p.x)
		case p.x == points[i-1].x:
			c.number('V', p.y)
		default:
			c.number('L', p.x)
			c.number(' ', p.y)
		}
	}
	c.addf("%s\"/>", end)
}

// number writes the character before, followed by the coordinate v with at most one decimal.
func (c *svgPaths) number(before byte, v float64) {
	const noSign = 0 // + 0 turns −0 into 0
	c.out = append(c.out, before)
	c.out = bytes.TrimSuffix(strconv.AppendFloat(c.out, math.Round(v*10)/10+noSign, 'f', 1, 64), []byte(".0"))
}

// The size of a chart's viewBox. The page stretches the chart.
const (
	pageWidth  = 1000
	pageHeight = 200
)

func viewBox() box { return box{width: pageWidth, height: pageHeight} }

// pageCanvas draws a chart of the page as a scalable SVG. The labels are HTML, so they keep their size.
type pageCanvas struct {
	svgPaths
	labels []byte
}

func (c *pageCanvas) line(points []point, with ink) {
	if with.kind != inkBase { // the page's CSS draws the time axis
		c.path(viewBox().placed(points), with, "")
	}
}

func (c *pageCanvas) area(points []point, with ink) { c.path(viewBox().placed(points), with, "Z") }

func (c *pageCanvas) label(at point, words string, kind labelKind) {
	left, format := 100*at.x, ""
	switch {
	case kind == labelValue:
		format = `<i class="y" style="bottom:%.1[2]f%%">%[3]s</i>`
	case kind == labelTime && left < 1:
		format = `<i class="x z">%[3]s</i>`
	case kind == labelTime && left > 97:
		format = `<i class="x e">%[3]s</i>`
	case kind == labelTime:
		format = `<i class="x" style="left:%.1[1]f%%">%[3]s</i>`
	case kind == labelLimit:
		format = `<b class="lm" style="bottom:%.1[2]f%%">%[3]s</b>`
	case kind == labelPeak:
		format = `<b class="pv" style="bottom:%.1[2]f%%">%[3]s</b>`
	case left < 30: // a death
		format = `<b class="kx" style="left:%.1[1]f%%">%[3]s</b>`
	default:
		left, format = 100-left, `<b class="kx" style="right:%.1[1]f%%">%[3]s</b>`
	}
	c.labels = fmt.Appendf(c.labels, format, left, 100*at.y, template.HTMLEscapeString(words))
}

// html returns the chart as HTML. words describe it for people who cannot see it.
func (c *pageCanvas) html(words string) template.HTML {
	const picture = `<svg viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s">%s</svg>%s`
	return template.HTML(fmt.Sprintf(picture, pageWidth, pageHeight, template.HTMLEscapeString(words), c.out, c.labels))
}

// pen draws in a picture. Positions are in pixels. The side of a text is −1 if the text begins at its position, 0 if it
// is centered there, and 1 if it ends there.
type pen interface {
	stroke(points []point, with ink)
	fill(points []point, with ink)
	text(at point, words string, side int, look string)
}

// box is the area of a chart in a picture, in pixels. It implements canvas.
type box struct {
	pen
	x, y, width, height float64
}

// place returns the position of p in pixels, with one decimal.
func (b box) place(p point) point {
	return point{math.Round((b.x+p.x*b.width)*10) / 10, math.Round((b.y+(1-p.y)*b.height)*10) / 10}
}

// placed returns the positions of points in pixels.
func (b box) placed(points []point) []point {
	out := make([]point, len(points))
	for i, p := range points {
		out[i] = b.place(p)
	}
	return out
}

func (b box) line(points []point, with ink) { b.stroke(b.placed(points), with) }
func (b box) area(points []point, with ink) { b.fill(b.placed(points), with) }

func (b box) label(at point, words string, kind labelKind) {
	switch p := b.place(at); kind {
	case labelValue:
		b.text(point{p.x - 6, p.y + 4}, words, 1, "t")
	case labelTime:
		b.text(point{p.x, b.y + b.height + 24}, words, 0, "t")
	case labelLimit:
		b.text(point{p.x + 6, p.y - 4}, words, -1, "t b")
	case labelPeak:
		b.text(point{p.x + 6, p.y + 4}, words, -1, "t j")
	case labelDeath:
		side := 1
		if at.x < 0.3 {
			side = -1
		}
		b.text(point{p.x, b.y - 4}, words, side, "t k")
	}
}

// svgPen draws in an SVG file.
type svgPen struct{ svgPaths }

func (c *svgPen) stroke(points []point, with ink) { c.path(points, with, ""); c.addf("\n") }
func (c *svgPen) fill(points []point, with ink)   { c.path(points, with, "Z"); c.addf("\n") }

func (c *svgPen) text(p point, words string, side int, look string) {
	c.addf("<text class=\"%s%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
		look, [...]string{"", " mid", " end"}[side+1], p.x, p.y, template.HTMLEscapeString(words))
}
