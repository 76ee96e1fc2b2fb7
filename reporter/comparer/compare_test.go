package comparer

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

const cpuMetric = "job_cpu_seconds"

// began is the start of the first run in a test. Other runs begin a number of minutes later.
var began = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// runAt returns the report of one run on node 0.
func runAt(id string, minute int, metrics reporter.Values) reporter.SourceReport {
	zero := 0
	return reporter.SourceReport{
		Path: fmt.Sprintf("%s-%d/node-0.json", id, minute),
		Report: &reporter.Report{
			Schema: reporter.Schema,
			Run:    reporter.Run{ID: fmt.Sprintf("%s-%d", id, minute), Start: reporter.Time{Time: began.Add(time.Duration(minute) * time.Minute)}, ExitCode: &zero},
			Nodes:  map[string]*reporter.Node{"0": {Host: &reporter.Host{CPUs: 4}, Metrics: metrics, Missing: []reporter.Missing{}}},
		},
	}
}

// sideOf returns a side with one run for each value of a metric.
func sideOf(name, metric string, values ...float64) Side {
	s := Side{Name: name}
	for i, v := range values {
		s.Reports = append(s.Reports, runAt(name, i, reporter.Values{metric: v}))
	}
	return s
}

// compared returns the comparison of two sets of values of one metric.
func compared(a, b []float64) Metric {
	c := Compare(sideOf("a", cpuMetric, a...), sideOf("b", cpuMetric, b...))
	m, _ := c.Metric(cpuMetric)
	return m
}

// everywhere returns the names of the metrics that are compared whatever devices the nodes have.
func everywhere() []string {
	return slices.DeleteFunc(MetricNames(), func(name string) bool {
		m, _ := reporter.MetricByName(name)
		return m.OfDevice()
	})
}

// written formats the value that v points to, or null if v is nil.
func written[T any](v *T) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(*v)
}

func TestMetricNames_CoverEveryMetric(t *testing.T) {
	hours := false
	for _, m := range reporter.Metrics() {
		if boot := strings.HasPrefix(m.Name, "boot_"); (m.Aggregation == 0) != boot {
			t.Errorf("%s: Aggregation is %d; want 0 for boot_ metrics only", m.Name, m.Aggregation)
		}
		hours = hours || m.Name == reporter.MetricCPUHours
	}
	if !hours {
		t.Errorf("metrics lack %s, which is the weight of a node", reporter.MetricCPUHours)
	}
	c := Compare(sideOf("a", cpuMetric, 1), sideOf("b", cpuMetric, 1))
	var names []string
	for _, m := range c.Metrics {
		names = append(names, m.Name)
		if table, _ := reporter.MetricByName(m.Name); m.Unit != table.Unit || m.Unit == "" {
			t.Errorf("%s has the unit %q, want %q", m.Name, m.Unit, table.Unit)
		}
	}
	check.Equal(t, names, everywhere(), "names of the metrics")
}

