package plotter

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"strconv"
	"strings"

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
	chartHeight  = 190
	quietHeight  = 64 // of a chart in which nothing happened
	metricHeight = 320
	headHeight   = 30
	footHeight   = 22
	MinWidth     = 300
	MaxWidth     = 8000
)

// seriesColors can be distinguished with every kind of color vision, and in print: blue, vermilion, green and purple of
// Okabe and Ito's palette.
var seriesColors = []color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff},
	{0xd5, 0x5e, 0x00, 0xff},
	{0x00, 0x9e, 0x73, 0xff},
	{0xa8, 0x4f, 0x83, 0xff},
}

// tone is a color for a part of a stack that is not the job's.
type tone struct {
	name  string
	color color.NRGBA
}

// tones are neutral, and differ in lightness.
var tones = []tone{
	{"others", color.NRGBA{0x8b, 0x95, 0xa3, 0xff}},
	{"mixed", color.NRGBA{0xa6, 0xb4, 0xc4, 0xff}},
	{"cache", color.NRGBA{0xc9, 0xd0, 0xd8, 0xff}},
	{"rest", color.NRGBA{0xf1, 0xf3, 0xf5, 0xff}},
}

// WriteSVG writes the charts of one node as an SVG file. The same report gives the same bytes.
func WriteSVG(w io.Writer, r *reporter.Report, o PictureOptions) error {
	p, err := newPicture(r, o)
	if err != nil {
		return err
	}

	c := &svgCanvas{}
	c.open(p.width, p.height(), p.title)
	c.style(p)
	c.addf(`<rect class="paper" width="100%%" height="100%%"/>`)
	p.draw(c)
	c.close()
	if _, err := w.Write(c.out); err != nil {
		return fmt.Errorf("write SVG: %w", err)
	}

	return nil
}

// style writes the style of a stand-alone picture, on white paper.
func (c *svgCanvas) style(p *picture) {
	c.addf(`<style>text{font:11px "DejaVu Sans",Verdana,sans-serif;fill:#333}` +
		`.title{font-weight:bold}.mid{text-anchor:middle}.end{text-anchor:end}` +
		`.paper{fill:#fff}path{fill:none}.grid{stroke:#ccc}.level{stroke:#999}.line{stroke-width:1.5}` +
		`.dash{stroke-dasharray:4 3}.dot{stroke-dasharray:1.5 2.5}.dashdot{stroke-dasharray:9 3 2 3}` +
		`.spread{fill:#888;fill-opacity:.3}`)
	marked := len(p.time.Marks)+len(p.time.Phases) > 0
	if marked {
		c.addf(".mark{stroke:#333}")
	}
	if slices.ContainsFunc(p.charts, func(c Chart) bool { return c.Lanes != nil }) {
		for i := range heatSteps + 1 {
			c.addf(".h%d{fill:%s}", i, hex(heatColor(float64(i)/heatSteps)))
		}
	}
	for _, t := range tones {
		c.addf(".line.%[1]s{stroke:%[2]s}.band.%[1]s{fill:%[2]s;fill-opacity:.35}.layer.%[1]s{fill:%[2]s}",
			t.name, hex(t.color))
	}
	for i, color := range seriesColors {
		c.addf(".line.s%[1]d{stroke:%[2]s}.band.s%[1]d{fill:%[2]s;fill-opacity:.35}"+
			".layer.s%[1]d{fill:%[2]s;fill-opacity:.7}", i, hex(color))
		if marked {
			c.addf(".phase.s%[1]d{fill:%[2]s;fill-opacity:.07}.strip.s%[1]d{fill:%[2]s;fill-opacity:.6}", i, hex(color))
		}
	}
	c.addf("</style>\n")
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
	p.draw(c)
	if err := c.renderer.Save(w); err != nil {
		return fmt.Errorf("write PNG: %w", err)
	}

	return nil
}

