package comparer

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"unicode/utf8"

	"golang.org/x/perf/benchmath"

	"github.com/perfagent/perfagent/reporter"
)

const (
	// Alpha is the level of the test: of a hundred metrics that did not change, five
	// look changed.
	Alpha = 0.05
	// Confidence is the level of the intervals around the medians.
	Confidence = 0.95
	// maxText is how much of a text from a report is shown, in characters.
	maxText = 300
)

// Comparison is what two sets of runs of one job differ in.
type Comparison struct {
	A Set `json:"a"`
	B Set `json:"b"`
	// Alpha and Confidence are the levels of the test and of the intervals.
	Alpha      float64  `json:"alpha"`
	Confidence float64  `json:"confidence"`
	Metrics    []Metric `json:"metrics"`
	// Gates are the verdicts on conditions; Judge fills them in.
	Gates []Verdict `json:"gates"`
	// Notes say what must be known to read the numbers rightly.
	Notes []string `json:"notes"`
}

// Set is one side of a comparison.
type Set struct {
	Name    string `json:"name"`
	Runs    int    `json:"runs"`
	Reports int    `json:"reports"` // files: a run of several nodes may have several
}

// Metric is one metric of both sides. What cannot be known is null.
type Metric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// A and B are the medians over the runs, in the metric's unit.
	A *float64 `json:"a"`
	B *float64 `json:"b"`
	// ChangePct is B against A in percent; null where A is 0.
	ChangePct *float64 `json:"change_pct"`
	// P is the probability that runs which are all alike differ as much as these do.
	P *float64 `json:"p_value"`
	// Changed tells whether P is at most Alpha. Null = cannot be known: with so few
	// runs no difference, however large, could reach that level.
	Changed *bool `json:"changed"`
	// NA and NB are the runs that have the metric.
	NA int `json:"n_a"`
	NB int `json:"n_b"`
	// The bounds of the confidence intervals; null with fewer than six runs.
	ALow  *float64 `json:"a_low"`
	AHigh *float64 `json:"a_high"`
	BLow  *float64 `json:"b_low"`
	BHigh *float64 `json:"b_high"`
	// Why says why runs lack the metric.
	Why string `json:"why,omitempty"`

	whyA, whyB string
}

// test is what is worked out once for all metrics.
type test struct {
	thresholds benchmath.Thresholds
	least      map[[2]int]float64 // the least p of so many runs
}

func newTest() *test {
	t := &test{thresholds: benchmath.DefaultThresholds, least: make(map[[2]int]float64)}
	t.thresholds.CompareAlpha = Alpha
	return t
}

// Compare compares two sets of runs. Neither may be empty.
func Compare(a, b Side) *Comparison {
	runsA, runsB := runsOf(a.Reports), runsOf(b.Reports)
	c := &Comparison{
		A:          Set{a.Name, len(runsA), len(a.Reports)},
		B:          Set{b.Name, len(runsB), len(b.Reports)},
		Alpha:      Alpha,
		Confidence: Confidence,
		Gates:      []Verdict{},
		Notes:      []string{},
	}

	t := newTest()
	for _, m := range append(slices.Clone(reporter.Metrics()), gpuMetrics(runsA, runsB)...) {
		if of := ruleOf(m.Name); of != nil {
			valuesA, whyA := valuesOf(runsA, m.Name, of)
			valuesB, whyB := valuesOf(runsB, m.Name, of)
			metric := t.compare(valuesA, valuesB)
			metric.Name, metric.Unit = m.Name, m.Unit
			metric.Why, metric.whyA, metric.whyB = why(whyA, whyB), whyA, whyB
			c.Metrics = append(c.Metrics, metric)
		}
	}

	c.Notes = append(c.Notes, remarks("A", runsA)...)
	c.Notes = append(c.Notes, remarks("B", runsB)...)
	c.Notes = append(c.Notes, differences(runsA, runsB)...)
	c.Notes = append(c.Notes, repeated(a, b)...)
	return c
}

// gpuMetrics lists the metrics of as many GPUs as any node of the runs has.
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

