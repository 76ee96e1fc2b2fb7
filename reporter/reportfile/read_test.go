package reportfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/summary"
)

// scanned collects the nodes of Scan into a report.
func scanned(t *testing.T, path string, cpus int, wanted reporter.ColumnFilter) (r *reporter.Report, order []string, err error) {
	t.Helper()
	nodes := make(map[string]*reporter.Node)
	run, err := Scan(path, cpus, wanted, func(_ *reporter.Run, name string, n *reporter.Node) error {
		nodes[name] = n
		order = append(order, name)
		return nil
	})
	if err != nil {
		return nil, order, err
	}
	return &reporter.Report{Schema: reporter.Schema, Run: *run, Nodes: nodes}, order, nil
}

// reportFile writes a report.
func reportFile(t testing.TB, r *reporter.Report) (path string) {
	t.Helper()
	data, err := reporter.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return textFile(t, data)
}

// textFile writes a file that is not a journal.
func textFile(t testing.TB, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// journalFile writes a journal of n samples.
func journalFile(t testing.TB, n int) (path string) {
	t.Helper()
	s := reportertest.NewStream(1)
	rec := s.Recording(10)
	began := reporter.Time{Time: s.Start.Wall}
	j, err := journal.Create(t.TempDir(), journal.Head{Run: reporter.Run{ID: "r", Start: began, End: began}, Node: 3,
		Interval: time.Second, MaxLength: 10})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		j.Observe(s.Next(rec), rec)
	}
	if err := j.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	return j.Path()
}

func TestLoad_DistinguishesTheKindsOfFiles(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]Kind{
		reportFile(t, reporter.New(reportertest.Input(4, 3, 0, ""))): KindReport,
		textFile(t, []byte(reportertest.PerfPyJSON())):               KindPerfPy,
		journalFile(t, 7): KindJournal,
	} {
		f, err := Load(path, 4)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); f.Kind != want || f.Path != path || !bytes.Equal(f.Data, data) {
			t.Errorf("%s: kind %v, want %v; path %s; %d bytes, want the file's (error %v)", path, f.Kind, want, f.Path,
				len(f.Data), err)
		}
		read, err := Read(path, 4)
		if d := cmp.Diff(f.Report, read, cmpopts.EquateNaNs()); err != nil || d != "" {
			t.Errorf("%s: Read: error %v (-Load +Read):\n%s", path, err, d)
		}
		got, order, err := scanned(t, path, 4, reporter.ColumnFilter{All: true})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(read, got, cmpopts.EquateNaNs()); d != "" || !slices.Equal(order, read.NodeNames()) {
			t.Errorf("%s: nodes %q (-Read +Scan):\n%s", path, order, d)
		}
	}
}

