package plotter

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
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
)

// pictures is where TestPictures puts the pictures of the documents: make pictures.
var pictures = flag.String("pictures", "", "make the documents' pictures of the page in this `DIRECTORY`")

// TestPictures makes the pictures of docs/plot.md: of the page as the browser shows it,
// light, dark, on a phone, in print, of many nodes, and with JavaScript off; and one of
// perfagent plot.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("only on demand: make pictures")
	}
	job, many := browserFile(t, browserHTML(t, browserJob())), browserFile(t, browserManyPage(t))
	for _, p := range []struct {
		name, address, media, scheme string
		width, height                int64 // of the part that is shown, in CSS pixels
		scale                        float64
		before                       func(b *browserTab)
	}{
		{"light", job, "screen", "light", 1080, 1640, 1, func(b *browserTab) { b.point(b.plot("disk_io"), 0.4073, 0.3) }},
		{"dark", job, "screen", "dark", 1080, 1640, 1, func(b *browserTab) { b.drag(b.plot("cpu"), 0.2, 0.75) }},
		{"phone", job, "screen", "light", 390, 2060, 1.5, nil},
		{"print", job, "print", "light", 718, 1580, 1.4, nil}, // A4 less its margins, at 96 dpi
		{"nodes", many + "#node=517", "screen", "light", 1080, 1900, 1, func(b *browserTab) { b.point(b.box("[data-heatmap=cpu] .map"), 0.6007, 0.5175) }},
		{"nojs", job, "screen", "light", 1080, 1760, 1, nil},
	} {
		b := browserNew(t)
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
		margin := 0
		if p.media == "print" {
			margin = 32
		}
		pictureSave(t, "page-"+p.name+".png", data, margin)
	}
	pictureSave(t, "plot.png", picturePNG(t, browserJob(), PictureOptions{Width: 800}), 0)
}

// pictureLimit is what a picture in the documents may have, in bytes.
const pictureLimit = 200_000