// picture is the input of WriteSVG and WritePNG.
type picture struct {
	charts []Chart
	time   Timeline
	title  string
	each   float64 // usual height of a chart
	width  float64
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

	p.time, p.charts = withSuspendGaps(&r.Run, n, p.charts)
	p.title = summary.Headline(r) + ", node " + name
	if host := n.HostName(); host != "" {
		p.title += " (" + text.Printable(host) + ")"
	}

	return p, nil
}

func (p *picture) height() float64 {
	height := float64(headHeight + footHeight)
	for i := range p.charts {
		height += p.charts[i].height(p.each, p.width)
	}
	return height
}

// height returns the height of the chart in pixels: each is the usual height, and width the width of the chart.
func (c *Chart) height(each, width float64) float64 {
	switch {
	case c.Lanes != nil:
		return marginTop + marginBottom + laneHeight*float64(len(c.Lanes))
	case c.Quiet() && each == chartHeight:
		return quietHeight
	}
	return each + c.legendRoom(width)
}

func (p *picture) draw(c canvas) {
	fits := max(10, int(p.width-2*marginRight)/7)
	title := []rune(p.title)
	if len(title) > fits {
		title = append(title[:fits-1], '…')
	}

	c.text(point{marginRight, 20}, string(title), anchorStart, ink{kind: inkTitle})
	y := float64(headHeight)
	for _, chart := range p.charts {
		height := chart.height(p.each, p.width)
		drawChart(c, chart, p.time, box{0, y, p.width, height})
		y += height
	}

	const foot = "time since the start; bands: least to greatest"
	c.text(point{p.width - marginRight, p.height() - 8}, foot, anchorEnd, ink{kind: inkText})
}

// pixelCanvas draws with the charting library's renderer. The library's main package is not imported: its imports would
// add 0.3 ms to every start.
type pixelCanvas struct{ renderer chartdraw.Renderer }

func newPixelCanvas(width, height int) *pixelCanvas {
	r := chartdraw.PNG(width, height)
	r.SetDPI(92) // 9 points are 11.5 pixels
	r.SetFont(chartdraw.GetDefaultFont())
	r.SetFontSize(9)
	c := &pixelCanvas{r}
	r.SetFillColor(drawing.ColorWhite)
	c.shape([]point{{0, 0}, {float64(width), 0}, {float64(width), float64(height)}, {0, float64(height)}})
	r.Fill()
	return c
}

func (c *pixelCanvas) color(with ink) drawing.Color {
	look, out := inks[with.kind], seriesColors[with.color%len(seriesColors)]
	switch {
	case with.kind == inkHeat:
		out = heatColor(float64(with.color) / heatSteps)
	case look.gray > 0:
		out = color.NRGBA{look.gray, look.gray, look.gray, 0xff}
	}
	for _, t := range tones {
		if t.name == with.tone {
			out = t.color
		}
	}
	if out.A = look.alpha; with.kind == inkLayer && with.tone != "" {
		out.A = 0xff
	}
	return drawing.Color(out)
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
	width, dash := 1.0, dashes()[with.dash%len(dashes())]
	if with.kind == inkLine {
		width = 1.5
	}

	c.renderer.SetStrokeColor(c.color(with))
	c.renderer.SetStrokeWidth(width)
	c.renderer.SetStrokeDashArray(dash)
	c.shape(points)
	c.renderer.Stroke()
}

func (c *pixelCanvas) area(points []point, with ink) {
	c.renderer.SetFillColor(c.color(with))
	c.shape(points)
	c.renderer.Close()
	c.renderer.Fill()
}

func (c *pixelCanvas) text(at point, s string, a anchor, with ink) {
	c.renderer.SetFontColor(c.color(with))
	width, x := c.renderer.MeasureText(s).Width(), int(at.x)
	switch a {
	case anchorMiddle:
		x -= width / 2
	case anchorEnd:
		x -= width
	}

	c.renderer.Text(s, x, int(at.y))
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
