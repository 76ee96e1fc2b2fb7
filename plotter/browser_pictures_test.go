package plotter

import (
	"bytes"
	"flag"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// pictures is where TestPictures puts the pictures of the documents: make pictures.
var pictures = flag.String("pictures", "", "make the documents' pictures of the page in this `DIRECTORY`")

// TestPictures makes the pictures of docs/plot.md: of the page as the browser shows it,
// light, dark, on a phone, in print, of many nodes, and with JavaScript off.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("only on demand: make pictures")
	}
	job := browserFile(t, browserHTML(t, browserJob()))
	browserPicture(t, "light", func(b *browserTab) []byte { return b.screen(job, 1100, 1, "light") })
	browserPicture(t, "dark", func(b *browserTab) []byte { return b.screen(job, 1100, 1, "dark") })
	browserPicture(t, "phone", func(b *browserTab) []byte { return b.screen(job, 390, 1.5, "light") })
	browserPicture(t, "print", func(b *browserTab) []byte { return b.printed(job) })
	browserPicture(t, "nojs", func(b *browserTab) []byte {
		b.scripts(false)
		return b.screen(job, 1100, 1, "light")
	})
	many := browserFile(t, browserManyPage(t))
	browserPicture(t, "nodes", func(b *browserTab) []byte { return b.screen(many, 1100, 1, "light") })
}

// browserPicture makes docs/page-NAME.png.
func browserPicture(t *testing.T, name string, of func(*browserTab) []byte) {
	data := of(browserNew(t))
	if err := os.WriteFile(filepath.Join(*pictures, "page-"+name+".png"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("page-%s.png: %d bytes", name, len(data))
}

// screen takes a picture of a whole page.
func (b *browserTab) screen(address string, width int64, scale float64, scheme string) []byte {
	b.media("screen", scheme)
	b.size(width, 900, scale)
	b.visit(address)
	var data []byte
	b.do(chromedp.FullScreenshot(&data, 100))
	return data
}

// printed takes a picture of a page as it is printed on A4.
func (b *browserTab) printed(address string) []byte {
	b.media("print", "light")
	b.size(718, 1016, 1.4) // A4 without margins at 96 dpi
	b.visit(address)
	var data []byte
	b.do(chromedp.FullScreenshot(&data, 100))
	return data
}

var _ = png.Decode
var _ = bytes.NewReader
var _ = page.PrintToPDF

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
		for c, v := range map[collector.Column]float64{
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
			s.Values[int(collector.DiskReadRate)+k], s.Values[collector.Counters()[k]] = rate, total[k]
		}
	})
	r := browserReport(0, rec)
	r.Run.Command = []string{"python", "train.py", "--data", "/scratch/images", "--epochs", "5"}
	j := r.Nodes["0"].Job
	j.UserSeconds, j.SystemSeconds, j.MaxRSSMB = 711.4, 38.25, 14950
	return r
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
