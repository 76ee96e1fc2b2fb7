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
	Node   string // node index; "" means the lowest
	Metric string // a key of the samples or of the envelope; "" means all charts
	Width  int    // in pixels
}

// Sizes of a static picture, in pixels.
const (
	chartHeight  = 130 // of the plot of a chart
	metricHeight = 240
	rowHeight    = 14 // of a row of colors
	marginLeft   = 56
	marginRight  = 24
	marginTop    = 44
	marginBottom = 38
	legendHeight = 16
	headHeight   = 56
	lineHeight   = 18 // of a sentence in place of a chart
	footHeight   = 14
	MinWidth     = 300
	MaxWidth     = 8000

	letterWidth = 6.8 // of most letters, approximately
	bucketWidth = 2   // minimum width of a bucket: narrower ones cannot be distinguished
)

// The colors of a picture are the page's in light mode.
var (
	seriesColors = []color.NRGBA{rgb(0x0a5bb0), rgb(0x6633dd), rgb(0x1d6b57), rgb(0x5a1846)}
	phasePalette = [phaseColors + 1]color.NRGBA{
		rgb(0x6633dd), rgb(0x1d6b57), rgb(0x5a1846), rgb(0xa8328f), rgb(0x4d5a00), rgb(0x3b3f73), rgb(0x77818b),
	}
	inkColors = [...]color.NRGBA{
		inkGrid: rgb(0xe6eaee), inkBase: rgb(0x77818b), inkWash: rgb(0xe1ebf5), inkBand: {}, inkLine: {},
		inkOthers: rgb(0x77818b), inkLimit: rgb(0x1b1f24), inkUnseen: rgb(0x0a5bb0), inkDeath: rgb(0xb3261e),
		inkDot: rgb(0xb3261e), inkPeak: rgb(0x0a5bb0), inkMark: rgb(0x57606a), inkEdge: rgb(0xd0d7de),
		inkPhase: {}, inkHeat: {},
	}
	textColors = map[string]color.NRGBA{"k": rgb(0xb3261e), "j": rgb(0x0a5bb0), "t": rgb(0x57606a), "b": rgb(0x1b1f24)}
)

func rgb(v uint32) color.NRGBA { return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }

// bandAlpha is the opacity of the area from the least to the greatest values.
const bandAlpha = 0x40

// colorOf returns the color of a shape in a picture.
func (i ink) colorOf() color.NRGBA {
	switch i.kind {
	case inkHeat:
		return heatColor(float64(i.color) / heatSteps)
	case inkPhase:
		return phasePalette[i.color]
	case inkLine:
		return seriesColors[i.color%len(seriesColors)]
	case inkBand:
		c := seriesColors[i.color%len(seriesColors)]
		c.A = bandAlpha
		return c
	}
	return inkColors[i.kind]
}

// widthOf returns the width of a line in pixels.
func (i ink) widthOf() float64 {
	return map[inkKind]float64{inkLine: 2, inkUnseen: 2, inkDeath: 2, inkDot: 10, inkPeak: 2}[i.kind]
}

// dashOf returns the dashes of a line.
func (i ink) dashOf() []float64 {
	switch i.kind {
	case inkLimit, inkUnseen:
		return []float64{6, 4}
	case inkMark:
		return []float64{2, 3}
	}
	return dashes()[i.dash%len(dashes())]
}

