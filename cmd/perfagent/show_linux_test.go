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

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// showIn runs perfagent show with the given locale on r, written to node-0.json in a new directory, and checks the exit
// code.
func showIn(t *testing.T, code int, r *reporter.Report, locale string, args ...string) clitest.Outcome {
	t.Helper()
	cmd := insideCommand(t, append([]string{"show", "node-0.json"}, args...)...)
	data, err := reporter.Encode(r)
	check.Must(t, err)
	clitest.Write(t, filepath.Join(cmd.Dir, "node-0.json"), string(data), 0o644)
	cmd.Env = append(cmd.Env, "LC_ALL="+locale)
	return cmd.want(t, code)
}

// showGolden compares an output of show with a golden file.
func showGolden(t *testing.T, name, got string) {
	t.Helper()
	reportertest.CompareGolden(t, filepath.Join("testdata", "show", name), []byte(got), *update)
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
	check.Must(t, err)
	week.Nodes["1"], week.Nodes["2"] = &half, old.Nodes["0"]
	return week
}

func TestShow_OutputEqualsGoldenFiles(t *testing.T) {
	week, nodes := plottertest.Week(t), showNodes(t)
	for name, r := range map[string]*reporter.Report{"week": week, "nodes": nodes} {
		showGolden(t, name+".txt", showIn(t, 0, r, "C.UTF-8").Out)
		showGolden(t, name+"-ascii.txt", showIn(t, 0, r, "C").Out)
		showGolden(t, name+".md", showIn(t, 0, r, "C", "--format", "md").Out) // browsers ignore the locale
	}
}

// A burst of two seconds in a week is a full cell in the terminal and in Markdown, and one row with a small mean in
// CSV.
func TestShow_KeepsBurstOfTwoSecondsInAWeek(t *testing.T) {
	week := plottertest.Week(t)
	full := regexp.MustCompile(`(?m)^(CPU|disk) +[▁-▇]*█[▁-▇]* +0 to 100`)
	for _, args := range [][]string{nil, {"--format", "md"}} {
		if o := showIn(t, 0, week, "C.UTF-8", args...); len(full.FindAllString(o.Out, -1)) != 2 {
			t.Errorf("show %q lacks the burst in CPU or disk, want a full cell in both:\n%s", args, o.Out)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(showIn(t, 0, week, "C", "--format", "csv").Out)).ReadAll()
	check.Must(t, err)
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
					t.Errorf("%s: the mean in the row of the burst is %s (%v), want at most %v", key, row[middle], err, mean)
				}
			}
		}
		if !slices.Equal(bursts, []int{plottertest.BurstAt / 1024}) {
			t.Errorf("%s: the burst is in the rows %d, want only %d", key, bursts, plottertest.BurstAt/1024)
		}
	}
}

func TestShow_ChecksFormats(t *testing.T) {
	path := plottertest.Write(t, plottertest.Week(t))
	for args, same := range map[string]string{
		"--format text": "", "--format json": "--json", "--format json --json": "--json", "--format markdown": "--format md",
		"--json=false --format csv": "--format csv",
	} {
		a := wantInside(t, 0, append([]string{"show", path}, strings.Fields(args)...)...)
		b := wantInside(t, 0, append([]string{"show", path}, strings.Fields(same)...)...)
		if a.Out != b.Out || a.Err != b.Err || a.Out == "" {
			t.Errorf("%q: stdout %q, stderr %q; want the same as stdout %q, stderr %q", args, a.Out, a.Err, b.Out, b.Err)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"--format yaml", `--format: "yaml" is not text, md, csv, json or jsonl`},
		{"--format=", `--format: "" is not text, md, csv, json or jsonl`},
		{"--format CSV", `--format: "CSV" is not text, md, csv, json or jsonl`},
		{"--json --format csv", "--format: only one format can be printed, not both json and csv"},
		{"--format text --json", "--json: only one format can be printed, not both text and json"},
		{"--format md nothing.json", "nothing.json"},
	} {
		wantError(t, inside(t, append([]string{"show"}, strings.Fields(c.args)...)...), 1, c.want)
	}
	for _, format := range []string{"text", "md", "csv", "json"} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		check.Must(t, err)
		defer full.Close()
		cmd := insideCommand(t, "show", "--format", format, path)
		cmd.Stdout = full
		o := cmd.want(t, 1)
		if !strings.HasSuffix(o.Err, "no space left on device\n") {
			t.Errorf("--format %s: stderr %q, want \"no space left on device\" at its end", format, o.Err)
		}
	}
}

