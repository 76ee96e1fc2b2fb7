package reporter

import (
	"fmt"
	"strings"
)

// Highlight is one of the few numbers that a person looks for first.
type Highlight struct {
	Label string // "CPU"
	Value string // "54.3 %"; "–" when absent
	Note  string // "mean of all CPUs, p95 100.0 %, peak 100.0 %"
}

// Highlights picks out of a node what it used, wasted and reached at most. wall is
// how long the run took, in seconds; 0 = unknown.
func Highlights(n *Node, wall float64) []Highlight {
	unused, hours := n.metric(unusedHoursMetric), n.metric(cpuHoursMetric)
	out := []Highlight{
		{"CPU busy", percent(n.metric(cpuMeanMetric)), "mean of all CPUs" + p95(n) + ", peak " + percent(n.metric(cpuPeakMetric))},
		{"wasted", hoursText(unused) + " CPU·h", wasteNote(unused, hours)},
		{"memory", percent(n.metric(memPeakMetric)), n.memoryNote()},
	}
	if j := n.Job; j != nil {
		note := fmt.Sprintf("user %s, system %s", seconds(j.UserSeconds), seconds(j.SystemSeconds))
		if wall > 0 {
			note += fmt.Sprintf(", %s CPUs busy", fixed(jobCPU(j)/wall, 2))
		}
		out = append(out, Highlight{"job CPU", seconds(jobCPU(j)), note})
		rss := Highlight{"job memory", sizeText(j.MaxRSSMB), "peak of the largest process"}
		if j.MaxRSSAtMost {
			rss.Note += ", at most"
		}
		out = append(out, rss)
	}
	out = append(out,
		twoWays("disk", n.metric(diskReadMetric), "read", n.metric(diskWriteMetric), "written"),
		twoWays("network", n.metric(extRecvMetric), "received", n.metric(extSentMetric), "sent"),
		twoWays("loopback", n.metric(loRecvMetric), "received", n.metric(loSentMetric), "sent"),
		Highlight{"disk space", percent(n.metric(diskPeakMetric)), "peak fill"})
	for i := range out { // "– %" is no value
		if strings.HasPrefix(out[i].Value, none) {
			out[i].Value = none
		}
	}
	return out
}

// twoWays tells of bytes in two directions.
func twoWays(label string, in float64, inWord string, out float64, outWord string) Highlight {
	return Highlight{label, sizeText(in), inWord + ", " + sizeText(out) + " " + outWord}
}

// Facts are what is known of a node that is no metric: its host, how it was
// sampled, what perfagent itself cost, how its job ended, where its report went.
// Texts are printable and whole.
func Facts(n *Node) []Highlight {
	var out []Highlight
	add := func(label, value string) {
		if value != "" {
			out = append(out, Highlight{Label: label, Value: value})
		}
	}
	if h := n.Host; h != nil {
		add("host", hostText(h))
		add("system", strings.Join(strings.Fields(Printable(h.OS+" "+h.Kernel+" "+h.Arch)), " "))
		add("CPU model", Printable(h.CPUModel))
		add("boot", Printable(h.BootID))
	}
	if s := n.Sampling; s != nil {
		add("sampling", samplingLine(s))
		add("disks", Printable(strings.Join(s.Disks, ", ")))
		add("network devices", Printable(strings.Join(s.NICs, ", ")))
	}
	if n.Agent != nil {
		add("perfagent", agentLine(n.Agent))
	}
	if n.Job != nil {
		add("job", jobLine(n.Job))
	}
	if n.Push != nil {
		add("MLflow", n.Push.MLflow.whole())
	}
	if n.Origin == OriginPerfPy {
		add("note", perfpyRemark)
	} else {
		add("origin", Printable(n.Origin))
	}
	return out
}

// hostText is the host in words, its name whole.
func hostText(h *Host) string {
	numbers := hostLine(&Host{CPUs: h.CPUs, MemoryMB: h.MemoryMB})
	switch {
	case h.Hostname == "":
		return numbers
	case numbers == none:
		return Printable(h.Hostname)
	}
	return Printable(h.Hostname) + ", " + numbers
}

// jobLine says which process the job was and how it ended.
func jobLine(j *Job) string {
	text := fmt.Sprintf("process %d, exit %d", j.PID, j.ExitCode)
	if j.Signal != "" {
		text += " by " + Printable(j.Signal)
	}
	if j.Orphans > 0 {
		text += fmt.Sprintf(", %d orphans counted", j.Orphans)
	}
	return text
}

func samplingLine(s *Sampling) string {
	text := fmt.Sprintf("%d × %v s", s.Samples, s.IntervalSeconds)
	if s.MissedTicks > 0 {
		text += fmt.Sprintf(", %d missed", s.MissedTicks)
	}
	if s.LongestGapSeconds > 0 {
		text += ", longest gap " + seconds(s.LongestGapSeconds)
	}
	if s.Stride > 1 {
		text += fmt.Sprintf(", one point drawn for %d samples", s.Stride)
	}
	return text
}

func agentLine(a *Agent) string {
	text := Printable(a.Version)
	if a.CPUSeconds > 0 {
		text += ", own cost " + seconds(a.CPUSeconds) + " of CPU"
	}
	if a.MaxRSSMB > 0 {
		text += ", " + sizeText(a.MaxRSSMB) + " memory"
	}
	return strings.TrimPrefix(text, ", ")
}

// BriefNode is a node in a line of a table; "–" = absent.
type BriefNode struct{ CPUMean, CPUPeak, MemoryPeak, UnusedHours string }

// Brief picks a line's numbers out of a node's metrics.
func Brief(metrics Values) BriefNode {
	n := &Node{Metrics: metrics}
	return BriefNode{percent(n.metric(cpuMeanMetric)), percent(n.metric(cpuPeakMetric)), percent(n.metric(memPeakMetric)), hoursText(n.metric(unusedHoursMetric))}
}
