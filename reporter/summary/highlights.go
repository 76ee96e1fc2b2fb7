package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Highlight is one of the few numbers that people look for first.
type Highlight struct {
	Label string // "CPU"
	Value string // "54.3 %"; "–" if unknown
	Note  string // "mean of all CPUs, p95 100.0 %, peak 100.0 %"
}

// Highlights returns the usage of a whole node, with everything that ran there. wall is the length of the run in
// seconds; 0 = unknown.
func Highlights(n *reporter.Node, wall float64) []Highlight {
	out := []Highlight{
		{"CPU of the node", valueOrDash(text.Percentage(n.Metric(reporter.MetricCPUMean))),
			"mean of all CPUs" + p95(n) + ", peak " + text.Percent(n.Metric(reporter.MetricCPUPeak))},
		{"memory of the node", valueOrDash(text.Percentage(n.Metric(reporter.MetricMemoryPeak))), memoryNote(n)},
	}
	for _, r := range nodePressureRows(n, wall) {
		out = append(out, r.highlight(out[len(out)-1].Label))
	}
	out = append(out, traffic(n)...)
	for _, r := range energyRows(n, wall) {
		out = append(out, r.highlight(""))
	}
	used := text.Percentage(n.Metric(reporter.MetricDiskPeak))
	return append(out, Highlight{"disk used", valueOrDash(used), "at most"})
}

// valueOrDash returns the number with its unit. An unknown number has no unit, because "– %" is not a value.
func valueOrDash(q text.Quantity) string { return q.Normalize().String() }

// traffic returns the bytes moved, with one highlight for both directions. Optional devices are included if the node
// has them.
func traffic(n *reporter.Node) []Highlight {
	var out []Highlight
	for pair := range slices.Chunk(collector.Traffic(), 2) {
		in, back := pair[0].Info(), pair[1].Info()
		a, b := n.Metric(reporter.TotalMetricName(pair[0])), n.Metric(reporter.TotalMetricName(pair[1]))
		if in.Scope != collector.ScopeDevice || !math.IsNaN(a) || !math.IsNaN(b) {
			out = append(out, twoWays(string(in.TrafficGroup), a, in.Direction, b, back.Direction))
		}
	}
	return out
}

// highlight converts a row to a Highlight. A row without a label belongs to the one above.
func (r numberRow) highlight(above string) Highlight {
	return Highlight{cmp.Or(r.label, above), valueOrDash(r.value), strings.TrimRight(r.note+" "+r.of, " ")}
}

// twoWays returns a highlight of bytes in two directions.
func twoWays(label string, in float64, inWord string, out float64, outWord string) Highlight {
	return Highlight{label, text.SizeText(in), inWord + ", " + text.SizeText(out) + " " + outWord}
}

// Details returns facts about a node other than its metrics: its host, how it was sampled, perfagent's own cost, how
// its job ended, and where its report was pushed. Texts are printable and not cut.
func Details(n *reporter.Node) []Highlight {
	var out []Highlight
	add := func(label, value string) {
		if value != "" {
			out = append(out, Highlight{Label: label, Value: value})
		}
	}
	if h := n.Host; h != nil {
		add("host", hostText(n))
		add("system", strings.Join(strings.Fields(text.Printable(h.OS+" "+h.Kernel+" "+h.Arch)), " "))
		add("CPU model", text.Printable(h.CPUModel))
		add("boot", text.Printable(h.BootID))
	}

	if s := n.Sampling; s != nil {
		add("sampling", samplingLine(s))
		add("disks", text.Printable(strings.Join(s.Disks, ", ")))
		add("network devices", text.Printable(strings.Join(s.NICs, ", ")))
	}

	if n.Agent != nil {
		add("perfagent", agentLine(n.Agent))
	}
	if n.Job != nil {
		add("job", jobLine(n.Job))
		add("job's numbers", jobSource(n.Job))
	}
	if n.Limits != nil {
		add("may use", limitsText(n.Limits))
	}

	for i := range n.GPUs {
		add(fmt.Sprintf("GPU %d", i), gpuText(&n.GPUs[i], i))
	}
	for i := range n.Mounts {
		add("file system", mountText(&n.Mounts[i]))
	}

	if n.Push != nil {
		add("MLflow", pushDetails(n.Push.MLflow))
		add("store", storeText(n.Push.Store))
	}
	if n.Origin == reporter.OriginPerfPy {
		add("note", reporter.PerfPyRemark)
	} else {
		add("origin", text.Printable(n.Origin))
	}
	return out
}

// mountText describes a network file system: bytes moved, calls, and the operation that took the longest.
func mountText(m *reporter.Mount) string {
	words := m.Source
	if len(m.MountedOn) > 0 {
		words += " on " + strings.Join(m.MountedOn, ", ")
	}
	words = text.Printable(words + " (" + m.Type + ")")
	words += fmt.Sprintf(": %s read, %s written", text.SizeText(m.ReadMB), text.SizeText(m.WriteMB))
	if m.Calls > 0 {
		words += fmt.Sprintf(", %s in %s", text.Count(m.Calls, "call", "calls"), text.Seconds(m.ExecuteSeconds))
	}
	for _, op := range m.Operations[:min(1, len(m.Operations))] {
		words += fmt.Sprintf(", of them %s %s in %s", text.Fixed(op.Calls, 0), text.Printable(op.Name),
			text.Seconds(op.ExecuteSeconds))
	}
	return words
}

