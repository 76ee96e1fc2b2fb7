package reporter_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func showCSV(t testing.TB, r *reporter.Report) []byte {
	t.Helper()
	var out bytes.Buffer
	check.Must(t, reporter.WriteCSV(&out, r))
	return out.Bytes()
}

// csvRows returns the rows of a report's CSV.
func csvRows(t testing.TB, r *reporter.Report) [][]string {
	t.Helper()
	data := showCSV(t, r)
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil || bytes.Count(data, []byte("\n")) != len(rows) {
		t.Fatalf("the output is not CSV with %d lines, one per row (error %v):\n%.2000s", len(rows), err, data)
	}
	return rows
}

func TestWriteCSV_Golden(t *testing.T) {
	perfpy, err := reporter.ParsePerfPy([]byte(reportertest.PerfPyJSON()), 0)
	check.Must(t, err)
	nodes := reportertest.Nodes(2)
	nodes.Nodes["1"] = perfpy.Nodes["3"]
	for name, r := range map[string]*reporter.Report{
		"one": reporter.New(reportertest.Input(0, 3, 0, "")), "gaps": reportertest.Gaps(), "nodes": nodes, "work": reportertest.AddOperations(reporter.New(reportertest.Input(0, 6, 0, ""))), "hostile": reportertest.HostileReport("=cmd|' /C calc'!A0\n\"x\",y"),
		"ranks":   reportertest.Ranks(2, 2, 3),
		"nothing": {Nodes: map[string]*reporter.Node{"0": {}, "1": nil}},
	} {
		reportertest.CompareGolden(t, filepath.Join("testdata", "csv", name+".csv"), showCSV(t, r), *update)
	}
}

// The table has the columns of the documented format, in the documented order.
func TestWriteCSV_HasDocumentedColumns(t *testing.T) {
	rows := csvRows(t, reporter.New(reportertest.Input(0, 3, 0, "")))
	want := []string{"timestamp [s]"}
	for c := range collector.NumColumns {
		unit := c.Info().Unit.Symbol()
		if c == collector.Timestamp || c.Info().Scope == collector.ScopeDevice {
			continue
		}
		if !c.Info().EnvelopeOnly {
			want = append(want, fmt.Sprintf("%s [%s]", c.Key(), unit))
		}
		for _, part := range []string{"min", "mean", "max"} {
			want = append(want, fmt.Sprintf("%s.%s [%s]", c.Key(), part, unit))
		}
	}
	if !slices.Equal(rows[0], want) || len(rows) != 4 {
		t.Errorf("%d rows, want 4; the header is\n%q\nwant\n%q", len(rows), rows[0], want)
	}
	several := csvRows(t, reportertest.Nodes(3))
	if !slices.Equal(several[0], append([]string{"node"}, want...)) || len(several) != 7 {
		t.Fatalf("several nodes: %d rows, want 7; the header is %q, want node before the columns of a report of one node",
			len(several), several[0])
	}
	wantValues(t, "nodes of rows 1, 3 and 6", "0 1 2", several[1][0], several[3][0], several[6][0])
}

