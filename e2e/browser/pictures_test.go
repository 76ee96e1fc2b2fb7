//go:build e2e

package browser

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// pictures is the directory for the pictures in the documentation. make pictures sets it.
var pictures = flag.String("pictures", "", "make the documents' pictures of the page in this `DIRECTORY`")

// TestBrowser_Pictures makes the pictures in the documentation: the page in the browser in light and dark mode, on a
// phone, in print and with JavaScript off; the pages of a killed job, of many nodes and of ranks; a recorded run of
// gunicorn; and a picture by perfagent plot.
func TestBrowser_Pictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("runs only on demand: make pictures")
	}
	job, many := fileOf(t, pageOf(t, plottertest.Job())), fileOf(t, manyPage(t))
	recorded, err := reportfile.Read("../../testdata/gunicorn/node-0.json", 0)
	if err != nil {
		t.Fatal(err)
	}
	web := fileOf(t, pageOf(t, recorded))
	ranks := fileOf(t, pageOf(t, plottertest.WithVerdict(t, reportertest.KilledRank())))
	killed := fileOf(t, pageOf(t, plottertest.Killed()))
	for _, p := range []struct {
		name, address, media, scheme string
		width, height                int64 // size of the visible part, in CSS pixels
		scale                        float64
		before                       func(b *tab)
	}{
		{"light", job, "screen", "light", 1280, 1440, 1, nil},
		{"dark", job, "screen", "dark", 1280, 1440, 1, func(b *tab) { b.drag(b.plot("cpu"), 0.2, 0.75) }},
		{"phone", job, "screen", "light", 390, 2060, 1.5, nil},
		{"print", job, "print", "light", 718, 1580, 1.4, nil}, // A4 without margins, at 96 dpi
		{"killed-light", killed, "screen", "light", 1280, 900, 1, nil},
		{"killed-dark", killed, "screen", "dark", 1280, 900, 1, nil},
		{"nodes", many, "screen", "light", 1080, 1900, 1, func(b *tab) { b.point(b.box("[data-heatmap=cpu] .map"), 0.6007, 0.5175) }},
		{"ranks", ranks, "screen", "light", 1080, 880, 1, nil},
		{"operations", web, "screen", "light", 1080, 1640, 1, nil},
		{"nojs", job, "screen", "light", 1080, 1760, 1, nil},
	} {
		b := newTab(t)
		b.scripts(p.name != "nojs")
		b.media(p.media, p.scheme)
		b.size(p.width, p.height, p.scale)
		b.visit(p.address)
		b.do(chromedp.Evaluate(`scrollTo(0, 0)`, nil))
		if p.before != nil {
			b.frames()
			p.before(b)
		}
		var data []byte
		b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
			data, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).
				WithClip(&page.Viewport{Width: float64(p.width), Height: float64(p.height), Scale: 1}).Do(ctx)
			return err
		}))
		savePicture(t, "page-"+p.name+".png", data, marginOf(p.media))
	}
	var plot bytes.Buffer
	if err := plotter.WritePNG(&plot, plottertest.Job(), plotter.PictureOptions{Width: 800}); err != nil {
		t.Fatal(err)
	}
	savePicture(t, "plot.png", plot.Bytes(), 0)
}

// A view is a way to look at a page.
type view struct {
	name, media, scheme string
	width, height       int64 // size of the window, in CSS pixels
}

// views returns all views of a page. width and height are the size of the screen.
func views(width, height int64) []view {
	return []view{
		{"light", "screen", "light", width, height}, {"dark", "screen", "dark", width, height},
		{"phone", "screen", "light", 390, 900}, {"print", "print", "light", 718, height}, // A4 without margins, at 96 dpi
	}
}

// look sets the view of the tab.
func (b *tab) look(v view) {
	b.t.Helper()
	b.media(v.media, v.scheme)
	b.size(v.width, v.height, 1)
}

// picture returns a picture of the window.
func (b *tab) picture() (data []byte) {
	b.t.Helper()
	b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		data, err = page.CaptureScreenshot().Do(ctx)
		return err
	}))
	return data
}

// saveSheet writes pictures as one sheet with two pictures per row.
func saveSheet(t *testing.T, name string, pictures [][]byte) {
	const gap = 16
	var all []image.Image
	var at []image.Point
	var size image.Point
	for i, data := range pictures {
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if i == len(pictures)-1 { // the last picture is the print
			img = onPaper(img, gap)
		}
		corner := image.Pt(gap, gap)
		if i%2 == 1 {
			corner = image.Pt(at[i-1].X+all[i-1].Bounds().Dx()+gap, at[i-1].Y)
		} else if i > 0 {
			corner.Y = size.Y
		}
		all, at = append(all, img), append(at, corner)
		end := corner.Add(img.Bounds().Size()).Add(image.Pt(gap, gap))
		size = image.Pt(max(size.X, end.X), max(size.Y, end.Y))
	}

	sheet := image.NewRGBA(image.Rectangle{Max: size})
	draw.Draw(sheet, sheet.Bounds(), image.NewUniform(color.Gray{0xc0}), image.Point{}, draw.Src)
	for i, img := range all {
		draw.Draw(sheet, img.Bounds().Sub(img.Bounds().Min).Add(at[i]), img, img.Bounds().Min, draw.Src)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, sheet); err != nil {
		t.Fatal(err)
	}
	savePicture(t, name, out.Bytes(), 0)
}

// pictureLimit is the maximum size of a picture in the documentation, in bytes.
const pictureLimit = 200_000

// savePicture writes a picture on white paper with a margin. It reduces the number of colors to make the file small.
func savePicture(t *testing.T, name string, data []byte, margin int) {
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduced(onPaper(img, margin))); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %v, %d bytes", name, img.Bounds().Size(), out.Len())
	if out.Len() > pictureLimit {
		t.Errorf("%s is too large, want at most %d bytes", name, pictureLimit)
	}
	if err := os.WriteFile(filepath.Join(*pictures, name), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// marginOf returns the margin of the paper on each side, in pixels.
func marginOf(media string) int {
	if media == "print" {
		return 32
	}
	return 0
}

// onPaper returns a picture on white paper with a margin.
func onPaper(img image.Image, margin int) image.Image {
	paper := image.NewRGBA(img.Bounds().Inset(-margin))
	draw.Draw(paper, paper.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(paper, img.Bounds(), img, img.Bounds().Min, draw.Over)
	return paper
}

// reduced returns img with each pixel replaced by the nearest of the most frequent colors.
func reduced(img image.Image) *image.Paletted {
	const colors = 256
	count := make(map[color.RGBA]int)
	at := func(x, y int) color.RGBA {
		r, g, b, _ := img.At(x, y).RGBA()
		few := func(v uint32) uint8 { return uint8(v>>8)&0xfc | uint8(v>>14) } // merges similar colors
		return color.RGBA{few(r), few(g), few(b), 0xff}
	}
	box := img.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	all := slices.Collect(maps.Keys(count))
	slices.SortFunc(all, func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range all[:min(colors, len(all))] {
		palette = append(palette, c)
	}
	nearest := make(map[color.RGBA]uint8)
	out := image.NewPaletted(box, palette)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := at(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	return out
}
