package reporter_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// A copy for others has no lines of logs that may not leave the machine, and keeps every other byte.
func TestShareable(t *testing.T) {
	t.Parallel()
	const may, mayNot = `{"lines":["x"],"may_leave":true}`, `{"lines":["x"]}`
	for before, want := range map[string]string{
		`{"nodes": {"0": {"a": 1, "log_tail": ` + mayNot + `, "b": 2}}}`:                                  `{"nodes": {"0": {"a": 1, "b": 2}}}`,
		`{"nodes": {"0": {"log_tail": ` + mayNot + ` ,` + "\n" + `"b": 2}}}`:                              `{"nodes": {"0": {"b": 2}}}`,
		`{"nodes": {"0": {"b": 2, "log_tail": ` + mayNot + ` }}}`:                                         `{"nodes": {"0": {"b": 2 }}}`,
		`{"nodes": {"0": { "log_tail": ` + mayNot + `}}}`:                                                 `{"nodes": {"0": {}}}`,
		`{"nodes": {"0": {"log_tail": null, "log_tail": 7, "b": 2}}}`:                                     `{"nodes": {"0": {"b": 2}}}`,
		`{"nodes": {"0": {"log_tail": ` + may + `, "b": 2}}}`:                                             `{"nodes": {"0": {"log_tail": ` + may + `, "b": 2}}}`,
		`{"nodes": {"0": {"ranks": {"3": {"log_tail": ` + mayNot + `, "rank": 3}}}}}`:                     `{"nodes": {"0": {"ranks": {"3": {"rank": 3}}}}}`,
		`{"run": {"verdict": {"text": "t", "said": {"kind": "killed", "line": "x"}}}}`:                    `{"run": {"verdict": {"text": "t", "said": {"kind":"killed"}}}}`,
		`{"run": {"verdict": {"said": {"line": "x"}, "text": "t"}}}`:                                      `{"run": {"verdict": {"text": "t"}}}`,
		`{"nodes": {"0": {"ranks": {"0": {"verdict": {"said": {"kind": "k", "line": "x"}}}}}}}`:           `{"nodes": {"0": {"ranks": {"0": {"verdict": {"said": {"kind":"k"}}}}}}}`,
		`{"run": {"tags": {"log_tail": "x"}}, "nodes": {"0": {"metrics": {"said": 1}, "verdict": null}}}`: `{"run": {"tags": {"log_tail": "x"}}, "nodes": {"0": {"metrics": {"said": 1}, "verdict": null}}}`,
		"not JSON": "not JSON",
	} {
		got, err := reporter.Shareable([]byte(before))
		check.Must(t, err)
		check.Equal(t, string(got), want, "copy of %s", before)
	}
	if data, err := reporter.Shareable([]byte(`{"nodes": {"0": {"log_tail": `)); err == nil {
		t.Errorf("copy of half a report: %q, want an error", data)
	}
}

func FuzzShareable(f *testing.F) {
	f.Add([]byte(`{"run":{"verdict":{"said":{"kind":"killed","line":"secret"}}},"nodes":{"0":{"log_tail":{"lines":["secret"]},"samples":[]}}}`))
	f.Add([]byte(`{"nodes":{"0":{"ranks":{"0":{"log_tail":{"lines":["a"],"may_leave":true}}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := reporter.Shareable(data)
		if err != nil {
			return
		}
		if json.Valid(data) && !json.Valid(out) {
			t.Fatalf("copy of %q is not JSON: %q", data, out)
		}
		again, err := reporter.Shareable(out)
		if err != nil || !bytes.Equal(again, out) {
			t.Errorf("copy of the copy %q: %q (%v), want no change", out, again, err)
		}
	})
}

// loggedReport returns the report of a node on which a job with a log failed.
func loggedReport() *reporter.Report {
	r := reportertest.NodeReport(0, 20, 3, nil)
	n := r.Nodes["0"]
	n.LogTail = &reporter.LogTail{Stream: reporter.LogStderr, File: "/log", Lines: []string{"a-line"}}
	n.Verdict = &reporter.Verdict{Cause: "exited", Text: "t", Evidence: map[string]any{}, Conditions: []string{},
		LogError: &reporter.LogError{Kind: "traceback", Line: "a-line"}}
	r.Run.Verdict = n.Verdict
	return r
}

// A copy without the lines of the log is valid, and a merge recognizes it.
func TestMerge_RecognizesShareableCopy(t *testing.T) {
	t.Parallel()
	r := loggedReport()
	data := encodedReport(t, r)
	shared, err := reporter.Shareable(data)
	check.Must(t, err)
	reportertest.Validate(t, data)
	reportertest.Validate(t, shared)
	check.True(t, !bytes.Contains(shared, []byte("a-line")), "the copy has the line:\n%.600s", shared)

	merged := mustMerge(t, sources(r, readBack(t, shared))...)
	if tail := merged.Nodes["0"].LogTail; tail == nil || strings.Join(tail.Lines, "") != "a-line" {
		t.Errorf("log of the merged report: %+v, want the log of the report", tail)
	}
}

// Each of several ranks keeps its log; that of a single rank stays with its node.
func TestCombine_RanksKeepTheirLogs(t *testing.T) {
	t.Parallel()
	parts := partsOf(t, plan{Rank: 0, OnNode: 2, End: 3, CPUs: 1, Exit: 1}, plan{Rank: 1, OnNode: 2, End: 3, CPUs: 1, Exit: 1})
	for i, words := range []string{"zero", "one"} {
		for _, n := range parts[i].Report.Nodes {
			n.LogTail = &reporter.LogTail{Stream: reporter.LogStderr, File: "/log", Lines: []string{words}}
		}
	}
	_, n := combined(t, parts...)
	check.Equal(t, [][]string{n.Ranks["0"].LogTail.Lines, n.Ranks["1"].LogTail.Lines}, [][]string{{"zero"}, {"one"}}, "logs of the ranks")
	check.Equal(t, n.LogTail, nil, "log of the node")

	_, n = combined(t, parts[1])
	check.Equal(t, n.LogTail.Lines, []string{"one"}, "log of a node with one rank")
	check.Equal(t, n.Ranks["1"].LogTail, nil, "log of the only rank")
}
