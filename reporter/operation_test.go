package reporter_test

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// Operations are unchanged after encoding and decoding a report, and the file conforms to the schema.
func TestOperations_SurviveEncodingAndDecoding(t *testing.T) {
	r := reportertest.AddOperations(reportertest.ThreeNodes())
	data, err := reporter.Encode(r)
	must(t, err)
	reportertest.Validate(t, data)

	back := new(reporter.Report)
	must(t, json.Unmarshal(data, back))
	again, err := reporter.Encode(back)
	must(t, err)
	if diff := cmp.Diff(string(data), string(again)); diff != "" {
		t.Errorf("encoded twice (-first +second):\n%s", diff)
	}
}

func TestReport_PooledOperationsIsNilWithoutOperations(t *testing.T) {
	if w := reportertest.ThreeNodes().PooledOperations(); w != nil {
		t.Errorf("PooledOperations is %+v, want nil", w)
	}
}

// Over several nodes, counts are added up, averages are weighted by counts, and quantiles are taken from the worst
// node.
func TestReport_PooledOperationsCombinesNodes(t *testing.T) {
	w := reportertest.AddOperations(reportertest.ThreeNodes()).PooledOperations()
	get := w.Times["store.get"]
	if get.Count != 3*1234 || math.Abs(*get.P90-3.3) > 1e-9 || *get.Max != 12 || get.Errors != 9 {
		t.Errorf("store.get is %+v, want 3702 calls, a p90 of 3.3, a maximum of 12 and 9 errors", get)
	}
	if want := 0.62 * 2; *get.Avg < want*0.999 || *get.Avg > want*1.001 {
		t.Errorf("the average is %v, want %v", *get.Avg, want)
	}
	wantEqual(t, w.SlowestNode["store.get"], "2", "the slowest node")
	nixl := w.Transfers["nixl"]
	if nixl.Summary.Transfers != 360 || nixl.TotalMB != 3*8400 || nixl.FailedTransfers != 6 {
		t.Errorf("nixl is %+v, want 360 transfers, 25200 MiB and 6 failures", nixl)
	}
	if nixl.Summary.Throughput < 7070 || nixl.Summary.Throughput > 7071 {
		t.Errorf("the throughput is %v, want 7070 to 7071, as on each node", nixl.Summary.Throughput)
	}
}

// The pooled standard deviation covers the times of all nodes. A node with a single time has no standard deviation.
func TestReport_PooledStdCoversAllTimes(t *testing.T) {
	of := func(list ...float64) aggregate.Timing {
		sum, squares := 0.0, 0.0
		for _, v := range list {
			sum += v
		}
		for _, v := range list {
			squares += (v - sum/float64(len(list))) * (v - sum/float64(len(list)))
		}
		out := aggregate.Timing{Count: float64(len(list)), Avg: new(sum / float64(len(list)))}
		if len(list) > 1 {
			out.Std = new(math.Sqrt(squares / float64(len(list))))
		}
		return out
	}
	unknown := of(3, 4)
	unknown.Std = nil

	want := of(1, 5, 9, 9, 200, 3, 4, 4.5)
	for name, c := range map[string]struct {
		parts []aggregate.Timing
		want  *float64
	}{
		"several times per node":   {[]aggregate.Timing{of(1, 5, 9), of(9, 200, 3), of(4, 4.5)}, want.Std},
		"nodes with a single time": {[]aggregate.Timing{of(1), of(5), of(9, 9, 200, 3), of(4), of(4.5)}, want.Std},
		"node with only failures":  {[]aggregate.Timing{{Errors: 3}, of(1, 5, 9, 9, 200, 3, 4, 4.5)}, want.Std},
		"unknown deviation":        {[]aggregate.Timing{of(1, 5), unknown, of(2)}, nil},
		"impossible counts":        {[]aggregate.Timing{{Count: 1, Avg: new(5.0), Std: new(1.0)}, {Count: -1, Avg: new(9.0), Std: new(1.0)}}, nil},
	} {
		r := &reporter.Report{Nodes: make(map[string]*reporter.Node)}
		for i, part := range c.parts {
			r.Nodes[strconv.Itoa(i)] = &reporter.Node{Operations: &aggregate.Operations{Times: map[string]aggregate.Timing{"t": part}}}
		}
		got := r.PooledOperations().Times["t"].Std
		if (got == nil) != (c.want == nil) || got != nil && math.Abs(*got-*c.want) > 1e-9 {
			t.Errorf("%s: pooled standard deviation = %s, want %s", name, shownFloat(got), shownFloat(c.want))
		}
	}
}

