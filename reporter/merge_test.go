package reporter_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

func mustMerge(t *testing.T, inputs ...reporter.SourceReport) *reporter.Report {
	t.Helper()
	r, err := reporter.Merge(inputs)
	check.Must(t, err)
	return r
}

// wantValues checks what fmt.Println prints for values.
func wantValues(t testing.TB, what, want string, values ...any) {
	t.Helper()
	if got := strings.TrimSuffix(fmt.Sprintln(values...), "\n"); got != strings.TrimSuffix(want, "\n") {
		t.Errorf("%s = %s, want %s", what, got, want)
	}
}

// sources returns reports with their indexes as paths.
func sources(reports ...*reporter.Report) (out []reporter.SourceReport) {
	for i, r := range reports {
		out = append(out, reporter.SourceReport{Path: fmt.Sprint(i), Report: r})
	}
	return out
}

func encodedReport(t testing.TB, r *reporter.Report) []byte {
	t.Helper()
	data, err := reporter.Encode(r)
	check.Must(t, err)
	return data
}

func TestMerge_RunSpansAllNodes(t *testing.T) {
	a, b, c := reportertest.NodeReport(0, 10, 0, map[string]string{"k": "a", "x": "1"}), reportertest.NodeReport(2, 10, 7, map[string]string{"k": "b"}), reportertest.NodeReport(10, 5, 137, nil)
	r := mustMerge(t, sources(c, b, a)...)
	run := r.Run
	wantValues(t, "nodes, exit code and signal", "[0 2 10] 7 ", r.NodeNames(), *run.ExitCode, run.Signal)
	wantValues(t, "start in seconds, end in seconds, length", "0 35 35", run.Start.Sub(reportertest.RunStart).Seconds(),
		run.End.Sub(reportertest.RunStart).Seconds(), run.WallSeconds)
	wantValues(t, "tags, ID, command and schema", "a 1 "+a.Run.ID+" python "+reporter.Schema, run.Tags["k"],
		run.Tags["x"], run.ID, run.Command[0], r.Schema)
	if !bytes.Equal(encodedReport(t, a), encodedReport(t, reportertest.NodeReport(0, 10, 0, map[string]string{"k": "a", "x": "1"}))) {
		t.Error("Merge modified an input")
	}
}

func TestMerge_UsesFirstNonzeroExitCode(t *testing.T) {
	seven := 7
	lone := reporter.NewPerfPyReport(reportertest.PerfPySamples(), 1, 8, reporter.Run{ExitCode: &seven, Signal: "SIGHUP"})
	for _, c := range []struct {
		name   string
		in     []*reporter.Report
		code   int // -1 = none
		signal string
	}{
		{"all succeeded", []*reporter.Report{reportertest.NodeReport(0, 1, 0, nil), reportertest.NodeReport(1, 1, 0, nil)}, 0, ""},
		{"sidecars", []*reporter.Report{reportertest.NodeReport(0, 1, -1, nil), reportertest.NodeReport(1, 1, -1, nil)}, -1, ""},
		{"sidecar and job", []*reporter.Report{reportertest.NodeReport(0, 1, -1, nil), reportertest.NodeReport(1, 1, 0, nil)}, 0, ""},
		{"killed", []*reporter.Report{reportertest.NodeReport(0, 1, 0, nil), reportertest.NodeReport(1, 1, 137, nil), reportertest.NodeReport(2, 1, 3, nil)}, 137, "SIGKILL"},
		{"failed run without job", []*reporter.Report{reportertest.NodeReport(0, 1, 0, nil), lone, reportertest.NodeReport(2, 1, 0, nil)}, 7, "SIGHUP"},
		{"failed job before failed run", []*reporter.Report{reportertest.NodeReport(0, 1, 4, nil), lone}, 4, ""},
	} {
		r := mustMerge(t, sources(c.in...)...)
		got := -1
		if r.Run.ExitCode != nil {
			got = *r.Run.ExitCode
		}
		if got != c.code || r.Run.Signal != c.signal {
			t.Errorf("%s: exit code %d, signal %q; want %d, %q", c.name, got, r.Run.Signal, c.code, c.signal)
		}
	}
}

