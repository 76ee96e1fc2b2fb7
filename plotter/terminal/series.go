package terminal

import (
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// valuesOf returns the greatest value of c in each kept sample's bucket; nil = not in the report.
func valuesOf(n *reporter.Node, c collector.Column) []float64 {
	if band, ok := n.Envelope[c.Key()]; ok {
		return band.Max
	}
	return n.Samples.Column(c.Key())
}

// endsOf returns the time of the last sample in each kept sample's bucket.
func endsOf(n *reporter.Node) []float64 { return valuesOf(n, collector.Timestamp) }

// spanOf returns the start of the sampling and the time of the last sample, in seconds since 1970; NaN = unknown. If
// the start is unknown, from is the time of the first sample.
func spanOf(n *reporter.Node) (from, to float64) {
	from, to = math.NaN(), highest(endsOf(n))
	for _, ts := range n.Samples.Column(collector.Timestamp.Key()) {
		if !math.IsNaN(ts) {
			from = ts
			break
		}
	}
	if n.Sampling != nil && !n.Sampling.Start.IsZero() {
		from = float64(n.Sampling.Start.UnixMicro()) / 1e6
	}
	return from, to
}

// highest returns the greatest known value, or NaN if there is none.
func highest(values []float64) float64 {
	most := math.NaN()
	for _, v := range values {
		if math.IsNaN(most) || v > most {
			most = v
		}
	}
	return most
}

// busiestGPU returns, for each kept sample, the peak utilization of the busiest of the job's GPUs, or nil if there are
// none. If the node has no job, all its GPUs count.
func busiestGPU(n *reporter.Node) []float64 {
	var out []float64
	for i := range min(len(n.GPUs), collector.MaxGPUs) {
		if !n.ShowsGPU(i) {
			continue
		}
		values := valuesOf(n, collector.GPUColumn(i, collector.GPUUtilization))
		for j, v := range values {
			if j == len(out) {
				out = append(out, math.NaN())
			}
			out[j] = highest([]float64{out[j], v})
		}
	}
	return out
}
