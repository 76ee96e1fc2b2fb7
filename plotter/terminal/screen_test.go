package terminal

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// screenRecording returns a minute and a half of a node that is busy for one second.
func screenRecording(samples int) *collector.Recording {
	start := host.Instant{Wall: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Mono: time.Hour, Boot: time.Hour}
	rec := collector.NewRecording(start, time.Second, 1000)
	rec.Host = host.Info{Hostname: "vm", CPUs: 2, MemoryMB: 24064}
	for i := range samples {
		var s collector.Sample
		for c := range s.Values {
			s.Values[c], s.Weights[c] = math.NaN(), 1
		}
		s.Values[collector.CPUAvg], s.Values[collector.CPUMax], s.Values[collector.MemPercent] = 25, 50, 3.1
		s.Values[collector.DiskPercent] = 71.3
		s.Values[collector.DiskReadRate], s.Values[collector.DiskWriteRate] = 2*float64(i)/100, 0
		s.Values[collector.NetLoRecvRate], s.Values[collector.NetLoSentRate] = 20.9, 20.9
		s.Values[collector.Timestamp] = float64(start.Wall.Unix() + int64(i) + 1)
		if i == 40 {
			s.Values[collector.CPUAvg], s.Values[collector.CPUMax] = 100, 100
		}
		rec.Add(&s)
		rec.End.Mono += time.Second
		rec.End.Boot += time.Second
	}
	return rec
}

// screenReport returns a run in progress on the given number of nodes.
func screenReport(nodes int) *reporter.Report {
	rec := screenRecording(90)
	out := diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: reporter.Run{ID: "trial-7", Command: []string{"python", "train.py"}}, Recording: rec,
		Agent: reporter.Agent{CPUSeconds: 0.0123}}})
	for n := range nodes {
		out.Nodes[fmt.Sprint(n)] = out.Nodes["0"]
	}
	return out
}

func screenNewest() []float64 {
	out := make([]float64, collector.NumColumns)
	for c := range out {
		out[c] = math.NaN()
	}
	out[collector.CPUAvg], out[collector.MemPercent], out[collector.DiskReadRate] = 25, 3.1, 1.78
	out[collector.DiskWriteRate], out[collector.NetLoRecvRate], out[collector.DiskPercent] = 0, 20.9, 71.3
	return out
}

func screenOptions(nodes, width, height int) Options {
	o := Options{Width: width, Height: height, Node: "0", Footer: "q quits", Live: make(map[string]LiveNode)}
	for n := range nodes {
		o.Live[fmt.Sprint(n)] = LiveNode{State: "running for 1 min 30 s", Newest: screenNewest()}
	}
	return o
}

// screenIs compares the lines of a screen with want.
func screenIs(t *testing.T, what string, got []string, want string) {
	t.Helper()
	if d := cmp.Diff(strings.Split(strings.TrimPrefix(want, "\n"), "\n"), got); d != "" {
		t.Errorf("%s (-want +got):\n%s\nwhole:\n%s", what, d, strings.Join(got, "\n"))
	}
}

