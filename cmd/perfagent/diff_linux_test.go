package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/comparer"
)

// diffWork is the environment variable that holds the helper's number of rounds.
const diffWork = "E2E_WORK"

// diffBurn is a helper that uses a fixed amount of CPU time.
func diffBurn() {
	clitest.LimitLifetime()
	rounds, err := strconv.ParseUint(os.Getenv(diffWork), 10, 64)
	if err != nil {
		panic(err)
	}
	if diffRounds(rounds) == 0 {
		panic("xorshift reached 0")
	}
}

// diffRounds does arithmetic that no compiler eliminates.
func diffRounds(n uint64) uint64 {
	x := uint64(88172645463325252)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// diffRoundsOf returns the number of rounds that take the given CPU time on this machine.
func diffRoundsOf(t *testing.T, cpu time.Duration) uint64 {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var ru unix.Rusage
		check.Must(t, unix.Getrusage(unix.RUSAGE_THREAD, &ru))
		return time.Duration(ru.Utime.Nano())
	}
	for n := uint64(1 << 20); ; n *= 2 {
		begin := used()
		if diffRounds(n) == 0 {
			t.Fatal("xorshift reached 0")
		}
		if took := used() - begin; took > 50*time.Millisecond {
			return n * uint64(cpu) / uint64(took)
		}
	}
}

// diffJSON is the part of diff --format json that users rely on.
type diffJSON struct {
	Metrics []struct {
		Name      string   `json:"name"`
		Unit      string   `json:"unit"`
		A         *float64 `json:"a"`
		B         *float64 `json:"b"`
		ChangePct *float64 `json:"change_pct"`
		P         *float64 `json:"p_value"`
		Changed   *bool    `json:"changed"`
	} `json:"metrics"`
	Gates []comparer.GateResult `json:"gates"`
	Notes []string              `json:"notes"`
}

// diffOutput parses stdout, which must be a single JSON value, and checks the names of its metrics.
func diffOutput(t *testing.T, o clitest.Outcome) (d diffJSON) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(o.Out))
	if err := dec.Decode(&d); err != nil || dec.More() {
		t.Fatalf("stdout is not one JSON value: %v\n%s%s", err, o.Out, o.Err)
	}
	var names []string
	for _, m := range d.Metrics {
		names = append(names, m.Name)
	}
	// The metrics of a device exist only on nodes that have the device.
	everywhere := slices.DeleteFunc(comparer.MetricNames(), func(name string) bool {
		m, ok := reporter.MetricByName(name)
		return ok && m.OfDevice() && !slices.Contains(names, name)
	})
	if !slices.Equal(names, everywhere) {
		t.Errorf("metrics %q, want %q", names, everywhere)
	}
	return d
}

// diffCPU returns the change of the job's CPU time in percent, and whether it is significant.
func diffCPU(t *testing.T, o clitest.Outcome) (pct float64, changed bool) {
	t.Helper()
	for _, m := range diffOutput(t, o).Metrics {
		if m.Name == "job_cpu_seconds" && m.ChangePct != nil && m.Changed != nil {
			return *m.ChangePct, *m.Changed
		}
	}
	t.Fatalf("stdout lacks the change of job_cpu_seconds:\n%s", o.Out)
	return 0, false
}

// diffSets writes copies of a real report with the given CPU times of the job: one directory for each set, and one file
// for each run. It returns their parent directory.
func diffSets(t *testing.T, sets map[string][]float64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	call("run", "--out", dir, "--run-id", "real", "--", "true").Want(t, 0)
	path := filepath.Join(dir, "real", "node-0.json")
	for name, values := range sets {
		for i, v := range values {
			r := reportertest.ReadFile(t, path)
			r.Run.ID = name
			r.Run.Start.Time = r.Run.Start.Add(time.Duration(i) * time.Hour)
			r.Nodes["0"].Metrics["job_cpu_seconds"] = v
			writeReport(t, filepath.Join(dir, name, fmt.Sprintf("node-0.%d.json", i+2)), r)
		}
	}
	return dir
}

