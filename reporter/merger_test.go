package reporter_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/parallel"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// mergeByFile merges reports with a Merger.
func mergeByFile(t *testing.T, inputs []reporter.SourceReport, limit int) ([]byte, error) {
	t.Helper()
	dir := t.TempDir()
	s, err := reporter.NewSpoolWithin(dir, limit)
	check.Must(t, err)
	defer func() {
		s.Close()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("files left in the directory: %v, want none (error %v)", left, err)
		}
	}()

	type packed struct {
		reporter.SourceReport
		node *reporter.PackedNode
	}
	err = parallel.InOrder(len(inputs), func(i int, emit func(packed) error) error {
		for _, name := range inputs[i].Report.NodeNames() {
			n := *inputs[i].Report.Nodes[name]
			p, err := s.Pack(name, &n)
			if err != nil {
				return err
			}
			if err := emit(packed{inputs[i], p}); err != nil {
				return err
			}
		}
		return nil
	}, func(p packed) error { return s.Add(p.Path, &p.Report.Run, p.node) })
	if err != nil {
		return nil, err
	}

	merged, err := reporter.Merge(s.Sources())
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	each := make(map[string]*reporter.Node)
	if err := s.Encode(&out, merged, func(name string, n *reporter.Node) { each[name] = n }); err != nil {
		return nil, err
	}
	same := &reporter.Report{Schema: merged.Schema, Run: merged.Run, Nodes: each}
	if !bytes.Equal(encodedReport(t, same), out.Bytes()) {
		t.Error("the nodes passed to each differ from the nodes that Encode wrote")
	}
	return out.Bytes(), nil
}

// ranked returns a report of a node with ranks.
func ranked(node, seconds int) *reporter.Report {
	r := reportertest.NodeReport(node, seconds, 0, nil)
	for _, n := range r.Nodes {
		n.Ranks = make(map[string]*reporter.Rank)
		for i, envelope := range []reporter.Envelope{n.Envelope, nil, {}, {"job_cpu_cores": n.Envelope["mem_percent"]}} {
			n.Ranks[fmt.Sprint(4*node+i)] = &reporter.Rank{Rank: 4*node + i, Envelope: envelope, Missing: []reporter.Missing{}}
		}
	}
	return r
}

// mergerCases returns reports to merge.
func mergerCases(t *testing.T) map[string][]reporter.SourceReport {
	t.Helper()
	gaps := reportertest.NodeReport(3, 90, 0, nil)
	for i, column := range gaps.Nodes["3"].Samples.Columns { // keys that appear in another order after halving
		for row := range column {
			if row < 7-i || row%(i+2) == 1 {
				column[row] = math.NaN()
			}
		}
	}
	perfpy := reporter.NewPerfPyReport(reportertest.PerfPySamples(), 1, 8, reporter.Run{})
	pushed := reportertest.NodeReport(1, 40, 0, nil)
	pushed.Nodes["1"].Push = &reporter.Push{MLflow: reporter.PushState{State: reporter.PushDone, RunID: "r"}}
	merged := mustMerge(t, sources(reportertest.NodeReport(1, 40, 0, nil), reportertest.NodeReport(12, 40, 3, nil))...)
	cases := map[string][]reporter.SourceReport{
		"one":                     sources(reportertest.NodeReport(7, 100, 0, nil)),
		"many":                    nil,
		"ranks":                   sources(ranked(0, 100), ranked(1, 7)),
		"gaps":                    sources(gaps, reportertest.NodeReport(0, 11, 0, nil)),
		"perf.py":                 sources(reportertest.NodeReport(0, 30, 0, nil), perfpy),
		"same node several times": sources(reportertest.NodeReport(1, 40, 0, nil), pushed, merged, merged),
		"GPUs":                    sources(reportertest.Container(0, 60, 2), reportertest.Container(1, 60, 3)),
		"operations":              sources(reportertest.AddOperations(reportertest.NodeReport(0, 64, 0, nil)), reportertest.NodeReport(1, 1, 0, nil)),
	}
	for i := range 23 {
		cases["many"] = append(cases["many"], sources(reportertest.NodeReport(22-i, 13*i+1, i%3, map[string]string{"nodes": "{}"}))...)
	}
	for name, r := range reportertest.HostileReports("\"nodes\": {}\x1b<&>\u2028") {
		if !slices.ContainsFunc(slices.Collect(maps.Values(r.Nodes)), func(n *reporter.Node) bool { return n == nil }) {
			cases["hostile "+name] = sources(r)
		}
	}
	return cases
}

// With any limit, a Merger writes the same bytes as merging in memory.
func TestMerger_WritesSameBytesAsMerge(t *testing.T) {
	testenv.SkipIfShort(t, "seconds of CPU for merging large reports")
	for name, inputs := range mergerCases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			thinned, all := false, len(encodedReport(t, mustMerge(t, inputs...)))
			for _, limit := range []int{2 * all, all, all - 1, all / 2, all / 3, all / 8, all / 33} {
				want, wrong := reporter.MergeWithin(inputs, limit)
				got, err := mergeByFile(t, inputs, limit)
				if wrong != nil {
					if err == nil || err.Error() != wrong.Error() {
						t.Errorf("limit of %d bytes: error %v, want %v", limit, err, wrong)
					}
					continue
				}
				check.Must(t, err)
				if text := encodedReport(t, want); !bytes.Equal(got, text) {
					t.Fatalf("limit of %d bytes: wrote %d bytes, want %d; first difference:\n%s", limit, len(got), len(text),
						firstDifference(got, text))
				}
				thinned = thinned || len(got) < all
			}
			if inputs[0].Report.Nodes[inputs[0].Report.NodeNames()[0]].Samples.Len() > 60 && !thinned {
				t.Error("the series were not halved for any limit")
			}
		})
	}
}

// firstDifference returns the text around the first byte in which a and b differ.
func firstDifference(a, b []byte) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	around := func(s []byte) string { return string(s[max(0, i-200):min(len(s), i+100)]) }
	return around(a) + "\nwant\n" + around(b)
}

func TestMerger_RejectsConflictingRecordings(t *testing.T) {
	t.Parallel()
	series, numbers := reportertest.NodeReport(4, 10, 0, nil), reportertest.NodeReport(4, 10, 0, nil)
	series.Nodes["4"].Envelope["mem_percent"].Mean[3]++
	numbers.Nodes["4"].Metrics["wall_seconds"]++
	for _, other := range []*reporter.Report{series, numbers} {
		inputs := []reporter.SourceReport{{Path: "x/node-4.json", Report: reportertest.NodeReport(4, 10, 0, nil)}, {Path: "y/node-4.json", Report: other}}
		_, want := reporter.Merge(inputs)
		_, err := mergeByFile(t, inputs, 1<<20)
		if want == nil || err == nil || err.Error() != want.Error() {
			t.Errorf("error %v, want the error of Merge: %v", err, want)
		}
	}
}

func TestNewMerger_MissingDirectoryIsAnError(t *testing.T) {
	t.Parallel()
	_, err := reporter.NewMerger("/does/not/exist")
	check.Error(t, err, "/does/not/exist")
}
