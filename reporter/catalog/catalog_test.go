package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	data, err := reporter.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(data))
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
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
	runs, err := catalog.List(out)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range runs {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"c", "a", "b"}) {
		t.Errorf("runs %q, want c, a, b", names)
	}
	if runs, err := catalog.List(filepath.Join(out, "nowhere")); err != nil || len(runs) != 0 {
		t.Errorf("missing directory: runs %v, want none; error %v", runs, err)
	}
	if runs, err := catalog.List(filepath.Join(out, "c")); err != nil || len(runs) != 1 || runs[0].Name != "c" {
		t.Errorf("directory of a run: runs %v, want only c; error %v", runs, err)
	}
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
	if err := os.Rename("node-0.json", "e"); err != nil { // a report takes precedence over a RUN-ID
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"@latest": filepath.Join(out, "c/node-0.json"), "@-1": filepath.Join(out, "c/node-0.json"),
		"@-2": filepath.Join(out, "a/node-0.json"), "@-3": filepath.Join(out, "b/node-0.json"),
		"a": filepath.Join(out, "a/node-0.json"), "b": "b/node-0.json",
		"c": filepath.Join(out, "c/node-0.json"), "d": "d", "e": "e", ".": "b/node-0.json",
		out: filepath.Join(out, "c/node-0.json"), out + "/a/": filepath.Join(out, "a/node-0.json"),
	} {
		found, err := catalog.Find(out, name)
		if err != nil {
			t.Errorf("Find(%q): error %v, want none", name, err)
		} else if got := found.Paths()[0]; got != want {
			t.Errorf("Find(%q) = %s, want %s", name, got, want)
		}
	}

	for name, want := range map[string]string{
		"varied": `no run or file "varied"; the runs in ` + out + ` are c, a, b, e`, "@-5": "no run @-5; the runs in", "@0": "is not @latest or @-K",
		"@-0": "is not @latest", "@-x": "is not @latest", "@": "is not @latest", "": `no run or file ""`, "../b": "no run or file", "x\x1b": `"x\x1b"`,
	} {
		if _, err := catalog.Find(out, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%q): error %v, want one containing %q", name, err, want)
		}
	}
	if _, err := catalog.Find(filepath.Join(out, "empty"), "@latest"); err == nil || !strings.Contains(err.Error(), "no report under") {
		t.Errorf("directory without runs: error %v, want one containing \"no report under\"", err)
	}
}

// The latest recording of a node is used, whatever the order of the file names.
func TestFind_UsesLatestOfRepeatedRecordings(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for nth, name := range []string{"r/node-0.json", "r/node-0.2.json", "r/node-0.10.json"} {
		report(t, filepath.Join(out, name), nth, nth, reporter.PushOff)
	}
	report(t, filepath.Join(out, "r/node-1.json"), 5, 0, reporter.PushOff)
	found, err := catalog.Find(out, "r")
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Paths(); len(got) != 2 || filepath.Base(got[0]) != "node-0.10.json" || len(found.Run.Launches) != 3 {
		t.Errorf("files %v, want node-0.10.json and the file of node 1; launches %v, want 3", got, found.Run.Launches)
	}
	if o := found.Launch.Summary(); o.ExitCode == nil || *o.ExitCode != 2 || !slices.Equal(o.FailedNodes, []int{0}) {
		t.Errorf("summary %+v, want exit code 2, with node 0 failed", o)
	}
}

func TestLaunch_SummaryNamesFailedNode(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	runs, err := catalog.List(out)
	if err != nil {
		t.Fatal(err)
	}
	o := runs[0].Latest().Summary()
	if o.RunID != "c" || *o.ExitCode != 5 || o.Nodes != 2 || !slices.Equal(o.FailedNodes, []int{1}) || o.State != summary.StateEnded {
		t.Errorf("summary %+v, want run c: ended, exit code 5, 2 nodes, node 1 failed", o)
	}
	if o.Report != filepath.Join(out, "c/node-1.json") || o.Page != filepath.Join(out, "c/node-1.html") {
		t.Errorf("report %s, page %s, want the files of node 1", o.Report, o.Page)
	}

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
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	now := reporter.Time{Time: time.Now()}
	j, err := journal.Create(dir, journal.Head{Run: reporter.Run{ID: "r", Start: now, End: now}, Interval: time.Second, MaxLength: 10})
	if err != nil {
		t.Fatal(err)
	}
	found, err := catalog.Find(filepath.Dir(dir), "r")
	if err != nil {
		t.Fatal(err)
	}
	if o := found.Launch.Summary(); o.State != summary.StateRunning {
		t.Errorf("summary %+v while the journal is being written, want the state %s", o, summary.StateRunning)
	}

	// A copy of the journal has no writer.
	data, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(t.TempDir(), "r/node-0.jsonl")
	write(t, left, string(data))
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(left, old, old); err != nil {
		t.Fatal(err)
	}
	if found, err = catalog.Find("", filepath.Dir(left)); err != nil {
		t.Fatal(err)
	}
	if o := found.Launch.Summary(); o.State != summary.StateIncomplete {
		t.Errorf("summary %+v of a journal without a writer, want the state %s", o, summary.StateIncomplete)
	}
	if err := errors.Join(j.Stop(time.Minute), j.Remove()); err != nil {
		t.Error(err)
	}
}