// diffIn runs diff in a directory.
func diffIn(t *testing.T, dir string, args ...string) clitest.Outcome {
	t.Helper()
	return insideIn(t, dir, append([]string{"diff"}, args...)...)
}

func TestDiff_ExitCodeReportsOutcome(t *testing.T) {
	dir := diffSets(t, map[string][]float64{
		"slow": {1.2, 1.21, 1.19, 1.2, 1.22}, "fast": {1, 1.01, 0.99, 1, 1.02}, "one": {1}, "other": {1.2},
	})
	check.Must(t, errors.Join(os.Mkdir(filepath.Join(dir, "nothing"), 0o755), os.Mkdir(filepath.Join(dir, "mixed"), 0o755)))
	for name, text := range map[string]string{
		"broken.json": `{"schema": "perfagent.report/1", "nodes`, "empty.json": "", "list.json": "[]", "mixed/list.json": "[]",
		"newer.json": `{"schema": "perfagent.report/2"}`,
		"nojob.json": `{"schema": "perfagent.report/1", "run": {"id": "x"}, "nodes": {"0": {"metrics": {}, "samples": [], "missing": []}}}`,
	} {
		clitest.Write(t, filepath.Join(dir, name), text, 0o644)
	}
	gate := func(condition string, more ...string) []string {
		return append([]string{"--fail-if", condition}, more...)
	}
	for _, test := range []struct {
		name  string
		args  []string
		code  int
		lines int      // on stderr
		words []string // on stderr
	}{
		{"equal runs", []string{"fast", "fast"}, 0, 0, nil},
		{"with --", []string{"fast", "--", "slow"}, 0, 0, nil},
		{"gate passes", gate("job_cpu_seconds > +10%", "slow", "fast"), 0, 0, nil},
		{"gate fires", gate("job_cpu_seconds > +10%", "fast", "slow"), 1, 1, []string{"gate 'job_cpu_seconds > +10%' FAILED: +20.00 %"}},
		{"gate fires, as JSON", gate("job_cpu_seconds > +10%", "--format", "json", "fast", "slow"), 1, 1, []string{"FAILED"}},
		{"gate fires, as Markdown", gate("job_cpu_seconds > +10%", "--format=md", "fast", "slow"), 1, 1, []string{"FAILED"}},
		{"two gates fire", append(gate("job_cpu_seconds > +10%"), gate("job_cpu_seconds>=1.2", "fast", "slow")...), 1, 2, []string{"+20.00 %", "B has 1.2 s"}},
		{"few runs", gate("job_cpu_seconds > +10%", "one", "other"), 1, 1, []string{"too few runs", "plain difference"}},
		{"few runs, change below the limit", gate("job_cpu_seconds > +30%", "one", "other"), 0, 0, nil},
		{"gate without its metric", gate("job_cpu_seconds > +10%", "fast", "nojob.json"), 2, 1, []string{"cannot be judged", "B does not have the metric"}},
		{"one fires, one cannot be judged", append(gate("job_cpu_seconds > 1"), gate("wall_seconds > +1%", "nojob.json", "slow")...), 2, 2, []string{"FAILED", "cannot be judged: A does not have"}},
		{"one cannot be judged, one fires", append(gate("wall_seconds > +1%"), gate("job_cpu_seconds > 1", "nojob.json", "slow")...), 2, 2, []string{"FAILED", "cannot be judged: A does not have"}},
		{"no arguments", nil, 2, 1, []string{"not 0"}},
		{"one argument", []string{"fast"}, 2, 1, []string{"not 1"}},
		{"three names without --", []string{"fast", "slow", "one"}, 2, 1, []string{"--", "not 3"}},
		{"nothing before --", []string{"--", "fast", "slow"}, 2, 1, []string{"before the --"}},
		{"nothing after --", []string{"fast", "slow", "--"}, 2, 1, []string{"after the --"}},
		{"no such file", []string{"fast", "gone.json"}, 2, 1, []string{"gone.json"}},
		{"flag after --", []string{"fast", "--", "slow", "--format"}, 2, 1, []string{"flags go before the --"}},
		{"report cut off", []string{"fast", "broken.json"}, 2, 1, []string{"broken.json", "cut off"}},
		{"empty file", []string{"empty.json", "fast"}, 2, 1, []string{"empty.json", "empty"}},
		{"JSON list", []string{"list.json", "fast"}, 2, 1, []string{"list.json"}},
		{"newer schema", []string{"newer.json", "fast"}, 2, 1, []string{"newer.json", "report/2"}},
		{"directory without reports", []string{"nothing", "fast"}, 2, 1, []string{"nothing", "node-*.json", "*.json in it"}},
		{"directory with JSON that is not a report", []string{"fast", "mixed"}, 2, 1, []string{"mixed/list.json"}},
		{"percentage without a sign", gate("max_t_mem_percent > 90%", "fast", "slow"), 2, 1, []string{"--fail-if", "> +90%", "> 90"}},
		{"bad flag", []string{"--fail", "x", "fast", "slow"}, 2, 1, []string{"--fail"}},
		{"bad format", []string{"--format", "yaml", "fast", "slow"}, 2, 1, []string{"--format", "yaml"}},
		{"bad number of CPUs", []string{"--cpus", "-1", "fast", "slow"}, 2, 1, []string{"--cpus"}},
		{"bad condition", gate("job_cpu_seconds + 10%", "fast", "slow"), 2, 1, []string{"--fail-if", "METRIC OP VALUE"}},
		{"unknown metric", gate("cpu > 10%", "fast", "slow"), 2, 1, []string{"--fail-if", `"cpu"`, "did you mean"}},
		{"no similar metric", gate("zzz > 10%", "fast", "slow"), 2, 1, []string{"--fail-if", `"zzz"`, "perfagent metrics"}},
		{"name with control characters", []string{"fast", "\x1b[31m\n"}, 2, 1, []string{`\x1b[31m\n`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := wantInsideIn(t, dir, test.code, append([]string{"diff"}, test.args...)...)
			clitest.WantLines(t, o.Err, test.lines, test.lines)
			wantContains(t, o.Err, test.words...)
			// The comparison is printed even if a gate cannot be judged.
			if compared := test.code != 2 || strings.Contains(o.Err, "cannot be judged"); compared != (o.Out != "") {
				t.Errorf("exit code %d: stdout %q, want the comparison only if it was made", test.code, o.Out)
			}
		})
	}
}

