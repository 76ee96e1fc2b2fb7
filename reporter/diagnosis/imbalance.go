package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// A measure is a quantity that nodes or ranks should have equal shares of.
type measure struct {
	name  string // in the evidence
	floor float64
	of    func(*part) float64
	value func(float64) text.Quantity
	words string // what the value is of
	minor bool   // on its own it slows nothing down
	node  bool   // of a rank it is not known
}

func measures() []measure {
	return []measure{
		{
			name: "cpus", floor: findImbalanceCPUs, words: " CPUs",
			of:    func(p *part) float64 { return p.metric(reporter.MetricJobCores) },
			value: func(v float64) text.Quantity { return text.Quantity{Number: text.CPUs(v)} },
		},
		{
			name: "memory_mb", floor: findImbalanceMB, words: " of memory", minor: true,
			of:    func(p *part) float64 { return p.metric(reporter.MetricJobMemoryPeak) },
			value: text.Whole,
		},
		{
			name: "gpu_utilization_pct", floor: findImbalanceGPU, words: " of its GPUs' time", node: true,
			of:    func(p *part) float64 { return p.input.gpuMean() },
			value: text.Percentage,
		},
	}
}

// gpuMean returns the mean utilization of the job's devices, or NaN if it is not known.
func (e *ruleInput) gpuMean() float64 {
	sum, n := 0.0, 0.0
	for i, g := range e.GPUs {
		if v := e.gpuUse(i); g.OfJob && v >= 0 {
			sum, n = sum+v, n+1
		}
	}
	return sum / n
}

// An outlier is a part that is too far from the median of a measure.
type outlier struct {
	part
	value, median float64
	count         int // of the parts where the measure is known
	more          int // others that are too far off on the same side
}

// far returns the parts that are too far from the median of a measure.
func (m *measure) far(parts []part) []outlier {
	var known []outlier
	var values []float64
	longest := 0.0
	for _, p := range parts {
		if v := m.of(&p); v >= 0 && !math.IsInf(v, 1) {
			values, known = append(values, v), append(known, outlier{part: p, value: v})
			longest = max(longest, p.seconds)
		}
	}
	if len(known) < 2 {
		return nil
	}

	var out []outlier
	middle := median(values)
	for _, o := range known {
		if m.uneven(o.value, middle) && o.seconds >= findImbalanceLength*longest {
			o.median, o.count = middle, len(known)
			out = append(out, o)
		}
	}
	return out
}

// farthest returns the part that is farthest from the median of a measure, if that is too far. Of parts
// that are equally far it is the first.
func (m *measure) farthest(parts []part) (farthest outlier, ok bool) {
	list, most := m.far(parts), 0.0
	for _, o := range list {
		if off := max(o.value/o.median, o.median/o.value); off > most {
			most, farthest = off, o
		}
	}

	farthest.more = -1
	for _, o := range list {
		if o.low() == farthest.low() {
			farthest.more++
		}
	}
	return farthest, most > 0
}

// low reports whether the value is below the median.
func (o *outlier) low() bool { return o.value < o.median }

// uneven reports whether a value is too far from the median.
func (m *measure) uneven(v, median float64) bool {
	if math.IsInf(median, 0) {
		return false
	}
	return median >= m.floor && v < findImbalanceLess*median ||
		v-median >= m.floor && v > findImbalanceMore*median
}

// median returns the median of numbers, of which there is at least one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}

// imbalance returns findings on the nodes or ranks that are farthest from the median: for each measure one,
// those of one part together.
func imbalance(nodes, ranks []part) []found {
	var out []*uneven
	for _, m := range measures() {
		parts := nodes
		if len(ranks) > 0 && !m.node {
			parts = ranks
		}
		o, ok := m.farthest(parts)
		if !ok {
			continue
		}

		i := slices.IndexFunc(out, func(u *uneven) bool { return u.part.node == o.part.node && u.part.rank == o.part.rank })
		if i < 0 {
			i, out = len(out), append(out, &uneven{part: o.part, minor: true, evidence: o.evidence(o.count)})
		}
		out[i].add(&m, &o)
	}

	var list []found
	for _, u := range out {
		list = append(list, u.finding())
	}
	return list
}

// An uneven is a part that is far from the median of some measures.
type uneven struct {
	part
	texts    []string
	minor    bool // so are all measures
	evidence map[string]any
}

// add adds a measure.
func (u *uneven) add(m *measure, o *outlier) {
	u.evidence[m.name], u.evidence["median_"+m.name] = text.Round(o.value, 3), text.Round(o.median, 3)
	if o.more > 0 {
		u.evidence["more_"+m.name] = o.more
	}
	u.texts, u.minor = append(u.texts, o.text(m)), u.minor && m.minor
}

// finding returns the finding on the part.
func (u *uneven) finding() found {
	subject := "on this node the job"
	if u.rank != nil {
		subject = fmt.Sprintf("rank %d", u.rank.Rank)
	}
	f := &reporter.Finding{Evidence: u.evidence}
	f.Text = fmt.Sprintf("The work is uneven: %s used %s. Give the %s equal shares, or use fewer of them.",
		subject, strings.Join(u.texts, ", and "), u.kind())
	if u.minor {
		f.Severity = SeverityInfo
	}
	return found{u.part, f}
}

// text returns how far the value is off: "1.2 CPUs where the median of 4 nodes is 6".
func (o *outlier) text(m *measure) string {
	words := fmt.Sprintf("%v%s where the median of %d %s is %v",
		m.value(o.value), m.words, o.count, o.kind(), m.value(o.median))
	if o.more > 0 {
		side := "above"
		if o.low() {
			side = "below"
		}
		words += fmt.Sprintf(" (%d are that far %s it)", o.more+1, side)
	}
	return words
}
