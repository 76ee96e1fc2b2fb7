package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// workSets writes two sets of four runs on three nodes. In the second set, store.get takes 25 % longer, one counter is
// lower, and one operation is new. A third set has no operations.
func workSets(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for set, factor := range map[string]float64{"before": 1, "after": 1.25, "bare": 0} {
		for i := range 4 {
			r := reportertest.ThreeNodes()
			r.Run.ID = fmt.Sprint(set, i)
			if factor > 0 {
				slowWork(reportertest.AddOperations(r), factor)
			}
			writeReport(t, filepath.Join(dir, set, fmt.Sprintf("node-%d.json", i)), r)
		}
	}
	return dir
}

func slowWork(r *reporter.Report, factor float64) {
	for _, n := range r.Nodes {
		times := n.Operations.Times
		get := times["store.get"]
		get.P90 = new(*get.P90 * factor)
		times["store.get"] = get
		n.Operations.Counters["gunicorn.requests"] /= factor
		if factor > 1 {
			times["new"] = get
		}
	}
}

func TestDiff_ComparesOperations(t *testing.T) {
	dir := workSets(t)
	for _, c := range []struct {
		gate, b string
		code    int
		words   string
	}{
		{"op.store.get.p90_time_ms > +10%", "after", 1, "FAILED: +25.00 %, from 3.3 to 4.125 ms"},
		{"op.store.get.p90_time_ms > +10%", "before", 0, ""},
		{"op.store.get.p90_time_ms > +30%", "after", 0, ""},
		{"counter.gunicorn.requests < -5%", "after", 1, "FAILED: -20.00 %, from 6,000 to 4,800"},
		{`op.GET /<script>alert(1)</script>{code="200"}.max_time_ms > 1000`, "after", 2, "is not a number of a series"},
		{"transfer.nixl.failed > 0", "after", 1, "FAILED: B has 6 times"},
		{"op.new.count > +10%", "after", 2, "cannot be judged: A does not have the metric: the job recorded no such operation"},
		{"op.other.count > 1", "after", 2, "cannot be judged: no node of A or B has that operation"},
		{"op.store.get.count > 1", "bare", 2, "cannot be judged: B does not have the metric: operations were not recorded"},
		{"op.store.get > 1", "after", 2, "is not a number of a series: use op.NAME.count"},
		{"counter.gunicorn.requests > 5%", "after", 2, "an amount is > 5"},
	} {
		o := wantInsideIn(t, dir, c.code, "diff", "--fail-if", c.gate, "before", c.b)
		if !strings.Contains(o.Err, c.words) || (c.words == "") != (o.Err == "") {
			t.Errorf("gate %s: stderr %q, want it to contain %q", c.gate, o.Err, c.words)
		}
	}
	if o := diffIn(t, dir, "--fail-if", "op.a.count > 1", "bare", "bare"); o.Code != 2 || !strings.Contains(o.Err, "operations were not recorded: perfagent run --ops on") {
		t.Errorf("gate on operations that no run recorded: exit code %d, stderr %q; want 2 and the hint --ops on",
			o.Code, o.Err)
	}
}

// An operation that only one side has is null on the other side, with the reason.
func TestDiff_JSON_GivesReasonForOperationOnOneSide(t *testing.T) {
	o := wantInsideIn(t, workSets(t), 0, "diff", "--format", "json", "before", "after")
	type metric struct {
		Name, Why string
		A, B      *float64
		NA        int `json:"n_a"`
	}
	found := make(map[string]metric)
	for _, m := range decoded[struct{ Metrics []metric }](t, o.Out).Metrics {
		found[m.Name] = m
	}
	if m := found["op.new.count"]; m.A != nil || m.B == nil || *m.B != 3702 || m.NA != 0 || m.Why != "A: the job recorded no such operation" {
		t.Errorf("op.new.count: %+v, want only B with 3702 and the reason that A has no such operation", m)
	}
	if m := found["op.store.get.count"]; m.A == nil || *m.A != 3702 || m.Why != "" {
		t.Errorf("op.store.get.count: %+v, want A with 3702 and no reason", m)
	}
}
