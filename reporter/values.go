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

// Values are metrics by name. In JSON they are in the order of the table; names that
// are not in it follow, sorted.
type Values map[string]float64

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, name := range v.Names() {
		out = text.AppendFloat(appendKey(out, i, name), v[name])
	}
	return append(out, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. null means absent, not 0.
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

// Names returns the names in the order of the table.
func (v Values) Names() []string {
	return namesIn(v, func(yield func(string) bool) {
		for i := range metricTable {
			yield(metricTable[i].Name)
		}
	})
}

// namesIn returns the keys of m: first the keys in table, in its order, then all other keys, sorted. It always iterates
// over the whole table.
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

// Metric returns the value of a metric; NaN if it is absent.
func (n *Node) Metric(name string) float64 {
	if n == nil {
		return math.NaN()
	}
	if v, ok := n.Metrics[name]; ok {
		return v
	}
	return math.NaN()
}

// Wall returns the run time of the node's job in seconds or, without a job, the time in which the node was
// sampled; NaN if unknown.
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

// Wall returns the length of the run in seconds; NaN if unknown.
func (r *Run) Wall() float64 {
	if r.WallSeconds == 0 && r.Start.IsZero() {
		return math.NaN()
	}
	return r.WallSeconds
}

// GPUMetric returns the value of a metric of one GPU; pattern contains {i} in place of the index device. NaN means
// absent.
func (n *Node) GPUMetric(pattern string, device int) float64 {
	return n.Metric(GPUMetricName(pattern, device))
}

// Number returns the number under key in the evidence; 0 if it is unknown. The evidence may be from package diagnosis
// or from a file.
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

// NodeNames returns the names of the nodes in the order of their indexes.
func (r *Report) NodeNames() []string { return slices.SortedFunc(maps.Keys(r.Nodes), CompareNodes) }

// EachNode yields the nodes with their names in the order of their indexes. It skips nil nodes.
func (r *Report) EachNode() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) {
		for _, name := range r.NodeNames() {
			if n := r.Nodes[name]; n != nil && !yield(name, n) {
				return
			}
		}
	}
}

// CompareNodes compares the names of nodes by their indexes.
func CompareNodes(a, b string) int {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	if errX != nil || errY != nil {
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
}

// ShowsGPU reports whether texts and plots show GPU i. They do if the job could see it, or if there is no job.
func (n *Node) ShowsGPU(i int) bool { return n.GPUs[i].OfJob || n.Job == nil }
