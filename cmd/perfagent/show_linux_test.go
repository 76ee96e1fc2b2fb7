package main

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// showIn runs perfagent show with the given locale on r, written to node-0.json in a new directory.
func showIn(t *testing.T, r *reporter.Report, locale string, args ...string) clitest.Outcome {
	t.Helper()
	cmd := insideCommand(t, append([]string{"show", "node-0.json"}, args...)...)
	data, err := reporter.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Write(t, filepath.Join(cmd.Dir, "node-0.json"), string(data), 0o644)
	cmd.Env = append(cmd.Env, "LC_ALL="+locale)
	return cmd.perform(t)
}

// showGolden compares an output of show with a golden file.
func showGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "show", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		clitest.Write(t, file, got, 0o644)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not current (go test ./cmd/perfagent -run Show -update):\n%s", file, diff)
	}
}

// showNodes returns a report of three nodes: the second ends halfway, and the third is from perf.py.
func showNodes(t *testing.T) *reporter.Report {
	t.Helper()
	week := plottertest.Week(t)
	half := *week.Nodes["0"]
	half.Samples.Columns = slices.Clone(half.Samples.Columns)
	kept := half.Samples.Len() / 2
	for i, column := range half.Samples.Columns {
		half.Samples.Columns[i] = column[:kept]
	}
	half.Envelope = maps.Clone(half.Envelope)
	for key, b := range half.Envelope {
		half.Envelope[key] = reporter.Band{Min: b.Min[:kept], Mean: b.Mean[:kept], Max: b.Max[:kept]}
	}
	start := plottertest.WeekStart().Unix()
	old, err := reporter.ParsePerfPy(fmt.Appendf(nil, `{"0": [{"cpu_pct_per_cpu_avg": 50, "timestamp": %d}, {"cpu_pct_per_cpu_avg": 0, "timestamp": %d}]}`,
		start+100_000, start+200_000), 4)
	if err != nil {
		t.Fatal(err)
	}
	week.Nodes["1"], week.Nodes["2"] = &half, old.Nodes["0"]
	return week
}

func TestShow_OutputEqualsGoldenFiles(t *testing.T) {
	week, nodes := plottertest.Week(t), showNodes(t)
	for name, r := range map[string]*reporter.Report{"week": week, "nodes": nodes} {
		for locale, suffix := range map[string]string{"C.UTF-8": ".txt", "C": "-ascii.txt"} {
			o := showIn(t, r, locale)
			o.Want(t, 0)
			showGolden(t, name+suffix, o.Out)
		}
		o := showIn(t, r, "C", "--format", "md") // browsers ignore the locale
		o.Want(t, 0)
		showGolden(t, name+".md", o.Out)
	}
}

