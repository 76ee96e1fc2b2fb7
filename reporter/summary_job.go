package reporter

import (
	"fmt"
	"math"
	"strconv"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
)

// noteWidth is the room for a note in a line of SummaryWidth.
const noteWidth = SummaryWidth - labelWidth - numberWidth - 1 - unitWidth - 1

// jobRows are what the job itself used: CPU, memory, processes, storage.
func (n *Node) jobRows(run *Run) []row {
	rows := n.jobCPURows(run)
	if peak := n.jobPeak(); peak > 0 {
		rows = append(rows, row{label: "job memory", value: text.SizeText(peak), note: n.jobMemoryNote(peak, noteWidth)})
	}
	if processes := n.Metric(jobProcessesMetric); !math.IsNaN(processes) {
		r := row{label: "job tasks", value: text.Fixed(processes, 0), note: numbered(processes, "process", "processes") + " at once"}
		if threads := n.Metric(jobThreadsMetric); !math.IsNaN(threads) {
			r.note += ", " + text.Fixed(threads, 0) + " " + numbered(threads, "thread", "threads")
		}
		rows = append(rows, r)
	}
	read, written := n.Metric(jobReadMetric), n.Metric(jobWriteMetric)
	if !math.IsNaN(read) || !math.IsNaN(written) {
		rows = append(rows, row{label: "job disk", value: text.SizeText(read), note: "read, " + text.SizeText(written) + " written"})
	}
	return rows
}

// jobCPUSeconds is all CPU time of the job; NaN = not known.
func (n *Node) jobCPUSeconds() float64 {
	if v := n.Metric(jobCPUMetric); !math.IsNaN(v) || n == nil || n.Job == nil || n.Job.CPUAtLeast {
		return v
	}
	return max(n.Job.CPUSeconds, n.Job.UserSeconds+n.Job.SystemSeconds)
}

func (n *Node) jobCPURows(run *Run) []row {
	cpu := n.jobCPUSeconds()
	if math.IsNaN(cpu) {
		return nil
	}
	split := n.jobSplit()
	for _, busy := range n.jobBusy(cpu, run.WallSeconds) {
		if note := joined(split, busy); text.Width(note) <= noteWidth {
			return []row{{label: "job CPU", value: text.Seconds(cpu), note: note}}
		}
	}
	return []row{{label: "job CPU", value: text.Seconds(cpu), note: split}, {note: n.jobBusy(cpu, run.WallSeconds)[0]}}
}

// jobSplit says in which mode the CPU time went, and how much of it is of processes of which
// wait4(2) does not tell: daemons that go on, children that nobody waited for. "" = not known.
func (n *Node) jobSplit() string {
	if n.Job == nil {
		return ""
	}
	words := fmt.Sprintf("user %s, system %s", text.Seconds(n.Job.UserSeconds), text.Seconds(n.Job.SystemSeconds))
	if rest := n.Job.CPUSeconds - n.Job.UserSeconds - n.Job.SystemSeconds; rest >= max(0.05, 0.01*n.Job.CPUSeconds) {
		words += ", not waited for " + text.Seconds(rest)
	}
	return words
}

// jobBusy says how many CPUs the job kept busy and of how many, at length and in short;
// "" = not known.
func (n *Node) jobBusy(cpu, wall float64) [2]string {
	if !(wall > 0) {
		return [2]string{}
	}
	number, decimals := cpu/wall, 2
	if number >= 9.995 {
		decimals = 1
	}
	busy := text.Fixed(number, decimals)
	if n.Limits == nil || !(n.Limits.CPUs > 0) {
		return [2]string{busy + " CPUs busy", busy + " CPUs busy"}
	}
	of := cpusText(n.Limits.CPUs)
	return [2]string{busy + " CPUs busy of " + of + " allowed", busy + " of " + of + " CPUs busy"}
}

// joined puts a comma between what is not empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// cpusText writes a number of CPUs: 2, 1.5, 0.25.
func cpusText(v float64) string {
	if !(math.Abs(v) < 1e7) {
		return text.Fixed(v, 0)
	}
	return strconv.FormatFloat(rounded(v, 2), 'f', -1, 64)
}

// jobPeak is the highest memory of the whole job in MiB; 0 = not known.
func (n *Node) jobPeak() float64 {
	if n.Job != nil && n.Job.PeakMemoryMB > 0 {
		return n.Job.PeakMemoryMB
	}
	if v := n.Metric(jobPeakMemoryMetric); v > 0 {
		return v
	}
	return 0
}

