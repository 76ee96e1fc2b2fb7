package plotter

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func pictureSVG(t testing.TB, r *reporter.Report, o PictureOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	check.Must(t, WriteSVG(&out, r, o))
	return out.Bytes()
}

func picturePNG(t testing.TB, r *reporter.Report, o PictureOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	check.Must(t, WritePNG(&out, r, o))
	return out.Bytes()
}

// pageRead parses data as a report.
func pageRead(t testing.TB, data []byte) (*reporter.Report, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node-0.json")
	check.Must(t, os.WriteFile(path, data, 0o644))
	return reportfile.Read(path, 0)
}

// The pictures of small reports are golden files.
func TestPicture_Golden(t *testing.T) {
	for name, c := range map[string]struct {
		report  *reporter.Report
		options PictureOptions
	}{
		"charts":  {plottertest.Minute(0), PictureOptions{Width: 800}},
		"merged":  {plottertest.Job(), PictureOptions{Width: 800}},
		"narrow":  {plottertest.Minute(0), PictureOptions{Width: MinWidth}},
		"gaps":    {plottertest.Gaps(), PictureOptions{Width: 800, Metric: "mem_percent"}},
		"metric":  {plottertest.Minute(0), PictureOptions{Width: 800, Metric: "disk_io_read_mb_per_second"}},
		"nothing": {plottertest.Absent(), PictureOptions{Width: 800}},
		"short":   {plottertest.Short(), PictureOptions{Width: 800}},
	} {
		t.Run(name, func(t *testing.T) {
			reportertest.CompareGolden(t, filepath.Join("testdata", name+".svg"), pictureSVG(t, c.report, c.options), *update)
		})
	}
}

// pictureEdges returns the beginning and the end of a bucket on the time axis, from 0 to 1.
func pictureEdges(r *reporter.Report, n *reporter.Node, i int) (begin, end float64) {
	t := NewTimeline(&r.Run, n)
	if i > 0 {
		begin = t.Ends[i-1] / t.Length()
	}
	return begin, t.Ends[i] / t.Length()
}

// Pages and pictures show the name that the scheduler gave to a node. Inside a Pod, the host name is the name of the
// Pod.
func TestPage_ShowsSchedulersNodeName(t *testing.T) {
	r := plottertest.Minute(0)
	r.Nodes["0"].Host.Hostname = "job-4711-xk2vp"
	r.Nodes["0"].Identity = &reporter.Identity{NodeName: "worker-7"}
	svg := string(pictureSVG(t, r, PictureOptions{Width: 800}))
	wantParts(t, "picture", svg, "(worker-7)")
	wantNone(t, "picture", svg, "xk2vp")
	check.Equal(t, newPageNode(&r.Run, "0", r.Nodes["0"]).host, "worker-7", "host on the page")
}

// Thanks to the envelope, a burst of two seconds in a week reaches the top of the SVG and of the PNG.
func TestPicture_ShowsShortBurstInAWeek(t *testing.T) {
	r := plottertest.Week(t)
	n := r.Nodes["0"]
	begin, end := pictureEdges(r, n, plottertest.Burst(t, n))
	for _, o := range []PictureOptions{{Width: 800}, {Width: 800, Metric: "cpu_pct_per_cpu_avg"}} {
		plottertest.WantBurst(t, string(pictureSVG(t, r, o)), begin)

		img, err := png.Decode(bytes.NewReader(picturePNG(t, r, o)))
		check.Must(t, err)
		left, width := marginLeft, float64(o.Width-marginLeft-marginRight)
		from, to := left+int(begin*width)-3, left+int(end*width)+3
		// The upper tenth of the scale, just below the top of the chart.
		top := headHeight + marginTop + 1
		if o.Metric == "" { // the memory chart comes first
			top += marginTop + chartHeight + marginBottom
		}
		area := image.Rect(left, top, o.Width-marginRight, top+13)
		found := 0
		for x := area.Min.X; x < area.Max.X; x++ {
			for y := area.Min.Y; y < area.Max.Y; y++ {
				if !pictureBlue(img.At(x, y)) {
					continue
				}
				if x < from || x > to {
					t.Fatalf("%+v: the first series reaches pixel %d, %d, where the CPUs were not busy", o, x, y)
				}
				found++
			}
		}
		if found < 10 {
			t.Errorf("%+v: %d pixels of the first series at the top near x = %d, want at least 10: the burst is lost", o,
				found, from+3)
		}
	}
}

// pictureBlue reports whether a pixel has the color of the first series, alone or over other colors.
func pictureBlue(c color.Color) bool {
	r, _, b, _ := c.RGBA()
	return int(b>>8)-int(r>>8) > 30
}

// The same report gives the same bytes within one process and in another process.
func TestPicture_IsDeterministic(t *testing.T) {
	if os.Getenv("PICTURE_OUT") != "" { // this is the other process
		check.Must(t, os.WriteFile(os.Getenv("PICTURE_OUT"), picturePNG(t, plottertest.Job(), PictureOptions{Width: 800}), 0o644))
		return
	}
	first := picturePNG(t, plottertest.Job(), PictureOptions{Width: 800})
	if !bytes.Equal(picturePNG(t, plottertest.Job(), PictureOptions{Width: 800}), first) {
		t.Error("two PNGs of the same report differ")
	}
	if a, b := pictureSVG(t, plottertest.Job(), PictureOptions{Width: 800}), pictureSVG(t, plottertest.Job(), PictureOptions{Width: 800}); !bytes.Equal(a, b) {
		t.Error("two SVGs of the same report differ")
	}
	path := filepath.Join(t.TempDir(), "other.png")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPicture_IsDeterministic$")
	cmd.Env = append(os.Environ(), "PICTURE_OUT="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("drawing the PNG in another process: %v\n%s", err, out)
	}
	if other, err := os.ReadFile(path); err != nil || !bytes.Equal(other, first) {
		t.Errorf("the PNG of another process differs (error %v)", err)
	}
}