func TestMerge_KeepsDuplicateNodeOnce(t *testing.T) {
	a, b := reportertest.NodeReport(4, 10, 0, nil), reportertest.NodeReport(4, 10, 0, nil)
	b.Nodes["4"].Push = &reporter.Push{MLflow: reporter.PushState{State: "done", RunID: "r"}}
	for _, order := range [][]reporter.SourceReport{sources(a, b), sources(b, a)} {
		r := mustMerge(t, order...)
		wantValues(t, "number of nodes, run ID of the push", "1 r", len(r.Nodes), r.Nodes["4"].Push.MLflow.RunID)
	}
	if a.Nodes["4"].Push.MLflow.State != "off" {
		t.Error("Merge modified an input")
	}
	other := reportertest.NodeReport(4, 11, 0, nil)
	_, err := reporter.Merge([]reporter.SourceReport{{Path: "x/node-4.json", Report: a}, {Path: "y/node-4.json", Report: other}})
	for _, want := range []string{"x/node-4.json", "y/node-4.json", "node 4 "} {
		check.Error(t, err, want)
	}
}

func TestMerge_RejectsMissingReports(t *testing.T) {
	_, err := reporter.Merge(nil)
	check.Error(t, err, "")
	_, err = reporter.Merge([]reporter.SourceReport{{Path: "a.json", Report: nil}})
	check.Error(t, err, "a.json")
}

func TestMerge_KeepsReasonForIncompleteness(t *testing.T) {
	broken := reportertest.Incomplete()
	r := mustMerge(t, sources(reportertest.NodeReport(5, 10, 0, nil), broken)...)
	check.Equal(t, r.Run.Incomplete, broken.Run.Incomplete, "incomplete")
}

// Merging a single input, or a merged report with its input, changes nothing. Findings may differ, because they depend
// on the nodes of a report.
func TestMerge_LeavesSingleInputUnchanged(t *testing.T) {
	w := reportertest.NewWideStream(1, 2, 2)
	rec := w.Recording(10)
	for range 12 {
		w.Next(rec)
	}
	wide := reporter.New(reporter.Input{Run: reporter.Run{ID: "r", Start: reporter.Time{Time: w.Start.Wall}}, Node: 3,
		Recording: rec, Job: &reporter.Job{UserSeconds: 6}})
	wide.Nodes["3"].Findings = []reporter.Finding{{ID: "x", Severity: "info", Text: "y", Evidence: map[string]any{}}}
	for _, r := range []*reporter.Report{reportertest.NodeReport(3, 10, 7, map[string]string{"a": "b"}), wide} {
		once, want := mustMerge(t, sources(r)...), encodedReport(t, r)
		check.Equal(t, string(encodedReport(t, once)), string(want), "merged")
		if got := encodedReport(t, mustMerge(t, sources(once, r)...)); !bytes.Equal(got, want) {
			t.Error("merging a merged report with its input changes the report")
		}
		once.Nodes["3"].Findings = nil
		mustMerge(t, sources(once, r)...)
	}
}