// If n and m values have no ties and do not overlap, p is 2 / C(n+m, n).
func TestCompare_MediansAndPValues(t *testing.T) {
	for _, test := range []struct {
		name                string
		a, b                []float64
		wantA, wantB        string
		change, p, changed  string
		intervalA, tableSay string
	}{
		{"ten apart", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []float64{11, 12, 13, 14, 15, 16, 17, 18, 19, 20},
			"5.5", "15.5", "181.818181818", "0.000011", "true", "2…9", "+182 %"},
		{"four apart", []float64{4, 3, 2, 1}, []float64{5, 6, 7, 8}, "2.5", "6.5", "160", "0.028571", "true", "null…null", "+160 %"},
		{"three apart, too few for significance", []float64{1, 2, 3}, []float64{4, 5, 6}, "2", "5", "150", "null", "null", "null…null", "+150 %"},
		{"three and five", []float64{1, 2, 3}, []float64{4, 5, 6, 7, 8}, "2", "6", "200", "0.035714", "true", "null…null", "+200 %"},
		{"three and four", []float64{1, 2, 3}, []float64{4, 5, 6, 7}, "2", "5.5", "175", "null", "null", "null…null", "+175 %"},
		{"one and one", []float64{2}, []float64{3}, "2", "3", "50", "null", "null", "null…null", "+50 %"},
		{"one and one equal", []float64{2}, []float64{2}, "2", "2", "0", "null", "null", "null…null", "0 %"},
		{"one and one, both 0", []float64{0}, []float64{0}, "0", "0", "null", "null", "null", "null…null", "0 %"},
		{"few and overlapping", []float64{1, 3}, []float64{2, 2}, "2", "2", "0", "null", "null", "null…null", "0 %"},
		{"all equal", []float64{5, 5, 5, 5, 5, 5}, []float64{5, 5, 5, 5, 5, 5}, "5", "5", "0", "1.000000", "false", "5…5", "~"},
		{"all 0", []float64{0, 0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0, 0}, "0", "0", "null", "1.000000", "false", "0…0", "~"},
		{"from 0", []float64{0, 0, 0, 0, 0, 0}, []float64{1, 1, 1, 1, 1, 1}, "0", "1", "null", "0.002165", "true", "0…0", "from 0"},
		{"to 0", []float64{1, 1, 1, 1}, []float64{0, 0, 0, 0}, "1", "0", "-100", "0.028571", "true", "null…null", "-100 %"},
		{"differing only by rounding", []float64{100, 100, 100, 100}, []float64{99.99999999999999, 99.99999999999999, 99.99999999999999, 99.99999999999999},
			"100", "99.99999999999999", "0", "1.000000", "false", "null…null", "~"},
		{"overlapping", []float64{1, 3, 5, 7}, []float64{2, 4, 6, 8}, "4", "5", "25", "0.685714", "false", "null…null", "~"},
		{"negative", []float64{-4}, []float64{-2}, "-4", "-2", "50", "null", "null", "null…null", "+50 %"},
		{"exactly 10 %", []float64{1}, []float64{1.1}, "1", "1.1", "10", "null", "null", "null…null", "+10 %"},
		{"huge", []float64{1e-300}, []float64{1e300}, "1e-300", "1e+300", "null", "null", "null", "null…null", "huge"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := compared(slices.Clone(test.a), slices.Clone(test.b))
			p := "null"
			if m.P != nil {
				p = fmt.Sprintf("%.6f", *m.P)
			}
			got := []string{written(m.A), written(m.B), written(m.ChangePct), p, written(m.Changed), written(m.ALow) + "…" + written(m.AHigh), m.Change(), fmt.Sprint(m.NA, m.NB)}
			want := []string{test.wantA, test.wantB, test.change, test.p, test.changed, test.intervalA, test.tableSay, fmt.Sprint(len(test.a), len(test.b))}
			check.Equal(t, got, want, "metric")
		})
	}
	check.Equal(t, RunsNeeded(), 4, "RunsNeeded")
}

// The p-values match a permutation test: twice the share of all assignments of the values to the two sides that give a
// U at least as far from the middle, on the same side. Most samples have ties, which benchmath does not handle
// correctly in all cases.
func TestCompare_PValueMatchesPermutationTest(t *testing.T) {
	r, test := rand.New(rand.NewPCG(3, 4)), newSignificanceTest()
	for range 3000 {
		a, b := make([]float64, 1+r.IntN(6)), make([]float64, 3+r.IntN(4))
		for _, side := range [][]float64{a, b} {
			for i := range side {
				side[i] = float64(r.IntN(1 + r.IntN(9)))
			}
		}
		m, want := test.compare(slices.Clone(a), slices.Clone(b)), permuted(a, b)
		if m.P != nil && math.Abs(*m.P-want) > 1e-9 {
			t.Fatalf("%v and %v: p = %v, want %v", a, b, *m.P, want)
		}
	}
}

