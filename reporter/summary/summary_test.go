package summary

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// wantValues checks what fmt.Println prints for values.
func wantValues(t testing.TB, what, want string, values ...any) {
	t.Helper()
	if got := strings.TrimSuffix(fmt.Sprintln(values...), "\n"); got != want {
		t.Errorf("%s = %s, want %s", what, got, want)
	}
}

// wantNone checks that text has none of the parts.
func wantNone(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s has %q:\n%.9000s", what, part, text)
		}
	}
}

// summaryOf writes a summary and checks the invariants of all summaries.
func summaryOf(t *testing.T, r *reporter.Report, o Options) string {
	t.Helper()
	var out bytes.Buffer
	check.Must(t, Write(&out, r, o))
	words := out.String()
	bare := words
	if o.Color {
		bare = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(words, "")
	}
	width := Width
	if o.Width > 0 {
		width = min(width, o.Width)
	}
	for line := range strings.Lines(bare) {
		line = strings.TrimSuffix(line, "\n")
		if !utf8.ValidString(line) || line != text.Printable(line) {
			t.Errorf("line has unprintable characters: %q", line)
		}
		if text.Width(line) > width && line != o.Path && !strings.HasPrefix(line, "perfagent show ") {
			t.Errorf("line is %d cells wide, want at most %d: %q", text.Width(line), width, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line has trailing spaces: %q", line)
		}
	}
	return words
}

// whole requests all that is known.
var whole = Options{Long: true, Whole: true}

// bothSummaries returns the short and the whole summary of a report with the given path.
func bothSummaries(t *testing.T, r *reporter.Report, path string) string {
	t.Helper()
	long := whole
	long.Path = path
	short := summaryOf(t, r, Options{Path: path})
	if lines := strings.Count(short, "\n"); lines > shortLines && len(r.Nodes) < 2 {
		t.Errorf("short summary has %d lines, want at most %d:\n%s", lines, shortLines, short)
	}
	return short + "\n=== whole\n" + summaryOf(t, r, long)
}

func TestWrite_Golden(t *testing.T) {
	for name, r := range reportertest.Golden() {
		t.Run(name, func(t *testing.T) {
			got := bothSummaries(t, r, "perfagent-out/20240501-120000-7f3a/node-0.json")
			reportertest.CompareGolden(t, filepath.Join("testdata", name+".txt"), []byte(got), *update)
			for _, width := range []int{1, 20, 60, 80, 200} {
				summaryOf(t, r, Options{Color: true, Width: width})
			}
		})
	}
}

func TestWrite_ColorChangesOnlyColors(t *testing.T) {
	r := reporter.New(reportertest.JobInput(0, 90, 137, "SIGKILL"))
	plain := summaryOf(t, r, Options{})
	coloured := summaryOf(t, r, Options{Color: true})
	if strings.Contains(plain, "\x1b") || !strings.Contains(coloured, "\x1b[1;31mperfagent: Killed by SIGKILL") {
		t.Errorf("with colour %q, without %q; want colour only if requested, and the first line in the colour of alarms",
			coloured, plain)
	}
	check.Equal(t, regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured, ""), plain,
		"coloured summary without its colours")
}

func TestWrite_NeverCutsPath(t *testing.T) {
	path := "/" + strings.Repeat("long/", 40) + "node-0.json"
	words := summaryOf(t, reportertest.Sidecar(), Options{Path: path, Long: true})
	if !strings.HasSuffix(words, "\n"+path+"\n") {
		t.Errorf("last line is not the path %s:\n%s", path, words)
	}
}

func TestWrite_PrintsEachReasonOnce(t *testing.T) {
	words := summaryOf(t, reportertest.Incomplete(), whole)
	check.Equal(t, strings.Count(words, "/proc/diskstats"), 1, "number of mentions of the reason")
	check.Contains(t, "summary", words, "(3 of 126 readings)")
	wantNone(t, "summary", words, "no job")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("pipe is gone") }

func TestWrite_ReturnsWriteErrors(t *testing.T) {
	w, job, work := brokenWriter{}, reportertest.Sidecar(), workReports()["work"]
	for _, c := range []struct {
		err  error
		want string
	}{
		{Write(w, job, Options{}), "pipe is gone"}, {WriteMarkdown(w, job, Options{}), "write Markdown: pipe is gone"},
		{WriteOperations(w, work), "write operations: pipe is gone"}, {WriteOperationKey(w, work, "k1"), "write operations: pipe is gone"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want one containing %q", c.err, c.want)
		}
	}
}

