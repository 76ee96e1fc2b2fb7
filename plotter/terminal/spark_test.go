package terminal

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

func TestSpark_ShowsEveryPeak(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		values []float64
		width  int
		lo, hi float64
		want   string
	}{
		{"levels", []float64{0, 1, 2, 3, 4, 5, 6, 7}, 8, 0, 7, "▁▂▃▄▅▆▇█"},
		{"fewer values than cells", []float64{0, 7}, 8, 0, 7, "▁█"},
		{"the greatest of a cell", []float64{0, 7, 0, 0, 0, 0}, 2, 0, 7, "█▁"},
		{"cells of unequal number", []float64{0, 0, 0, 0, 7}, 2, 0, 7, "▁█"},
		{"not measured", []float64{nan, 7, nan, nan, 0, nan}, 3, 0, 7, "█ ▁"},
		{"clamped", []float64{-5, 99, math.Inf(1), math.Inf(-1)}, 4, 0, 7, "▁██▁"},
		{"no scale", []float64{1, 2, 3}, 3, 5, 5, "▁▁▁"},
		{"a scale upside down", []float64{1, 2, 3}, 3, 5, 1, "▁▁▁"},
		{"a scale that is not known", []float64{1, 2, 3}, 3, nan, nan, "▁▁▁"},
		{"a scale of everything", []float64{1, 2, 3}, 3, math.Inf(-1), math.Inf(1), "▁▁▁"},
		{"huge", []float64{-1.7e308, 0, 1.7e308}, 3, -1.7e308, 1.7e308, "▁▅█"},
		{"nothing", nil, 8, 0, 1, ""},
		{"no room", []float64{1}, 0, 0, 1, ""},
		{"less than no room", []float64{1}, -3, 0, 1, ""},
	} {
		check.Equal(t, Spark(c.values, c.width, c.lo, c.hi, false), c.want, "%s: Spark", c.name)
	}
	if got, want := Spark([]float64{0, 1, 2, 3, 4, 5, 6, 7, nan}, 9, 0, 7, true), "_.-=+*#@ "; got != want {
		t.Errorf("Spark in ASCII = %q, want %q", got, want)
	}
}

// Every peak is visible, for any position and number of cells.
func TestSpark_KeepsPeakAtAnyPosition(t *testing.T) {
	for _, n := range []int{1, 2, 7, 50, 51, 99, 1000} {
		for width := 1; width < 60; width++ {
			for at := 0; at < n; at += 1 + n/40 {
				values := make([]float64, n)
				values[at] = 100
				got := Spark(values, width, 0, 100, false)
				if strings.Count(got, "█") != 1 || utf8.RuneCountInString(got) != min(n, width) {
					t.Fatalf("%d values, peak at %d, %d cells: %q, want one full cell", n, at, width, got)
				}
			}
		}
	}
}

// sparkNode returns a node with the same values in every column except the timestamps.
func sparkNode(values ...float64) *reporter.Node {
	start := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	n := &reporter.Node{Envelope: reporter.Envelope{}, Sampling: &reporter.Sampling{Start: reporter.Time{Time: start}, Stride: 1}}
	for c := range collector.NumColumns {
		column := slices.Clone(values)
		if c == collector.Timestamp {
			for i := range column {
				column[i] = float64(start.Unix() + int64(i) + 1)
			}
		}
		n.Envelope[c.Key()] = reporter.Band{Min: column, Mean: column, Max: column}
		if !c.Info().EnvelopeOnly {
			n.Samples.Keys = append(n.Samples.Keys, c.Key())
			n.Samples.Columns = append(n.Samples.Columns, column)
		}
	}
	return n
}

// drawn returns all lines, the job's first.
func drawn(d SparklineBlocks) []string { return append(d.Job, d.Node...) }