// permuted computes the p-value from its definition.
func permuted(a, b []float64) float64 {
	pool := slices.Concat(a, b)
	low, high, all := 0.0, 0.0, 0.0
	u := pairs(a, b)
	for mask := range 1 << len(pool) {
		var x, y []float64
		for i, v := range pool {
			if mask>>i&1 == 1 {
				x = append(x, v)
			} else {
				y = append(y, v)
			}
		}
		if len(x) != len(a) {
			continue
		}
		all++
		switch v := pairs(x, y); {
		case v == u:
			low, high = low+1, high+1
		case v < u:
			low++
		default:
			high++
		}
	}
	if 2*u == float64(len(a)*len(b)) {
		return 1
	}
	if 2*u > float64(len(a)*len(b)) {
		low = high
	}
	return min(1, 2*low/all)
}

// pairs computes U from its definition.
func pairs(a, b []float64) float64 {
	u := 0.0
	for _, x := range a {
		for _, y := range b {
			switch {
			case x > y:
				u++
			case x == y:
				u += 0.5
			}
		}
	}
	return u
}

// noisy returns n normally distributed values of a job. deviation is relative to centre.
func noisy(r *rand.Rand, n int, centre, deviation float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = centre * (1 + deviation*r.NormFloat64())
	}
	return out
}

// Each pair is ten runs per side, with 5 % noise. Of a thousand pairs without a change, no more look changed than Alpha
// allows. Of a thousand pairs that differ by 20 %, all are found. The noise is the same whenever the test runs.
func TestCompare_FindsChangesWithFewFalsePositives(t *testing.T) {
	r, test := rand.New(rand.NewPCG(1, 2)), newSignificanceTest()
	const pairs = 1000
	loud, found := 0, 0
	for range pairs {
		if m := test.compare(noisy(r, 10, 3, 0.05), noisy(r, 10, 3, 0.05)); *m.Changed {
			loud++
		}
		if m := test.compare(noisy(r, 10, 3, 0.05), noisy(r, 10, 3.6, 0.05)); *m.Changed && *m.ChangePct > 0 {
			found++
		}
	}
	if loud > pairs*6/100 || loud < pairs*2/100 {
		t.Errorf("%d of %d unchanged pairs look changed, want a share of about %v", loud, pairs, Alpha)
	}
	if found < pairs*999/1000 {
		t.Errorf("found %d of %d changes by 20 %%, want at least 999 in 1,000", found, pairs)
	}
}

// nodesOf returns a report with a node for each set of metrics.
func nodesOf(id string, minute int, metrics ...reporter.Values) reporter.SourceReport {
	src := runAt(id, minute, nil)
	delete(src.Report.Nodes, "0")
	for i, m := range metrics {
		src.Report.Nodes[fmt.Sprint(i)] = &reporter.Node{Metrics: m, Missing: []reporter.Missing{}}
	}
	return src
}

func TestCompare_AggregatesAndWeightsNodes(t *testing.T) {
	one := reporter.Values{}
	two := reporter.Values{}
	for _, name := range MetricNames() {
		one[name], two[name] = 10, 40
	}
	one[reporter.MetricCPUHours], two[reporter.MetricCPUHours] = 1, 3
	side := Side{Reports: []reporter.SourceReport{nodesOf("a", 0, one, two)}}
	c := Compare(side, side)
	for name, want := range map[string]float64{
		"max_t_cpu_pct_per_cpu_avg": 40, "max_t_cpu_pct_per_cpu_min": 40, "max_t_mem_percent": 40, "max_t_disk_usage_percent": 40,
		"cpu_avg_utilization_pct": 32.5, "cpu_avg_utilization_over80_pct": 32.5,
		"node_cpu_hours": 4, "node_unused_cpu_hours": 50, "total_disk_io_read_mb": 50, "total_net_io_ext_recv_mb": 50,
		"wall_seconds": 40, "job_cpu_seconds": 50, "job_max_rss_mb": 40,
	} {
		wantMedian(t, c, name, want)
	}
	// If a node lacks the CPU hours, all nodes have the same weight, and the run has no CPU hours.
	delete(two, reporter.MetricCPUHours)
	c = Compare(side, side)
	wantMedian(t, c, "cpu_avg_utilization_pct", 25) // not weighted
	if m, _ := c.Metric(reporter.MetricCPUHours); m.A != nil || m.Why != "node 1: not in the report" {
		t.Errorf("CPU hours %s (reason %q), want null: node 1 has none", written(m.A), m.Why)
	}
}