// jobMemoryNote says how the peak was counted and, if that fits, what the largest process
// had of it.
func (n *Node) jobMemoryNote(peak float64, width int) string {
	note := "peak of the whole job"
	j := n.Job
	if j == nil {
		return note
	}
	switch j.MemoryKind { // nothing else: it is text from a file
	case host.MemoryPSS, host.MemoryRSS, host.MemoryGroup:
		note += " (" + j.MemoryKind + ")"
	}
	if j.MaxRSSAtMost || !(j.MaxRSSMB > 0) || j.MaxRSSMB > 0.95*peak {
		return note
	}
	if more := note + ", largest process " + text.SizeText(j.MaxRSSMB); text.Width(more) <= width {
		return more
	}
	return note
}

// limitRows say what the job may use, where that is less than the node, and how close it
// came to it.
func (n *Node) limitRows() []row {
	l := n.Limits
	if l == nil {
		return nil
	}
	var rows []row
	if n.cpuLimited() {
		by, of := l.cpuLimitedBy()
		rows = append(rows, row{label: "CPU limit", value: cpusText(l.CPUs) + " CPUs", note: joined(shareText(n.Metric(limitCPUMetric), " used"), "by "+by), of: of})
	}
	if v := n.Metric(throttledMetric); !math.IsNaN(v) && l.CPUQuota > 0 {
		rows = append(rows, row{label: "throttled", value: text.Percent(v), note: "of the quota's periods, " + text.Seconds(n.Metric(throttledForMetric)) + " in all"})
	}
	if l.MemoryMB > 0 {
		rows = append(rows, row{label: "mem limit", value: text.SizeText(l.MemoryMB), note: joined(shareText(n.Metric(limitMemoryMetric), " reached"), "set by"), of: text.Printable(l.MemoryGroup)})
	}
	for i := range rows {
		if rows[i].of == "" {
			rows[i].note = text.TrimSuffixes(rows[i].note, ", set by", "set by", " of")
		}
	}
	return rows
}

// shareText is a percentage with a word; "" = not known.
func shareText(v float64, word string) string {
	if math.IsNaN(v) {
		return ""
	}
	return text.Percent(v) + word
}

// cpuLimited tells whether the job may use fewer CPUs than the node has.
func (n *Node) cpuLimited() bool {
	l := n.Limits
	return l != nil && l.CPUs > 0 && (l.CPUQuota > 0 || n.Host != nil && l.CPUs < float64(n.Host.CPUs))
}

// cpuLimitedBy says what sets the limit of the CPUs, and the group that does.
func (l *Limits) cpuLimitedBy() (by, of string) {
	switch {
	case l.CPUQuota > 0 && l.CPUQuota <= l.CPUs:
		return "quota of", text.Printable(l.CPUGroup)
	case l.CPUSetCPUs > 0 && float64(l.CPUSetCPUs) <= l.CPUs:
		return "cpuset", ""
	}
	return "affinity", ""
}

// From these on the summary tells of tasks that waited, in percent of the time: less is
// usual.
const (
	notableMemory = 1
	notableIO     = 10
	notableCPU    = 25
	notableSteal  = 1
	notableAfter  = 1 // seconds: in less there is always something to wait for
)

// strainRows say what held the job up: swap, a hypervisor, waiting. Only where there was
// any worth telling.
func (n *Node) strainRows(wall float64) []row {
	var rows []row
	if in, out := n.Metric(swapInMetric), n.Metric(swapOutMetric); in > 0 || out > 0 {
		rows = append(rows, row{label: "swap", value: text.SizeText(in), note: "in, " + text.SizeText(out) + " out, of the node"})
	}
	label := "waiting"
	for _, s := range []struct {
		job, node, note string
		from            float64
	}{
		{jobPSIMemoryMetric, psiMemoryFullMetric, "of the time for memory", notableMemory},
		{jobPSIIOMetric, psiIOFullMetric, "of the time for storage", notableIO},
		{jobPSICPUMetric, psiCPUSomeMetric, "of the time some task for a CPU", notableCPU},
	} {
		v, whose := n.Metric(s.job), ""
		if math.IsNaN(v) {
			v, whose = n.Metric(s.node), ", on the node"
		}
		if v >= s.from && !(wall < notableAfter) {
			rows = append(rows, row{label: label, value: text.Percent(v), note: s.note + whose})
			label = ""
		}
	}
	if v := n.Metric(stealMetric); v >= notableSteal {
		rows = append(rows, row{label: "stolen", value: text.Percent(v), note: "of the CPU time went to other virtual machines"})
	}
	return rows
}

// numbered is the word for so many.
func numbered[N int | float64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