func TestSparklines_HaveLabelsAndScales(t *testing.T) {
	nan := math.NaN()
	n := sparkNode(0, 50, 100, nan, 14.3)
	for c := collector.NetIBRecv; c < collector.NumColumns; c++ { // the node has none of these devices
		delete(n.Envelope, c.Key())
	}
	for _, c := range []collector.Column{collector.DiskWriteRate, collector.NetExtRecvRate} {
		n.Envelope[c.Key()] = reporter.Band{Max: reporter.Numbers{0, 0, 0, 0, 0}}
	}
	n.Envelope["net_io_ext_sent_mb_per_second"] = reporter.Band{Max: reporter.Numbers{0, 0, 0.02, 0.1, 0}}
	n.Envelope["mem_percent"] = reporter.Band{Max: reporter.Numbers{nan, nan, nan, nan, nan}}
	want := []string{
		"CPU         ▁▅█ ▂  0 to 100 CPUs",
		"memory      ▁▅█ ▂  0 to 100 MiB",
		"time        0 to 5.0 s",
		"CPU         ▁▅█ ▂  0 to 100 %",
		"memory             –",
		"disk        ▁▅█ ▂  0 to 100.0 MiB/s read",
		"network     ▁▁▂█▁  0 to 0.10 MiB/s sent",
		"loopback    ▁▅█ ▂  0 to 100.0 MiB/s received",
		"            ▁▅█ ▂  0 to 100.0 MiB/s sent",
		"time        0 to 5.0 s",
	}
	check.Equal(t, drawn(Sparklines(n, 80, false)), want, "sparklines")
	n.Envelope["net_io_lo_recv_mb_per_second"] = reporter.Band{Max: reporter.Numbers{0, 0, 0, 0, 0}}
	n.Envelope["net_io_lo_sent_mb_per_second"] = reporter.Band{Max: reporter.Numbers{0, 0, nan, 0, 0}}
	if got := strings.Join(drawn(Sparklines(n, 80, false)), "\n"); strings.Contains(got, "loopback") {
		t.Errorf("loopback has a sparkline, but nothing was sent over it:\n%s", got)
	}
	n.Envelope = nil // like a node from perf.py
	want = []string{"CPU         _+@ .  0 to 100 CPUs", "memory      _+@ .  0 to 100 MiB", "time        0 to 5.0 s", "CPU         _+@ .  0 to 100 %", "memory      _+@ .  0 to 100 %", "time        0 to 5.0 s"}
	check.Equal(t, drawn(Sparklines(n, 80, true)), want, "sparklines")
	for name, n := range map[string]*reporter.Node{"none": nil, "empty": {}, "one sample": sparkNode(5)} {
		check.Equal(t, drawn(Sparklines(n, 80, false)), nil, "%s: sparklines", name)
	}
}

// Thanks to the envelope, a burst of two seconds in a week is a full cell at the right time.
func TestSparklines_ShowShortBurstInAWeek(t *testing.T) {
	r := plottertest.Week(t)
	n := r.Nodes["0"]
	for _, width := range []int{60, 80} {
		for _, ascii := range []bool{false, true} {
			top := map[bool]string{false: "█", true: "@"}[ascii]
			for _, line := range drawn(Sparklines(n, width, ascii)) {
				picture := []rune(line)[sparkLabel:]
				at := strings.IndexRune(string(picture), []rune(top)[0])
				if !strings.Contains(line, "to 100") { // not the line of CPU or disk
					continue
				}
				if strings.HasPrefix(line, "memory") == (strings.Count(line, top) == 1) {
					t.Errorf("%d cells: want one full cell in each line except the memory line: %s", width, line)
				}
				if cell := utf8.RuneCountInString(string(picture)[:max(0, at)]); at >= 0 && !sparkWhere(picture, cell) {
					t.Errorf("%d cells: the burst is in cell %d, not at its time: %s", width, cell, line)
				}
			}
		}
	}
	n.Envelope = nil
	if got := strings.Join(drawn(Sparklines(n, 80, false)), "\n"); strings.ContainsRune(got, '█') || !strings.Contains(got, "▃") {
		t.Errorf("the samples alone show the burst, so this test proves nothing:\n%s", got)
	}
}

// sparkWhere reports whether a cell of a week's sparkline is near the burst.
func sparkWhere(picture []rune, cell int) bool {
	cells := 0
	for cells < len(picture) && strings.ContainsRune(blockLevels+asciiLevels, picture[cells]) {
		cells++
	}
	return math.Abs(float64(cell)+0.5-float64(cells)*plottertest.BurstAt/plottertest.WeekSeconds) <= 1
}