// pictureWellFormed checks that an SVG is XML, and that all its numbers are valid.
func pictureWellFormed(t testing.TB, r *reporter.Report, o PictureOptions) {
	t.Helper()
	svg := pictureSVG(t, r, o)
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("SVG is not XML: %v", err)
			return
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if name := e.Name.Local; !strings.Contains(" svg style rect path text ", " "+name+" ") {
			t.Errorf("SVG has the unexpected element %s", name)
		}
		for _, a := range e.Attr {
			if a.Name.Local != "aria-label" && (strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf")) {
				t.Errorf("attribute %s of %s is %q, want no NaN and no Inf", a.Name.Local, e.Name.Local, a.Value)
			}
		}
	}
}

func TestPicture_SurvivesHostileReports(t *testing.T) {
	evil := plottertest.HostileStrings()
	evil["all at once"] = strings.Join(slices.Sorted(maps.Values(evil)), "")
	for name, evil := range evil {
		t.Run(name, func(t *testing.T) {
			r, _ := plottertest.HostileReport(evil)
			pictureWellFormed(t, r, PictureOptions{Width: 800})
			pictureWellFormed(t, r, PictureOptions{Width: 800, Node: "1"})
			pictureWellFormed(t, r, PictureOptions{Width: 800, Metric: evil})
		})
	}
	r, _ := plottertest.HostileReport(evil["all at once"])
	picturePNG(t, r, PictureOptions{Width: MinWidth, Node: "1"})
	picturePNG(t, r, PictureOptions{Width: MinWidth, Metric: evil["all at once"]})
}

func TestPicture_SurvivesHostileNumbers(t *testing.T) {
	for _, values := range [][]float64{{1.7e308, -1.7e308, 0}, {5e-324, 0, 5e-324}, {-1, -2, -3}, {101, 1e9, 3}, nil} {
		for _, times := range [][]float64{{1, 2, 3}, {3, 2, 1}, {0, 0, 0}, {1.7e308, 1.7e308, 1.7e308}} {
			r := plottertest.HostileNumbers(values, times[:len(values)])
			pictureWellFormed(t, r, PictureOptions{Width: 800})
			picturePNG(t, r, PictureOptions{Width: MinWidth})
		}
	}
}

// Each sample key can be drawn alone, except the time axis and unmeasured keys.
func TestPicture_DrawsEveryMeasuredKeyAlone(t *testing.T) {
	r := plottertest.Limited(0, 20, 2)
	for c := range collector.GPUColumn(2, 0) {
		if c == collector.Timestamp || c.Info().Source == collector.SwapIn.Info().Source {
			continue
		}
		svg := string(pictureSVG(t, r, PictureOptions{Width: 800, Metric: c.Key()}))
		if !strings.Contains(svg, ">"+c.Key()) || !strings.Contains(svg, `class="j"`) {
			t.Errorf("picture of %s lacks the name or the line of the series", c.Key())
		}
		pictureWellFormed(t, r, PictureOptions{Width: 800, Metric: c.Key()})
	}
	for key, want := range map[string]string{"timestamp": "time axis", "cpu": "cpu_pct_per_cpu_avg", "max_t_mem_percent": "mem_percent", "\x1b": `\x1b`} {
		check.Error(t, WriteSVG(io.Discard, r, PictureOptions{Width: 800, Metric: key}), want)
	}
	check.Error(t, WritePNG(io.Discard, plottertest.Absent(), PictureOptions{Width: 800, Metric: "mem_percent"}), "none")
	check.Error(t, WriteSVG(io.Discard, r, PictureOptions{Width: 800, Node: "3"}), "no node 3")
}

// A picture has the requested width.
func TestPicture_HasRequestedWidth(t *testing.T) {
	for o, height := range map[PictureOptions]int{{Width: MinWidth}: 0, {Width: 1234}: 0, {Width: MaxWidth, Metric: "mem_percent"}: marginTop + metricHeight + marginBottom} {
		c, err := png.DecodeConfig(bytes.NewReader(picturePNG(t, plottertest.Short(), o)))
		if err != nil || c.Width != o.Width || height > 0 && c.Height != headHeight+height+footHeight || c.Height < 300 {
			t.Errorf("%+v: PNG of %d × %d pixels (error %v), want %d × %v", o, c.Width, c.Height, err, o.Width,
				headHeight+height+footHeight)
		}
	}
}

// BenchmarkSVG draws the charts of one node with a thousand buckets.
func BenchmarkSVG(b *testing.B) {
	r := reportertest.Large(0, 1, 1000)
	for b.Loop() {
		check.Must(b, WriteSVG(io.Discard, r, PictureOptions{Width: 800}))
	}
}

// BenchmarkPNG draws the same charts as a PNG.
func BenchmarkPNG(b *testing.B) {
	r := reportertest.Large(0, 1, 1000)
	for b.Loop() {
		check.Must(b, WritePNG(io.Discard, r, PictureOptions{Width: 800}))
	}
}
