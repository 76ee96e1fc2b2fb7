package summary

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
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

// Bar is the share of a resource that the job used. CPU and GPU are means over the run, memory and GPU memory are
// peaks. Without a job, as in a sidecar's report, the bars are the node's.
type Bar struct {
	Key     string  // BarCPU, BarMemory, BarGPU or BarGPUMemory
	Label   string  // "GPU mem"
	Percent float64 // Used in percent of Of; may exceed 100
	Used    float64 // CPUs or MiB; NaN for BarGPU
	Of      float64 // CPUs, MiB or GPUs; if the limit changed, its mean over time or its value at the peak

	rule         string // the rule of --stop-if that set Of
	changedLimit string // all values of a limit that changed: "0.5 to 2"
	note         string // the nodes covered, if not all
	nodes        int    // nodes added
	at           string // the last node added or, for memory, the fullest
}

// Share formats the percentage: "36 %".
func (b Bar) Share() string {
	return text.WholePercent(b.Percent)
}

// Look returns "alarming" if nearly all was used, "dim" if little was, and "" otherwise.
func (b Bar) Look() string {
	switch {
	case b.Percent >= 95:
		return "alarming"
	case b.Percent < 20:
		return "dim"
	}
	return ""
}

// CapacityText formats the capacity behind the percentage: "of 4 CPUs", "of 8.0 GiB".
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

// of returns all values of a limit that changed, or else the capacity as formatted by format.
func (b Bar) of(format func(float64) string) string { return cmp.Or(b.changedLimit, format(b.Of)) }

// barCells is the width of a bar's picture.
const barCells = 10

// Picture draws the bar in ten cells, to an eighth of a cell. It is rounded down, so that only a full bar looks full,
// but not to nothing.
func (b Bar) Picture() string {
	const steps = 8
	parts := [steps]string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

	filled := int(math.Floor(min(100, max(0, b.Percent)) / 100 * barCells * steps))
	if b.Percent > 0 {
		filled = max(1, filled)
	}
	out := strings.Repeat("█", filled/steps) + parts[filled%steps]
	return out + strings.Repeat("·", barCells-utf8.RuneCountInString(out))
}

// Bars returns the bars of a run: CPU, memory, GPU, GPU memory. A resource that was not measured, or that the job does
// not have, has no bar. Over several nodes, CPUs, GPUs and GPU memories add up; memory is from the fullest node.
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
		b.takeRule(r)
		switch all := len(r.Nodes); {
		case b.Key == BarMemory && all > 1:
			b.note = " on node " + text.Clip(text.Printable(b.at), 20)
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

// takeRule makes b the share of the memory that a rule of --stop-if allowed, if it stopped the only job.
func (b *Bar) takeRule(r *reporter.Report) {
	v := onlyNode(r).Verdict
	if len(r.Nodes) != 1 || b.Key != BarMemory || v == nil || v.Cause != diagnosis.CauseStopped ||
		v.Evidence["key"] != collector.JobMemory.Key() {
		return
	}
	rule, _ := v.Evidence["rule"].(string)
	_, most, _ := strings.Cut(rule, ">")
	most, _, _ = strings.Cut(strings.Trim(most, "= "), " ")
	if of, err := strconv.ParseFloat(most, 64); err == nil && of > 0 && !math.IsInf(of, 0) {
		b.rule, b.Of, b.Percent = rule, of, 100*b.Used/of
	}
}

// changedLimit returns all values of the limit behind the bar of key, if it changed and there is one node. Otherwise it
// returns "".
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

// add adds a node's usage and capacity, unless one of them is unknown.
func (b *Bar) add(used, of float64, node string) {
	if math.IsNaN(used) || math.IsInf(used, 0) || !(of > 0) || math.IsInf(of, 0) {
		return
	}
	if b.nodes == 0 || b.at != node {
		b.nodes, b.at = b.nodes+1, node
	}
	b.Used, b.Of = b.Used+used, b.Of+of
}

// fullest replaces the numbers of b with the node's if the node used a higher share.
func (b *Bar) fullest(used, of float64, node string) {
	var now Bar
	now.add(used, of, node)
	if now.nodes > 0 && (b.nodes == 0 || used/of > b.Used/b.Of) {
		b.Used, b.Of, b.nodes, b.at = used, of, 1, node
	}
}

// cpuBar returns how many CPUs the job kept busy, and how many it may use. Without a job, it returns the node's busy
// CPUs and all its CPUs.
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

// cpusGiven returns how many CPUs the job was given: mayUse, unless the job bound itself to fewer.
func cpusGiven(n *reporter.Node, mayUse float64) float64 {
	if n.Limits != nil && n.Limits.GivenCPUs > mayUse {
		return n.Limits.GivenCPUs
	}
	return mayUse
}

// jobCores returns how many CPUs the job kept busy on average, or NaN if that is unknown. While the job runs, it is the
// mean of the samples.
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

// limitAtPeak returns the memory limit in MiB when the job came closest to it, or 0 if there was none. If the limit
// changed, it is derived from the job's peak and the share of the limit that was reached.
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

// memoryBar returns the peak memory of the job in MiB, and its limit or else the node's memory. A job that the kernel
// killed at its limit had reached it, whatever the samples contain.
func memoryBar(n *reporter.Node, run *reporter.Run) (used, of float64) {
	if n.Host != nil {
		of = n.Host.MemoryMB
	}
	if n.Job == nil && len(run.Command) == 0 {
		return n.Metric(reporter.MetricMemoryPeak) / 100 * of, of
	}

	if v := n.Verdict; v != nil && v.Cause == diagnosis.CauseOOMCgroup && v.Number("limit_mb") > 0 {
		return v.Number("limit_mb"), v.Number("limit_mb")
	}
	if used = jobPeak(n); used == 0 {
		used = math.NaN()
	}
	limit := limitAtPeak(n, used)
	if !(limit > 0) || of > 0 && limit > of {
		return used, of
	}

	of = limit
	if jobSwapped(n) > 0 { // the limit does not count swap
		used = min(used, of)
	}
	return used, of
}