func TestScreen_Layout(t *testing.T) {
	pod := screenReport(1)
	pod.Nodes["0"].Identity = &reporter.Identity{NodeName: "worker-7"}
	check.Equal(t, Screen(pod, screenOptions(1, 79, 24))[3], "worker-7, 2 CPUs, 23.5 GiB memory", "line of the host")
	screenIs(t, "80 × 24", Screen(screenReport(1), screenOptions(1, 79, 24)), `
trial-7, running for 1 min 30 s                     started 31 Jan 12:00:00 UTC
python train.py

vm, 2 CPUs, 23.5 GiB memory
NODE                   now                         peak   0          1 min 30 s
CPU        ██▌·······  25 %                       100 %   ▃▃▃▃▃▃▃▃▃█▃▃▃▃▃▃▃▃▃▃▃
memory     ▎·········  3 %, 746 MiB                 3 %   █████████████████████
disk read              1.78 MiB/s            1.78 MiB/s   ▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇██
loop recv              20.9 MiB/s            20.9 MiB/s   █████████████████████
loop sent              –                     20.9 MiB/s   █████████████████████
disk used  ███████▏··  71 %                        71 %   █████████████████████

perfagent  12.3 ms of CPU time, 90 samples, 1 s apart

q quits`)
	o := screenOptions(3, 39, 10)
	o.ASCII, o.Ended = true, 2
	screenIs(t, "40 × 10, in ASCII", Screen(screenReport(3), o), `
trial-7, node 0, running for 1 min 30 s
python train.py
NODE       now
CPU        25 %
memory     3 %, 746 MiB
disk read  1.78 MiB/s
node 1     CPU    25 %  memory     3 %
node 2     CPU    25 %  memory     3 %
nodes      2 ended before
q quits`)
	o.Width = 79
	const row = "CPU        ###.......  25 %                       100 %   ---------@-----------"
	check.Equal(t, screenRowOf(Screen(screenReport(3), o), "CPU"), row, "row in ASCII")
}

// The job and its phases come first, followed by the node. An idle network is one sentence.
func TestScreen_BeginsWithTheJob(t *testing.T) {
	r, o := screenReport(1), screenOptions(1, 79, 24)
	n := r.Nodes["0"]
	n.Limits = &reporter.Limits{CPUs: 2, MemoryMB: 2048}
	set := func(c collector.Column, now, peak float64, values ...float64) {
		o.Live["0"].Newest[c] = now
		n.Summaries[c.Key()] = reporter.Summary{Max: peak}
		n.Envelope[c.Key()] = reporter.Band{Max: values}
	}
	set(collector.JobCPU, 1.83, 1.88, 0.5, 1.8, 1.88)
	set(collector.JobMemory, 187, 187, 70, 140, 187)
	set(collector.JobWriteRate, 0, 48, 0, 48, 0)
	set(collector.JobReadRate, 0, 0, 0, 0, 0)
	set(collector.JobProcesses, 2, 2, 2, 2, 2)
	set(collector.JobThreads, 2, 2, 2, 2, 2)
	for _, c := range []collector.Column{collector.NetExtRecvRate, collector.NetExtSentRate, collector.NetLoRecvRate, collector.NetLoSentRate} {
		set(c, 0, 0, 0)
	}
	now := n.Envelope[collector.Timestamp.Key()].Max
	at := now[len(now)-1]
	n.Phases = []reporter.Phase{
		{Name: "load", Seconds: 4, Spans: []reporter.PhaseSpan{{at - 20, 4}}},
		{Name: "train", Seconds: 65, Spans: []reporter.PhaseSpan{{at - 80, 60}, {at - 5, 5}}},
	}
	const want = `
trial-7, running for 1 min 30 s, in phase train for 5.0 s
python train.py

JOB                    now                         peak   0          1 min 30 s
CPU        █████████▏  1.83 of 2 CPUs         1.88 CPUs   ▃██
memory     ▉·········  187 MiB of 2 GiB         187 MiB   ▄▆█
disk write             0 MiB/s               48.0 MiB/s   ▁█▁
processes              2, with 2 threads              2   ███

PHASES     load         4.0 s
           train   1 min 05 s so far

NODE       vm, 2 CPUs, 23.5 GiB memory
CPU        ██▌·······  25 %                       100 %   ▃▃▃▃▃▃▃▃▃█▃▃▃▃▃▃▃▃▃▃▃
memory     ▎·········  3 %, 746 MiB                 3 %   █████████████████████
disk read              1.78 MiB/s            1.78 MiB/s   ▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇██
disk used  ███████▏··  71 %                        71 %   █████████████████████

No network traffic on the counted interfaces so far.
perfagent  12.3 ms of CPU time, 90 samples, 1 s apart

q quits`
	screenIs(t, "80 × 24", Screen(r, o), want)
	if line := Line(r, o); !strings.HasPrefix(line, "running for 1 min 30 s: CPU 1.83 of 2 CPUs (peak 1.88 CPUs), memory 187 MiB of 2 GiB, ") ||
		!strings.Contains(line, ", phase train for 5.0 s, node CPU 25 % (peak 100 %), ") {
		t.Errorf("line %s, want the job first, then its phase and the node", line)
	}

	o.Color = true
	o.Live["0"].Newest[collector.JobMemory] = 2048
	lines := strings.Join(Screen(r, o), "\n")
	check.Contains(t, "screen in color", lines,
		"\x1b[34m█████████▏\x1b[0m  1.83 of 2 CPUs", "\x1b[34m▃██\x1b[0m", "\x1b[31m██████████\x1b[0m  2.0 GiB of 2 GiB")
}

