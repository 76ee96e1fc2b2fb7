package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter/terminal"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/summary"
)

// Samples in the docs are excerpts of what perfagent prints about recorded runs: n lines from the first one that begins
// with from. -update rewrites them.
func TestDocs_SamplesAreRecorded(t *testing.T) {
	outputs, err := filepath.Abs(outputInputs)
	check.Must(t, err)
	docs, err := filepath.Abs("../../docs")
	check.Must(t, err)
	layRecordings(t, "testdata/docs")
	golden := func(name string) func() string {
		return func() string { return clitest.Read(t, filepath.Join(outputs, name)) }
	}
	command := func(args ...string) func() string {
		return func() string {
			o := call(args...)
			o.Want(t, 0)
			return o.Out
		}
	}
	const end, whole = "perfagent: ", 0
	for _, sample := range []struct {
		page, part string
		output     func() string
		from       string
		lines      int // whole: up to an empty line
	}{
		{"ci.md", "line", func() string { return lineOf(t, "fit-06") }, end, 1},
		{"diff.md", "comparison", command("diff", "fit-04", "fit-05"), "B took", 17},
		{"findings.md", "finding", func() string { return jsonOf(t, "findings", "fit-06") }, `"findings"`, whole},
		{"operations.md", "requests", command("show", "requests"), "operations ", 4},
		{"out-of-memory.md", "killed", golden("cgroup/show.txt"), end, 7},
		{"processes.md", "processes", golden("operations/processes.txt"), "PID ", 3},
		{"quickstart.md", "summary", golden("plain/show.txt"), end, 4},
		{"runs.md", "list", command("ls", "fit-06", "serve", "evaluate", "4711"), "RUN ", 5},
		{"show.md", "line", func() string { return lineOf(t, "4711") }, end, 1},
		{"show.md", "operations", golden("operations/show.txt"), "operations ", 3},
		{"show.md", "summary", func() string { return summaryOf(t, "fit-06") }, end, 13},
		{"stop-if.md", "stopped", command("show", "serve"), end, 7},
		{"verdict.md", "evidence", func() string { return jsonOf(t, "verdict", "4711") }, `"verdict"`, whole},
		{"verdict.md", "killed", func() string { return summaryOf(t, "4711") }, end, 5},
		{"watch.md", "screen", func() string { return screenOf(t, filepath.Join(outputs, "../docs/fit-05/running.jsonl")) }, "fit-05, ", 13},
	} {
		lines := strings.SplitAfter(sample.output(), "\n")
		first := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, sample.from) })
		if first < 0 {
			t.Fatalf("%s, part %s: no line of the output begins with %q:\n%s", sample.page, sample.part, sample.from, strings.Join(lines, ""))
		}
		lines = lines[first:]
		n := sample.lines
		if n == whole {
			n = slices.Index(lines, "\n")
		}
		if n < 1 || len(lines) <= n {
			t.Fatalf("%s, part %s: %d lines, want more than %d:\n%s", sample.page, sample.part, len(lines), n, strings.Join(lines, ""))
		}
		language := "text"
		if strings.HasPrefix(sample.from, `"`) {
			language = "json"
		}
		generatedPart(t, filepath.Join(docs, sample.page), sample.part, "```"+language+"\n"+strings.Join(lines[:n], "")+"```\n")
	}
}

// The samples of error messages are what perfagent prints, apart from directories and numbers.
func TestDocs_ErrorSamplesArePrinted(t *testing.T) {
	dir := t.TempDir()
	clitest.Write(t, filepath.Join(dir, "file"), "", 0o644)
	varies := regexp.MustCompile(`/\S*/perfagent-(out|\d+)|tried \d+ times`)
	plain := func(s string) string {
		return varies.ReplaceAllString(strings.ReplaceAll(s, clitest.Binary(t), "perfagent"), "…")
	}
	for page, args := range map[string][]string{
		"report.md": {"--mlflow", "off", "--out", "file/out", "--run-id", "r"},
		"mlflow.md": {"--mlflow", "http://127.0.0.1:1", "--run-id", "down"},
	} {
		cmd := clitest.Perfagent(t, slices.Concat([]string{"run", "--no-page", "--summary", "never"}, args, []string{"--", "true"})...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
		printed, err := cmd.CombinedOutput()
		if message := "```text\n" + plain(string(printed)) + "```\n"; err != nil || !strings.Contains(plain(clitest.Read(t, "../../docs/"+page)), message) {
			t.Errorf("docs/%s lacks what perfagent prints (%v):\n%s", page, err, printed)
		}
	}
}

// summaryOf returns the summary at the end of a recorded run. lineOf returns the line.
func summaryOf(t *testing.T, run string) string {
	t.Helper()
	r, path, page := recording(t, run)
	var out strings.Builder
	check.Must(t, summary.Write(&out, r, summaryOptions(r, &out, path, page)))
	return out.String()
}

func lineOf(t *testing.T, run string) string {
	t.Helper()
	r, _, page := recording(t, run)
	return summary.Line(r, page, nil)
}

// jsonOf returns a key of node 0 in the report of a recorded run, as JSON.
func jsonOf(t *testing.T, key, run string) string {
	t.Helper()
	_, path, _ := recording(t, run)
	var report struct {
		Nodes map[string]map[string]any
	}
	check.Must(t, json.Unmarshal([]byte(clitest.Read(t, path)), &report))
	return fmt.Sprintf("%q: %s\n\n", key, check.Value(json.MarshalIndent(report.Nodes["0"][key], "", "  "))(t))
}

// recording returns the report of a recorded run, and the paths that the report and its page had.
func recording(t *testing.T, run string) (r *reporter.Report, path, page string) {
	t.Helper()
	path = filepath.Join("perfagent-out", run, "node-0.json")
	return readReport(t, path), path, strings.TrimSuffix(path, "json") + "html"
}

// screenOf returns the screen of watch for a journal, as if its last sample had just been taken.
func screenOf(t *testing.T, path string) string {
	t.Helper()
	follower := journal.Follow(path)
	defer follower.Close()
	check.Value(follower.Poll())(t)
	r := follower.Report()
	state := "running for " + text.Duration(r.Run.End.Sub(r.Run.Start.Time).Seconds()).String()
	return strings.Join(terminal.Screen(r, terminal.Options{
		Width: 80, Height: 24, Node: "0", Footer: "q quits",
		Live: map[string]terminal.LiveNode{"0": {State: state, Newest: follower.Newest()}},
	}), "\n") + "\n\n"
}
