package reporter_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Operations are unchanged after encoding and decoding a report, and the file conforms to the schema.
func TestOperations_SurviveEncodingAndDecoding(t *testing.T) {
	data := encodedReport(t, reportertest.AddOperations(reportertest.ThreeNodes()))
	reportertest.Validate(t, data)
	back := new(reporter.Report)
	check.Must(t, json.Unmarshal(data, back))
	check.Equal(t, string(encodedReport(t, back)), string(data), "report that was encoded twice")
}

// Over several nodes, counts are added up, averages are weighted by counts, and quantiles are taken from the worst
// node.
func TestReport_PooledOperationsCombinesNodes(t *testing.T) {
	if w := reportertest.ThreeNodes().PooledOperations(); w != nil {
		t.Errorf("PooledOperations without operations is %+v, want nil", w)
	}
	w := reportertest.AddOperations(reportertest.ThreeNodes()).PooledOperations()
	get, nixl := w.Times["store.get"], w.Transfers["nixl"]
	wantValues(t, "store.get: calls, p90, maximum, errors, slowest node", "3702 3.3 12 9 2", get.Count,
		text.Round(*get.P90, 9), *get.Max, get.Errors, w.SlowestNode["store.get"])
	wantValues(t, "nixl: transfers, MiB, failures", "360 25200 6", nixl.Summary.Transfers, nixl.TotalMB,
		nixl.FailedTransfers)
	if want := 0.62 * 2; *get.Avg < want*0.999 || *get.Avg > want*1.001 {
		t.Errorf("the average is %v, want %v", *get.Avg, want)
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

	want := *of(1, 5, 9, 9, 200, 3, 4, 4.5).Std
	for name, c := range map[string]struct {
		parts []aggregate.Timing
		want  float64 // -1 = unknown
	}{
		"several times per node":   {[]aggregate.Timing{of(1, 5, 9), of(9, 200, 3), of(4, 4.5)}, want},
		"nodes with a single time": {[]aggregate.Timing{of(1), of(5), of(9, 9, 200, 3), of(4), of(4.5)}, want},
		"node with only failures":  {[]aggregate.Timing{{Errors: 3}, of(1, 5, 9, 9, 200, 3, 4, 4.5)}, want},
		"unknown deviation":        {[]aggregate.Timing{of(1, 5), unknown, of(2)}, -1},
		"impossible counts":        {[]aggregate.Timing{{Count: 1, Avg: new(5.0), Std: new(1.0)}, {Count: -1, Avg: new(9.0), Std: new(1.0)}}, -1},
	} {
		r := &reporter.Report{Nodes: make(map[string]*reporter.Node)}
		for i, part := range c.parts {
			r.Nodes[strconv.Itoa(i)] = &reporter.Node{Operations: &aggregate.Operations{Times: map[string]aggregate.Timing{"t": part}}}
		}
		got := -1.0
		if std := r.PooledOperations().Times["t"].Std; std != nil {
			got = *std
		}
		if !(math.Abs(got-c.want) <= 1e-9) { // NaN fails, too
			t.Errorf("%s: pooled standard deviation = %v, want %v", name, got, c.want)
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
		wantValues(t, fmt.Sprint(counts, ": means"), "5 5 5", w.Gauges["g"].Mean, w.Values["v"].Avg, *w.Times["t"].Avg)
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
	check.Must(t, json.Unmarshal([]byte(text), r))
	if w := r.PooledOperations(); w == nil || len(w.Metrics()) == 0 {
		t.Errorf("PooledOperations is %+v, want operations with metrics", w)
	}
}
