package plotter

import (
	"math"
	"strconv"
)

// An svgCanvas writes SVG elements. Their style is set by classes, so that a page can show them in
// light and dark mode and in print.
type svgCanvas struct{ w *htmlWriter }

// class writes the classes of an ink: "line s0 dash".
func (c svgCanvas) class(i ink) {
	kinds := [...]markup{
		"grid", "level", "text", "title", "line", "band", "spread", "mark", "phase", "strip", "layer", "heat",
	}
	c.w.ours(kinds[i.kind])
	switch i.kind {
	case inkHeat:
		c.w.ours(" h").whole(i.color)
	case inkLine, inkBand, inkPhase, inkStrip, inkLayer:
		if i.tone != "" {
			c.w.ours(" ").ours(i.tone)
		} else {
			c.w.ours(" s").whole(i.color % len(seriesColors()))
		}
	}
	if i.dash > 0 {
		styles := [...]markup{"", " dash", " dot", " dashdot"}
		c.w.ours(styles[i.dash%len(styles)])
	}
}

func (c svgCanvas) line(points []point, with ink) { c.path(points, with, "") }
func (c svgCanvas) area(points []point, with ink) { c.path(points, with, "Z") }

// path writes a path. Horizontal and vertical segments use H and V, which are shorter.
func (c svgCanvas) path(points []point, with ink, end markup) {
	c.w.ours(`<path class="`)
	c.class(with)
	if with.data != "" {
		c.w.ours(`" data-`).ours(with.data).ours(`="`).text(with.name)
	}
	c.w.ours(`" d="`)
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

	c.w.ours(end).ours("\"/>\n")
}

// number writes a coordinate with at most one decimal.
func (c svgCanvas) number(before byte, v float64) {
	out := append(c.w.out, before)
	tenths := math.Round(v * 10)
	if !(math.Abs(tenths) < 1e9) {
		c.w.out = strconv.AppendFloat(out, v, 'f', -1, 64)
		return
	}

	// Most of a page consists of these: strconv's shortest decimal takes three times as long.
	n := int64(tenths)
	if n < 0 {
		out, n = append(out, '-'), -n
	}

	out = strconv.AppendInt(out, n/10, 10)
	if n%10 != 0 {
		out = append(out, '.', byte('0'+n%10))
	}
	c.w.out = out
	c.w.filled()
}

func (c svgCanvas) text(at point, s string, a anchor, with ink) {
	c.w.ours(`<text class="`)
	c.class(with)
	sides := [...]markup{"", " mid", " end"}
	c.w.ours(sides[a]).ours(`" x="`).fixed(at.x, 1).ours(`" y="`).fixed(at.y, 1).ours(`">`).text(s).ours("</text>\n")
}

// open begins a picture of the given size in pixels. The label describes it for people who cannot
// see it.
func (c svgCanvas) open(width, height float64, label string) {
	c.w.ours(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 `).number(width).ours(" ").number(height)
	c.w.ours(`" role="img" aria-label="`).text(label).ours("\">\n")
}

func (c svgCanvas) close() { c.w.ours("</svg>\n") }