// A batch job and its step have the same RUN-ID. The step is the newer recording, and ends first.
func TestLaunch_SummaryIsRunningWhileOlderEntryIsActive(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	now := reporter.Time{Time: time.Now()}
	j, err := journal.Create(dir, journal.Head{Run: reporter.Run{ID: "r", Start: now, End: now}, Interval: time.Second, MaxLength: 10})
	if err != nil {
		t.Fatal(err)
	}
	report(t, filepath.Join(dir, "node-0.2.json"), 0, 0, reporter.PushOff)

	state := func() string {
		found, err := catalog.Find(filepath.Dir(dir), "r")
		if err != nil {
			t.Fatal(err)
		}
		return found.Launch.Summary().State
	}
	if got := state(); got != summary.StateRunning {
		t.Errorf("state while the older journal is being written = %s, want %s", got, summary.StateRunning)
	}
	if err := errors.Join(j.Stop(time.Minute), j.Remove()); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != summary.StateEnded {
		t.Errorf("state after the end of the older journal = %s, want %s", got, summary.StateEnded)
	}
}

// A new recording may start while the user is asked to confirm the removal.
func TestRun_RemoveRefusesNewRecordings(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	found, err := catalog.Find(out, "b")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(out, "b/node-0.2.jsonl"), "")

	if err := found.Run.Remove(); err == nil || !strings.Contains(err.Error(), "node-0.2.jsonl was recorded meanwhile") {
		t.Errorf("error %v, want one containing \"node-0.2.jsonl was recorded meanwhile\"", err)
	}
	for _, name := range []string{"b/node-0.json", "b/node-0.2.jsonl"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
}

// A link to a directory remains if the directory does.
func TestRun_RemoveKeepsLinkToDirectoryWithOtherFiles(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	write(t, filepath.Join(out, "b/notes.txt"), "mine")
	link := filepath.Join(t.TempDir(), "b")
	if err := os.Symlink(filepath.Join(out, "b"), link); err != nil {
		t.Fatal(err)
	}
	found, err := catalog.Find(filepath.Dir(link), "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Run.Remove(); err != nil {
		t.Error(err)
	}

	if _, err := os.Stat(filepath.Join(link, "notes.txt")); err != nil {
		t.Error(err)
	}
}

func TestRun_RemoveDeletesOnlyOwnFiles(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	for _, name := range []string{"a/node-0.html", "a/node-0.jsonl", "a/.node-0.json.12.0.tmp", "a/node-0.marks"} {
		write(t, filepath.Join(out, name), "")
	}
	for _, name := range []string{"c/notes.txt", "c/node-0.csv", "c/xnode-0.json", "c/sub/node-0.json"} {
		write(t, filepath.Join(out, name), "")
	}
	for _, name := range []string{"a", "c"} {
		found, err := catalog.Find(out, name)
		if err != nil {
			t.Fatal(err)
		}
		if pending := found.Run.HasPendingPush(); pending != (name == "a") {
			t.Errorf("%s: HasPendingPush is %v, want %v", name, pending, name == "a")
		}
		if err := found.Run.Remove(); err != nil {
			t.Error(err)
		}
	}

	if _, err := os.Stat(filepath.Join(out, "a")); !os.IsNotExist(err) {
		t.Errorf("run a was not removed: Stat returned %v, want an error that it does not exist", err)
	}
	left, err := os.ReadDir(filepath.Join(out, "c"))
	if err != nil || len(left) != 4 {
		t.Errorf("files left in run c: %v, want 4 (error %v)", left, err)
	}
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