// hostText describes the host, with the full name of the node and, in a Pod, the name of the Pod.
func hostText(n *reporter.Node) string {
	name, own := n.HostName(), n.Host.Hostname
	switch {
	case strings.HasPrefix(own, name+"."):
		name = own
	case own != name && own != "":
		name += " (" + own + ")"
	}

	return cmp.Or(joined(text.Printable(name), HostLine("", n.Host)), text.Absent)
}

// jobLine describes the job's process and how it ended.
func jobLine(j *reporter.Job) string {
	words := fmt.Sprintf("process %d", j.PID)
	if len(j.PIDs) > 1 {
		words += fmt.Sprintf(" and %d more", len(j.PIDs)-1)
	}
	if j.Attached {
		words += ", attached to"
	}
	if j.ExitCode != nil {
		words += fmt.Sprintf(", exit %d", *j.ExitCode)
	}
	if j.Signal != "" {
		words += " by " + text.Printable(j.Signal)
	}
	if j.Orphans > 0 {
		words += fmt.Sprintf(", %d orphans counted", j.Orphans)
	}
	return words
}

// jobSource returns the source of the job's own numbers, or "" if it is unknown.
func jobSource(j *reporter.Job) string {
	words := ""
	switch j.Source {
	case host.JobFromGroup:
		words = "of its control group"
	case host.JobFromCreated:
		words = "of a control group made for it"
	case host.JobFromTree:
		return "of its processes"
	default:
		return ""
	}

	words += " " + text.Printable(j.Cgroup)
	if j.CgroupPeakMB > 0 {
		words += ", peak with page cache " + text.SizeText(j.CgroupPeakMB)
	}
	if j.CgroupStays {
		words += "; it stays: processes of the job go on in it"
	}
	return words
}

// limitsText returns the limits of the job, or "" if none is known.
func limitsText(l *reporter.Limits) string {
	var words text.Parts
	words.Add(l.CPUs > 0, "%s CPUs", reporter.CPUsText(l))
	words.Add(l.CPUsRange != nil, "%s", reporter.LimitChangeText(l.CPUsRange))
	words.Add(l.GivenCPUs > 0, "%s", reporter.CPUBindingText(l))
	words.Add(l.CPUQuota > 0, "quota %s by %s", text.CPUs(float64(l.CPUQuota)), orNone(l.CPUGroup))
	words.Add(l.CPUSetCPUs > 0, "cpuset of %d", l.CPUSetCPUs)
	words.Add(l.AffinityCPUs > 0, "affinity to %d", l.AffinityCPUs)
	words.Add(l.LeastMemoryMB() > 0, "memory %s by %s", reporter.MemoryLimitText(l, text.SizeText), orNone(l.MemoryGroup))
	words.Add(l.MemoryRange != nil, "%s", reporter.LimitChangeText(l.MemoryRange))
	return words.String()
}

func orNone(s string) string {
	if s == "" {
		return text.Absent
	}
	return text.Printable(s)
}

// gpuText describes g, the GPU at the given index, with the reasons for throttling.
func gpuText(g *reporter.GPU, at int) string {
	words := text.Parts{orNone(g.Name)}
	words.Add(g.Index != at, "index %d", g.Index)
	words.Add(g.UUID != "", "%s", text.Printable(g.UUID))
	words.Add(g.MIG, "MIG")
	words.Add(g.ClockMHz > 0, "clock up to %s MHz", text.Fixed(float64(g.ClockMHz), 0))
	words.Add(len(g.Throttle) > 0, "held back by %s", text.Printable(strings.Join(g.Throttle, ", ")))
	words.Add(!g.OfJob, "not the job's")
	return words.String()
}

func samplingLine(s *reporter.Sampling) string {
	words := text.Parts{fmt.Sprintf("%d × %v s", s.Samples, s.IntervalSeconds)}
	words.Add(s.MissedTicks > 0, "%d missed", s.MissedTicks)
	words.Add(s.LongestGapSeconds > 0, "longest gap %s", text.Seconds(s.LongestGapSeconds))
	words.Add(s.Stride > 1, "one point drawn for %d samples", s.Stride)
	return words.String()
}

func agentLine(a *reporter.Agent) string {
	var words text.Parts
	words.Add(a.Version != "", "%s", text.Printable(a.Version))
	words.Add(a.CPUSeconds > 0, "overhead %s of CPU", text.Seconds(a.CPUSeconds))
	words.Add(a.MaxRSSMB > 0, "%s memory", text.SizeText(a.MaxRSSMB))
	return words.String()
}
