package summary

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// The keys of bars.
const (
	BarCPU       = "cpu"
	BarMemory    = "memory"
	BarGPU       = "gpu"
	BarGPUMemory = "gpu_memory"
)

// A Bar says how much of a resource the job used. CPU and GPU are means over the run, memory and GPU memory
// are peaks. Without a job, as in a sidecar's report, the bars are the node's.
type Bar struct {
	Key     string  // BarCPU, BarMemory, BarGPU or BarGPUMemory
	Label   string  // "GPU mem"
	Percent float64 // of what there is; it may exceed 100
	Used    float64 // CPUs or MiB; NaN for BarGPU
	Of      float64 // CPUs, MiB or GPUs; of a limit that changed its mean over time, or what it was at the peak

	changedLimit string // in words, a limit that changed: "0.5 to 2"
	note         string // what the numbers are of, if not of all nodes
	nodes        int    // that have added something
	at           string // the last of them or, of memory, the fullest
}

// Share returns the percentage in words: "36 %".
func (b Bar) Share() string {
	if b.Percent > 0 && b.Percent < 0.5 {
		return "<1 %"
	}
	return text.Fixed(b.Percent, 0) + " %"
}

// Look returns how the bar looks: "alarming" if nearly all was used, "dim" if little was, or "".
func (b Bar) Look() string {
	switch {
	case b.Percent >= 95:
		return "alarming"
	case b.Percent < 20:
		return "dim"
	}
	return ""
}

// CapacityText returns in words what the percentage is of: "of 4 CPUs", "of 8.0 GiB".
func (b Bar) CapacityText() string {
	of := b.of(text.SizeText)
	switch b.Key {
	case BarCPU:
		of = b.of(text.CPUs) + " " + text.Plural(b.Of, "CPU", "CPUs")
	case BarGPU:
		of = text.Count(b.Of, "GPU", "GPUs")
	}
	return "of " + of + b.note
}

// of returns in words what the percentage is of, as format writes it.
func (b Bar) of(format func(float64) string) string { return cmp.Or(b.changedLimit, format(b.Of)) }

// barCells is the width of the picture of a bar.
const barCells = 10

// Picture draws the bar in ten cells, to an eighth of a cell. It is not longer than the percentage, so that
// only what is full looks full.
func (b Bar) Picture() string {
	const steps = 8
	parts := [steps]string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

	filled := int(math.Floor(min(100, max(0, b.Percent)) / 100 * barCells * steps))
	out := strings.Repeat("█", filled/steps) + parts[filled%steps]
	return out + strings.Repeat("·", barCells-utf8.RuneCountInString(out))
}

// Bars returns the bars of a run: CPU, memory, GPU, GPU memory. What was not measured, or the job does not
// have, has no bar. Over several nodes, CPUs and GPUs add up, and so do the memories of
// GPUs; the memory is that of the fullest node.
func Bars(r *reporter.Report) []Bar {
	bars := [...]Bar{
		{Key: BarCPU, Label: "CPU"}, {Key: BarMemory, Label: "memory"},
		{Key: BarGPU, Label: "GPU"}, {Key: BarGPUMemory, Label: "GPU mem"},
	}
	for name, n := range r.EachNode() {
		used, of := cpuBar(n, &r.Run)
		bars[0].add(used, of, name)
		used, of = memoryBar(n, &r.Run)
		bars[1].fullest(used, of, name)
		for i := range n.GPUs {
			if n.ShowsGPU(i) {
				bars[2].add(n.GPUMetric(reporter.MetricGPUUtilization, i)/100, 1, name)
				bars[3].add(n.GPUMetric(reporter.MetricGPUMemoryPeak, i), float64(n.GPUs[i].MemoryMB), name)
			}
		}
	}

	var out []Bar
	for _, b := range bars {
		if b.nodes == 0 {
			continue
		}
		b.Percent, b.changedLimit = 100*b.Used/b.Of, changedLimit(r, b.Key)
		switch all := len(r.Nodes); {
		case b.Key == BarMemory && all > 1:
			b.note = ", node " + text.Clip(text.Printable(b.at), 20)
		case b.nodes < all:
			b.note = fmt.Sprintf(" on %d of %d nodes", b.nodes, all)
		}
		if b.Key == BarGPU {
			b.Used = math.NaN()
		}
		out = append(out, b)
	}
	return out
}