// valuesOf collects a metric over runs, and says why some of them lack it.
func valuesOf(runs []*run, name string, of rule) (values []float64, why string) {
	lacking := 0
	for _, r := range runs {
		v, err := r.value(name, of)
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

// why joins what the two sides lack.
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

// compare compares the values of two sides, and sorts them.
func (t *test) compare(a, b []float64) Metric {
	m := Metric{NA: len(a), NB: len(b)}
	sampleA, sampleB := benchmath.NewSample(a, &t.thresholds), benchmath.NewSample(b, &t.thresholds)
	m.A, m.ALow, m.AHigh = centre(sampleA)
	m.B, m.BLow, m.BHigh = centre(sampleB)
	if m.A == nil || m.B == nil {
		return m
	}

	m.ChangePct = number(change(*m.A, *m.B))
	sampleA, sampleB = t.ranked(a), t.ranked(b)
	if t.leastP(len(a), len(b)) > Alpha {
		return m
	}

	p := difference(sampleA, sampleB)
	changed := p <= Alpha
	m.P, m.Changed = &p, &changed
	return m
}

// ranked is a sample for the test, which only sees which value is the greater: what
// differs in the last digits of a computation alone (99.99999999999999 and 100) is
// made equal.
func (t *test) ranked(values []float64) *benchmath.Sample {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i], _ = strconv.ParseFloat(strconv.FormatFloat(v, 'e', 11, 64), 64)
	}
	return benchmath.NewSample(out, &t.thresholds)
}

// difference is the p-value of the test, the same whichever side comes first. Of
// values with ties the distribution of U is not symmetric, and benchmath's test looks
// up the tail of the first sample with the U of the lesser one: right where the first
// is the lesser, else p may even be 0. So the lesser one goes first. Doubled, a tail
// may be a little more than 1.
func difference(a, b *benchmath.Sample) float64 {
	if 2*wins(a.Values, b.Values) > float64(len(a.Values)*len(b.Values)) {
		a, b = b, a
	}
	return min(1, benchmath.AssumeNothing.Compare(a, b).P)
}

// wins is U of the first of two sorted samples: the pairs in which its value is the
// greater, and half of those in which both are equal.
func wins(a, b []float64) float64 {
	u := 0.0
	for _, v := range a {
		below := sort.SearchFloat64s(b, v)
		equal := sort.Search(len(b)-below, func(i int) bool { return b[below+i] > v })
		u += float64(below) + float64(equal)/2
	}
	return u
}

// centre is the median of a sample and its confidence interval, as far as there are
// runs enough.
func centre(s *benchmath.Sample) (median, low, high *float64) {
	if len(s.Values) == 0 {
		return nil, nil, nil
	}
	sum := benchmath.AssumeNothing.Summary(s, Confidence)
	if !finite(sum.Lo) || !finite(sum.Hi) {
		return number(sum.Center), nil, nil
	}
	return number(sum.Center), &sum.Lo, &sum.Hi
}

// number is a value as JSON knows numbers: none for what is not finite.
func number(v float64) *float64 {
	if !finite(v) {
		return nil
	}
	return &v
}

// change is how much b is more than a, in percent of a; without the last digits, in
// which 1.1 is more than 10 % above 1. It is not finite where a is 0 and b is not.
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
		return 0 // not -0
	case finite(r):
		return r
	}

	return pct
}

// leastP is the least p that samples of these sizes can have: that of two which do
// not overlap at all.
func (t *test) leastP(a, b int) float64 {
	size := [2]int{a, b}
	if p, ok := t.least[size]; ok {
		return p
	}

	below, above := make([]float64, a), make([]float64, b)
	for i := range below {
		below[i] = float64(i - a)
	}

	for i := range above {
		above[i] = float64(i)
	}

	p := benchmath.AssumeNothing.Compare(benchmath.NewSample(below, &t.thresholds), benchmath.NewSample(above, &t.thresholds)).P
	t.least[size] = p
	return p
}

// RunsNeeded is the least number of runs a side with which a change can be known.
func RunsNeeded() int {
	t, n := newTest(), 1
	for t.leastP(n, n) > Alpha {
		n++
	}
	return n
}

// Metric finds a metric by its name.
func (c *Comparison) Metric(name string) (Metric, bool) {
	for _, m := range c.Metrics {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// Compared lists the metrics that are compared, in the table's order; after them come
// those of the GPUs, where there are any.
func Compared() []string {
	var names []string
	for _, m := range reporter.Metrics() {
		if ruleOf(m.Name) != nil {
			names = append(names, m.Name)
		}
	}
	return names
}

// clip cuts a text to some characters; what was cut ends in an ellipsis.
func clip(s string, length int) string {
	if utf8.RuneCountInString(s) <= length {
		return s
	}

	count := 0
	for i := range s {
		if count++; count == length {
			return s[:i] + "…"
		}
	}

	return s
}
