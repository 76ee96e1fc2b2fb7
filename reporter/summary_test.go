package reporter

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
)

var update = flag.Bool("update", false, "write the golden files anew")

var testStart = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// recordingOf makes a Recording of n seconds that rises from idle to busy.
func recordingOf(n int) *collector.Recording {
	start := host.Instant{Wall: testStart}
	rec := collector.NewRecording(start, time.Second, 1000)
	rec.Host = host.Info{Hostname: "gpu-box-17", BootID: "b", OS: "linux", Kernel: "6.1", Arch: "amd64",
		CPUModel: "CPU", CPUs: 8, MemoryMB: 32000}
	rec.Disks, rec.NICs = []string{"nvme0n1"}, []string{"lo", "eth0"}
	rec.BootMB = [6]float64{1000, 2000, 5, 100, 5, 300}
	for i := range n {
		s := risingSample(i, n)
		rec.Add(&s)
	}
	length := time.Duration(n) * time.Second
	rec.End = host.Instant{Wall: testStart.Add(length), Mono: length, Boot: length}
	return rec
}

// risingSample is second i of n: all columns rise.
func risingSample(i, n int) collector.Sample {
	var s collector.Sample
	share := float64(i+1) / float64(n)
	for c := range s.Values {
		s.Weights[c] = 1
		switch col := collector.Column(c); {
		case col == collector.Timestamp:
			s.Values[c] = float64(testStart.Unix() + int64(i) + 1)
		case col.Percent():
			s.Values[c] = math.Round(share*1000) / 10
		default:
			s.Values[c] = share * 40 * float64(c)
		}
	}
	return s
}

// inputOf wraps a job around recordingOf(n).
func inputOf(node, n, exit int, signal string) Input {
	end := testStart.Add(time.Duration(n) * time.Second)
	return Input{
		Node: node,
		Run: Run{ID: "20240501-120000-7f3a", Command: []string{"python", "train.py", "--epochs", "3"}, Start: Time{testStart}, End: Time{end},
			WallSeconds: float64(n), ExitCode: &exit, Signal: signal},
		Recording: recordingOf(n),
		Job: &Job{PID: 4242, Start: Time{testStart}, End: Time{end}, ExitCode: exit, Signal: signal,
			UserSeconds: 610.25, SystemSeconds: 12.5, MaxRSSMB: 1536.4},
		Agent: Agent{Version: "test", CPUSeconds: 0.1534, MaxRSSMB: 14},
	}
}

// hostile is text that would play tricks on a terminal.
const hostile = "a\x1b[31mred\x1b]0;title\a\rb\n\tc\u202ed\u200be\u2028f\xffg\x7fh\u009b2Ji \\ \u65e5\u672c\u8a9e"

func sidecar() *Report {
	in := jobViewInput(0, 3600, 0, "")
	in.Recording = jobViewNoJob(3600)
	in.Job = nil
	in.Run = Run{ID: "sidecar-1", Tags: map[string]string{"cluster": "blue", "owner": "me"}}
	return New(in)
}

func incompleteRun() *Report {
	in := jobViewInput(0, 125, 0, "")
	in.Job = nil
	in.Run.ExitCode = nil
	in.Run.Incomplete = "from the journal of a run that is still going on or was cut off: known up to 2m5s after the start"
	in.Recording.Failures = []collector.Failure{{Source: host.SourceDiskIO, Why: "open /proc/diskstats: permission denied", Count: 3}}
	in.Recording.Late = map[string]time.Duration{host.SourceNetwork: 3 * time.Second}
	return New(in)
}

func threeNodes() *Report {
	var sources []Source
	for node := range 3 {
		in := jobViewInput(node, 10*(node+1), []int{0, 137, 0}[node], []string{"", "SIGKILL", ""}[node])
		in.Recording.Host.Hostname = fmt.Sprintf("compute-node-%04d.cluster.example.org", node)
		in.Run.Tags = map[string]string{"team": "blue"}
		if node == 2 {
			in.Recording.Failures = []collector.Failure{{Source: host.SourceMemory, Why: "read /proc/meminfo: input/output error", Count: 30}}
		}
		sources = append(sources, Source{fmt.Sprintf("node-%d.json", node), New(in)})
	}
	r, err := Merge(sources)
	if err != nil {
		panic(err)
	}
	return r
}

