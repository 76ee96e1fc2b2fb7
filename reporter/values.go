package reporter

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/internal/text"
)

// Values are metrics by name. In JSON they are in the table's order; names that
// the table does not know follow, sorted.
type Values map[string]float64

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, name := range v.Names() {
		out = text.AppendFloat(appendKey(out, i, name), v[name])
	}
	return append(out, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. null is absent, not 0.
func (v *Values) UnmarshalJSON(data []byte) error {
	var read map[string]*float64
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*v = make(Values, len(read))
	for name, p := range read {
		if p != nil {
			(*v)[name] = *p
		}
	}
	return nil
}

// Names lists the names in the order of the table.
func (v Values) Names() []string {
	return namesIn(v, func(yield func(string) bool) {
		for i := range metricTable {
			yield(metricTable[i].Name)
		}
	})
}

// namesIn returns the keys of a map: those of a table in its order, and others behind them, sorted. The table is
// iterated to its end.
func namesIn[E any](m map[string]E, table iter.Seq[string]) []string {
	names := make([]string, 0, len(m))
	for name := range table {
		if _, ok := m[name]; ok {
			names = append(names, name)
		}
	}
	known := len(names)
	for name := range m {
		if !slices.Contains(names[:known], name) {
			names = append(names, name)
		}
	}
	slices.Sort(names[known:])
	return names
}

// Metric returns the value of a metric; NaN = absent.
func (n *Node) Metric(name string) float64 {
	if n == nil {
		return math.NaN()
	}
	if v, ok := n.Metrics[name]; ok {
		return v
	}
	return math.NaN()
}

// Wall returns how long a node's job ran or, without a job, how long the node was sampled, in
// seconds; NaN = unknown.
func (n *Node) Wall() float64 {
	if v := n.Metric(MetricWall); n == nil || !math.IsNaN(v) {
		return v
	}
	if n.Origin == OriginPerfPy {
		if v, err := perfpyLength(n.Samples); err == nil {
			return v
		}
	}
	if n.Host == nil || n.Host.CPUs <= 0 {
		return math.NaN()
	}
	return n.Metric(MetricCPUHours) / float64(n.Host.CPUs) * 3600
}

// Wall returns how long the run took, in seconds; NaN = unknown.
func (r *Run) Wall() float64 {
	if r.WallSeconds == 0 && r.Start.IsZero() {
		return math.NaN()
	}
	return r.WallSeconds
}

// GPUMetric returns the value of a metric of the GPU at a place; the name has {i} for it. NaN =
// absent.
func (n *Node) GPUMetric(pattern string, device int) float64 {
	return n.Metric(GPUMetricName(pattern, device))
}

// Number returns a number of the evidence, as New made it or as a file has it; 0 if it is not known.
func (v *Verdict) Number(key string) float64 {
	if v == nil {
		return 0
	}
	switch n := v.Evidence[key].(type) {
	case int:
		return float64(n)
	case int64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

// NodeNames lists the nodes by their index.
func (r *Report) NodeNames() []string { return slices.SortedFunc(maps.Keys(r.Nodes), CompareNodes) }

// EachNode yields the nodes by their index, with their names. It leaves out one that is nil.
func (r *Report) EachNode() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) {
		for _, name := range r.NodeNames() {
			if n := r.Nodes[name]; n != nil && !yield(name, n) {
				return
			}
		}
	}
}

// CompareNodes orders nodes by their index.
func CompareNodes(a, b string) int {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	if errX != nil || errY != nil {
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
}

// ShowsGPU reports whether texts and pictures show the device at a place: it is the job's, or there
// is no job.
func (n *Node) ShowsGPU(i int) bool { return n.GPUs[i].OfJob || n.Job == nil }