// diff accepts journals, perf.py's JSON, merged reports, directories and links to them, as show does.
func TestDiff_ReadsEveryKindOfInput(t *testing.T) {
	dir := diffSets(t, map[string][]float64{"a": {1, 2, 3, 4}, "b": {5, 6, 7, 8}})
	d := diffOutput(t, diffIn(t, dir, "--format", "json", "a", "b"))
	for _, m := range d.Metrics {
		if m.Unit == "" {
			t.Errorf("metric %s has no unit", m.Name)
		}
		if m.Name == "job_cpu_seconds" && (m.A == nil || *m.A != 2.5 || *m.B != 6.5 || *m.ChangePct != 160 || !*m.Changed || *m.P > 0.0286 || *m.P < 0.0285) {
			t.Errorf("job_cpu_seconds: %+v, want 2.5, 6.5, 160 %%, changed, p 0.0286", m)
		}
	}

	check.Must(t, os.Symlink("a", filepath.Join(dir, "link")))
	if o := diffIn(t, dir, "link", "b"); o.Code != 0 || !strings.Contains(o.Out, "A: 4 runs, link") {
		t.Errorf("link to a directory: exit code %d, want 0 with 4 runs of link\n%s%s", o.Code, o.Out, o.Err)
	}

	// A directory without node-*.json stands for all *.json files in it.
	check.Must(t, os.Mkdir(filepath.Join(dir, "named"), 0o755))
	for i := range 4 {
		text := clitest.Read(t, filepath.Join(dir, "a", fmt.Sprintf("node-0.%d.json", i+2)))
		clitest.Write(t, filepath.Join(dir, "named", fmt.Sprintf("r%d.json", i)), text, 0o644)
		clitest.Write(t, filepath.Join(dir, "named", fmt.Sprintf("r%d.html", i)), "<p>a page", 0o644)
	}
	if o := diffIn(t, dir, "named", "b"); o.Code != 0 || !strings.Contains(o.Out, "A: 4 runs, named") || !strings.Contains(o.Out, "named: no node-*.json below it; took all *.json in it: 4") {
		t.Errorf("reports with other names: exit code %d, want 0 with 4 runs and a note\n%s%s", o.Code, o.Out, o.Err)
	}

	sample := func(second int) string {
		return fmt.Sprintf(`{"timestamp": %d, "cpu_pct_per_cpu_avg": 50.0, "cpu_pct_per_cpu_min": 40.0, "cpu_pct_per_cpu_max": 60.0, "mem_percent": 20.0, `+
			`"disk_usage_percent": 30.0, "disk_io_read_mb": 7000.0, "disk_io_write_mb": 8000.0, "net_io_lo_sent_mb": 1.0, "net_io_ext_sent_mb": 1.0, `+
			`"net_io_lo_recv_mb": 1.0, "net_io_ext_recv_mb": 1.0}`, 1700000000+second)
	}
	clitest.Write(t, filepath.Join(dir, "perf.json"), `{"0": [`+sample(0)+","+sample(3600)+`]}`, 0o644)
	o := wantInsideIn(t, dir, 0, "diff", "--format", "json", "--cpus", "8", "perf.json", "a")
	for _, m := range diffOutput(t, o).Metrics {
		switch m.Name {
		case "node_cpu_hours":
			if m.A == nil || *m.A != 8 {
				t.Errorf("node_cpu_hours of perf.py's JSON with --cpus 8: %v, want 8", m.A)
			}
		case "total_disk_io_read_mb":
			if m.A != nil || m.Changed != nil {
				t.Errorf("total_disk_io_read_mb of perf.py, which counts from boot: %+v, want no value and no comparison", m)
			}
		}
	}

	// The reports of two nodes of one run are compared as one run, merged or not.
	for _, node := range []string{"0", "1"} {
		inside(t, "run", "--out", dir, "--run-id", "two", "--node", node, "--", "true").Want(t, 0)
	}
	insideIn(t, dir, "merge", "two/node-0.json", "two/node-1.json", "--to", "two.json").Want(t, 0)
	o = diffIn(t, dir, "--all", "two", "two.json")
	if !strings.HasPrefix(o.Out, "B took as long as A.\nWith one run on each side, this may be noise: ") ||
		strings.Contains(o.Out, "+") || strings.Contains(o.Out, "~") || !strings.Contains(o.Out, " 0 %") {
		t.Errorf("two nodes compared with their merged report: want no change\n%s%s", o.Out, o.Err)
	}
}