// changedLimit returns the limit that a bar is of in words, if it changed and there is one node. Otherwise it returns
// "".
func changedLimit(r *reporter.Report, key string) string {
	n := onlyNode(r)
	if len(r.Nodes) != 1 || n == nil || n.Limits == nil {
		return ""
	}
	switch l := n.Limits; {
	case key == BarCPU && l.CPUsRange != nil:
		return reporter.CPUsText(l)
	case key == BarMemory && l.MemoryRange != nil:
		return reporter.MemoryLimitText(l, text.SizeText)
	}
	return ""
}

// add adds what was used of something on a node. NaN = not known.
func (b *Bar) add(used, of float64, node string) {
	if math.IsNaN(used) || math.IsInf(used, 0) || !(of > 0) || math.IsInf(of, 0) {
		return
	}
	if b.nodes == 0 || b.at != node {
		b.nodes, b.at = b.nodes+1, node
	}
	b.Used, b.Of = b.Used+used, b.Of+of
}

// fullest keeps the node that used the greatest share.
func (b *Bar) fullest(used, of float64, node string) {
	var now Bar
	now.add(used, of, node)
	if now.nodes > 0 && (b.nodes == 0 || used/of > b.Used/b.Of) {
		b.Used, b.Of, b.nodes, b.at = used, of, 1, node
	}
}

// cpuBar returns how many CPUs the job kept busy, and how many it may use.
func cpuBar(n *reporter.Node, run *reporter.Run) (used, of float64) {
	if n.Host != nil {
		of = float64(n.Host.CPUs)
	}
	if n.Job == nil && len(run.Command) == 0 {
		return n.Metric(reporter.MetricCPUMean) / 100 * of, of
	}
	if n.Limits != nil && n.Limits.CPUs > 0 {
		of = n.Limits.MeanCPUs()
	}
	return jobCores(n, run), of
}

// cpusGiven returns how many CPUs were the job's, of which it may use so many.
func cpusGiven(n *reporter.Node, mayUse float64) float64 {
	if n.Limits != nil && n.Limits.GivenCPUs > mayUse {
		return n.Limits.GivenCPUs
	}
	return mayUse
}

// jobCores returns how many CPUs the job kept busy on average, or NaN. While the job runs, that is the mean
// of the samples.
func jobCores(n *reporter.Node, run *reporter.Run) float64 {
	if v := n.Metric(reporter.MetricJobCores); !math.IsNaN(v) {
		return v
	}
	if q, ok := n.Summaries[collector.JobCPU.Key()]; ok {
		return q.Mean
	}
	if cpu := cpuOfJob(n); run.WallSeconds > 0 {
		return cpu / run.WallSeconds
	}
	return math.NaN()
}

// limitAtPeak returns the memory limit in MiB that was in force when the job came closest to it, given the peak of
// the job, or 0 if there was none: of a limit that changed, what the share that was reached makes it.
func limitAtPeak(n *reporter.Node, peak float64) float64 {
	switch l := n.Limits; {
	case l == nil:
		return 0
	case l.MemoryRange == nil:
		return float64(l.MemoryMB)
	default:
		limit := 100 * peak / n.Metric(reporter.MetricLimitMemory)
		if math.IsNaN(limit) {
			limit = float64(l.MemoryRange.Max)
		}
		if most := float64(l.MemoryRange.Max); most > 0 {
			limit = min(limit, most)
		}
		return max(limit, float64(l.MemoryRange.Min))
	}
}

// memoryBar returns the peak memory of the job in MiB, and its limit, or else the memory of the node. A job
// that the kernel killed for its limit had reached it, whatever was seen of it between two samples.
func memoryBar(n *reporter.Node, run *reporter.Run) (used, of float64) {
	if n.Host != nil {
		of = n.Host.MemoryMB
	}
	if n.Job == nil && len(run.Command) == 0 {
		return n.Metric(reporter.MetricMemoryPeak) / 100 * of, of
	}

	if used = jobPeak(n); used == 0 {
		used = math.NaN()
	}
	limit := limitAtPeak(n, used)
	if !(limit > 0) || of > 0 && limit > of {
		return used, of
	}

	of = limit
	if jobSwapped(n) > 0 { // which the limit does not count
		used = min(used, of)
	}
	if v := n.Verdict; v != nil && v.Cause == diagnosis.CauseOOMCgroup && v.Number("limit_mb") > 0 {
		used = greatest(used, greatest(n.Metric(reporter.MetricLimitMemory)/100*of, v.Number("peak_mb")))
	}
	return used, of
}