func mixedNodes(t *testing.T) *Report {
	t.Helper()
	old, err := ParsePerfPy([]byte(goldenPerfPy(t)), 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Merge([]Source{{"a", New(jobViewInput(0, 10, 0, ""))}, {"b", old}, {"c", &Report{Nodes: map[string]*Node{"7": nil}}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hostileRun() *Report {
	in := jobViewInput(0, 10, 1, hostile)
	in.Run.ID, in.Run.Command = hostile, []string{hostile, strings.Repeat("x y", 5000), ""}
	in.Run.Tags = map[string]string{hostile: hostile, strings.Repeat("k", 300): strings.Repeat("v", 300)}
	in.Run.Incomplete = strings.Repeat(hostile, 30)
	in.Recording.Host.Hostname = hostile + hostile
	in.Recording.Host.MemoryMB = 1e300
	in.Job.UserSeconds, in.Job.MaxRSSMB = 1e200, -1e200
	for i := range 9 {
		in.Missing = append(in.Missing, Missing{hostile, fmt.Sprint(i, strings.Repeat(hostile, 20))})
	}
	r := New(in)
	for name := range r.Nodes["0"].Metrics {
		r.Nodes["0"].Metrics[name] = -1.2345e300
	}
	return r
}

func shortJob() *Report {
	in := jobViewInput(0, 0, 0, "")
	in.Run.WallSeconds, in.Job.UserSeconds, in.Job.SystemSeconds, in.Job.MaxRSSMB = 0.0031, 0.001, 0.0005, 4.25
	in.Job.MaxRSSAtMost = true
	in.Recording.Account.HostStall = collector.Stalls{}
	in.Recording.Account.CPUSeconds, in.Recording.Samples = 0.0015, 1
	in.Recording.End.Mono = 3100 * time.Microsecond
	return New(in)
}

func goldenSummaries(t *testing.T) map[string]*Report {
	perfpy, err := ParsePerfPy([]byte(goldenPerfPy(t)), 8)
	if err != nil {
		t.Fatal(err)
	}
	perfpyBare, err := ParsePerfPy([]byte(`{"0": []}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	hostileNodes := hostileRun()
	hostileNodes.Nodes[hostile] = hostileNodes.Nodes["0"]
	plain := map[string]*Report{
		"good": New(jobViewInput(0, 200, 0, "")), "failed": New(jobViewInput(3, 7500, 7, "")), "signal": New(jobViewInput(0, 90, 137, "SIGKILL")),
		"short": shortJob(), "sidecar": sidecar(), "incomplete": incompleteRun(),
		"perfpy": perfpy, "perfpy-empty": perfpyBare, "nodes": threeNodes(), "nodes-mixed": mixedNodes(t),
		"hostile": hostileRun(), "hostile-nodes": hostileNodes,
		"nothing": {Nodes: map[string]*Node{"0": {}}}, "no-nodes": {}, "nil-nodes": {Nodes: map[string]*Node{"0": nil, "1": nil}},
	}
	for _, r := range plain { // what the rules say has tests of its own
		r.Run.Verdict = nil
		for _, n := range r.Nodes {
			if n != nil {
				n.Verdict, n.Findings = nil, nil
			}
		}
	}
	maps.Copy(plain, jobViewReports())
	return plain
}

// summaryOf writes a summary and checks what holds for every one of them.
func summaryOf(t *testing.T, r *Report, o SummaryOptions) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteSummary(&out, r, o); err != nil {
		t.Fatal(err)
	}
	words := out.String()
	bare := words
	if o.Color {
		bare = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(words, "")
	}
	width := SummaryWidth
	if o.Width > 0 {
		width = min(width, o.Width)
	}
	for line := range strings.Lines(bare) {
		line = strings.TrimSuffix(line, "\n")
		if !utf8.ValidString(line) || line != text.Printable(line) {
			t.Errorf("characters that a terminal acts on: %q", line)
		}
		if text.Width(line) > width && line != o.Path {
			t.Errorf("%d cells wide: %q", text.Width(line), line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("trailing spaces: %q", line)
		}
	}
	return words
}

func TestWriteSummary_Golden(t *testing.T) {
	for name, r := range goldenSummaries(t) {
		t.Run(name, func(t *testing.T) {
			got := summaryOf(t, r, SummaryOptions{Path: "perfagent-out/20240501-120000-7f3a/node-0.json"})
			file := filepath.Join("testdata", "summary-"+name+".txt")
			if *update {
				if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, []byte(got), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("differs from %s (go test -update writes it anew):\n%s\nwant:\n%s", file, got, want)
			}
			for _, width := range []int{1, 20, 60, 80, 200} {
				summaryOf(t, r, SummaryOptions{Color: true, Width: width})
			}
		})
	}
}

func TestWriteSummary_ColorAddsNothingElse(t *testing.T) {
	r := New(jobViewInput(0, 90, 137, "SIGKILL"))
	plain := summaryOf(t, r, SummaryOptions{})
	coloured := summaryOf(t, r, SummaryOptions{Color: true})
	if strings.Contains(plain, "\x1b") || !strings.Contains(coloured, "\x1b[1;31mperfagent: killed by SIGKILL") {
		t.Errorf("%q", coloured)
	}
	if bare := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured, ""); bare != plain {
		t.Errorf("%q, want %q", bare, plain)
	}
}

func TestWriteSummary_NeverCutsThePath(t *testing.T) {
	path := "/" + strings.Repeat("long/", 40) + "node-0.json"
	words := summaryOf(t, sidecar(), SummaryOptions{Path: path})
	if !strings.HasSuffix(words, "\n"+path+"\n") {
		t.Errorf("the last line is not the path:\n%s", words)
	}
}

func TestWriteSummary_GivesAReasonOnce(t *testing.T) {
	words := summaryOf(t, incompleteRun(), SummaryOptions{})
	if n := strings.Count(words, "/proc/diskstats"); n != 1 {
		t.Errorf("the reason stands there %d times:\n%s", n, words)
	}
	if !strings.Contains(words, "(3 of 126 readings)") || strings.Contains(words, "no job") {
		t.Errorf("%s", words)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("pipe is gone") }

func TestWriteSummary_ReturnsWriteErrors(t *testing.T) {
	if err := WriteSummary(brokenWriter{}, sidecar(), SummaryOptions{}); err == nil || !strings.Contains(err.Error(), "pipe is gone") {
		t.Errorf("%v", err)
	}
}

// The names that the summary picks are those of the table, and each metric of a
// source says so.
func TestSourceOf_KnowsTheTable(t *testing.T) {
	own := map[string]bool{cpuHoursMetric: true, unusedHoursMetric: true, limitCPUMetric: true}
	for _, m := range Metrics() {
		source, isSource := sourceOf(m.Name)
		if isSource == own[m.Name] && !needsJob(m.Name) { // without a job there is no reason but that
			t.Errorf("%s is of %s", m.Name, source)
		}
	}
	for name, want := range map[string]string{
		memPeakMetric: host.SourceMemory, diskPeakMetric: host.SourceDisk, diskReadMetric: host.SourceDiskIO,
		extSentMetric: host.SourceNetwork, cpuMeanMetric: host.SourceCPU, "boot_" + loRecvMetric: host.SourceNetwork,
		"mem_percent": host.SourceMemory, "journal": "journal",
	} {
		if got, _ := sourceOf(name); got != want {
			t.Errorf("%s is of %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{cpuPeakMetric, cpuOver80Metric, diskWriteMetric, loSentMetric, extRecvMetric, wallMetric} {
		if _, ok := MetricNamed(name); !ok {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// Whatever the numbers are, they fit.
func TestWriteSummary_FitsWithAnyNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 120 {
		number := func() float64 { return (rng.Float64() - 0.2) * math.Pow(10, float64(rng.IntN(40)-10)) }
		r := threeNodes()
		if rng.IntN(2) == 0 {
			r = New(jobViewInput(0, 3, 0, ""))
		}
		r.Run.WallSeconds = number()
		for _, n := range r.Nodes {
			for name := range n.Metrics {
				n.Metrics[name] = number()
			}
			n.Host.MemoryMB, n.Host.CPUs = number(), rng.Int()
			n.Limits = &Limits{CPUs: number(), CPUQuota: number(), MemoryMB: number(), CPUSetCPUs: rng.Int(), AffinityCPUs: rng.Int()}
			n.GPUs = []GPU{{MemoryMB: number(), PowerLimitWatts: number(), ClockMHz: number(), Index: rng.Int(), OfJob: true}, {}}
			n.Job.PeakMemoryMB, n.Job.CPUSeconds = number(), number()
			n.Job.UserSeconds, n.Job.MaxRSSMB, n.Job.ExitCode = number(), number(), rng.Int()
			n.Agent.CPUSeconds, n.Sampling.Samples, n.Sampling.MissedTicks = number(), rng.Int64(), rng.Int64()
		}
		summaryOf(t, r, SummaryOptions{})
	}
}

// Of several GPUs the summary tells which one says nothing.
func TestSummary_MissingNamesTheGPU(t *testing.T) {
	r := &Report{Nodes: map[string]*Node{"0": {Missing: []Missing{
		{"gpu_3_power_watts", "nvidia-smi says [N/A]"}, {"max_t_gpu_3_power_watts", "nvidia-smi says [N/A]"}, {"gpu_3_utilization_pct", "nvidia-smi says [N/A]"}}}}}
	list := absences(r)
	if len(list) != 1 || list[0].text(1) != "gpu 3: nvidia-smi says [N/A]" {
		t.Errorf("%+v", list)
	}
}

// needsJob tells whether a metric needs a wrapped job.
func needsJob(name string) bool {
	return name == wallMetric || strings.HasPrefix(name, "job_")
}