// diff skips the journals in a directory, because their runs are unfinished, but compares a journal that is named.
func TestDiff_SkipsJournalsInDirectories(t *testing.T) {
	dir := diffSets(t, map[string][]float64{"a": {1}})
	cmd := clitest.Perfagent(t, "run", "--out", dir, "--run-id", "a", "--node", "1", "--interval", "10ms", "--", "sleep", "60")
	check.Must(t, cmd.Start())
	journal := filepath.Join(dir, "a", "node-1.jsonl")
	untilHas(t, journal, `{"sample"`, 1)
	check.Must(t, cmd.Process.Kill())
	clitest.Wait(t, cmd)
	if o := diffIn(t, dir, "a", "a"); o.Code != 0 || strings.Count(o.Out, "journals of unfinished runs left out: 1") != 2 {
		t.Errorf("directories with a journal: exit code %d, want 0 and a note for each side\n%s%s",
			o.Code, o.Out, o.Err)
	}
	if o := diffIn(t, dir, "a/node-1.jsonl", "a"); o.Code != 0 || !strings.Contains(o.Out, "A: 1 of 1 runs have no end") {
		t.Errorf("named journal: exit code %d, want 0 and \"1 of 1 runs have no end\"\n%s%s", o.Code, o.Out, o.Err)
	}
}

