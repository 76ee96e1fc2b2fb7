package reporter_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// countingReader counts the bytes that are read from it.
type countingReader struct {
	*bytes.Reader
	bytes int
}

func (c *countingReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.Reader.ReadAt(p, at)
	c.bytes += n
	return n, err
}

// scannedHead returns what ScanWithoutSeries returns for a whole report, and the number of bytes that it reads.
func scannedHead(t *testing.T, r *reporter.Report) (*reporter.Report, int) {
	t.Helper()
	data := encodedReport(t, r)
	in := &countingReader{Reader: bytes.NewReader(data)}
	head, ok := reporter.ScanWithoutSeries(in, int64(len(data)))
	if !ok {
		t.Fatal("ScanWithoutSeries returned false for a whole report")
	}
	return head, in.bytes
}

// concluded returns the report of one node with ranks and an empty list of findings.
func concluded(t *testing.T, seconds int) *reporter.Report {
	t.Helper()
	r := ranked(3, seconds)
	r.Nodes["3"].Findings = []reporter.Finding{}
	return r
}

func TestScanWithoutSeries_ReturnsReportWithoutSeries(t *testing.T) {
	t.Parallel()
	r := concluded(t, 1000)
	head, _ := scannedHead(t, r)
	r.Nodes["3"] = r.Nodes["3"].WithoutSeries()
	check.Equal(t, string(encodedReport(t, head)), string(encodedReport(t, r)), "report")
	for _, rank := range r.Nodes["3"].Ranks {
		if rank.Envelope != nil {
			t.Error("a rank has its series, want none")
		}
	}
}

// For a report of a thousand samples, ScanWithoutSeries reads at most twice as many bytes as for a report of a hundred.
func TestScanWithoutSeries_ReadsOnlyBeginning(t *testing.T) {
	t.Parallel()
	read := func(seconds int) int {
		r := concluded(t, seconds)
		r.Nodes["3"].Ranks = nil
		_, bytes := scannedHead(t, r)
		return bytes
	}
	if few, many := read(100), read(1000); many > 2*few {
		t.Errorf("read %d bytes of a report of 1000 samples, want at most twice the %d bytes read of a report of 100 samples",
			many, few)
	}
}

// If the beginning does not contain all numbers, ScanWithoutSeries returns false.
func TestScanWithoutSeries_RejectsReportsThatNeedScan(t *testing.T) {
	t.Parallel()
	r := concluded(t, 20)
	whole := encodedReport(t, r)
	several := mustMerge(t, sources(r, reportertest.NodeReport(5, 20, 0, nil))...)
	old := concluded(t, 20)
	old.Nodes["3"].Findings = nil
	perfpy := reporter.NewPerfPyReport(reportertest.PerfPySamples(), 1, 8, reporter.Run{})

	var sorted any
	check.Must(t, json.Unmarshal(whole, &sorted))
	alphabetical, err := json.MarshalIndent(sorted, "", "  ")
	check.Must(t, err)

	for name, data := range map[string][]byte{
		"several nodes": encodedReport(t, several), "no findings yet": encodedReport(t, old), "perf.py": encodedReport(t, perfpy),
		"sorted members": append(alphabetical, '\n'), "cut off": whole[:len(whole)-20], "too short": []byte("{}"), "empty file": nil,
		"not a report": []byte(`{"a": 1` + "\n    }\n  }\n}\n"), "damaged": bytes.Replace(whole, []byte(`"metrics": {`), []byte(`"metrics": [`), 1),
		"numbers after the samples": bytes.Replace(whole, []byte(`"missing": [`), []byte(`"samples": [], "missing": [`), 1),
	} {
		if head, ok := reporter.ScanWithoutSeries(bytes.NewReader(data), int64(len(data))); ok {
			t.Errorf("%s: ScanWithoutSeries returned %+v, want false", name, head)
		}
	}
}

// FuzzScanHead checks that ScanWithoutSeries returns false for any file except a report of one node with the known
// schema.
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