// pictureSave writes a picture with few colours, so that it is small, on white paper that
// is larger by a margin.
func pictureSave(t *testing.T, name string, data []byte, margin int) {
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	paper := image.NewRGBA(img.Bounds().Inset(-margin))
	draw.Draw(paper, paper.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(paper, img.Bounds(), img, img.Bounds().Min, draw.Over)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, pictureReduced(paper)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %v, %d bytes", name, img.Bounds().Size(), out.Len())
	if out.Len() > pictureLimit {
		t.Errorf("%s has more than %d bytes", name, pictureLimit)
	}
	if err := os.WriteFile(filepath.Join(*pictures, name), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pictureReduced gives each pixel the nearest of the colours that there are most of.
func pictureReduced(img image.Image) *image.Paletted {
	const colors = 256
	count := make(map[color.RGBA]int)
	at := func(x, y int) color.RGBA {
		r, g, b, _ := img.At(x, y).RGBA()
		few := func(v uint32) uint8 { return uint8(v>>8)&0xfc | uint8(v>>14) } // what the eye does not tell apart; white stays white
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

// browserJob is a simulated job of nearly three minutes on 8 CPUs: it reads its data,
// prepares them on all CPUs, trains with a checkpoint every 15 s, evaluates on one
// CPU, and uploads what came out.
func browserJob() *reporter.Report {
	const step = 100 * time.Millisecond
	random := rand.New(rand.NewPCG(1, 2))
	var total [6]float64
	memory, disk, slow := 6.0, 41.0, 0.0
	rec := browserRecording(1640, step, func(i int, s *collector.Sample) {
		p := browserPhase(float64(i) * step.Seconds())
		slow = 0.97*slow + 0.03*random.NormFloat64()*8
		noise := func(size float64) float64 { return slow*size/10 + random.NormFloat64()*size/3 }
		clamp := func(v float64) float64 { return math.Round(min(100, max(0, v))*10) / 10 }
		cpu := clamp(p.cpu + noise(5))
		memory += (p.memory - memory) * 0.012
		disk += p.write / 8192 * step.Seconds()
		job := cpu / 100 * 8 * 0.97
		for c, v := range map[collector.Column]float64{
			collector.JobCPU: math.Round(job*100) / 100, collector.JobMemory: math.Round((memory - 5) / 100 * 32768), collector.JobProcesses: 9, collector.JobThreads: 41,
			collector.JobReadRate: p.read * 0.9, collector.JobWriteRate: p.write * 0.95, collector.CPUIowait: clamp(p.read / 40), collector.CPUSteal: 0,
			collector.LimitMemory: math.Round((memory - 4) / 100 * 32768), collector.LimitMemoryPercent: clamp((memory - 4) / 100 * 32768 / 24576 * 100),
			collector.PSICPUSome: clamp(cpu/5 + noise(2)), collector.PSIMemorySome: 0, collector.PSIMemoryFull: 0, collector.PSIIOSome: clamp(p.read/20 + noise(2)), collector.PSIIOFull: clamp(p.read/30 + noise(1)),
			collector.Load1: 4.5, collector.ProcsRunning: 5, collector.SwapIn: 0, collector.SwapOut: 0, collector.JobThrottled: 0, collector.JobPageCache: 900, collector.JobRead: float64(i), collector.JobWrite: float64(i),
			collector.CPUAvg: cpu, collector.CPUMin: clamp(cpu * (0.35 + 0.4*cpu/100)), collector.CPUMax: clamp(max(p.most, cpu+noise(8)+6)),
			collector.MemPercent: clamp(memory + noise(0.3)), collector.MemUsed: memory / 100 * 32768,
			collector.DiskPercent: clamp(disk), collector.DiskUsed: disk * 8192, collector.DiskFree: (100 - disk) * 8192,
		} {
			s.Values[c] = v
		}
		// In the order of collector.Counters.
		for k, rate := range [6]float64{p.read, p.write, p.loopback, p.sent, p.loopback, p.received} {
			rate = math.Round(max(0, rate*(1+noise(2)/8))*256) / 256
			total[k] += rate * step.Seconds()
			c := collector.Counters()[k]
			s.Values[c.Info().Rate], s.Values[c] = rate, total[k]
		}
	})
	rec.BootMB = []float64{88_214.5 + total[0], 41_007.25 + total[1], 9120.5 + total[2], 30_411.75 + total[3], 9120.5 + total[4], 77_310.25 + total[5]}
	browserAccount(&rec.Account)
	r := browserReport(0, rec)
	r.Run.Command = []string{"python", "train.py", "--data", "/scratch/images", "--epochs", "5"}
	j := r.Nodes["0"].Job
	j.UserSeconds, j.SystemSeconds, j.MaxRSSMB = 711.4, 38.25, 14950
	return r
}

// browserAccount is that of the simulated job, which runs in a container.
func browserAccount(a *collector.Account) {
	a.Source, a.Group, a.MemoryKind = host.JobFromGroup, "/docker/3f5a9c", host.MemoryGroup
	a.Limits = host.Limits{CPUs: 8, Quota: 8, CPUSet: 8, Affinity: 8, MemoryMB: 24576, CPUGroup: "/docker/3f5a9c", MemoryGroup: "/docker/3f5a9c"}
	a.CPUSeconds, a.Periods, a.Throttled, a.ThrottledSeconds, a.OOMKills, a.HostOOMKills = 749.65, 1640, 0, 0, 0, 0
	stall := collector.Stalls{CPUSome: 12, CPUFull: 4, IOSome: 3, IOFull: 2}
	a.JobStall, a.HostStall = stall, stall
}

// browserLoad is what a phase of the job does: percents, and MiB/s.
type browserLoad struct {
	cpu, most, memory                     float64
	read, write, loopback, sent, received float64
}

func browserPhase(at float64) browserLoad {
	switch {
	case at < 14: // read
		return browserLoad{cpu: 14, most: 72, memory: 22, read: 410, write: 0.2, loopback: 0.1}
	case at < 38: // prepare
		return browserLoad{cpu: 94, most: 100, memory: 47, read: 35, write: 12, loopback: 0.4}
	case at < 113 && math.Mod(at-38, 15) > 12.6: // checkpoint
		return browserLoad{cpu: 16, most: 95, memory: 52, read: 1, write: 520, loopback: 2}
	case at < 113: // train
		return browserLoad{cpu: 71, most: 100, memory: 58, read: 22, write: 0.5, loopback: 64, received: 0.3}
	case at < 141: // evaluate
		return browserLoad{cpu: 13, most: 100, memory: 35, read: 4, write: 0.5, loopback: 6, received: 31}
	}
	return browserLoad{cpu: 5, most: 24, memory: 30, read: 118, write: 0.3, sent: 112, received: 1.5}
}
