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

// Highlights returns the usage of a whole node, including everything that ran on it. wall is the length of the run in
// seconds; 0 = unknown. Optional devices are included if the node has them.
func Highlights(n *reporter.Node, wall float64) []Highlight {
	percent := func(metric string) string { return text.Percentage(n.Metric(metric)).Normalize().String() }
	out := highlights{
		{"CPU of the node", percent(reporter.MetricCPUMean),
			"mean of all CPUs" + p95(n) + ", peak " + text.Percent(n.Metric(reporter.MetricCPUPeak))},
		{"memory of the node", percent(reporter.MetricMemoryPeak), memoryNote(n)},
	}
	for _, r := range nodePressureRows(n, wall) {
		out = append(out, r.highlight(""))
	}
	for pair := range slices.Chunk(collector.Traffic(), 2) { // one highlight for both directions
		in, back := pair[0].Info(), pair[1].Info()
		a, b := n.Metric(reporter.TotalMetricName(pair[0])), n.Metric(reporter.TotalMetricName(pair[1]))
		out.add(in.Scope != collector.ScopeDevice || !math.IsNaN(a) || !math.IsNaN(b), string(in.TrafficGroup),
			text.SizeText(a), in.Direction+", "+text.SizeText(b)+" "+back.Direction)
	}
	for _, r := range energyRows(n, wall) {
		out = append(out, r.highlight(""))
	}
	return append(out, Highlight{"disk used", percent(reporter.MetricDiskPeak), "at most"})
}

// highlight converts a row to a Highlight. A row without a label continues the row above, and gets the label above. An
// unknown number has no unit, because "– %" is not a value.
func (r numberRow) highlight(above string) Highlight {
	return Highlight{cmp.Or(r.label, above), r.value.Normalize().String(), strings.TrimRight(r.note+" "+r.of, " ")}
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
	all := text.Parts{words}
	all.Add(j.Attached, "attached to")
	all.Add(j.ExitCode != nil, "%s", endText(j.ExitCode, j.Signal))
	all.Add(j.Orphans > 0, "%d orphans counted", j.Orphans)
	return all.String()
}

// jobSource returns the source of the job's own numbers, or "" if it is unknown.
func jobSource(j *reporter.Job) string {
	words := map[string]string{host.JobFromGroup: "of its control group", host.JobFromTree: "of its processes",
		host.JobFromCreated: "of a control group made for it"}[j.Source]
	if words == "" || j.Source == host.JobFromTree {
		return words
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

// orNone returns the printable form of s, or a dash for "".
func orNone(s string) string { return cmp.Or(text.Printable(s), text.Absent) }

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

// highlights is a list to which known numbers are added.
type highlights []Highlight

// add adds a highlight if its number is known.
func (l *highlights) add(known bool, label, value, note string) {
	if known {
		*l = append(*l, Highlight{label, value, note})
	}
}