// No number makes a line too wide.
func TestWrite_FitsWidthWithAnyNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	reports := []*reporter.Report{reportertest.ThreeNodes(), reporter.New(reportertest.JobInput(0, 3, 0, ""))}
	for i := range 120 {
		number := func() float64 { return (rng.Float64() - 0.2) * math.Pow(10, float64(rng.IntN(40)-10)) }
		r := reports[i%len(reports)]
		r.Run.WallSeconds = number()
		for _, key := range r.NodeNames() { // the same numbers in each run
			n := r.Nodes[key]
			for _, name := range slices.Sorted(maps.Keys(n.Metrics)) {
				n.Metrics[name] = number()
			}
			n.Host.MemoryMB, n.Host.CPUs = number(), rng.Int()
			n.Limits = &reporter.Limits{CPUs: number(), CPUQuota: series.Optional(number()), MemoryMB: series.Optional(number()), CPUSetCPUs: rng.Int(), AffinityCPUs: rng.Int()}
			n.GPUs = []reporter.GPU{{MemoryMB: series.Optional(number()), PowerLimitWatts: series.Optional(number()), ClockMHz: series.Optional(number()), Index: rng.Int(), OfJob: true}, {}}
			n.Job.PeakMemoryMB, n.Job.CPUSeconds = number(), number()
			n.Job.UserSeconds, n.Job.MaxRSSMB, n.Job.ExitCode = number(), number(), new(rng.Int())
			n.Agent.CPUSeconds, n.Sampling.Samples, n.Sampling.MissedTicks = number(), rng.Int64(), rng.Int64()
		}
		summaryOf(t, r, Options{})
		summaryOf(t, r, whole)
	}
}

// The summary names the GPU with a missing metric.
func TestMissingGroups_NameGPU(t *testing.T) {
	r := &reporter.Report{Nodes: map[string]*reporter.Node{"0": {Missing: []reporter.Missing{
		{What: "gpu_3_power_watts", Why: "nvidia-smi printed [N/A]"}, {What: "max_t_gpu_3_power_watts", Why: "nvidia-smi printed [N/A]"}, {What: "gpu_3_utilization_pct", Why: "nvidia-smi printed [N/A]"}}}}}
	list := missingGroups(r)
	if len(list) != 1 || list[0].text(1) != "gpu 3: nvidia-smi printed [N/A]" {
		t.Errorf("missing %+v, want one group: gpu 3: nvidia-smi printed [N/A]", list)
	}
}

// A source that fails on two nodes forms one group with the metrics that need it, even if it did not fail equally
// often. Another reason with the same code forms another group.
func TestMissingGroups_GroupByCodeAndSource(t *testing.T) {
	const broken = "open /proc/stat: permission denied"
	node := func(count int64) *reporter.Node {
		return &reporter.Node{Missing: []reporter.Missing{
			{What: "disk", Code: reporter.Unreadable, Why: "statfs /: no response (1 of 10 readings)", Count: 1, Total: 10},
			{What: "cpu", Code: reporter.Unreadable, Why: fmt.Sprintf("%s (%d of 10 readings)", broken, count), Count: count, Total: 10},
			{What: "cpu_avg_utilization_pct", Code: reporter.Unreadable, Why: broken},
			{What: "node_cpu_hours", Code: reporter.Unreadable, Why: "the number of CPUs is unknown: " + broken},
			{What: "job_cpu_seconds", Code: reporter.NoJob, Why: "no job was wrapped"},
			{What: "journal", Code: reporter.JournalFailed, Why: "the disk is full"},
		}}
	}
	list := missingGroups(&reporter.Report{Nodes: map[string]*reporter.Node{"0": node(9), "1": node(10), "2": {}}})

	var got []string
	for _, a := range list {
		got = append(got, a.text(3))
	}
	want := []string{
		"disk on node 0, 1: statfs /: no response (1 of 10 readings)", "cpu on node 0, 1: " + broken + " (9 of 10 readings)",
		"journal on node 0, 1: the disk is full",
	}
	check.Equal(t, got, want, "groups")
}
