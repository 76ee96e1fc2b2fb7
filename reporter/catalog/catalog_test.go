package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/summary"
)

// began is the start of the first run of a test.
var began = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

// report writes the report of a node that ended with the given exit code, the given number of minutes after began.
func report(t *testing.T, path string, minutes, code int, push string) {
	t.Helper()
	start := reporter.Time{Time: began.Add(time.Duration(minutes) * time.Minute)}
	name, ok := catalog.ParseFileName(filepath.Base(path))
	if !ok {
		t.Fatalf("%s is not the name of a recording", path)
	}
	r := &reporter.Report{
		Schema: reporter.Schema,
		Run:    reporter.Run{ID: "x", Start: start, End: reporter.Time{Time: start.Add(time.Second)}, WallSeconds: 1, ExitCode: &code},
		Nodes: map[string]*reporter.Node{string(rune('0' + name.Node)): {
			Job:     &reporter.Job{ExitCode: &code},
			Verdict: &reporter.Verdict{Cause: "exited", Evidence: map[string]any{"exit_code": float64(code)}},
			Metrics: reporter.Values{}, Missing: []reporter.Missing{}, Push: &reporter.Push{MLflow: reporter.PushState{State: push}},
		}},
	}
	writeReport(t, path, r)
}

func write(t *testing.T, path, data string) {
	t.Helper()
	check.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check.Must(t, os.WriteFile(path, []byte(data), 0o644))
}

func writeReport(t *testing.T, path string, r *reporter.Report) {
	t.Helper()
	data, err := reporter.Encode(r)
	check.Must(t, err)
	write(t, path, string(data))
}

// writeJournal creates a journal of a run that is being written.
func writeJournal(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	check.Must(t, os.MkdirAll(dir, 0o755))
	now := reporter.Time{Time: time.Now()}
	j, err := journal.Create(dir, journal.Head{Run: reporter.Run{ID: "r", Start: now, End: now}, Interval: time.Second, MaxLength: 10})
	check.Must(t, err)
	return j
}

func found(t testing.TB, out, name string) *catalog.Match {
	t.Helper()
	m, err := catalog.Find(out, name)
	check.Must(t, err)
	return m
}

func runsIn(t testing.TB, out string) []catalog.Run {
	t.Helper()
	runs, err := catalog.List(out)
	check.Must(t, err)
	return runs
}

// runIn returns the run in a directory.
func runIn(t testing.TB, dir string) *catalog.Run {
	t.Helper()
	run, err := catalog.ReadRun(dir)
	check.Must(t, err)
	return run
}

// filesIn returns the sorted names of the files in a directory.
func filesIn(t testing.TB, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	check.Must(t, err)
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// wantValues checks what fmt.Println prints for values.
func wantValues(t testing.TB, what, want string, values ...any) {
	t.Helper()
	if got := strings.TrimSuffix(fmt.Sprintln(values...), "\n"); got != want {
		t.Errorf("%s = %s, want %s", what, got, want)
	}
}

// wantFinds checks which recordings Find returns for each name in good, and the error for each in bad.
func wantFinds(t *testing.T, out string, good, bad map[string]string) {
	t.Helper()
	for name, want := range good {
		m, err := catalog.Find(out, name)
		if err != nil || strings.Join(m.Paths(), " ") != want {
			t.Errorf("Find(%q) = %+v, error %v, want %s", name, m, err, want)
		}
	}
	for name, want := range bad {
		if _, err := catalog.Find(out, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%q): error %v, want one containing %q", name, err, want)
		}
	}
}

// threeRuns writes three runs. From newest to oldest, they are c, a and b. Run c has two nodes, and its node 1 failed.
func threeRuns(t *testing.T) (out string) {
	t.Helper()
	out = t.TempDir()
	report(t, filepath.Join(out, "b/node-0.json"), 0, 0, reporter.PushOff)
	report(t, filepath.Join(out, "a/node-0.json"), 1, 0, reporter.PushPending)
	report(t, filepath.Join(out, "c/node-0.json"), 2, 0, reporter.PushOff)
	report(t, filepath.Join(out, "c/node-1.json"), 2, 5, reporter.PushOff)
	write(t, filepath.Join(out, "c/node-1.html"), "<html>")
	write(t, filepath.Join(out, "notes.txt"), "not a run")
	write(t, filepath.Join(out, "empty/notes.txt"), "not a run")
	return out
}

func TestList_NewestFirst(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	names := func(dir string) (names []string) {
		for _, r := range runsIn(t, dir) {
			names = append(names, r.Name)
		}
		return names
	}
	check.Equal(t, names(out), []string{"c", "a", "b"}, "runs")
	check.Equal(t, names(filepath.Join(out, "nowhere")), nil, "runs in a missing directory")
	check.Equal(t, names(filepath.Join(out, "c")), []string{"c"}, "runs in the directory of a run")
}