// WriteSVG writes the charts of one node as an SVG file. The same report gives the same bytes.
func WriteSVG(w io.Writer, r *reporter.Report, o PictureOptions) error {
	p, err := newPicture(r, o)
	if err != nil {
		return err
	}

	c := &svgPaths{}
	c.addf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`+"\n",
		p.width, p.height(), template.HTMLEscapeString(p.title))
	c.addf("<style>%s</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n", pictureStyle())
	p.draw(func(in box) canvas { return fileCanvas{c, in} }, c.text)
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
		i := ink{kind: kind}
		switch kind {
		case inkWash, inkBand:
			addf("path.%s{fill:%s;fill-opacity:%.2g}", i.classes(), hex(i.colorOf()), float64(i.colorOf().A)/0xff)
		case inkPhase:
			for k := range phasePalette {
				addf(".ph.p%d{fill:%s}", k, hex(phasePalette[k]))
			}
		default:
			addf("path.%s{stroke:%s%s%s}", i.classes(), hex(i.colorOf()), widthStyle(i), dashStyle(i.dashOf()))
		}
	}
	addf("path.dot{stroke-linecap:round}")
	for k := 1; k < len(seriesColors); k++ {
		addf(".j.s%[1]d{stroke:%[2]s}path.b.s%[1]d{fill:%[2]s}", k, hex(seriesColors[k]))
	}
	for k := 1; k < len(dashes()); k++ {
		addf(".j.d%d{%s}", k, strings.TrimPrefix(dashStyle(dashes()[k]), ";"))
	}
	for k := range heatSteps + 1 {
		addf(".h%d{fill:%s}", k, hex(heatColor(float64(k)/heatSteps)))
	}
	return out.String()
}

func widthStyle(i ink) string {
	if width := i.widthOf(); width > 0 {
		return fmt.Sprintf(";stroke-width:%v", width)
	}
	return ""
}

func dashStyle(dash []float64) string {
	if dash == nil {
		return ""
	}
	return ";stroke-dasharray:" + strings.Trim(fmt.Sprint(dash), "[]")
}

// hex returns a color for CSS, without its transparency.
func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// WritePNG writes the same picture as WriteSVG, as a PNG file.
func WritePNG(w io.Writer, r *reporter.Report, o PictureOptions) error {
	p, err := newPicture(r, o)
	if err != nil {
		return err
	}

	c := newPixelCanvas(int(p.width), int(p.height()))
	p.draw(func(in box) canvas { c.box = in; return c }, c.text)
	if err := c.renderer.Save(w); err != nil {
		return fmt.Errorf("write PNG: %w", err)
	}

	return nil
}

// picture is the input of WriteSVG and WritePNG.
type picture struct {
	charts    []Chart
	sentences []string // in place of charts without usage
	time      Timeline
	title     string
	action    string
	each      float64 // height of the plot of a chart
	width     float64
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
	p.title, p.action = conclusion.Cause, conclusion.Action
	where := "node " + name
	if host := n.HostName(); host != "" {
		where += " (" + text.Printable(host) + ")"
	}
	p.title += " " + strings.ToUpper(where[:1]) + where[1:] + "."
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
	return height + p.each + p.keyRows(c)*legendHeight
}

// draw draws the charts, each on a canvas in its box, and texts in pixels.
func (p *picture) draw(in func(box) canvas, write func(at point, words string, side int, look string)) {
	fits := max(10, int(p.width-2*marginRight)/7)
	write(point{marginRight, 20}, text.Clip(p.title, fits), -1, "b")
	write(point{marginRight, 38}, text.Clip(p.action, fits), -1, "t")
	p.phases(in(box{0, 0, p.width, headHeight}), write)
	y := headHeight + p.phasesHeight()
	for i := range p.charts {
		chart := &p.charts[i]
		height := p.heightOf(chart)
		rows := p.keyRows(chart) * legendHeight
		plot := box{marginLeft, y + marginTop + rows, p.width - marginLeft - marginRight,
			height - marginTop - marginBottom - rows}
		f := newFigure(chart, &p.time, max(2, int(plot.width/80)), max(2, int(plot.height/40)))
		title, unit := f.caption()
		write(point{marginRight, y + 14}, title, -1, "b")
		fits := int((plot.width - textWidth(title)) / letterWidth)
		write(point{marginRight + textWidth(title)*1.12 + 8, y + 14}, text.Clip(unit, fits), -1, "t")
		c := in(plot)
		p.key(c, chart, plot, y+14+legendHeight, write)
		f.draw(c)
		y += height
	}
	for _, words := range p.sentences {
		write(point{marginRight, y + 10}, text.Clip(words, fits), -1, "t")
		y += lineHeight
	}
}

// phasesHeight returns the height of the key of the phases.
func (p *picture) phasesHeight() float64 {
	if len(p.time.Phases) == 0 {
		return 0
	}
	return legendHeight
}

// phases draws the names of the phases in a row, each with its color, as far as they fit. c is as large as the head.
func (p *picture) phases(c canvas, write func(point, string, int, string)) {
	const y, size = headHeight, 9.0
	named := make(map[string]bool)
	x := float64(marginRight)
	for _, span := range p.time.Phases {
		width := size + 22 + textWidth(span.Name)
		if named[span.Name] || x+width > p.width-marginRight {
			continue
		}
		named[span.Name] = true
		left, right, bottom, top := x/p.width, (x+size)/p.width, 1-float64(y)/headHeight, 1-(y-size)/headHeight
		c.area([]point{{left, top}, {right, top}, {right, bottom}, {left, bottom}},
			ink{kind: inkPhase, color: min(span.Color, phaseColors)})
		write(point{x + size + 6, y}, span.Name, -1, "t")
		x += width
	}
}

// keyEntry returns the width of the swatch of s, its label and a gap.
func keyEntry(s *Series) float64 { return 40 + textWidth(s.Label) }

// keyRows returns the number of rows of the key of a chart.
func (p *picture) keyRows(c *Chart) float64 {
	if c.Rows || len(c.Series) == 0 || len(c.Series) == 1 && !c.needsKey() {
		return 0
	}
	rows, x := 1.0, 0.0
	for i := range c.Series {
		width := keyEntry(&c.Series[i])
		if x > 0 && x+width > p.width-2*marginRight {
			rows, x = rows+1, 0
		}
		x += width
	}
	return rows
}

// key draws the names of the series in rows, each with a line.
func (p *picture) key(c canvas, chart *Chart, plot box, y float64, write func(point, string, int, string)) {
	if p.keyRows(chart) == 0 {
		return
	}
	x := float64(marginRight)
	for i := range chart.Series {
		s := &chart.Series[i]
		width := keyEntry(s)
		if x > marginRight && x+width > p.width-marginRight {
			x, y = marginRight, y+legendHeight
		}
		with := ink{kind: inkLine, color: s.Color, dash: s.Dash}
		if s.Others {
			with = ink{kind: inkOthers}
		}
		from, to, row := (x-plot.x)/plot.width, (x+18-plot.x)/plot.width, 1-(y-4-plot.y)/plot.height
		c.line([]point{{from, row}, {to, row}}, with)
		write(point{x + 24, y}, text.Clip(s.Label, int((p.width-2*marginRight-24)/letterWidth)), -1, "t")
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

// pixelCanvas draws with the charting library's renderer. The library's main package is not imported: its imports would
// add 0.3 ms to every start.
type pixelCanvas struct {
	renderer chartdraw.Renderer
	box
}

func newPixelCanvas(width, height int) *pixelCanvas {
	r := chartdraw.PNG(width, height)
	r.SetDPI(92) // 9 points are 11.5 pixels
	r.SetFont(chartdraw.GetDefaultFont())
	r.SetFontSize(9)
	c := &pixelCanvas{renderer: r}
	r.SetFillColor(drawing.ColorWhite)
	c.shape([]point{{0, 0}, {float64(width), 0}, {float64(width), float64(height)}, {0, float64(height)}})
	r.Fill()
	return c
}

// shape begins a path through points, in whole pixels.
func (c *pixelCanvas) shape(points []point) {
	for i, p := range points {
		if x, y := int(p.x+0.5), int(p.y+0.5); i == 0 {
			c.renderer.MoveTo(x, y)
		} else {
			c.renderer.LineTo(x, y)
		}
	}
}

func (c *pixelCanvas) line(points []point, with ink) {
	if with.kind == inkDot {
		p, r := c.place(points[0]), with.widthOf()/2
		c.renderer.SetFillColor(drawing.Color(with.colorOf()))
		c.shape([]point{{p.x - r, p.y}, {p.x, p.y - r}, {p.x + r, p.y}, {p.x, p.y + r}})
		c.renderer.Fill()
		return
	}
	c.renderer.SetStrokeColor(drawing.Color(with.colorOf()))
	c.renderer.SetStrokeWidth(max(1, with.widthOf()))
	c.renderer.SetStrokeDashArray(with.dashOf())
	c.shape(c.placed(points))
	c.renderer.Stroke()
}

func (c *pixelCanvas) area(points []point, with ink) {
	c.renderer.SetFillColor(drawing.Color(with.colorOf()))
	c.shape(c.placed(points))
	c.renderer.Close()
	c.renderer.Fill()
}

func (c *pixelCanvas) label(at point, words string, kind labelKind) {
	p, side, look := c.labelAt(at, kind)
	c.text(p, words, side, look)
}

// text writes a text at a place in pixels.
func (c *pixelCanvas) text(p point, words string, side int, look string) {
	c.renderer.SetFontColor(drawing.Color(textColors[look[len(look)-1:]]))
	width := c.renderer.MeasureText(words).Width()
	c.renderer.Text(words, int(p.x)-(side+1)*width/2, int(p.y))
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
