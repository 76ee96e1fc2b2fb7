package reporter_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// countingReader counts the bytes that are read.
type countingReader struct {
	*bytes.Reader
	bytes int
}

func (c *countingReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.Reader.ReadAt(p, at)
	c.bytes += n
	return n, err
}

// concluded returns the report of one node with findings.
func concluded(t *testing.T, seconds int) *reporter.Report {
	t.Helper()
	r := ranked(3, seconds)
	r.Nodes["3"].Findings = []reporter.Finding{}
	return r
}

func TestScanWithoutSeries_GivesTheReportWithoutSeries(t *testing.T) {
	t.Parallel()
	r := concluded(t, 1000)
	data := encodedReport(t, r)
	in := &countingReader{Reader: bytes.NewReader(data)}
	head, ok := reporter.ScanWithoutSeries(in, int64(len(data)))
	if !ok {
		t.Fatal("ScanWithoutSeries returned false for a whole report")
	}
	r.Nodes["3"] = r.Nodes["3"].WithoutSeries()
	if got, want := encodedReport(t, head), encodedReport(t, r); !bytes.Equal(got, want) {
		t.Errorf("the report differs:\n%s", firstDifference(got, want))
	}

	for _, rank := range r.Nodes["3"].Ranks {
		if rank.Envelope != nil {
			t.Error("a rank has its series, want none")
		}
	}
}

// Reading a report of a thousand samples reads at most twice the bytes of one of a hundred.
func TestScanWithoutSeries_ReadsOnlyTheBeginning(t *testing.T) {
	t.Parallel()
	read := func(seconds int) int {
		r := concluded(t, seconds)
		r.Nodes["3"].Ranks = nil
		data := encodedReport(t, r)
		in := &countingReader{Reader: bytes.NewReader(data)}
		if _, ok := reporter.ScanWithoutSeries(in, int64(len(data))); !ok {
			t.Fatal("ScanWithoutSeries returned false for a whole report")
		}
		return in.bytes
	}
	if few, many := read(100), read(1000); many > 2*few {
		t.Errorf("%d bytes of a report of 1000 samples were read, want at most twice the %d of one of 100 samples",
			many, few)
	}
}

// If the beginning does not contain all numbers, ScanWithoutSeries returns false.
func TestScanWithoutSeries_RefusesReportsThatNeedScan(t *testing.T) {
	t.Parallel()
	r := concluded(t, 20)
	whole := encodedReport(t, r)
	several := mustMerge(t, sources(r, reportertest.NodeReport(5, 20, 0, nil))...)
	old := concluded(t, 20)
	old.Nodes["3"].Findings = nil
	perfpy := reporter.NewPerfPyReport(reportertest.PerfPySamples(), 1, 8, reporter.Run{})

	var sorted any
	if err := json.Unmarshal(whole, &sorted); err != nil {
		t.Fatal(err)
	}
	alphabetical, err := json.MarshalIndent(sorted, "", "  ")
	if err != nil {
		t.Fatal(err)
	}

	for name, data := range map[string][]byte{
		"several nodes": encodedReport(t, several), "no findings yet": encodedReport(t, old), "perf.py": encodedReport(t, perfpy),
		"alphabetical": append(alphabetical, '\n'), "cut off": whole[:len(whole)-20], "too short": []byte("{}"), "nothing": nil,
		"no report": []byte(`{"a": 1` + "\n    }\n  }\n}\n"), "damaged": bytes.Replace(whole, []byte(`"metrics": {`), []byte(`"metrics": [`), 1),
		"push behind the samples": bytes.Replace(whole, []byte(`"missing": [`), []byte(`"samples": [], "missing": [`), 1),
	} {
		if head, ok := reporter.ScanWithoutSeries(bytes.NewReader(data), int64(len(data))); ok {
			t.Errorf("%s: ScanWithoutSeries returned %+v, want false", name, head)
		}
	}
}

// For any file, ScanWithoutSeries returns the numbers of the whole report, or false.
func FuzzScanHead(f *testing.F) {
	f.Add([]byte(`{"schema": "perfagent.report/1", "run": {"id": "r"}, "nodes": {
    "0": {"sampling": {}, "findings": [], "missing": [], "metrics": {}, "samples": []
    }
  }
}
`))
	f.Fuzz(func(t *testing.T, data []byte) {
		head, ok := reporter.ScanWithoutSeries(bytes.NewReader(data), int64(len(data)))
		if !ok {
			return
		}
		if len(head.Nodes) != 1 || reporter.CheckSchema(head.Schema, reporter.Schema) != nil {
			t.Errorf("ScanWithoutSeries accepted %+v, want one node and the known schema", head)
		}
	})
}