// A burst of two seconds in a week is a full cell in the terminal and in Markdown, and one row with a small mean in
// CSV.
func TestShow_KeepsBurstOfTwoSecondsInAWeek(t *testing.T) {
	week := plottertest.Week(t)
	full := regexp.MustCompile(`(?m)^(CPU|disk) +[▁-▇]*█[▁-▇]* +0 to 100`)
	for _, args := range [][]string{nil, {"--format", "md"}} {
		if o := showIn(t, week, "C.UTF-8", args...); len(full.FindAllString(o.Out, -1)) != 2 {
			t.Errorf("show %q lacks the burst in CPU or disk, want a full cell in both:\n%s", args, o.Out)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(showIn(t, week, "C", "--format", "csv").Out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+week.Nodes["0"].Samples.Len() || rows[0][0] != "timestamp [s]" {
		t.Fatalf("%d rows, the first %q; want a header with timestamp [s] and one per sample", len(rows), rows[0])
	}
	for key, mean := range map[string]float64{"cpu_pct_per_cpu_avg%s [%%]": 45, "disk_io_write_mb_per_second%s [MiB/s]": 1} {
		var bursts []int
		most := slices.Index(rows[0], fmt.Sprintf(key, ".max"))
		middle := slices.Index(rows[0], fmt.Sprintf(key, ".mean"))
		for i, row := range rows[1:] {
			if row[most] == "100" {
				bursts = append(bursts, i)
				if v, err := strconv.ParseFloat(row[middle], 64); err != nil || v > mean {
					t.Errorf("%s: the mean in the row of the burst is %s (%v), want at most %v",
						key, row[middle], err, mean)
				}
			}
		}
		if !slices.Equal(bursts, []int{plottertest.BurstAt / 1024}) {
			t.Errorf("%s: the burst is in the rows %d, want only %d", key, bursts, plottertest.BurstAt/1024)
		}
	}
}

func TestShow_ChecksFormats(t *testing.T) {
	r := plottertest.Week(t)
	same := func(a, b clitest.Outcome) {
		t.Helper()
		a.Want(t, 0)
		b.Want(t, 0)
		if a.Out != b.Out || a.Err != b.Err || a.Out == "" {
			t.Errorf("stdout %q, stderr %q; want the same as stdout %q, stderr %q", a.Out, a.Err, b.Out, b.Err)
		}
	}
	same(showIn(t, r, "C", "--format", "text"), showIn(t, r, "C"))
	same(showIn(t, r, "C", "--format", "json"), showIn(t, r, "C", "--json"))
	same(showIn(t, r, "C", "--format", "json", "--json"), showIn(t, r, "C", "--json"))
	same(showIn(t, r, "C", "--format", "markdown"), showIn(t, r, "C", "--format", "md"))
	same(showIn(t, r, "C", "--json=false", "--format", "csv"), showIn(t, r, "C", "--format", "csv"))
	for _, c := range []struct{ args, want string }{
		{"--format yaml", `--format: "yaml" is not text, md, csv, json or jsonl`},
		{"--format=", `--format: "" is not text, md, csv, json or jsonl`},
		{"--format CSV", `--format: "CSV" is not text, md, csv, json or jsonl`},
		{"--json --format csv", "--format: only one format can be printed, not both json and csv"},
		{"--format text --json", "--json: only one format can be printed, not both text and json"},
		{"--format md nothing.json", "nothing.json"},
	} {
		o := inside(t, append([]string{"show"}, strings.Fields(c.args)...)...)
		o.Want(t, 1)
		o.WantLine(t, c.want)
		if o.Out != "" {
			t.Errorf("%s: stdout %q, want none", c.args, o.Out)
		}
	}
	path := plottertest.Write(t, r)
	for _, format := range []string{"text", "md", "csv", "json"} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		cmd := insideCommand(t, "show", "--format", format, path)
		cmd.Stdout = full
		o := cmd.perform(t)
		o.Want(t, 1)
		if !strings.HasSuffix(o.Err, "no space left on device\n") {
			t.Errorf("--format %s: stderr %q, want \"no space left on device\" at its end", format, o.Err)
		}
	}
}

// The first locale variable that is set determines whether the terminal supports UTF-8.
func TestShow_LocaleDeterminesCharacters(t *testing.T) {
	path := plottertest.Write(t, plottertest.Week(t))
	for _, c := range []struct {
		all, ctype, lang string
		utf8             bool
	}{
		{"", "", "", false},
		{"", "", "en_US.UTF-8", true},
		{"", "", "de_DE.utf8", true},
		{"", "", "C", false},
		{"", "POSIX", "en_US.UTF-8", false},
		{"", "C.UTF-8", "C", true},
		{"C", "C.UTF-8", "C.UTF-8", false},
		{"C.UTF-8", "C", "C", true},
		{"de_DE.ISO-8859-1", "", "C.UTF-8", false},
	} {
		cmd := insideCommand(t, "show", path)
		cmd.Env = append(cmd.Env, "LC_ALL="+c.all, "LC_CTYPE="+c.ctype, "LANG="+c.lang)
		o := cmd.perform(t)
		o.Want(t, 0)
		if strings.Contains(o.Out, "█") != c.utf8 || strings.Contains(o.Out, "@") == c.utf8 {
			t.Errorf("locale %+v: want blocks only with UTF-8, and @ only without UTF-8:\n%s", c, o.Out)
		}
	}
}

// On a terminal, the curves have the width of the terminal, and the summary names the page.
func TestShow_FitsTerminalAndNamesPage(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{50, 60, 80, 200} {
		path := plottertest.Write(t, plottertest.Week(t))
		clitest.Write(t, strings.TrimSuffix(path, ".json")+".html", "", 0o644)
		// The terminal is resized before perfagent reads the size.
		cmd := clitest.Script(t, "/bin/sh", `read go; exec "$P" show "$1"`, path)
		cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8", "NO_COLOR=1")
		m := clitest.OnTerminal(t, cmd)
		clitest.Resize(t, m.TTY, 24, columns)
		m.Send("\n")
		screen, code := m.End()
		if code != 0 || !strings.Contains(screen, "report") || !strings.HasSuffix(strings.TrimSpace(screen), ".html") {
			t.Errorf("%d columns: exit code %d, want 0 and the page at the end:\n%s", columns, code, screen)
		}
		widest := 0
		for line := range strings.Lines(screen) {
			if strings.ContainsAny(line, "▁█") {
				widest = max(widest, len([]rune(strings.TrimRight(line, "\r\n"))))
			}
		}
		if want := min(columns, summary.Width); widest > want || widest < want-5 || strings.Count(screen, "  0 to 100 %\r\n") != 2 {
			t.Errorf("%d columns: the curves are %d wide, want %d to %d, with 2 scales:\n%s",
				columns, widest, want-5, want, screen)
		}
	}
}

// The summary of run is short and has curves. Without a summary, stderr is empty.
func TestSummary_HasCurves(t *testing.T) {
	testenv.SkipIfShort(t, "a second for its samples")
	args := []string{"run", "--interval", "50ms", "--summary", "always", "--", "sh", "-c", untilSampledSo(10) + "; exit 0"}
	cmd := insideCommand(t, args...)
	cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8")
	begin := time.Now()
	o := cmd.perform(t)
	o.Want(t, 0)
	picture := regexp.MustCompile(`(?m)^ +each curve to its own peak\n(.+\n)*CPU  .* [▁-█ ]{8,}\n`)
	if !picture.MatchString(o.Err) || strings.Count(o.Err, "\n") > 14 {
		t.Errorf("summary after %v lacks the curve, or has more than 14 lines:\n%s", time.Since(begin), o.Err)
	}
	args[4] = "never"
	if o := inside(t, args...); o.Err != "" {
		t.Errorf("stderr %q, want none", o.Err)
	}
}

// On a terminal, the list of metrics fits the width of the terminal.
func TestMetrics_FitTerminal(t *testing.T) {
	t.Parallel()
	screen, code := clitest.OnTerminal(t, clitest.Perfagent(t, "metrics")).End()
	if code != 0 {
		t.Errorf("exit code %d, want 0:\n%.2000s", code, screen)
	}
	for _, m := range allMetrics() {
		if !strings.Contains("\n"+screen, "\n"+m.Name+", "+string(m.Unit)+"\r\n    "+m.Meaning[:10]) {
			t.Errorf("the list lacks the metric %s with its unit and meaning", m.Name)
		}
	}
	for line := range strings.Lines(screen) {
		if n := len([]rune(strings.TrimRight(line, "\r\n"))); n > summary.Width {
			t.Errorf("a line of %d columns, want at most %d: %q", n, summary.Width, line)
		}
	}
}

// show treats a FIFO without a writer as an empty file, and does not wait for a writer.
func TestShow_DoesNotWaitForFIFO(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	o := insideCommand(t, "show", fifo).perform(t)
	o.Want(t, 1)
	if !strings.Contains(o.Err, fifo+" is empty") {
		t.Errorf("stderr %q, want \"%s is empty\"", o.Err, fifo)
	}
}

// show without a name takes the run that started last.
func TestShow_PicksRunThatStartedLast(t *testing.T) {
	dir := t.TempDir()
	insideIn(t, dir, "run", "--run-id", "b", "--", "true").Want(t, 0)
	insideIn(t, dir, "run", "--run-id", "a", "--node", "3", "--", "true").Want(t, 0)
	b := filepath.Join(dir, "perfagent-out/b/node-0.json")
	touch := func(path string, at time.Time) {
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	touch(b, time.Now().Add(time.Hour)) // only the start of a run determines its age
	clitest.Write(t, filepath.Join(dir, "perfagent-out/a/other.json"), "", 0o644)
	clitest.Write(t, filepath.Join(dir, "perfagent-out/a/node-x.json"), "", 0o644)

	shows := func(run string, l *insideLine) {
		t.Helper()
		l.Dir = dir
		o := l.perform(t)
		o.Want(t, 0)
		if got := regexp.MustCompile(`(?m)^run +([^\s,]+)`).FindStringSubmatch(o.Out); got == nil || got[1] != run {
			t.Errorf("perfagent %q: run %q, want %q:\n%s", l.Args, got, run, o.Out)
		}
	}
	shows("a", insideCommand(t, "show"))
	shows("b", insideCommand(t, "show", "@-2"))
	shows("b", insideCommand(t, "show", "b"))
	shows("a", insideCommand(t, "show", "--out", "perfagent-out/a"))
	shows("a", insideCommand(t, "show", "perfagent-out/a"))
	byVariable := insideCommand(t, "show")
	byVariable.Env = []string{"PERFAGENT_OUT=perfagent-out/a"}
	shows("a", byVariable)
}