func TestFind(t *testing.T) {
	out := threeRuns(t)
	t.Chdir(t.TempDir())
	report(t, "b/node-0.json", 0, 0, reporter.PushOff) // a directory with reports takes precedence over a RUN-ID
	write(t, "a/notes.txt", "a directory without reports does not")
	write(t, "c", "a program with the name of its run")
	write(t, "d", "any other file")
	report(t, filepath.Join(out, "e/node-0.json"), -1, 0, reporter.PushOff)
	report(t, "node-0.json", 0, 0, reporter.PushOff)
	check.Must(t, os.Rename("node-0.json", "e")) // a report takes precedence over a RUN-ID

	a, c := filepath.Join(out, "a/node-0.json"), filepath.Join(out, "c/node-0.json")+" "+filepath.Join(out, "c/node-1.json")
	wantFinds(t, out, map[string]string{
		"@latest": c, "@-1": c, "@-2": a, "@-3": filepath.Join(out, "b/node-0.json"), "a": a, "b": "b/node-0.json", "c": c, "d": "d", "e": "e",
		".": "b/node-0.json", out: c, out + "/a/": a,
	}, map[string]string{
		"varied": `no run or file "varied"; the runs in ` + out + ` are c, a, b, e`, "@-5": "no run @-5; the runs in", "@0": "is not @latest or @-K",
		"@-0": "is not @latest", "@-x": "is not @latest", "@": "is not @latest", "": `no run or file ""`, "../b": "no run or file", "x\x1b": `"x\x1b"`,
	})
	wantFinds(t, filepath.Join(out, "empty"), nil, map[string]string{"@latest": "no report under"})
}

// The latest recording of a node is used, whatever the order of the file names.
func TestFind_UsesLatestOfRepeatedRecordings(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for nth, name := range []string{"r/node-0.json", "r/node-0.2.json", "r/node-0.10.json"} {
		report(t, filepath.Join(out, name), nth, nth, reporter.PushOff)
	}
	report(t, filepath.Join(out, "r/node-1.json"), 5, 0, reporter.PushOff)
	m := found(t, out, "r")
	wantValues(t, "number of files, first file, number of launches", "2 node-0.10.json 3", len(m.Paths()),
		filepath.Base(m.Paths()[0]), len(m.Run.Launches))
	o := m.Launch.Summary()
	wantValues(t, "exit code, failed nodes", "2 [0]", *o.ExitCode, o.FailedNodes)
}

func TestLaunch_SummaryNamesFailedNode(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	runs := runsIn(t, out)
	o := runs[0].Latest().Summary()
	wantValues(t, "run, exit code, nodes, failed nodes, state", "c 5 2 [1] "+summary.StateEnded, o.RunID, *o.ExitCode,
		o.Nodes, o.FailedNodes, o.State)
	wantValues(t, "report and page", filepath.Join(out, "c/node-1.json")+" "+filepath.Join(out, "c/node-1.html"),
		o.Report, o.Page)

	write(t, filepath.Join(out, "b/node-0.json"), "{")
	o = runs[2].Latest().Summary()
	if o.State != summary.StateIncomplete || !strings.Contains(o.Verdict, "node-0.json") {
		t.Errorf("damaged report: summary %+v, want the state incomplete, and node-0.json in the verdict", o)
	}
}

// A run with a journal that an agent has locked is active. If the journal is unlocked, the run is incomplete.
func TestLaunch_SummaryIsRunningWhileJournalIsLocked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	j := writeJournal(t, dir)
	check.Equal(t, found(t, filepath.Dir(dir), "r").Launch.Summary().State, summary.StateRunning,
		"state while the journal is being written")

	// A copy of the journal has no writer.
	data, err := os.ReadFile(j.Path())
	check.Must(t, err)
	left := filepath.Join(t.TempDir(), "r/node-0.jsonl")
	write(t, left, string(data))
	old := time.Now().Add(-time.Hour)
	check.Must(t, os.Chtimes(left, old, old))
	check.Equal(t, found(t, "", filepath.Dir(left)).Launch.Summary().State, summary.StateIncomplete,
		"state of a journal without a writer")
	check.Must(t, errors.Join(j.Stop(time.Minute), j.Remove()))
}

// A batch job and its step have the same RUN-ID. The step is the newer recording, and ends first.
func TestLaunch_SummaryIsRunningWhileOlderEntryIsActive(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	j := writeJournal(t, dir)
	report(t, filepath.Join(dir, "node-0.2.json"), 0, 0, reporter.PushOff)
	state := func() string { return found(t, filepath.Dir(dir), "r").Launch.Summary().State }
	check.Equal(t, state(), summary.StateRunning, "state while the older journal is being written")
	check.Must(t, errors.Join(j.Stop(time.Minute), j.Remove()))
	check.Equal(t, state(), summary.StateEnded, "state after the end of the older journal")
}