// Output has colors only on a terminal, and not with NO_COLOR or TERM=dumb.
func TestDiff_ColorsOnlyOnTerminalWithoutNoColor(t *testing.T) {
	dir := diffSets(t, map[string][]float64{"a": {1, 2, 3, 4}, "b": {5, 6, 7, 8}})
	for env, color := range map[string]bool{"LANG=C.UTF-8": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		cmd := with(clitest.Perfagent(t, "diff", "a", "b"), env)
		cmd.Dir = dir
		screen, code := clitest.OnTerminal(t, cmd).End()
		if got := strings.Contains(screen, "\x1b[1mCPU time"); code != 0 || got != color {
			t.Errorf("%s: exit code %d, want 0; colours %v, want %v\n%s", env, code, got, color, screen)
		}
		for line := range strings.Lines(screen) {
			if cells := len([]rune(strings.NewReplacer("\x1b[1m", "", "\x1b[2m", "", "\x1b[0m", "", "\r\n", "").Replace(line))); cells > 80 && !strings.Contains(line, dir) {
				t.Errorf("a line of %d cells, want at most 80: %q", cells, line)
			}
		}
	}
	if o := diffIn(t, dir, "a", "b"); strings.Contains(o.Out, "\x1b") {
		t.Errorf("output to a pipe has colours: %q", o.Out)
	}
}

// For real runs of two commands, diff prints the verdict and the commands and writes the page, but replaces an existing
// page only with --force.
func TestDiff_WritesPageWithVerdictAndKeepsExistingPage(t *testing.T) {
	dir := t.TempDir()
	for id, seconds := range map[string]string{"before": "0.1", "after": "0.5"} {
		inside(t, "run", "--out", filepath.Join(dir, "perfagent-out"), "--run-id", id, "--", "sleep", seconds).Want(t, 0)
	}
	args := []string{"diff", "--to", "diff.html", "before", "after"}

	o := wantInsideIn(t, dir, 0, args...)
	first, rest, _ := strings.Cut(o.Out, "\n")
	if !strings.HasPrefix(first, "B took ") || !strings.HasPrefix(rest, "With one run on each side, this may be noise: repeat each; "+
		"4 runs are enough.\nthe commands differ: A sleep 0.1 | B sleep 0.5\n") {
		t.Errorf("stdout begins with\n%s\n%s\nwant how long B took, and both commands", first, rest)
	}
	page := clitest.Read(t, filepath.Join(dir, "diff.html"))
	if !strings.Contains(html.UnescapeString(page), "<h1 data-verdict>"+first+"</h1>") {
		t.Errorf("the page lacks the verdict %q:\n%s", first, page)
	}

	clitest.Write(t, filepath.Join(dir, "diff.html"), "mine", 0o644)
	o = wantInsideIn(t, dir, 2, args...)
	kept := clitest.Read(t, filepath.Join(dir, "diff.html")) == "mine"
	if !strings.Contains(o.Err, "diff.html exists: use --force to replace it") || o.Out != "" || !kept {
		t.Errorf("existing page without --force: stdout %s, stderr %s; want only the hint, and the page kept",
			o.Out, o.Err)
	}
	wantInsideIn(t, dir, 0, append(args, "--force")...)
	if clitest.Read(t, filepath.Join(dir, "diff.html")) == "mine" {
		t.Error("the existing page was kept with --force, want it replaced")
	}
	diffIn(t, dir, "--to", filepath.Join("no", "such", "diff.html"), "before", "after").Want(t, 2)
}