// Journals and perf.py's JSON have all columns, whatever is selected.
func TestScan_JournalsAndPerfPyHaveAllColumns(t *testing.T) {
	for _, path := range []string{textFile(t, []byte(reportertest.PerfPyJSON())), journalFile(t, 7)} {
		want, err := Read(path, 4)
		if err != nil {
			t.Fatal(err)
		}
		got, order, err := scanned(t, path, 4, reporter.ColumnFilter{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s: (-want +got)\n%s", path, d)
		}
		if !slices.Equal(order, want.NodeNames()) {
			t.Errorf("%s: nodes came as %q, want %q", path, order, want.NodeNames())
		}
	}
}

// An error of the caller is returned unchanged, also for files that are read whole.
func TestScan_StopsAtAnErrorOfTheCaller(t *testing.T) {
	t.Parallel()
	full := errors.New("no more room")
	for _, path := range []string{reportFile(t, reporter.New(reportertest.Input(0, 3, 0, ""))), journalFile(t, 3)} {
		if _, err := Scan(path, 0, reporter.ColumnFilter{}, func(*reporter.Run, string, *reporter.Node) error { return full }); err != full {
			t.Errorf("%s: error %v, want %v", path, err, full)
		}
	}
}

// Missing, irregular and too large files are errors.
func TestScan_RefusesMissingIrregularAndLargeFiles(t *testing.T) {
	dir := t.TempDir()
	large := textFile(t, []byte(`{"schema":`))
	for size, want := range map[int64]string{
		maxScanSize + 1:          " is 4096 MiB large; a report has at most 4096",
		reporter.MaxFileSize + 1: ": line 1: invalid character",
	} {
		if err := os.Truncate(large, size); err != nil {
			t.Fatal(err)
		}
		if _, _, err := scanned(t, large, 0, reporter.ColumnFilter{}); err == nil || !strings.Contains(err.Error(), large+want) {
			t.Errorf("%d bytes: error %v, want %q in it", size, err, large+want)
		}
	}
	if err := errors.Join(os.WriteFile(large, []byte("[1]"), 0o600), os.Truncate(large, reporter.MaxFileSize+1)); err != nil {
		t.Fatal(err)
	}
	const tooLarge = "not a perfagent report, and with 256 MiB too large"
	if _, _, err := scanned(t, large, 0, reporter.ColumnFilter{}); err == nil || !strings.Contains(err.Error(), tooLarge) {
		t.Errorf("a large list: error %v, want %q in it", err, tooLarge)
	}
	if _, err := Read(large, 0); err == nil || !strings.Contains(err.Error(), "perfagent plot") {
		t.Errorf("Read of a large file: error %v, want perfagent plot in it", err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none"), os.DevNull} {
		_, _, scanErr := scanned(t, path, 0, reporter.ColumnFilter{})
		if _, err := Read(path, 0); err == nil || scanErr == nil || err.Error() != scanErr.Error() {
			t.Errorf("%s: Scan: error %v, Read: error %v, want the same error", path, scanErr, err)
		}
	}
}

// Errors contain the path and the problem.
func TestRead_ErrorsHaveThePathAndTheProblem(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir, 0); err == nil || !strings.Contains(err.Error(), dir+" is a directory") {
		t.Errorf("a directory: error %v, want \"is a directory\" in it", err)
	}
	if _, err := Read(filepath.Join(dir, "none"), 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: error %v, want os.ErrNotExist", err)
	}

	path := filepath.Join(dir, "r.json")
	for words, want := range map[string]string{
		"":          "is empty",
		" \n":       "is empty",
		"{}":        "is an empty object, not a report",
		"null":      "is not a report of perfagent or perf.py",
		"[]":        "is not a report of perfagent or perf.py",
		`{"a":1}`:   `is not a report: it has no "schema", and the key "a" is not a node of perf.py's`,
		"{\n\"0\":": "line 2: the file ends in the middle (cut off?)",
		"{\"schema\":\"perfagent.report/1\",\n\"run\":":     "line 2: the file ends in the middle (cut off?)",
		`{"schema":"perfagent.report/2","nodes":{"0":{}}}`:  "use a newer perfagent",
		`{"journal":"perfagent.journal/9"}`:                 "use a newer perfagent",
		`{"journal":`:                                       "line 1: the head is damaged",
		`{"schema":"perfagent.report/1","run":{}}`:          "has no nodes",
		`{"schema":"perfagent.report/1","nodes":{"0":[]}}`:  "line 1: node 0: json: cannot unmarshal JSON array",
		`{"0":[{"timestamp":1.5,"cpu_pct_per_cpu_avg":NaN}`: "line 1: invalid character 'N'",
	} {
		if err := os.WriteFile(path, []byte(words), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path, 0)
		_, _, scanErr := scanned(t, path, 0, reporter.ColumnFilter{All: true})
		if err == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "read report "), path) ||
			!strings.Contains(err.Error(), want) || scanErr == nil || scanErr.Error() != err.Error() {
			t.Errorf("%q: Read: error %v, Scan: error %v, want %s", words, err, scanErr, want)
		}
	}
}

// Every report that is read can be written.
func FuzzRead(f *testing.F) {
	s := reportertest.NewStream(5)
	rec := s.Recording(4)
	for range 9 {
		s.Next(rec)
	}
	report, err := reporter.Encode(reporter.New(reporter.Input{Run: reporter.Run{ID: "r"}, Recording: rec}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("node-0.json", report)
	lines, err := os.ReadFile(journalFile(f, 2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("node-0.jsonl", lines)
	f.Add("x.json", []byte(`{"0":[{"timestamp":1.5,"cpu_pct_per_cpu_avg":NaN}]}`))
	f.Add("x.json", []byte(`{"schema":"perfagent.report/2","nodes":{}}`))
	f.Add("x.json", []byte(`{"schema":"perfagent.report/1","nodes":{"0":null}}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		r, _, err := parse(name, data, 2)
		if err != nil {
			return
		}
		again, err := reporter.Encode(r)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if !json.Valid(again) {
			t.Fatal("what was written is not JSON")
		}
		if err := summary.Write(&bytes.Buffer{}, r, summary.Options{}); err != nil {
			t.Fatal(err)
		}
	})
}