func TestCompare_AbsentMetricsHaveReasons(t *testing.T) {
	a := sideOf("a", cpuMetric, 1, 2, 3, 4, 5)
	b := sideOf("b", cpuMetric, 1, 2, 3, 4, 5)
	for i, src := range b.Reports {
		n := src.Report.Nodes["0"]
		n.Metrics["wall_seconds"] = 7
		if i > 0 {
			delete(n.Metrics, cpuMetric)
			n.Missing = append(n.Missing, reporter.Missing{What: cpuMetric, Why: "no job was wrapped"})
		}
	}
	c := Compare(a, b)
	m, _ := c.Metric(cpuMetric)
	if m.NA != 5 || m.NB != 1 || written(m.B) != "1" || m.Changed != nil || m.Why != "B: absent in 4 of 5 runs: no job was wrapped" {
		t.Errorf("metric absent in some runs of B: %+v, want 5 and 1 runs, B's median 1, and a reason", m)
	}
	m, _ = c.Metric("wall_seconds")
	if m.A != nil || written(m.B) != "7" || m.ChangePct != nil || m.P != nil || m.Changed != nil || m.Change() != text.Absent || m.Why != "A: not in the report" {
		t.Errorf("metric absent in A: %+v, want B's median 7, no change, and a reason", m)
	}
	m, _ = c.Metric("max_t_mem_percent")
	if m.A != nil || m.B != nil || m.Change() != text.Absent || m.Why != "not in the report" {
		t.Errorf("metric absent in A and B: %+v, want no medians, and a reason", m)
	}
	huge := Side{Reports: []reporter.SourceReport{nodesOf("h", 0, reporter.Values{cpuMetric: 1e300}, reporter.Values{cpuMetric: 1e300})}}
	m, _ = Compare(huge, huge).Metric(cpuMetric)
	if m.A != nil || !strings.Contains(m.Why, "too large") {
		t.Errorf("metric with an infinite sum: %+v, want no median, and a reason", m)
	}
}

// perf.py's totals count from boot, so they are not compared.
func TestCompare_OmitsTotalsOfPerfPy(t *testing.T) {
	a, b := sideOf("a", "total_disk_io_read_mb", 5), sideOf("b", "total_disk_io_read_mb", 6)
	b.Reports[0].Report.Nodes["0"].Origin = reporter.OriginPerfPy
	m, _ := Compare(a, b).Metric("total_disk_io_read_mb")
	if written(m.A) != "5" || m.B != nil || !strings.Contains(m.Why, "since boot") {
		t.Errorf("metric %+v, want A's median 5, and no median for perf.py's totals", m)
	}
}

func TestCompare_GroupsReportsIntoRuns(t *testing.T) {
	at := func(id, node string, minute int) reporter.SourceReport {
		src := runAt("x", minute, reporter.Values{cpuMetric: 1})
		src.Path = fmt.Sprintf("%s/%s@%d", id, node, minute)
		src.Report.Run.ID = id
		src.Report.Nodes = map[string]*reporter.Node{node: src.Report.Nodes["0"]}
		return src
	}
	for _, test := range []struct {
		name    string
		reports []reporter.SourceReport
		want    []string
	}{
		{"three recordings of one node with the same ID", []reporter.SourceReport{at("j", "0", 3), at("j", "0", 1), at("j", "0", 2)}, []string{"0", "0", "0"}},
		{"two nodes, one run", []reporter.SourceReport{at("j", "0", 1), at("j", "1", 1)}, []string{"0+1"}},
		{"two nodes, two recordings each", []reporter.SourceReport{at("j", "0", 1), at("j", "0", 9), at("j", "1", 2), at("j", "1", 8)}, []string{"0+1", "0+1"}},
		{"fewer recordings of one node", []reporter.SourceReport{at("j", "0", 1), at("j", "0", 9), at("j", "1", 2)}, []string{"0+1", "0"}},
		{"different IDs", []reporter.SourceReport{at("j", "0", 1), at("k", "1", 2)}, []string{"0", "1"}},
		{"perf.py's reports without an ID", []reporter.SourceReport{at("", "0", 1), at("", "1", 2)}, []string{"0", "1"}},
	} {
		var got []string
		for _, r := range runsOf(test.reports) {
			var names []string
			for _, n := range r.nodes {
				names = append(names, n.name)
			}
			got = append(got, strings.Join(names, "+"))
		}
		check.Equal(t, got, test.want, "%s: runs", test.name)
	}
}

