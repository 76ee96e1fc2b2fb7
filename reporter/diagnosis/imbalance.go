package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// measure is a quantity that nodes or ranks should share equally.
type measure struct {
	name   string // key in the evidence
	floor  float64
	of     func(*peer) float64
	format func(float64) text.Quantity
	words  string // noun after the value
	minor  bool   // slows nothing down by itself
	node   bool   // known for nodes only
}

func measures() []measure {
	return []measure{
		{
			name: "cpus", floor: findImbalanceCPUs, words: " CPUs",
			of:     func(p *peer) float64 { return p.metric(reporter.MetricJobCores) },
			format: func(v float64) text.Quantity { return text.Quantity{Number: text.CPUs(v)} },
		},
		{
			name: "memory_mb", floor: findImbalanceMB, words: " of memory", minor: true,
			of:     func(p *peer) float64 { return p.metric(reporter.MetricJobMemoryPeak) },
			format: text.TrimmedSize,
		},
		{
			name: "gpu_utilization_pct", floor: findImbalanceGPU, words: " of its GPUs' time", node: true,
			of:     func(p *peer) float64 { return p.input.gpuMean() },
			format: text.Percentage,
		},
	}
}

// gpuMean returns the mean utilization of the job's GPUs in percent, or NaN if it is unknown.
func (e *ruleInput) gpuMean() float64 {
	sum, n := 0.0, 0.0
	for i, g := range e.GPUs {
		if v := e.gpuUse(i); g.OfJob && v >= 0 {
			sum, n = sum+v, n+1
		}
	}
	return sum / n
}

// An outlier is a peer with a value too far from the median of all peers.
type outlier struct {
	peer
	value, median float64
	count         int // peers with a known value
	sameSideCount int // other outliers on the same side of the median
}

// outliers returns the peers with a value too far from the median, except peers that ended early.
func (m *measure) outliers(peers []peer) []outlier {
	var known []outlier
	var values []float64
	longest := 0.0
	for _, p := range peers {
		if v := m.of(&p); v >= 0 && !math.IsInf(v, 1) {
			values, known = append(values, v), append(known, outlier{peer: p, value: v})
			longest = max(longest, p.seconds)
		}
	}
	if len(known) < 2 {
		return nil
	}

	var out []outlier
	middle := median(values)
	for _, o := range known {
		if m.isOutlier(o.value, middle) && o.seconds >= findImbalanceLength*longest {
			o.median, o.count = middle, len(known)
			out = append(out, o)
		}
	}
	return out
}

// farthest returns the outlier farthest from the median, or the first of several at the same distance. ok is false if
// there is none.
func (m *measure) farthest(peers []peer) (farthest outlier, ok bool) {
	list, most := m.outliers(peers), 0.0
	for _, o := range list {
		if off := max(o.value/o.median, o.median/o.value); off > most {
			most, farthest = off, o
		}
	}

	farthest.sameSideCount = -1
	for _, o := range list {
		if o.low() == farthest.low() {
			farthest.sameSideCount++
		}
	}
	return farthest, most > 0
}

// low reports whether the value is below the median.
func (o *outlier) low() bool { return o.value < o.median }

// isOutlier reports whether v is too far from median.
func (m *measure) isOutlier(v, median float64) bool {
	if math.IsInf(median, 0) {
		return false
	}
	return median >= m.floor && v < findImbalanceLess*median ||
		v-median >= m.floor && v > findImbalanceMore*median
}

// median returns the median of values, which must not be empty.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}

// imbalances finds the peer farthest from the median of each measure, and returns one finding for each such peer.
func imbalances(nodes, ranks []peer) []peerFinding {
	var out []*unevenPeer
	for _, m := range measures() {
		peers := nodes
		if len(ranks) > 0 && !m.node {
			peers = ranks
		}
		o, ok := m.farthest(peers)
		if !ok {
			continue
		}

		i := slices.IndexFunc(out, func(u *unevenPeer) bool {
			return u.peer.node == o.peer.node &&
				u.peer.rank == o.peer.rank
		})
		if i < 0 {
			i, out = len(out), append(out, &unevenPeer{peer: o.peer, minor: true, evidence: o.evidence(o.count)})
		}
		out[i].add(&m, &o)
	}

	var list []peerFinding
	for _, u := range out {
		list = append(list, u.finding())
	}
	return list
}

// unevenPeer is a peer that is far from the median of some measures.
type unevenPeer struct {
	peer
	texts    []string
	minor    bool // all its measures are minor
	evidence map[string]any
}

// add adds the value of o for the measure m to the evidence and to the texts.
func (u *unevenPeer) add(m *measure, o *outlier) {
	u.evidence[m.name], u.evidence["median_"+m.name] = text.Round(o.value, 3), text.Round(o.median, 3)
	if o.sameSideCount > 0 {
		u.evidence["more_"+m.name] = o.sameSideCount
	}
	u.texts, u.minor = append(u.texts, o.text(m)), u.minor && m.minor
}

// finding returns one finding on all measures of the peer. It is a warning unless all of them are minor.
func (u *unevenPeer) finding() peerFinding {
	subject := "on this node the job"
	if u.rank != nil {
		subject = fmt.Sprintf("rank %d", u.rank.Rank)
	}
	f := &reporter.Finding{Evidence: u.evidence}
	f.Text = fmt.Sprintf("Give the %s equal shares of the work, or use fewer of them: %s used %s.",
		u.kind(), subject, strings.Join(u.texts, ", and "))
	if u.minor {
		f.Severity = SeverityInfo
	}
	return peerFinding{u.peer, f}
}

// text returns how far the value is off: "1.2 CPUs where the median of 4 nodes is 6".
func (o *outlier) text(m *measure) string {
	words := fmt.Sprintf("%v%s where the median of %d %s is %v",
		m.format(o.value), m.words, o.count, o.kind(), m.format(o.median))
	if o.sameSideCount > 0 {
		side := "above"
		if o.low() {
			side = "below"
		}
		words += fmt.Sprintf(" (%d are that far %s it)", o.sameSideCount+1, side)
	}
	return words
}