// The timelines of operations come last, with their units, and names of series stay plain text.
func TestWriteCSV_TimelinesComeLastAsPlainText(t *testing.T) {
	r := reportertest.AddOperations(reporter.New(reportertest.Input(0, 6, 0, "")))
	n := r.Nodes["0"]
	n.Envelope["op:=1+1\x1b[31m,\"\n:time_ms"] = n.Envelope["gauge:queue"]
	rows := csvRows(t, r)
	if len(rows) != 7 {
		t.Fatalf("%d rows, want 7", len(rows))
	}

	want := []string{
		"counter:rows<b>:per_second.min [1/s]", "counter:rows<b>:per_second.mean [1/s]", "counter:rows<b>:per_second.max [1/s]",
		"gauge:queue.min", "gauge:queue.mean", "gauge:queue.max",
		`op:=1+1\x1b[31m,"\n:time_ms.min [ms]`, `op:=1+1\x1b[31m,"\n:time_ms.mean [ms]`, `op:=1+1\x1b[31m,"\n:time_ms.max [ms]`,
		"op:store.get:per_second.min [1/s]", "op:store.get:per_second.mean [1/s]", "op:store.get:per_second.max [1/s]",
		"op:store.get:time_ms.min [ms]", "op:store.get:time_ms.mean [ms]", "op:store.get:time_ms.max [ms]",
		"transfer:nixl:mb_per_second.min [MiB/s]", "transfer:nixl:mb_per_second.mean [MiB/s]", "transfer:nixl:mb_per_second.max [MiB/s]",
		"transfer:nixl:time_ms.min [ms]", "transfer:nixl:time_ms.mean [ms]", "transfer:nixl:time_ms.max [ms]",
	}
	check.Equal(t, rows[0][len(rows[0])-len(want):], want, "the last columns are")
	if first, last := rows[1][len(rows[0])-1], rows[6][len(rows[0])-1]; first != "" || last == "" {
		t.Errorf("the last column is %q in the first row, want \"\", and %q in the last, want a number", first, last)
	}
}

// The table contains every number of the report, with the same digits as in the JSON, and nothing else.
func TestWriteCSV_HasSameNumbersAsJSON(t *testing.T) {
	awkward := reporter.New(reportertest.Input(0, 7, 0, ""))
	for i, v := range []float64{0.1, 1e-7, 1e21, 123456789.000001, math.Copysign(0, -1), -5e-324, math.MaxFloat64} {
		awkward.Nodes["0"].Samples.Columns[0][i] = v
	}
	for name, r := range map[string]*reporter.Report{"one": reporter.New(reportertest.Input(0, 3, 0, "")), "gaps": reportertest.Gaps(), "awkward": awkward, "work": reportertest.AddOperations(reporter.New(reportertest.Input(0, 6, 0, ""))), "hostile": reportertest.HostileReport("a|b")} {
		var doc struct {
			Nodes map[string]struct {
				Samples  []map[string]json.Number            `json:"samples"`
				Envelope map[string]map[string][]json.Number `json:"envelope"`
			} `json:"nodes"`
		}
		check.Must(t, json.Unmarshal(encodedReport(t, r), &doc))
		rows, full := csvRows(t, r), 0
		column := func(row int, name string) string {
			at := slices.Index(rows[0], name)
			if at < 0 {
				t.Fatalf("the table has no column %q, only %q", name, rows[0])
			}
			return rows[1+row][at]
		}
		for i, sample := range doc.Nodes["0"].Samples {
			for key, number := range sample {
				full += showField(t, name, column(i, showName(key)), number)
			}
			for key, band := range doc.Nodes["0"].Envelope {
				for part, numbers := range band {
					if key != collector.Timestamp.Key() {
						full += showField(t, name, column(i, showName(key+"."+part)), numbers[i])
					}
				}
			}
		}
		empty := 0
		for _, field := range slices.Concat(rows[1:]...) {
			empty += btoi(field == "")
		}
		wantValues(t, name+": number of rows, of numbers", fmt.Sprint(1+len(doc.Nodes["0"].Samples), full), len(rows),
			len(slices.Concat(rows[1:]...))-empty)
	}
}

// showName returns the heading of the column of a key, which may end in .min, .mean or .max.
func showName(key string) string {
	of := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(key, ".min"), ".mean"), ".max")
	c, ok := collector.ColumnByKey(of)
	line, isTimeline := reporter.ParseTimelineKey(of)
	switch {
	case isTimeline && line.Unit() != "":
		return key + " [" + string(line.Unit()) + "]"
	case !ok:
		return key
	case c == collector.Timestamp:
		return key + " [s]"
	case c.IsPercent():
		return key + " [%]"
	}
	return key + " [" + c.Info().Unit.Symbol() + "]"
}

// showField compares a field with a number of the JSON (null is ""). It returns 1 for a number, else 0.
func showField(t *testing.T, name, got string, want json.Number) int {
	t.Helper()
	check.Equal(t, got, string(want), "%s: field, as in the JSON", name)
	return btoi(want != "")
}