// screenHostile returns a report with texts that must not reach the terminal unescaped.
func screenHostile() *reporter.Report {
	evil := "\x1b[2J\x1b]0;x\a\r\n\t\u202e\u200b\x9b31m\xff日本語👩‍👩‍👧 é́́́"
	r := screenReport(3)
	r.Run.ID, r.Run.Signal, r.Run.Command = evil, evil, []string{evil, strings.Repeat("日\x1b[31m", 200_000), ""}
	r.Run.Tags = map[string]string{evil: evil}
	r.Nodes["0"] = &reporter.Node{Host: &reporter.Host{Hostname: strings.Repeat(evil, 50), CPUs: math.MaxInt, MemoryMB: math.Inf(1)},
		Agent:     &reporter.Agent{CPUSeconds: math.Inf(1)},
		Sampling:  &reporter.Sampling{Samples: math.MinInt64, IntervalSeconds: math.NaN(), MissedTicks: math.MaxInt64},
		Summaries: map[string]reporter.Summary{collector.CPUAvg.Key(): {Max: math.Inf(1), Mean: math.NaN()}},
		Samples:   reporter.Samples{Keys: []string{collector.Timestamp.Key()}, Columns: [][]float64{{math.Inf(1), math.NaN(), 1e308, -1e308}}},
		Envelope:  reporter.Envelope{collector.CPUAvg.Key(): reporter.Band{Max: reporter.Numbers{math.Inf(1), math.NaN(), 1e308, -1e308}}}}
	r.Nodes[evil], r.Nodes["7"] = r.Nodes["0"], nil
	return r
}

func screenHostileOptions(width, height int) Options {
	o := screenOptions(0, width, height)
	o.More, o.Ended = math.MaxInt, math.MinInt
	o.Live["0"] = LiveNode{State: "\x1b[31m日本\r\n", Newest: []float64{math.Inf(1)}, Problem: "\x1b[31m日本\r\n"}
	o.Live["1"] = LiveNode{State: "\x1b[31m日本\r\n", Alarm: true}
	return o
}

// For any terminal and report, the screen is not too wide or too high, and has no control characters.
func TestScreen_FitsAnyTerminal(t *testing.T) {
	reports := []*reporter.Report{screenReport(1), screenReport(40), screenHostile(), {}}
	step := testenv.Rounds(1, 9)
	for width := -1; width <= 210; width += step + max(0, width)/40 {
		for _, height := range []int{-1, 0, 1, 2, 3, 4, 7, 10, 16, 24, 50} {
			for i, r := range reports {
				o := screenHostileOptions(width, height)
				o.ASCII = (width+height)%2 == 0
				lines := Screen(r, o)
				wantFits(t, lines, max(0, width), max(0, height))
				for _, line := range append(lines, Line(r, o)) {
					screenPrintable(t, line, o.ASCII)
				}
				if t.Failed() {
					t.Fatalf("report %d, as reported above", i)
				}
			}
		}
	}
}

func screenPrintable(t *testing.T, line string, ascii bool) {
	t.Helper()
	for _, r := range line {
		if r == utf8.RuneError || r < ' ' || !unicode.IsPrint(r) || ascii && r > '~' {
			t.Fatalf("line has the character %U: %q", r, line)
		}
	}
	if strings.Contains(line, "NaN") || strings.Contains(line, "Inf") {
		t.Fatalf("line has NaN or Inf: %q", line)
	}
}

