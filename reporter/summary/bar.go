package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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
	BarDisk      = "disk_space"
)

// Bar is the share of a resource that the job used. The bars of CPU and GPU are means over the run, the others are
// peaks. Without a job, as in a sidecar's report, the bars show the usage of the node.
type Bar struct {
	Key     string  // BarCPU, BarMemory, BarGPU, BarGPUMemory or BarDisk
	Label   string  // "GPU mem"
	Percent float64 // Used in percent of Of; may exceed 100
	Used    float64 // CPUs or MiB; NaN for BarGPU
	Of      float64 // CPUs, MiB or GPUs; if the limit changed, its mean over time or its value at the peak

	rule  string // the rule of --stop-if that set Of
	of    string // text instead of Of: the range of a limit that changed, "0.5 to 2", or the file system
	note  string // the nodes covered, if not all
	nodes int    // number of nodes added
	at    string // the last node added or, for memory, the fullest node
}

// Share formats the percentage: "36 %".
func (b Bar) Share() string { return text.WholePercent(b.Percent) }

// CapacityText formats the capacity behind the percentage: "of 4 CPUs", "of 8.0 GiB".
func (b Bar) CapacityText() string {
	of := cmp.Or(b.of, text.SizeText(b.Of))
	switch b.Key {
	case BarCPU:
		of = cmp.Or(b.of, text.CPUs(b.Of)) + " " + text.Plural(b.Of, "CPU", "CPUs")
	case BarGPU:
		of = text.Count(b.Of, "GPU", "GPUs")
	}
	return "of " + of + b.note
}

// barCells is the width of a bar's picture.
const barCells = 10

// Picture draws the bar in ten cells, with a precision of an eighth of a cell. It rounds down, so that only a full bar
// looks full, but draws at least an eighth of a cell for a nonzero percentage.
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

// Bars returns the bars of a run: CPU, memory, GPU, GPU memory, and a full disk. A resource that was not measured, or
// that the job does not have, has no bar. Over several nodes, CPUs, GPUs and GPU memory are added up; memory is taken
// from the fullest node, and the disk from the first node with a full disk.
func Bars(r *reporter.Report) []Bar {
	bars := []Bar{{Key: BarCPU, Label: "CPU"}, {Key: BarMemory, Label: "memory"}, {Key: BarGPU, Label: "GPU"},
		{Key: BarGPUMemory, Label: "GPU mem"}, {Key: BarDisk, Label: "disk used"}}
	for name, n := range r.EachNode() {
		used, of := cpuBar(n, &r.Run)
		bars[0].add(used, of, name)
		used, of = memoryBar(n, &r.Run)
		if b := &bars[1]; b.nodes == 0 || used/of > b.Used/b.Of {
			now := Bar{Key: b.Key, Label: b.Label}
			if now.add(used, of, name); now.nodes > 0 {
				*b = now
			}
		}
		for i := range n.GPUs {
			if n.ShowsGPU(i) {
				bars[2].add(n.GPUMetric(reporter.MetricGPUUtilization, i)/100, 1, name)
				bars[3].add(n.GPUMetric(reporter.MetricGPUMemoryPeak, i), float64(n.GPUs[i].MemoryMB), name)
			}
		}
		if v := n.Verdict; v != nil && v.Cause == diagnosis.CauseDiskFull && bars[4].nodes == 0 {
			bars[4].add(1, 1, name)
			bars[4].of = fullText(v)
		}
	}

	bars = slices.DeleteFunc(bars, func(b Bar) bool { return b.nodes == 0 })
	for i := range bars {
		b := &bars[i]
		b.Percent = 100 * b.Used / b.Of
		b.describe(r)
	}
	return bars
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

// cpuBar returns the number of CPUs that the job kept busy, and the number that it may use. Without a job, it returns
// the numbers of the node's busy CPUs and of all its CPUs.
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

// cpusGiven returns the number of CPUs that the job was given. It equals mayUse, unless the job bound itself to fewer
// CPUs.
func cpusGiven(n *reporter.Node, mayUse float64) float64 {
	if n.Limits != nil && n.Limits.GivenCPUs > mayUse {
		return n.Limits.GivenCPUs
	}
	return mayUse
}

// jobCores returns the mean number of CPUs that the job kept busy, or NaN if it is unknown. While the job runs, it is
// the mean of the samples.
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

// limitAtPeak returns the memory limit in MiB at the time when the job came closest to it, or 0 if there was no limit.
// If the limit changed, it is derived from the job's peak and the share of the limit that was reached.
func limitAtPeak(n *reporter.Node, peak float64) float64 {
	l := n.Limits
	if l == nil {
		return 0
	}
	if l.MemoryRange == nil {
		return float64(l.MemoryMB)
	}
	least, most := float64(l.MemoryRange.Min), float64(l.MemoryRange.Max)
	limit := 100 * peak / n.Metric(reporter.MetricLimitMemory)
	if math.IsNaN(limit) || most > 0 && limit > most {
		limit = most
	}
	return max(limit, least)
}

// memoryBar returns the peak memory of the job, and its limit or else the memory of the node, in MiB.
func memoryBar(n *reporter.Node, run *reporter.Run) (used, of float64) {
	if n.Host != nil {
		of = n.Host.MemoryMB
	}
	if n.Job == nil && len(run.Command) == 0 {
		return n.Metric(reporter.MetricMemoryPeak) / 100 * of, of
	}

	if limit := KillLimit(n); limit > 0 {
		return limit, limit
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

// describe adds to b the nodes that it covers and the range of a limit that changed. If a rule of --stop-if stopped the
// only job, b becomes the share of the memory that the rule allowed.
func (b *Bar) describe(r *reporter.Report) {
	n, all := onlyNode(r), len(r.Nodes)
	l, v := n.Limits, n.Verdict
	switch memory := b.Key == BarMemory; {
	case all > 1 && (memory || b.Key == BarDisk):
		b.note = " on node " + text.Clip(text.Printable(b.at), 20)
	case b.nodes < all:
		b.note = fmt.Sprintf(" on %d of %d nodes", b.nodes, all)
	case all == 1 && b.Key == BarCPU && l != nil && l.CPUsRange != nil:
		b.of = reporter.CPUsText(l)
	case all == 1 && memory && l != nil && l.MemoryRange != nil:
		b.of = reporter.MemoryLimitText(l, text.SizeText)
	}
	switch {
	case b.Key == BarGPU:
		b.Used = math.NaN()
	case all == 1 && b.Key == BarMemory && v != nil && v.Cause == diagnosis.CauseStopped &&
		v.Evidence["key"] == collector.JobMemory.Key():
		rule, _ := v.Evidence["rule"].(string)
		_, most, _ := strings.Cut(rule, ">")
		most, _, _ = strings.Cut(strings.Trim(most, "= "), " ")
		if of, err := strconv.ParseFloat(most, 64); err == nil && of > 0 && !math.IsInf(of, 0) {
			b.rule, b.Of, b.Percent = rule, of, 100*b.Used/of
		}
	}
}