// showCSVBack writes a report as CSV, reads it, and compares all headings and numbers with the report.
func showCSVBack(t testing.TB, name string, r *reporter.Report) {
	t.Helper()
	rows := csvRows(t, r)
	for _, head := range rows[0] {
		if head != text.Printable(head) || head != "" && strings.ContainsAny(head[:1], "=+-@\t\r") {
			t.Errorf("%s: the heading %q has a control character or begins like a formula", name, head)
		}
	}
	named, columns, values := reporter.CSVColumns(r)
	if len(columns)+btoi(named) != len(rows[0]) {
		t.Fatalf("%s: %d columns, want %d", name, len(rows[0]), len(columns))
	}
	at := 0
	for _, node := range r.NodeNames() {
		n := r.Nodes[node]
		if n == nil {
			continue
		}
		for i := range n.Samples.Len() {
			at++
			for k, column := range columns {
				want := math.NaN()
				if values := values(k, n); i < len(values) {
					want = values[i]
				}
				showCell(t, fmt.Sprintf("%s: %s of row %d", name, column, i), rows[at][btoi(named)+k], want)
			}
		}
	}
	if at != len(rows)-1 {
		t.Errorf("%s: %d rows of samples, want %d", name, len(rows)-1, at)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// showCell compares a cell with its number.
func showCell(t testing.TB, what, cell string, want float64) {
	t.Helper()
	got, err := strconv.ParseFloat(cell, 64)
	if cell == "" {
		got, err = math.NaN(), nil
	}
	absent := math.IsNaN(got) && (math.IsNaN(want) || math.IsInf(want, 0))
	if err != nil || math.Float64bits(got) != math.Float64bits(want) && !absent {
		t.Fatalf("%s is %q, want %v", what, cell, want)
	}
}

// showWrites counts the bytes written to it, and fails after limit.
type showWrites struct{ total, largest, limit int }

func (w *showWrites) Write(p []byte) (int, error) {
	w.total, w.largest = w.total+len(p), max(w.largest, len(p))
	if w.limit > 0 && w.total > w.limit {
		return 0, errors.New("pipe is gone")
	}
	return len(p), nil
}

// A large report is written in chunks, and WriteCSV stops at the first write error.
func TestWriteCSV_WritesInChunksAndStopsOnError(t *testing.T) {
	n := 10_000
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i)
	}
	r := &reporter.Report{Nodes: map[string]*reporter.Node{"0": {Samples: reporter.Samples{Keys: []string{"cpu_pct_per_cpu_avg"}, Columns: [][]float64{values}}}}}
	w := &showWrites{}
	if err := reporter.WriteCSV(w, r); err != nil || w.total < 50*n || w.largest > 1<<16 {
		t.Errorf("error %v; wrote %d bytes, want at least %d; longest write %d bytes, want at most %d", err, w.total, 50*n,
			w.largest, 1<<16)
	}
	w = &showWrites{limit: 1 << 17}
	if err := reporter.WriteCSV(w, r); err == nil || !strings.Contains(err.Error(), "write CSV: pipe is gone") || w.total > 1<<18 {
		t.Errorf("closed pipe: error %v, want \"write CSV: pipe is gone\"; wrote %d bytes, want at most %d", err, w.total,
			1<<18)
	}
}

// FuzzWriteCSV checks that no text in a report becomes a formula, a control character or an extra field. The seeds have
// hostile texts wherever a report can have text.
func FuzzWriteCSV(f *testing.F) {
	for _, words := range reportertest.HostileTexts {
		f.Add(words, 1.5)
	}
	f.Fuzz(func(t *testing.T, words string, v float64) {
		for name, r := range reportertest.HostileReports(words) {
			for _, n := range r.Nodes {
				if n != nil {
					n.Samples.Columns[0][1] = v
				}
			}
			showCSVBack(t, name, r)
		}
	})
}

func BenchmarkWriteCSV(b *testing.B) {
	r := reporter.New(reportertest.Input(0, 1000, 0, ""))
	for b.Loop() {
		check.Must(b, reporter.WriteCSV(&showWrites{}, r))
	}
}