// A smaller terminal has fewer lines. The most important lines stay.
func TestScreen_KeepsMostImportantLines(t *testing.T) {
	for height, want := range map[int][]string{
		1: {"trial-7"},
		2: {"trial-7", "CPU"},
		4: {"trial-7", "CPU", "memory", "q quits"},
		8: {"trial-7", "CPU", "memory", "disk", "NODE", "q quits"},
	} {
		lines := Screen(screenReport(1), screenOptions(1, 60, height))
		for _, word := range want {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, word) }) {
				t.Errorf("%d lines, want one that begins with %s:\n%s", height, word, strings.Join(lines, "\n"))
			}
		}
	}
}

// Every node either has a line or is counted.
func TestScreen_CountsHiddenNodes(t *testing.T) {
	for nodes := 1; nodes < 60; nodes += 1 + nodes/8 {
		r := screenReport(nodes)
		for height := 8; height < 70; height += 1 + height/16 {
			o := screenOptions(nodes, 79, height)
			o.More = nodes % 3
			counted, all := 0, nodes+o.More
			for _, line := range Screen(r, o) {
				var n int
				if strings.HasPrefix(line, "node ") || strings.HasPrefix(line, "trial-7") {
					counted++
				} else if _, err := fmt.Sscanf(line, "nodes %d more", &n); err == nil {
					counted += n
				}
			}
			if counted != all {
				t.Fatalf("%d lines: %d nodes are shown or counted, want %d:\n%s", height, counted, all,
					strings.Join(Screen(r, o), "\n"))
			}
		}
	}
}

// The screen shows a single busy second in a day.
func TestScreen_KeepsEveryPeak(t *testing.T) {
	rec := screenRecording(100)
	var s collector.Sample
	for c := range s.Values {
		s.Values[c], s.Weights[c] = 10, 1
	}
	for i := range 24 * 3600 {
		s.Values[collector.CPUAvg] = 10
		if i == 33_333 {
			s.Values[collector.CPUAvg] = 77
		}
		rec.Add(&s)
	}
	r := diagnosis.New(diagnosis.Input{Input: reporter.Input{Recording: rec}})
	for _, width := range []int{70, 79, 200} {
		row := Screen(r, screenOptions(1, width, 24))
		node := slices.IndexFunc(row, func(l string) bool { return strings.HasPrefix(l, "NODE") })
		spark := row[node+1][strings.LastIndex(row[node+1], "%"):]
		if !strings.HasPrefix(row[node+1], "CPU") || strings.Count(spark, "▆") != 1 || strings.Count(spark, "█") != 1 {
			t.Errorf("%d cells: want one peak of 100 %% and one of 77 %% in %q", width, row)
		}
	}
}

// The screen shows the state of a node, and whether a number is the newest value, the last value or the mean.
func TestScreen_ShowsNodeState(t *testing.T) {
	r := screenReport(2)
	o := screenOptions(2, 100, 24)
	o.Color = true
	for _, c := range []struct {
		live  LiveNode
		words []string
	}{
		{LiveNode{State: "exit 0 after 9 s", Ended: true}, []string{"\x1b[1mtrial-7, node 0, exit 0 after 9 s", "mean", "26 %"}},
		{LiveNode{State: "failed", Ended: true, Alarm: true}, []string{"\x1b[1;31mtrial-7, node 0, failed", "mean"}},
		{LiveNode{State: "perfagent is gone", Alarm: true, Newest: screenNewest()}, []string{"\x1b[1;31mtrial-7, node 0, perfagent is gone", "last", "25 %"}},
		{LiveNode{State: "x", Problem: "no\nway"}, []string{"\x1b[1mtrial-7, node 0, x ", "\n\x1b[1;31mno\\nway\x1b[0m\n"}},
		{LiveNode{}, []string{"\x1b[1mtrial-7, node 0, –", "now"}},
	} {
		o.Live["0"], o.Live["1"] = c.live, LiveNode{State: "failed (exit 3) after 1 s", Alarm: true, Ended: true}
		check.Contains(t, fmt.Sprintf("screen with %+v", c.live), screenText(r, o), append(c.words, "\x1b[1;31mnode 1")...)
	}
	o.Node = "9" // this node does not exist
	if lines := Screen(r, o); len(lines) < 10 {
		t.Errorf("screen of a node that is not in the report has %d lines, want at least 10", len(lines))
	}
}

