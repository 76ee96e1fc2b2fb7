package comparer

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"golang.org/x/perf/benchmath"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

const (
	// Alpha is the significance level of the test: about five in a hundred unchanged metrics seem to have changed.
	Alpha = 0.05
	// Confidence is the level of the confidence intervals of the medians.
	Confidence = 0.95
	// maxText is the maximum number of characters of a text from a report that are shown.
	maxText = 300
)

// Comparison holds the differences between two sets of runs of one job.
type Comparison struct {
	A SideSummary `json:"a"`
	B SideSummary `json:"b"`
	// Alpha and Confidence are the levels of the test and of the confidence intervals.
	Alpha      float64  `json:"alpha"`
	Confidence float64  `json:"confidence"`
	Metrics    []Metric `json:"metrics"`
	// Gates holds the results of gates. CheckGate adds them.
	Gates []GateResult `json:"gates"`
	// Notes are remarks that are needed to interpret the numbers.
	Notes []string `json:"notes"`

	commandsA, commandsB []string // without duplicates
}

// SideSummary describes one side of a comparison.
type SideSummary struct {
	Name    string `json:"name"`
	Runs    int    `json:"runs"`
	Reports int    `json:"reports"` // number of files; a run on several nodes may have several files
}

// Metric is one metric on both sides. Unknown values are null.
type Metric struct {
	Name string         `json:"name"`
	Unit collector.Unit `json:"unit"`
	// A and B are the medians over the runs, in the metric's unit.
	A *float64 `json:"a"`
	B *float64 `json:"b"`
	// ChangePct is the change from A to B in percent. It is null if A is 0.
	ChangePct *float64 `json:"change_pct"`
	// P is the probability that runs of an unchanged job differ at least as much as these runs.
	P *float64 `json:"p_value"`
	// Changed reports whether P is at most Alpha. It is null if there are too few runs for any difference to be
	// significant.
	Changed *bool `json:"changed"`
	// NA and NB are the numbers of runs with the metric.
	NA int `json:"n_a"`
	NB int `json:"n_b"`
	// ALow, AHigh, BLow and BHigh bound the confidence intervals. They are null with fewer than six runs.
	ALow  *float64 `json:"a_low"`
	AHigh *float64 `json:"a_high"`
	BLow  *float64 `json:"b_low"`
	BHigh *float64 `json:"b_high"`
	// Why is the reason why some runs lack the metric.
	Why string `json:"why,omitempty"`

	whyA, whyB string
	definition *reporter.Metric
	hidden     bool // whether the tables omit the metric
	gated      bool // whether a gate uses the metric
}

// significanceTest holds the thresholds of all metrics, and the smallest p-value for each pair of sample sizes.
type significanceTest struct {
	thresholds benchmath.Thresholds
	minPs      map[[2]int]float64 // results of minP, by the two sample sizes
}

func newSignificanceTest() *significanceTest {
	t := &significanceTest{thresholds: benchmath.DefaultThresholds, minPs: make(map[[2]int]float64)}
	t.thresholds.CompareAlpha = Alpha
	return t
}

// Compare compares two sets of runs. Neither may be empty.
func Compare(a, b Side) *Comparison {
	runsA, runsB := runsOf(a.Reports), runsOf(b.Reports)
	c := &Comparison{
		A:          SideSummary{a.Name, len(runsA), len(a.Reports)},
		B:          SideSummary{b.Name, len(runsB), len(b.Reports)},
		Alpha:      Alpha,
		Confidence: Confidence,
		Gates:      []GateResult{},
		Notes:      []string{},
	}

	t := newSignificanceTest()
	for _, m := range slices.Concat(
		tableMetrics(runsA, runsB), gpuMetrics(runsA, runsB), phaseMetrics(runsA, runsB), operationMetrics(runsA, runsB),
	) {
		valuesA, whyA := valuesOf(runsA, &m)
		valuesB, whyB := valuesOf(runsB, &m)
		metric := t.compare(valuesA, valuesB)
		metric.Name, metric.Unit, metric.definition = m.Name, m.Unit, &m
		metric.Why, metric.whyA, metric.whyB = why(whyA, whyB), whyA, whyB
		c.Metrics = append(c.Metrics, metric)
	}

	c.commandsA, c.commandsB = commandsOf(runsA), commandsOf(runsB)
	c.hidePhases()
	c.hideOperations(slices.Concat(runsA, runsB))
	c.Notes = append(c.Notes, remarks("A", runsA)...)
	c.Notes = append(c.Notes, remarks("B", runsB)...)
	c.Notes = append(c.Notes, differences(runsA, runsB)...)
	c.Notes = append(c.Notes, repeated(a, b)...)
	return c
}

// tableMetrics returns the metrics in reporter.Metrics that are compared. It omits metrics of devices that no node has.
func tableMetrics(sides ...[]*run) []reporter.Metric {
	runs := slices.Concat(sides...)
	return slices.DeleteFunc(slices.Clone(reporter.Metrics()), func(m reporter.Metric) bool {
		return m.Aggregation == 0 || m.OfDevice() && !anyKnows(runs, m.Name)
	})
}

// anyKnows reports whether any node of the runs has the named metric, or a reason for lacking it.
func anyKnows(runs []*run, name string) bool {
	return slices.ContainsFunc(runs, func(r *run) bool {
		return slices.ContainsFunc(r.nodes, func(n node) bool {
			_, ok := n.Metrics[name]
			return ok || slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool { return m.What == name })
		})
	})
}

// gpuMetrics returns the GPU metrics of the node with the most GPU metrics.
func gpuMetrics(sides ...[]*run) []reporter.Metric {
	var out []reporter.Metric
	for _, r := range slices.Concat(sides...) {
		for _, n := range r.nodes {
			if list := n.GPUMetrics(); len(list) > len(out) {
				out = list
			}
		}
	}

	return out
}