// The first locale variable that is set determines whether the terminal supports UTF-8.
func TestShow_LocaleDeterminesCharacters(t *testing.T) {
	path := plottertest.Write(t, plottertest.Week(t))
	for locale, utf8 := range map[[3]string]bool{
		{"", "", ""}: false, {"", "", "en_US.UTF-8"}: true, {"", "", "de_DE.utf8"}: true, {"", "", "C"}: false,
		{"", "POSIX", "en_US.UTF-8"}: false, {"", "C.UTF-8", "C"}: true, {"C", "C.UTF-8", "C.UTF-8"}: false,
		{"C.UTF-8", "C", "C"}: true, {"de_DE.ISO-8859-1", "", "C.UTF-8"}: false,
	} {
		cmd := insideCommand(t, "show", path)
		cmd.Env = append(cmd.Env, "LC_ALL="+locale[0], "LC_CTYPE="+locale[1], "LANG="+locale[2])
		o := cmd.want(t, 0)
		if strings.Contains(o.Out, "█") != utf8 || strings.Contains(o.Out, "@") == utf8 {
			t.Errorf("locale %q: want blocks only with UTF-8, and @ only without UTF-8:\n%s", locale, o.Out)
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
	o := cmd.want(t, 0)
	picture := regexp.MustCompile(`(?m)^ +each curve to its own peak\n(.+\n)*CPU  .* [▁-█ ]{8,}\n`)
	if !picture.MatchString(o.Err) || strings.Count(o.Err, "\n") > 14 {
		t.Errorf("summary lacks the curve, or has more than 14 lines:\n%s", o.Err)
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
	check.Must(t, syscall.Mkfifo(fifo, 0o600))
	says(t, wantInside(t, 1, "show", fifo), fifo+" is empty")
}

// show without a name takes the run that started last.
func TestShow_PicksRunThatStartedLast(t *testing.T) {
	dir := t.TempDir()
	insideIn(t, dir, "run", "--run-id", "b", "--", "true").Want(t, 0)
	insideIn(t, dir, "run", "--run-id", "a", "--node", "3", "--", "true").Want(t, 0)
	later := time.Now().Add(time.Hour)
	check.Must(t, os.Chtimes(filepath.Join(dir, "perfagent-out/b/node-0.json"), later, later)) // only the start determines a run's age
	clitest.Write(t, filepath.Join(dir, "perfagent-out/a/other.json"), "", 0o644)
	clitest.Write(t, filepath.Join(dir, "perfagent-out/a/node-x.json"), "", 0o644)

	for _, c := range []struct{ args, env, run string }{
		{"show", "", "a"}, {"show @-2", "", "b"}, {"show b", "", "b"}, {"show --out perfagent-out/a", "", "a"},
		{"show perfagent-out/a", "", "a"}, {"show", "PERFAGENT_OUT=perfagent-out/a", "a"},
	} {
		o := (&insideLine{Args: strings.Fields(c.args), Dir: dir, Env: []string{c.env}}).want(t, 0)
		if got := regexp.MustCompile(`(?m)^run +([^\s,]+)`).FindStringSubmatch(o.Out); got == nil || got[1] != c.run {
			t.Errorf("perfagent %s (%s): run %q, want %q:\n%s", c.args, c.env, got, c.run, o.Out)
		}
	}
}