// However large a number is, its unit and the space before the unit stay.
func TestScreen_LargeRatesKeepUnits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0 MiB/s", 999.9: "999.9 MiB/s", 999.96: "1000.0 MiB/s", 1023.4: "1023.4 MiB/s", 1024: "1.0 GiB/s", 12345.6: "12.1 GiB/s",
		1023 * 1024: "1023 GiB/s", 1 << 20: "1.0 TiB/s", 1 << 40: "1.0 EiB/s", 1e308: "1e+308 MiB/s", -2048: "-2.0 GiB/s",
	} {
		check.Equal(t, valueText(collector.DiskReadRate, v, 20), want, "valueText of %v MiB/s", v)
		r, o := screenReport(1), screenOptions(1, 79, 24)
		o.Live["0"].Newest[collector.DiskReadRate] = v
		r.Nodes["0"].Summaries[collector.DiskReadRate.Key()] = reporter.Summary{Max: v}
		short := want
		if len(want) > peakWidth-1 {
			short = strings.ReplaceAll(want, " ", "")
		}
		if len(short) > peakWidth-1 {
			short = strings.TrimSuffix(short, "iB/s")
		}
		row, columns := screenRowOf(Screen(r, o), "disk read"), text.PadRight(want, nowWidth)+text.PadLeft(short, peakWidth)
		if v == 0 && row != "" || v != 0 && !strings.HasPrefix(row, "disk read"+strings.Repeat(" ", 14)+columns) {
			t.Errorf("row of %v MiB/s is %q, want %q in columns, or no row for 0", v, row, columns)
		}
	}
}

// screenRowOf returns the line with a label; "" = none.
func screenRowOf(lines []string, label string) string {
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, label) })
	if i < 0 {
		return ""
	}
	return lines[i]
}

// If there is little room, the unit is omitted. A number that still does not fit is omitted entirely, not truncated.
func TestScreen_NeverTruncatesNumbers(t *testing.T) {
	screenIs(t, "20 × 5", Screen(screenReport(1), screenOptions(1, 19, 5)), `
trial-7, running f…
CPU        25 %
memory     3 %
disk read  1.78M
q quits`)
	for room, want := range []string{"…", "…", "12", "12%", "12 %", "12 %", "12 %"} {
		check.Equal(t, valueText(collector.CPUAvg, 12.5, room), want, "12.5 %% in %d cells", room)
	}
	for room, want := range []string{"…", "…", "…", "…", "1.5G", "1.5G", "1.5G", "1.5G", "1.5GiB/s", "1.5 GiB/s"} {
		check.Equal(t, valueText(collector.DiskReadRate, 1536, room), want, "1536 MiB/s in %d cells", room)
	}
	check.Equal(t, valueText(collector.DiskReadRate, 1.5, 4), "1.50", "1.5 MiB/s in 4 cells")
	// At every width, all numbers on the screen are complete.
	r := screenReport(12)
	known := screenNumbersOf(strings.Join(Screen(r, screenOptions(12, 200, 60)), "\n"))
	for width := range 120 {
		for _, height := range []int{5, 30} {
			for _, line := range Screen(r, screenOptions(12, width, height)) {
				for n := range screenNumbersOf(line) {
					if !known[n] {
						t.Errorf("%d × %d: %s is not a number in the report: %q", width, height, n, line)
					}
				}
			}
		}
	}
}