// Merging in any order and in any steps gives the same result, if no two inputs disagree.
func TestMerge_IgnoresOrderAndSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range testenv.Rounds(12, 3) {
		var parts []reporter.SourceReport
		for node := range 4 {
			code := []int{0, 0, 3, 137, -1}[rng.IntN(5)]
			r := reportertest.NodeReport(node*7, 1+rng.IntN(9), code, map[string]string{fmt.Sprint(node): "v"})
			if code < 0 && rng.IntN(2) == 0 {
				r.Run.Incomplete = "cut off"
			}
			parts = append(parts, reporter.SourceReport{Path: fmt.Sprint(node), Report: r})
		}
		want := encodedReport(t, mustMerge(t, parts...))
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		left := reporter.SourceReport{Path: "left", Report: mustMerge(t, parts[0], parts[1])}
		right := reporter.SourceReport{Path: "right", Report: mustMerge(t, parts[2], parts[3], parts[1])} // one input twice
		for name, got := range map[string]*reporter.Report{
			"order": mustMerge(t, parts...), "steps": mustMerge(t, left, right), "reverse steps": mustMerge(t, right, left),
			"one by one": mustMerge(t, reporter.SourceReport{Path: "l", Report: mustMerge(t, left, parts[2])}, parts[3]),
		} {
			if data := encodedReport(t, got); !bytes.Equal(data, want) {
				t.Fatalf("%s: %.600s\nwant\n%.600s", name, data, want)
			}
		}
	}
}

func TestMerger_HalvesSeriesToFitLimit(t *testing.T) {
	old, err := reporter.ParsePerfPy([]byte(reportertest.PerfPyJSON()), 8)
	check.Must(t, err)
	inputs := sources(reportertest.NodeReport(0, 200, 0, nil), reportertest.NodeReport(1, 111, 0, nil), old)
	before := encodedReport(t, inputs[0].Report)
	full := encodedReport(t, mustMerge(t, inputs...))
	for _, limit := range []int{len(full) + 2000, len(full) - 1, len(full) / 3, len(full) / 20, 50000} {
		data, err := mergeByFile(t, inputs, limit)
		check.Must(t, err)
		if len(data) > limit {
			t.Errorf("%d bytes, want at most %d", len(data), limit)
		}
		n := readBack(t, data).Nodes["0"]
		if band := n.Envelope["cpu_pct_per_cpu_avg"]; slices.Max(band.Max) != 100 || slices.Min(band.Min) != 0.5 {
			t.Errorf("limit %d: band %v, want the minimum 0.5 and the maximum 100", limit, band)
		}
		want := (200 + int(n.Sampling.Stride) - 1) / int(n.Sampling.Stride)
		if n.Samples.Len() != want || n.Metrics[reporter.MetricCPUPeak] != 100 {
			t.Errorf("limit %d: %d samples at stride %d, want %d; CPU peak %v, want 100", limit, n.Samples.Len(),
				n.Sampling.Stride, want, n.Metrics[reporter.MetricCPUPeak])
		}
		check.Equal(t, n.Sampling.Stride == 1, limit > len(full), "whether the stride is 1 for %d of %d bytes", limit,
			len(full))
	}
	if !bytes.Equal(before, encodedReport(t, inputs[0].Report)) {
		t.Error("the Merger modified an input")
	}
	_, err = mergeByFile(t, inputs, 1000)
	check.Error(t, err, "1000")
}

func TestNode_HalveMergesNeighboringPoints(t *testing.T) {
	nan := math.NaN()
	n := &reporter.Node{
		Samples:  reporter.Samples{Keys: []string{"k", "bare"}, Columns: [][]float64{{1, 2, 3, nan, nan}, {5, 4, nan, 7, 9}}},
		Envelope: reporter.Envelope{"k": reporter.Band{Min: reporter.Numbers{0, 1, nan, 4, nan}, Mean: reporter.Numbers{1, 2, nan, 5, nan}, Max: reporter.Numbers{2, 9, nan, 6, nan}}},
		Sampling: &reporter.Sampling{Stride: 4},
	}
	reporter.Halve(n)
	got, err := text.JSON(n)
	check.Must(t, err)
	for _, want := range []string{
		`"samples":[{"k":1,"bare":5},{"k":3},{"bare":9}]`, `"stride":8`, `"k":{"min":[0,4,null],"mean":[1.5,5,null],"max":[9,6,null]}`,
		`"bare":{"min":[4,7,9],"mean":[4.5,7,9],"max":[5,7,9]}`,
	} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}