// A new recording may start while the user is asked to confirm the removal.
func TestRun_RemoveRefusesNewRecordings(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	b := found(t, out, "b").Run
	write(t, filepath.Join(out, "b/node-0.2.jsonl"), "")

	if err := b.Remove(); err == nil || !strings.Contains(err.Error(), "node-0.2.jsonl was recorded meanwhile") {
		t.Errorf("error %v, want one containing \"node-0.2.jsonl was recorded meanwhile\"", err)
	}
	check.Equal(t, filesIn(t, out+"/b"), []string{"node-0.2.jsonl", "node-0.json"}, "files left")
}

// A link to a directory remains if the directory does.
func TestRun_RemoveKeepsLinkToDirectoryWithOtherFiles(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	write(t, filepath.Join(out, "b/notes.txt"), "mine")
	link := filepath.Join(t.TempDir(), "b")
	check.Must(t, os.Symlink(filepath.Join(out, "b"), link))
	check.Must(t, found(t, filepath.Dir(link), "b").Run.Remove())
	check.Equal(t, filesIn(t, link), []string{"notes.txt"}, "files left")
}

func TestRun_RemoveDeletesOnlyOwnFiles(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	for _, name := range []string{
		"a/node-0.html", "a/node-0.jsonl", "a/.node-0.json.12.0.tmp", "a/node-0.marks",
		"c/notes.txt", "c/node-0.csv", "c/xnode-0.json", "c/sub/node-0.json",
	} {
		write(t, filepath.Join(out, name), "")
	}
	for _, name := range []string{"a", "c"} {
		run := found(t, out, name).Run
		check.Equal(t, run.HasPendingPush(), name == "a", "%s: HasPendingPush", name)
		check.Must(t, run.Remove())
	}

	if _, err := os.Stat(filepath.Join(out, "a")); !os.IsNotExist(err) {
		t.Errorf("run a was not removed: Stat returned %v, want an error that it does not exist", err)
	}
	check.Equal(t, filesIn(t, out+"/c"), []string{"node-0.csv", "notes.txt", "sub", "xnode-0.json"},
		"files left in run c")
}

func TestParseFileName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]catalog.FileName{
		"node-0.json":                       {Rank: -1, Nth: 1, Ext: ".json"},
		"node-12.3.jsonl":                   {Node: 12, Rank: -1, Nth: 3, Ext: ".jsonl"},
		"node-4.rank-17.json":               {Node: 4, Rank: 17, Nth: 1, Ext: ".json"},
		"node-4.rank-17.2.jsonl":            {Node: 4, Rank: 17, Nth: 2, Ext: ".jsonl"},
		"node-gpu7.json":                    {Host: "gpu7", Rank: -1, Nth: 1, Ext: ".json"},
		"node-gpu7.2.json":                  {Host: "gpu7", Rank: -1, Nth: 2, Ext: ".json"},
		"node-c1.example.org.rank-3.2.json": {Host: "c1.example.org", Rank: 3, Nth: 2, Ext: ".json"},
		"node-7a_b-c.rank-0.jsonl":          {Host: "7a_b-c", Rank: 0, Nth: 1, Ext: ".jsonl"},
		"node-a.rank-1.rank-2.json":         {Host: "a.rank-1", Rank: 2, Nth: 1, Ext: ".json"},
		"node-3.partial.json":               {Node: 3, Rank: -1, Nth: 1, Ext: ".json", Partial: true},
		"node-gpu7.2.partial.json":          {Host: "gpu7", Rank: -1, Nth: 2, Ext: ".json", Partial: true},
	} {
		if got, ok := catalog.ParseFileName(name); !ok || got != want {
			t.Errorf("ParseFileName(%q) = %+v, %v, want %+v, true", name, got, ok, want)
		}
	}
	for _, name := range []string{
		"", "node-.json", "node-1.html", "node-1.2.3.json", "node--1.json", "node-99999999999.json", "job.json",
		".node-0.json", "node-0.rank-.json", "node-0.rank-x.json", "node-0.rank--1.json", "node-.rank-0.json",
		"node-0.rank-1.2.3.json", "node-a b.json", "node-a/b.json", "node-_a.json", "node-ä.json", "node-0.json.json5",
		"node-x.rank-99999999999.json", "node-.partial.json",
	} {
		if got, ok := catalog.ParseFileName(name); ok {
			t.Errorf("ParseFileName(%q) = %+v, want none", name, got)
		}
	}
}