// screenNumbersOf returns the numbers in a text.
func screenNumbersOf(words string) map[string]bool {
	out := make(map[string]bool)
	for _, word := range strings.FieldsFunc(words, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }) {
		out[word] = true
	}
	return out
}

func TestLine(t *testing.T) {
	o := screenOptions(1, 0, 0)
	want := "running for 1 min 30 s: CPU 25 % (peak 100 %), memory 3 %, 746 MiB, disk read 1.78 MiB/s, loop recv 20.9 MiB/s, loop sent –, disk used 71 %"
	check.Equal(t, Line(screenReport(1), o), want, "line")
	node := o.Live["0"]
	node.Problem = "no way"
	o.Live["0"] = node
	check.Equal(t, Line(screenReport(1), o), want+"; no way", "line with a problem")
	o.ASCII, o.Live = true, screenOptions(1, 0, 0).Live
	check.Equal(t, Line(screenReport(1), o), strings.ReplaceAll(want, "–", "-"), "line in ASCII")
}

// The screen and the line show the job's GPUs, or all GPUs if the job has none.
func TestScreen_ShowsJobGPUsOrElseAll(t *testing.T) {
	rec := screenRecording(1)
	for i := range 10 {
		rec.GPUs = append(rec.GPUs, collector.GPU{Device: gpu.Device{Index: i}})
	}
	r := diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: reporter.Run{ID: "r"}, Recording: rec}})
	o := screenOptions(1, 80, 16)
	o.Live["0"] = LiveNode{State: "running", Newest: slices.Repeat([]float64{50}, int(collector.GPUColumn(collector.MaxGPUs, 0)))}
	wantGPUs := func(shown ...int) {
		for _, i := range shown {
			name := fmt.Sprintf("GPU %d", i)
			check.Contains(t, "screen", "\n"+screenText(r, o), "\n"+name)
			check.Contains(t, "line", Line(r, o), ", "+name+" 50 %")
		}
	}
	wantGPUs(0, 1)
	r.Nodes["0"].GPUs[8].OfJob, r.Nodes["0"].GPUs[9].OfJob = true, true
	wantGPUs(8, 9)
	wantNone(t, "screen and line of a job with GPUs 8 and 9", screenText(r, o)+Line(r, o), "GPU 7")
}

// Drawing a command of a megabyte costs no more than drawing its visible part.
func TestScreen_LongCommandIsCheap(t *testing.T) {
	r := screenReport(1)
	// Take the minimum of many runs, because fmt's pool drops buffers at random under the race detector.
	fewest := func() float64 {
		least := math.Inf(1)
		for range 60 {
			least = min(least, testing.AllocsPerRun(1, func() { Screen(r, screenOptions(1, 79, 24)) }))
		}
		return least
	}
	r.Run.Command = slices.Repeat([]string{"日\x1b"}, 250_000)
	long := fewest()
	r.Run.Command = slices.Repeat([]string{"日\x1b"}, 500)
	short := fewest()
	if long > short+5 {
		t.Errorf("%v allocations with a long command, %v with a short one; want at most 5 more", long, short)
	}
}

func BenchmarkScreen(b *testing.B) {
	r, o := screenReport(1), screenOptions(1, 79, 24)
	for b.Loop() {
		Screen(r, o)
	}
}

// wantNone checks that text has none of the parts.
func wantNone(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s has %q:\n%s", what, part, text)
		}
	}
}

// wantFits checks that a screen has at most height lines of at most width cells, without control characters.
func wantFits(t testing.TB, lines []string, width, height int) {
	t.Helper()
	if len(lines) > height {
		t.Errorf("screen of %d × %d has %d lines, want at most %d", width, height, len(lines), height)
	}
	for _, l := range lines {
		if text.Width(l) > width || strings.ContainsAny(l, "\x1b\u202e") {
			t.Errorf("screen of %d × %d: line of %d cells %q, want at most %d without control characters", width, height, text.Width(l), l, width)
		}
	}
}

// screenText returns the lines of the screen.
func screenText(r *reporter.Report, o Options) string { return strings.Join(Screen(r, o), "\n") }