// valuesOf returns the values of m in the runs that have it. why is the reason why the other runs lack it.
func valuesOf(runs []*run, m *reporter.Metric) (values []float64, why string) {
	lacking := 0
	for _, r := range runs {
		v, err := r.value(m)
		if err == nil {
			values = append(values, v)
			continue
		}
		if lacking++; lacking == 1 {
			why = err.Error()
		}
	}

	if lacking > 0 && lacking < len(runs) {
		why = fmt.Sprintf("absent in %d of %d runs: %s", lacking, len(runs), why)
	}

	return values, why
}

// why joins the reasons of the two sides.
func why(a, b string) string {
	switch {
	case a == b:
		return a
	case a == "":
		return "B: " + b
	case b == "":
		return "A: " + a
	}
	return "A: " + a + "; B: " + b
}

// compare compares the values of two sides. It sorts a and b.
func (t *significanceTest) compare(a, b []float64) Metric {
	m := Metric{NA: len(a), NB: len(b)}
	sampleA, sampleB := benchmath.NewSample(a, &t.thresholds), benchmath.NewSample(b, &t.thresholds)
	m.A, m.ALow, m.AHigh = medianInterval(sampleA)
	m.B, m.BLow, m.BHigh = medianInterval(sampleB)
	if m.A == nil || m.B == nil {
		return m
	}

	m.ChangePct = finiteOrNil(change(*m.A, *m.B))
	if t.minP(len(a), len(b)) > Alpha {
		return m
	}

	p := pValue(t.roundedSample(a), t.roundedSample(b))
	changed := p <= Alpha
	m.P, m.Changed = &p, &changed
	return m
}

// roundedSample returns values as a sample for the test, which uses only their order. Values that differ only by
// rounding errors, such as 99.99999999999999 and 100, become equal.
func (t *significanceTest) roundedSample(values []float64) *benchmath.Sample {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i], _ = strconv.ParseFloat(strconv.FormatFloat(v, 'e', 11, 64), 64)
	}
	return benchmath.NewSample(out, &t.thresholds)
}

// pValue returns the p-value of the test, independent of the order of its arguments.
//
// With ties, the distribution of U is not symmetric. benchmath takes the smaller U, but the tail of the distribution
// for the first sample. This is correct only if the first sample has the smaller U; otherwise p may even be 0. So
// pValue passes the sample with the smaller U first. A doubled tail may slightly exceed 1.
func pValue(a, b *benchmath.Sample) float64 {
	if 2*uStatistic(a.Values, b.Values) > float64(len(a.Values)*len(b.Values)) {
		a, b = b, a
	}
	return min(1, benchmath.AssumeNothing.Compare(a, b).P)
}

// uStatistic returns the U statistic of a: the number of pairs in which the value from a is greater, plus half the
// number of pairs with equal values. Both samples must be sorted.
func uStatistic(a, b []float64) float64 {
	u := 0.0
	for _, v := range a {
		below := sort.SearchFloat64s(b, v)
		equal := sort.Search(len(b)-below, func(i int) bool { return b[below+i] > v })
		u += float64(below) + float64(equal)/2
	}
	return u
}

// medianInterval returns the median of s and, if there are enough values, its confidence interval.
func medianInterval(s *benchmath.Sample) (median, low, high *float64) {
	if len(s.Values) == 0 {
		return nil, nil, nil
	}
	sum := benchmath.AssumeNothing.Summary(s, Confidence)
	if !isComputable(sum.Lo) || !isComputable(sum.Hi) {
		return finiteOrNil(sum.Center), nil, nil
	}
	return finiteOrNil(sum.Center), &sum.Lo, &sum.Hi
}

// finiteOrNil returns v for JSON: nil if v is not finite or too large.
func finiteOrNil(v float64) *float64 {
	if !isComputable(v) {
		return nil
	}
	return &v
}

// change returns the change from a to b in percent of a. The result is rounded, because 1.1 would otherwise be more
// than 10 % above 1. It is not finite if a is 0.
func change(a, b float64) float64 {
	if a == b {
		if a == 0 {
			return math.NaN()
		}
		return 0
	}

	pct := 100 * (b - a) / math.Abs(a)
	switch r := math.Round(pct*1e9) / 1e9; {
	case r == 0:
		return 0 // never -0
	case isComputable(r):
		return r
	}

	return pct
}

// minP returns the smallest possible p-value for samples of a and b values. Samples that do not overlap have this
// p-value.
func (t *significanceTest) minP(a, b int) float64 {
	size := [2]int{a, b}
	if p, ok := t.minPs[size]; ok {
		return p
	}

	values := make([]float64, a+b)
	for i := range values {
		values[i] = float64(i)
	}
	below, above := benchmath.NewSample(values[:a], &t.thresholds), benchmath.NewSample(values[a:], &t.thresholds)
	p := benchmath.AssumeNothing.Compare(below, above).P
	t.minPs[size] = p
	return p
}

// RunsNeeded returns the smallest number of runs per side that can detect a change.
func RunsNeeded() int {
	t, n := newSignificanceTest(), 1
	for t.minP(n, n) > Alpha {
		n++
	}
	return n
}

// Metric returns the metric with the given name.
func (c *Comparison) Metric(name string) (Metric, bool) {
	for _, m := range c.Metrics {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// MetricNames returns the names of the compared metrics, in the order of the table. It omits GPU metrics.
func MetricNames() []string {
	var names []string
	for _, m := range reporter.Metrics() {
		if m.Aggregation != 0 {
			names = append(names, m.Name)
		}
	}
	return names
}
