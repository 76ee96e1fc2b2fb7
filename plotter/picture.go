package plotter

import (
	"fmt"
	"html/template"
	"image/color"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-analyze/charts/chartdraw"
	"github.com/go-analyze/charts/chartdraw/drawing"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// PictureOptions configures a static picture.
type PictureOptions struct {
	Node   string // node index; "" means the lowest index
	Metric string // a key of the samples or of the envelope; "" means all charts
	Width  int    // in pixels
}

// Sizes of a static picture, in pixels.
const (
	chartHeight  = 130 // height of the plot of a chart
	metricHeight = 240
	rowHeight    = 14 // height of a row of colors

	marginLeft, marginRight, marginTop, marginBottom = 56, 24, 44, 38

	legendHeight = 16
	headHeight   = 56
	lineHeight   = 18 // height of a sentence in place of a chart
	footHeight   = 14
	MinWidth     = 300
	MaxWidth     = 8000

	letterWidth = 6.8 // approximate width of most letters
	bucketWidth = 2   // minimum width of a bucket: narrower buckets cannot be distinguished
)

// The colors of a picture are the same as on the page in light mode.
var (
	seriesColors = []color.NRGBA{rgb(0x0a5bb0), rgb(0x6633dd), rgb(0x1d6b57), rgb(0x5a1846), nodeColor: rgb(0x77818b)}
	phasePalette = [phaseColors + 1]color.NRGBA{
		rgb(0x6633dd), rgb(0x1d6b57), rgb(0x5a1846), rgb(0xa8328f), rgb(0x4d5a00), rgb(0x3b3f73), rgb(0x77818b),
	}
	inkLooks = [...]look{
		inkGrid: {class: "g", color: rgb(0xe6eaee)}, inkBase: {class: "base", color: rgb(0x77818b)},
		inkWash: {class: "w", color: rgb(0xe1ebf5)}, inkBand: {class: "b"}, inkLine: {class: "j", width: 2},
		inkOthers: {class: "o", color: rgb(0x77818b)},
		inkLimit:  {class: "l", color: rgb(0x1b1f24), dash: []float64{6, 4}},
		inkUnseen: {class: "un", color: rgb(0x0a5bb0), width: 2, dash: []float64{6, 4}},
		inkDeath:  {class: "k", color: rgb(0xb3261e), width: 2}, inkDot: {class: "dot", color: rgb(0xb3261e), width: 10},
		inkPeak: {class: "pk", color: rgb(0x0a5bb0), width: 2},
		inkMark: {class: "mk", color: rgb(0x57606a), dash: []float64{2, 3}}, inkEdge: {class: "pb", color: rgb(0xd0d7de)},
		inkPhase: {class: "ph"}, inkHeat: {class: "h"},
	}
	textColors = map[string]color.NRGBA{"k": rgb(0xb3261e), "j": rgb(0x0a5bb0), "t": rgb(0x57606a), "b": rgb(0x1b1f24)}
)

// nodeColor is the index of the color for the node's own numbers.
const nodeColor = 4

func rgb(v uint32) color.NRGBA { return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }

// bandAlpha is the opacity of the area from the least to the greatest values.
const bandAlpha = 0x40

// look is the style of a shape: its CSS classes and, in a picture, its color, width and dashes in pixels.
type look struct {
	class string // "j s1 d2"
	color color.NRGBA
	width float64
	dash  []float64
}

// look returns the style of a shape.
func (i ink) look() look {
	out := inkLooks[i.kind]
	switch i.kind {
	case inkHeat:
		out.class += strconv.Itoa(i.color)
		out.color = heatColor(float64(i.color) / heatSteps)
	case inkPhase:
		out.class += " p" + strconv.Itoa(i.color)
		out.color = phasePalette[i.color]
	case inkLine, inkBand:
		color, dash := i.color%len(seriesColors), i.dash%len(dashes())
		if out.color = seriesColors[color]; i.kind == inkBand {
			out.color.A = bandAlpha
		}
		if i.color > 0 {
			out.class += " s" + strconv.Itoa(color)
		}
		if i.dash > 0 {
			out.class += " d" + strconv.Itoa(dash)
		}
		if out.dash = dashes()[dash]; color == nodeColor {
			out.width = 1
		}
	}
	return out
}

// WriteSVG writes the charts of one node as an SVG file. Its output depends only on its arguments.
func WriteSVG(w io.Writer, r *reporter.Report, o PictureOptions) error {
	p, err := newPicture(r, o)
	if err != nil {
		return err
	}

	c := &svgPen{}
	c.addf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`+"\n",
		p.width, p.height(), template.HTMLEscapeString(p.title))
	c.addf("<style>%s</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n", pictureStyle())
	p.draw(c)
	c.addf("</svg>\n")
	if _, err := w.Write(c.out); err != nil {
		return fmt.Errorf("write SVG: %w", err)
	}

	return nil
}

// pictureStyle returns the style of a stand-alone picture, on white paper.
func pictureStyle() string {
	var out strings.Builder
	addf := func(format string, args ...any) { fmt.Fprintf(&out, format, args...) }
	addf(`text{font:11px "DejaVu Sans",Verdana,sans-serif}.paper{fill:#fff}path{fill:none}.mid{text-anchor:middle}` +
		`.end{text-anchor:end}.b,.k,.j{font-weight:bold}`)
	for _, look := range []string{"t", "b", "k", "j"} {
		addf("text.%s{fill:%s}", look, hex(textColors[look]))
	}
	for kind := range inkHeat {
		switch look := (ink{kind: kind}).look(); kind {
		case inkWash, inkBand:
			addf("path.%s{fill:%s;fill-opacity:%.2g}", look.class, hex(look.color), float64(look.color.A)/0xff)
		case inkPhase:
			for k := range phasePalette {
				addf(".ph.p%d{fill:%s}", k, hex(phasePalette[k]))
			}
		default:
			addf("path.%s{stroke:%s", look.class, hex(look.color))
			if look.width > 0 {
				addf(";stroke-width:%v", look.width)
			}
			if look.dash != nil {
				addf(";%s", dashStyle(look.dash))
			}
			addf("}")
		}
	}
	addf("path.dot{stroke-linecap:round}")
	for k := 1; k < len(seriesColors); k++ {
		addf(".j.s%[1]d{stroke:%[2]s}path.b.s%[1]d{fill:%[2]s}", k, hex(seriesColors[k]))
	}
	addf("path.j.s%d{stroke-width:1}", nodeColor)
	for k := 1; k < len(dashes()); k++ {
		addf(".j.d%d{%s}", k, dashStyle(dashes()[k]))
	}
	for k := range heatSteps + 1 {
		addf(".h%d{fill:%s}", k, hex(heatColor(float64(k)/heatSteps)))
	}
	return out.String()
}

// dashStyle returns the CSS of dashes.
func dashStyle(dash []float64) string {
	return "stroke-dasharray:" + strings.Trim(fmt.Sprint(dash), "[]")
}

// hex returns the color in CSS notation, without transparency.
func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// WritePNG writes the same picture as WriteSVG, as a PNG file.
func WritePNG(w io.Writer, r *reporter.Report, o PictureOptions) error {
	p, err := newPicture(r, o)
	if err != nil {
		return err
	}

	c := newPixelPen(int(p.width), int(p.height()))
	p.draw(c)
	if err := c.Save(w); err != nil {
		return fmt.Errorf("write PNG: %w", err)
	}

	return nil
}

// picture is the input of WriteSVG and WritePNG.
type picture struct {
	charts        []Chart
	sentences     []string // sentences that replace charts without usage
	time          Timeline
	title, action string
	each, width   float64 // height of the plot of each chart, and width of the picture
}

func newPicture(r *reporter.Report, o PictureOptions) (*picture, error) {
	name := o.Node
	if name == "" {
		name = r.NodeNames()[0]
	}

	n := r.Nodes[name]
	if n == nil {
		return nil, fmt.Errorf("the report has no node %s", text.Printable(name))
	}

	p := &picture{charts: Charts(n), width: float64(o.Width), each: chartHeight}
	if o.Metric != "" {
		chart, err := ChartOf(n, o.Metric)
		if err != nil {
			return nil, err
		}
		p.charts, p.each = []Chart{chart}, metricHeight
	}

	for i := range p.charts {
		p.charts[i].dropUnseen()
	}
	p.time, p.charts = withSuspendGaps(&r.Run, n, p.charts)
	p.time.thin(p.charts, max(300, int(p.width/bucketWidth)))
	conclusion := summary.Conclude(r)
	p.action = conclusion.Action
	where := "Node " + name
	if host := n.HostName(); host != "" {
		where += " (" + text.Printable(host) + ")"
	}
	p.title = conclusion.Cause + " " + where + "."
	if o.Metric == "" {
		p.charts, p.sentences = settled(p.charts, conclusion.Subject)
	}

	return p, nil
}

func (p *picture) height() float64 {
	height := headHeight + footHeight + float64(lineHeight*len(p.sentences)) + p.phasesHeight()
	for i := range p.charts {
		height += p.heightOf(&p.charts[i])
	}
	return height
}

// heightOf returns the height of a chart with its title, key and axis.
func (p *picture) heightOf(c *Chart) float64 {
	height := float64(marginTop + marginBottom)
	if c.Rows {
		return height + rowHeight*float64(len(c.Series))
	}
	_, key := p.keyPlaces(c)
	return height + p.each + key
}

// draw draws the charts and texts.
func (p *picture) draw(with pen) {
	fits := max(10, int(p.width-2*marginRight)/7)
	with.text(point{marginRight, 20}, text.Clip(p.title, fits), -1, "b")
	with.text(point{marginRight, 38}, text.Clip(p.action, fits), -1, "t")
	p.phases(with)
	y := headHeight + p.phasesHeight()
	for i := range p.charts {
		chart := &p.charts[i]
		places, key := p.keyPlaces(chart)
		height := p.heightOf(chart)
		plot := box{with, marginLeft, y + marginTop + key, p.width - marginLeft - marginRight,
			height - marginTop - marginBottom - key}
		f := newFigure(chart, &p.time, max(2, int(plot.width/80)), max(2, int(plot.height/40)))
		title, unit := f.caption()
		with.text(point{marginRight, y + 14}, title, -1, "b")
		fits := int((plot.width - textWidth(title)) / letterWidth)
		with.text(point{marginRight + textWidth(title)*1.12 + 8, y + 14}, text.Clip(unit, fits), -1, "t")
		for k, at := range places {
			s, row := &chart.Series[k], y+14+legendHeight+at.y
			with.stroke([]point{{at.x, row - 4}, {at.x + 18, row - 4}}, s.ink())
			with.text(point{at.x + 24, row}, text.Clip(s.Label, int((p.width-2*marginRight-24)/letterWidth)), -1, "t")
		}
		f.draw(plot)
		y += height
	}
	for _, words := range p.sentences {
		with.text(point{marginRight, y + 10}, text.Clip(words, fits), -1, "t")
		y += lineHeight
	}
}

// phasesHeight returns the height of the key of the phases.
func (p *picture) phasesHeight() float64 { return float64(legendHeight * min(1, len(p.time.Phases))) }

// phases draws the names of the phases with their colors in a row. It omits phases that do not fit.
func (p *picture) phases(with pen) {
	const y, size = headHeight, 9.0
	named := make(map[string]bool)
	x := float64(marginRight)
	for _, span := range p.time.Phases {
		width := size + 22 + textWidth(span.Name)
		if named[span.Name] || x+width > p.width-marginRight {
			continue
		}
		named[span.Name] = true
		with.fill(rectangle(x, y-size, x+size, y), ink{kind: inkPhase, color: min(span.Color, phaseColors)})
		with.text(point{x + size + 6, y}, span.Name, -1, "t")
		x += width
	}
}

// keyPlaces returns the positions of the series' names in the key of a chart, and the height of the key. The rows of
// the key begin at the left margin.
func (p *picture) keyPlaces(c *Chart) (places []point, height float64) {
	if c.Rows || len(c.Series) == 0 || len(c.Series) == 1 && !c.needsKey() {
		return nil, 0
	}
	x, y := float64(marginRight), 0.0
	for i := range c.Series {
		width := 40 + textWidth(c.Series[i].Label)
		if x > marginRight && x+width > p.width-marginRight {
			x, y = marginRight, y+legendHeight
		}
		places = append(places, point{x, y})
		x += width
	}
	return places, y + legendHeight
}

// textWidth returns the approximate width of s in pixels. Viewers may use another font, but similar fonts differ
// little.
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

// pixelPen draws with the charting library's renderer. The library's main package is not imported, because its imports
// would add 0.3 ms to every start.
type pixelPen struct{ chartdraw.Renderer }

func newPixelPen(width, height int) pixelPen {
	c := pixelPen{chartdraw.PNG(width, height)}
	c.SetDPI(92) // 9 points are 11.5 pixels
	c.SetFont(chartdraw.GetDefaultFont())
	c.SetFontSize(9)
	c.paint(rectangle(0, 0, float64(width), float64(height)), drawing.ColorWhite)
	return c
}

// shape begins a path through points, in whole pixels.
func (c pixelPen) shape(points []point) {
	for i, p := range points {
		if x, y := int(p.x+0.5), int(p.y+0.5); i == 0 {
			c.MoveTo(x, y)
		} else {
			c.LineTo(x, y)
		}
	}
}

// paint fills the area inside points.
func (c pixelPen) paint(points []point, with drawing.Color) {
	c.SetFillColor(with)
	c.shape(points)
	c.Close()
	c.Fill()
}

func (c pixelPen) stroke(points []point, with ink) {
	look := with.look()
	if with.kind == inkDot {
		p, r := points[0], look.width/2
		c.paint([]point{{p.x - r, p.y}, {p.x, p.y - r}, {p.x + r, p.y}, {p.x, p.y + r}}, drawing.Color(look.color))
		return
	}
	c.SetStrokeColor(drawing.Color(look.color))
	c.SetStrokeWidth(max(1, look.width))
	c.SetStrokeDashArray(look.dash)
	c.shape(points)
	c.Stroke()
}

func (c pixelPen) fill(points []point, with ink) { c.paint(points, drawing.Color(with.look().color)) }

func (c pixelPen) text(p point, words string, side int, look string) {
	c.SetFontColor(drawing.Color(textColors[look[len(look)-1:]]))
	c.Text(words, int(p.x)-(side+1)*c.MeasureText(words).Width()/2, int(p.y))
}

// PictureFormat returns the format that a file name implies: "svg", "png" or "html".
func PictureFormat(name string) (string, error) {
	for _, kind := range []string{"html", "svg", "png"} {
		if len(name) > len(kind) && strings.EqualFold(name[len(name)-len(kind)-1:], "."+kind) {
			return kind, nil
		}
	}
	return "", fmt.Errorf("%s ends in none of .html, .svg and .png", strconv.Quote(name))
}
