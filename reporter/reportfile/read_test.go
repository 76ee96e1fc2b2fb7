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

	"github.com/perfagent/perfagent/internal/check"
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

// errorOf returns the error of Read, which must equal the error of Scan.
func errorOf(t *testing.T, path string) error {
	t.Helper()
	_, err := Read(path, 0)
	_, _, scanErr := scanned(t, path, 0, reporter.ColumnFilter{All: true})
	if err == nil || scanErr == nil || scanErr.Error() != err.Error() {
		t.Fatalf("%s: Read: error %v, Scan: error %v, want the same error", path, err, scanErr)
	}
	return err
}

// reportFile writes a report and returns the path of the file.
func reportFile(t testing.TB, r *reporter.Report) (path string) {
	t.Helper()
	return textFile(t, check.Value(reporter.Encode(r))(t))
}

// textFile writes a file that is not a journal, and returns its path.
func textFile(t testing.TB, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "r.json")
	check.Must(t, os.WriteFile(path, data, 0o600))
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
	check.Must(t, err)
	for range n {
		j.Observe(s.Next(rec), rec)
	}
	check.Must(t, j.Stop(time.Minute))
	return j.Path()
}

func TestLoad_DistinguishesKindsOfFiles(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]Kind{
		reportFile(t, reporter.New(reportertest.Input(4, 3, 0, ""))): KindReport,
		textFile(t, []byte(reportertest.PerfPyJSON())):               KindPerfPy,
		journalFile(t, 7): KindJournal,
	} {
		f := check.Value(Load(path, 4))(t)
		if data := check.Value(os.ReadFile(path))(t); f.Kind != want || f.Path != path || !bytes.Equal(f.Data, data) {
			t.Errorf("%s: kind %v, path %s, %d bytes; want kind %v, the path and the file's bytes", path, f.Kind, f.Path, len(f.Data), want)
		}
		read := check.Value(Read(path, 4))(t)
		if d := cmp.Diff(f.Report, read, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s (-Load +Read):\n%s", path, d)
		}
		got, order, err := scanned(t, path, 4, reporter.ColumnFilter{All: true})
		check.Must(t, err)
		if d := cmp.Diff(read, got, cmpopts.EquateNaNs()); d != "" || !slices.Equal(order, read.NodeNames()) {
			t.Errorf("%s: nodes %q (-Read +Scan):\n%s", path, order, d)
		}
	}
}

// Journals and perf.py's JSON are read with all columns, whatever columns are wanted.
func TestScan_JournalsAndPerfPyHaveAllColumns(t *testing.T) {
	for _, path := range []string{textFile(t, []byte(reportertest.PerfPyJSON())), journalFile(t, 7)} {
		want := check.Value(Read(path, 4))(t)
		got, order, err := scanned(t, path, 4, reporter.ColumnFilter{})
		check.Must(t, err)
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" || !slices.Equal(order, want.NodeNames()) {
			t.Errorf("%s: nodes %q (-want +got):\n%s", path, order, d)
		}
	}
}

// Scan returns an error from the callback unchanged, even for a file that it reads whole.
func TestScan_ReturnsCallbackErrors(t *testing.T) {
	t.Parallel()
	full := errors.New("no more room")
	for _, path := range []string{reportFile(t, reporter.New(reportertest.Input(0, 3, 0, ""))), journalFile(t, 3)} {
		if _, err := Scan(path, 0, reporter.ColumnFilter{}, func(*reporter.Run, string, *reporter.Node) error { return full }); err != full {
			t.Errorf("%s: error %v, want %v", path, err, full)
		}
	}
}

// Scan returns an error for files that are missing, irregular or too large.
func TestScan_RefusesMissingIrregularAndLargeFiles(t *testing.T) {
	large := filepath.Join(t.TempDir(), "r.json")
	for _, c := range []struct {
		begin string
		size  int64
		want  string
	}{
		{`{"schema":`, maxScanSize + 1, large + " is 4096 MiB large; a report has at most 4096"},
		{`{"schema":`, reporter.MaxFileSize + 1, large + ": line 1: invalid character"},
		{"[1]", reporter.MaxFileSize + 1, "not a perfagent report, and with 256 MiB too large"},
	} {
		check.Must(t, errors.Join(os.WriteFile(large, []byte(c.begin), 0o600), os.Truncate(large, c.size)))
		if _, _, err := scanned(t, large, 0, reporter.ColumnFilter{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s and %d bytes: error %v, want one containing %q", c.begin, c.size, err, c.want)
		}
	}
	if _, err := Read(large, 0); err == nil || !strings.Contains(err.Error(), "perfagent plot") {
		t.Errorf("Read of a large file: error %v, want one containing: perfagent plot", err)
	}
	errorOf(t, os.DevNull)
}

// Errors contain the path and the problem.
func TestRead_ErrorsContainPathAndProblem(t *testing.T) {
	dir := t.TempDir()
	if err := errorOf(t, dir); !strings.Contains(err.Error(), dir+" is a directory") {
		t.Errorf("directory: error %v, want one containing \"is a directory\"", err)
	}
	if err := errorOf(t, filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: error %v, want os.ErrNotExist", err)
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
		check.Must(t, os.WriteFile(path, []byte(words), 0o600))
		got := errorOf(t, path).Error()
		if !strings.HasPrefix(strings.TrimPrefix(got, "read report "), path) || !strings.Contains(got, want) {
			t.Errorf("%q: error %s, want one that begins with the path and contains %s", words, got, want)
		}
	}
}

// Every report that can be read can also be written.
func FuzzRead(f *testing.F) {
	s := reportertest.NewStream(5)
	rec := s.Recording(4)
	for range 9 {
		s.Next(rec)
	}
	r := reporter.New(reporter.Input{Run: reporter.Run{ID: "r"}, Recording: rec})
	f.Add("node-0.json", check.Value(reporter.Encode(r))(f))
	f.Add("node-0.jsonl", check.Value(os.ReadFile(journalFile(f, 2)))(f))
	f.Add("x.json", []byte(`{"0":[{"timestamp":1.5,"cpu_pct_per_cpu_avg":NaN}]}`))
	f.Add("x.json", []byte(`{"schema":"perfagent.report/2","nodes":{}}`))
	f.Add("x.json", []byte(`{"schema":"perfagent.report/1","nodes":{"0":null}}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		r, _, err := parse(name, data, 2)
		if err != nil {
			return
		}
		if again := check.Value(reporter.Encode(r))(t); !json.Valid(again) {
			t.Fatal("the encoded report is not JSON")
		}
		check.Must(t, summary.Write(&bytes.Buffer{}, r, summary.Options{}))
	})
}