// Impossible counts, as in a damaged report, do not result in NaN.
func TestReport_PooledMeansOfImpossibleCountsAreNotNaN(t *testing.T) {
	for _, counts := range [][2]int64{{0, 0}, {-1, 1}, {1, -1}, {-1, -1}} {
		r := &reporter.Report{Nodes: make(map[string]*reporter.Node)}
		for i, name := range []string{"0", "1"} {
			r.Nodes[name] = &reporter.Node{Operations: &aggregate.Operations{
				Times:  map[string]aggregate.Timing{"t": {Count: float64(counts[i]), Avg: new(5.0)}},
				Gauges: map[string]aggregate.Gauge{"g": {Mean: 5, Count: counts[i]}},
				Values: map[string]aggregate.Value{"v": {Count: float64(counts[i]), Avg: 5}},
			}}
		}
		w := r.PooledOperations()
		if g, v, o := w.Gauges["g"].Mean, w.Values["v"].Avg, *w.Times["t"].Avg; g != 5 || v != 5 || o != 5 {
			t.Errorf("counts %v: the means are %v, %v and %v, want 5 each", counts, g, v, o)
		}
	}
}

// OperationMetric finds each number of each series by its name, and rejects other names.
func TestOperationMetric(t *testing.T) {
	w := reportertest.AddOperations(reportertest.ThreeNodes()).PooledOperations()
	names := make(map[string]bool)
	for _, m := range w.Metrics() {
		named, ok := reporter.OperationMetric(m.Name)
		v, known := w.Value(&m)
		if !ok || named.Series != m.Series || named.Kind != m.Kind || named.Number != m.Number || !known {
			t.Errorf("%s: found %v, series %q, want %q; value %v, known %v, want true", m.Name, ok, named.Series,
				m.Series, v, known)
		}
		names[m.Name] = true
	}
	for _, want := range []string{
		"op.store.get.count", "op.store.get.p90_time_ms", "counter.rows<b>", "gauge.queue.mean", "value.batch.p90",
		"transfer.nixl.failed", `op.GET /<script>alert(1)</script>{code="200"}.max_time_ms`,
	} {
		if !names[want] {
			t.Errorf("the metrics lack %s", want)
		}
	}

	for _, name := range []string{"", "op", "op.", "op..count", "op.count", "op.x.p50", "wall_seconds", "gauge.x", "phase.x.count"} {
		if m, ok := reporter.OperationMetric(name); ok {
			t.Errorf("OperationMetric(%q) returned a number of %q, want none", name, m.Series)
		}
	}
}

// A part of the operations that is null is absent.
func TestReport_NullInOperationsMeansAbsent(t *testing.T) {
	const text = `{"schema":"perfagent.report/1","run":{"id":"x"},"nodes":{"0":{"metrics":{},"samples":[],
		"operations":{"sources":null,"times":{"a":{"count":1,"avg_time_ms":null}},"keys":{"a":null}},"transfers":{"n":{}}}}}`
	r := new(reporter.Report)
	must(t, json.Unmarshal([]byte(text), r))
	if w := r.PooledOperations(); w == nil || len(w.Metrics()) == 0 {
		t.Errorf("PooledOperations is %+v, want operations with metrics", w)
	}
}

// shownFloat formats a number for a message; "nil" for nil.
func shownFloat(v *float64) string {
	if v == nil {
		return "nil"
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}