func TestCompare_NotesOtherDifferences(t *testing.T) {
	a, b := sideOf("a", cpuMetric, 1, 2, 3), sideOf("b", cpuMetric, 1, 2, 3)
	check.Equal(t, len(Compare(a, b).Notes), 0, "number of notes on similar runs")
	seven := 7
	a.Reports[1].Report.Run.ExitCode = &seven
	b.Reports[0].Report.Run.Incomplete = "cut off"
	b.Reports[1].Report.Nodes["0"].Job = &reporter.Job{MaxRSSAtMost: true}
	b.Reports[2].Report.Nodes["0"].Job = &reporter.Job{MaxRSSAtMost: true}
	b.Reports[2].Report.Nodes["0"].Host.CPUs = 64
	b.Reports[2].Report.Nodes["1"] = &reporter.Node{Origin: reporter.OriginPerfPy}
	b.Reports = append(b.Reports, a.Reports[0])
	want := []string{
		"A: 1 of 3 runs ended with an error: a-1/node-0.json",
		"B: 1 of 4 runs have no end (still running, or cut off): b-0/node-0.json",
		"B: 1 of 4 runs are perf.py's (shares computed from the kept samples): b-2/node-0.json",
		"B: 2 of 4 runs have only an upper bound of the memory of the largest process: b-1/node-0.json, …",
		"the number of nodes per run differs: A has 1, B has 1, 2",
		"the number of CPUs per node differs: A has 4, B has 4, 64",
		"recordings given more than once, each counted every time: 1, a-0/node-0.json (A) = a-0/node-0.json (B)",
	}
	check.Equal(t, Compare(a, b).Notes, want, "notes")
}

// Any comparison can be written as JSON, and the reverse comparison has the same result.
func FuzzCompare(f *testing.F) {
	f.Add([]byte("\x04\x01\x02\x03\x04\x05\x06\x07\x08"), 1.0)
	f.Add([]byte("\x1e\x01\x01\x01\x01\x01\x02\x02"), 1e308)
	f.Add([]byte("\x00"), 0.0)
	f.Fuzz(func(t *testing.T, data []byte, scale float64) {
		if len(data) < 2 || len(data) > 200 || !isComputable(scale) {
			return
		}
		values := make([]float64, len(data)-1)
		for i, b := range data[1:] {
			if values[i] = (float64(b) - 8) * scale; !isComputable(values[i]) {
				return
			}
		}
		cut := int(data[0]) % (len(values) + 1)
		a, b := values[:cut], values[cut:]
		m, back := newSignificanceTest().compare(slices.Clone(a), slices.Clone(b)), newSignificanceTest().compare(slices.Clone(b), slices.Clone(a))
		if _, err := json.Marshal(m); err != nil {
			t.Fatal(err)
		}
		check.Equal(t, written(m.Changed), written(back.Changed), "Changed from A to B, as from B to A")
		if m.P != nil && (*m.P < 0 || *m.P > 1) {
			t.Errorf("p = %v, want 0 to 1", *m.P)
		}
		if want := median(a); (m.A == nil) != (len(a) == 0) || m.A != nil && math.Abs(*m.A-want) > 1e-9*math.Abs(want) {
			t.Errorf("median of %v = %s, want %v", a, written(m.A), want)
		}
	})
}

// median computes the median from its definition.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(values))
	return v[(len(v)-1)/2]/2 + v[len(v)/2]/2
}

// BenchmarkCompare compares 10 runs with 10, and 1,000 runs with 1,000.
func BenchmarkCompare(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, y := jobs("before", n, 1), jobs("after", n, 1.2)
			for b.Loop() {
				if m, _ := Compare(x, y).Metric(cpuMetric); !*m.Changed {
					b.Fatalf("%+v, want a significant change", m)
				}
			}
		})
	}
}