// For any report, the lines fit and consist of the expected characters.
func TestSparklines_FitWithAnyNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324, 0, -1, 100, 1e18}
	for range 400 {
		r := &reporter.Report{Nodes: map[string]*reporter.Node{}}
		for i := range 1 + rng.IntN(3) {
			n := sparkNode(make([]float64, rng.IntN(40))...)
			for _, key := range slices.Sorted(maps.Keys(n.Envelope)) { // the same numbers in each run
				band := n.Envelope[key]
				for k := range band.Max {
					if band.Max[k] = rng.NormFloat64() * math.Pow(10, float64(rng.IntN(30)-10)); rng.IntN(4) == 0 {
						band.Max[k] = odd[rng.IntN(len(odd))]
					}
				}
			}
			if rng.IntN(4) == 0 {
				n.Sampling = nil
			}
			r.Nodes[fmt.Sprint(i*i*rng.IntN(1<<30))] = n
		}
		width, ascii := rng.IntN(100)-5, rng.IntN(2) == 0
		for _, line := range drawn(ReportSparklines(r, width, ascii)) {
			if utf8.RuneCountInString(line) > width || line != text.Printable(line) || line != strings.TrimRight(line, " ") {
				t.Fatalf("line of %d cells, want printable text of at most %d: %q", utf8.RuneCountInString(line), width,
					line)
			}
			if ascii && strings.ContainsFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }) {
				t.Fatalf("line is not ASCII: %q", line)
			}
			if strings.Contains(strings.TrimPrefix(line, "InfiniBand"), "Inf") || strings.Contains(line, "NaN") {
				t.Fatalf("line has NaN or Inf: %q", line)
			}
		}
	}
}

// Several nodes share a time axis. The line of a node that ends early is blank after its end.
func TestReportSparklines_NodesShareOneTimeAxis(t *testing.T) {
	late := sparkNode(slices.Repeat([]float64{50}, 10)...)
	late.Sampling.Start.Time = late.Sampling.Start.Add(10 * time.Second)
	for i := range late.Samples.Column("timestamp") {
		late.Samples.Column("timestamp")[i] += 10
	}
	r := &reporter.Report{Nodes: map[string]*reporter.Node{
		"0": sparkNode(slices.Repeat([]float64{100}, 20)...), "1": sparkNode(slices.Repeat([]float64{0}, 10)...),
		"10": late, "2": nil, "2147483647": sparkNode(7, math.NaN(), 100),
	}}
	want := []string{
		"node 0      ████████████████████  CPU, 0 to 100 %",
		"node 1      ▁▁▁▁▁▁▁▁▁▁",
		"node 2",
		"node 10               ▅▅▅▅▅▅▅▅▅▅",
		"2147483647  ▁ █",
		"time        0             20.0 s",
	}
	check.Equal(t, drawn(ReportSparklines(r, 80, false)), want, "sparklines")
	for i := 3; len(r.Nodes) <= MaxNodes; i++ {
		r.Nodes[fmt.Sprint(i)] = sparkNode(1, 2)
	}
	check.Equal(t, drawn(ReportSparklines(r, 80, false)), nil, "sparklines of %d nodes", len(r.Nodes))
	week := plottertest.Week(t)
	week.Nodes["1"] = &reporter.Node{}
	if got := drawn(ReportSparklines(week, 80, false)); len(got) != 3 || strings.Count(got[0], "█") == 0 || strings.Count(got[0], "█") > 2 || !strings.HasSuffix(got[2], peakPerCell) {
		t.Errorf("sparklines of a week: want 3 lines with the burst in 1 or 2 cells:\n%s", strings.Join(got, "\n"))
	}
	check.Equal(t, drawn(ReportSparklines(&reporter.Report{}, 80, false)), nil, "sparklines without a node")
}

func BenchmarkSparklines(b *testing.B) {
	n := plottertest.Week(b).Nodes["0"]
	for b.Loop() {
		if len(drawn(Sparklines(n, 80, false))) != 7 {
			b.Fatal("number of sparklines is not 7")
		}
	}
}

// There is a line for the GPU, and none for an idle network.
func TestSparklines_HaveLineForGPU(t *testing.T) {
	r := reportertest.Container(0, 60, 2)
	lines := func() string { return strings.Join(drawn(Sparklines(r.Nodes["0"], 80, false)), "\n") }
	check.Contains(t, "sparklines", lines(), "\nGPU         ", "\nnetwork ")
	for _, c := range []collector.Column{collector.NetExtRecvRate, collector.NetExtSentRate} {
		clear(r.Nodes["0"].Envelope[c.Key()].Max)
	}
	check.Contains(t, "sparklines of an idle network", lines(), "\nGPU         ")
	wantNone(t, "sparklines of an idle network", lines(), "network")
	for i := range r.Nodes["0"].GPUs {
		r.Nodes["0"].GPUs[i].OfJob = false
	}
	wantNone(t, "sparklines of a job without GPUs", lines(), "GPU")
}
