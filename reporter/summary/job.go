package summary

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// noteWidth is the width of a note in a line of Width cells.
const noteWidth = Width - labelWidth - numberWidth - 1 - unitWidth - 1

// jobRows returns the usage of the job itself: CPU, memory, processes, storage.
func jobRows(n *reporter.Node, run *reporter.Run) []numberRow {
	var rows numberRows
	if cpu := cpuOfJob(n); !math.IsNaN(cpu) {
		rows = append(jobBusyRows(n, cpu, run.WallSeconds), jobIdleRows(n, run)...)
	}
	rows = append(rows, jobMemoryRows(n)...)
	processes, threads := n.Metric(reporter.MetricJobProcesses), n.Metric(reporter.MetricJobThreads)
	note := text.Parts{"seen at most"}
	note.Add(!math.IsNaN(threads), "with %s", text.Count(threads, "thread", "threads"))
	rows.add(!math.IsNaN(processes), numberRow{label: "processes", value: text.Quantity{Number: text.Fixed(processes, 0)},
		note: note.String()})
	if len(n.Deaths) > 0 {
		d := &n.Deaths[0]
		name, _, _ := strings.Cut(d.Command, " ")
		name = strings.TrimPrefix(path.Base(name), ".") // "." if it is unknown
		all := float64(len(n.Deaths)) + float64(n.MoreDeaths)
		rows.add(true, numberRow{label: "deaths", value: text.Quantity{Number: text.Fixed(all, 0)},
			note: "the first " + process(text.Clip(text.Printable(name), 20), float64(d.PID)) + ": " + DiedOf(d)})
	}
	read, written := n.Metric(reporter.MetricJobRead), n.Metric(reporter.MetricJobWritten)
	rows.add(read > 0 || written > 0, numberRow{label: "disk", value: text.Size(read),
		note: "read, " + text.SizeText(written) + " written"})
	return rows
}

// jobMemoryRows returns a row on the memory of the job, and below it a row on shared memory that may also be the job's.
// If the job ended before its memory was sampled, only the second row is left.
func jobMemoryRows(n *reporter.Node) (rows numberRows) {
	peak, more := jobPeak(n), numberRow{label: "memory", value: text.Size(unowned(n)), note: unownedNote}
	switch {
	case peak > 0:
		rows = numberRows{{label: "memory", value: text.Size(peak), note: jobMemoryNote(n, peak, noteWidth)}}
	case n.Job != nil && n.Job.MaxRSSMB > 0 && !n.Job.MaxRSSAtMost:
		rows = numberRows{{label: "memory", value: text.Size(n.Job.MaxRSSMB), note: "peak of the largest process"}}
	}
	if rows != nil {
		more.label, more.note = "", "more "+unownedNote
	}
	rows.add(unowned(n) != 0, more)
	return append(rows, memoryPartRows(n)...)
}

// notablePart is the smallest share of the job's memory that is listed.
const notablePart = 0.01

// memoryPartRows returns a row on the parts of the job's memory at its peak, largest first, or nil if they are unknown.
// Files are last, because the page cache of a control group is not part of the job's memory.
func memoryPartRows(n *reporter.Node) []numberRow {
	p := n.PeakParts()
	if p == nil {
		return nil
	}
	type part struct {
		mb   float64
		name string
	}
	parts := []part{{p.ShmemMB, "/dev/shm and tmpfs"}, {p.AnonMB, "anonymous"}, {float64(p.KernelMB), "kernel"},
		{float64(p.SockMB), "sockets"}, {float64(p.HugeTLBMB), "huge pages"}}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.mb, a.mb) })
	files := part{p.FileMB, "cache"}
	if p.Source == host.JobFromTree {
		files.name = "files"
	}
	note := parts[0].name
	for _, q := range append(parts[1:], files) {
		more := note + ", " + text.SizeText(q.mb) + " " + q.name
		if q.mb >= notablePart*p.SumMB() && text.Width(more) <= noteWidth {
			note = more
		}
	}
	return []numberRow{{label: "memory was", value: text.Size(parts[0].mb), note: note}}
}

// cpuOfJob returns the total CPU time of the job, or NaN if it is unknown.
func cpuOfJob(n *reporter.Node) float64 {
	if v := n.Metric(reporter.MetricJobCPU); !math.IsNaN(v) || n == nil || n.Job == nil || n.Job.CPUAtLeast {
		return v
	}
	return max(n.Job.CPUSeconds, n.Job.UserSeconds+n.Job.SystemSeconds)
}

// jobBusyRows returns the CPU time of the job, the number of CPUs that it kept busy, and the number that it was allowed
// to use. It returns a single row if all of them fit into it, in a long or a short form.
func jobBusyRows(n *reporter.Node, cpu, wall float64) []numberRow {
	split, busy, short := jobSplit(n), "", ""
	if wall > 0 {
		cpus := text.UsedCPUs(cpu / wall)
		busy = cpus + " CPUs busy"
		short = busy
		if l := n.Limits; l != nil && l.CPUs > 0 {
			of := reporter.CPUsText(l)
			busy, short = busy+" of "+of+" allowed", cpus+" of "+of+" CPUs busy"
		}
	}
	row := numberRow{label: "CPU time", value: text.Duration(cpu), note: split}
	for _, words := range []string{busy, short} {
		if note := joined(split, words); text.Width(note) <= noteWidth {
			row.note = note
			return []numberRow{row}
		}
	}
	return []numberRow{row, {label: "busy", note: busy}}
}

// jobIdleRows returns a row on the CPUs that the job was given and did not use. It returns nil for a run of less than a
// second, which is too short to judge.
func jobIdleRows(n *reporter.Node, run *reporter.Run) []numberRow {
	used, of := cpuBar(n, run)
	of = cpusGiven(n, of)
	if run.WallSeconds < notableAfter || !(of > 0) {
		return nil
	}
	return idleRows("not used", of-used, of, (of-used)*run.WallSeconds/3600)
}

// jobSplit formats user and system time, and the time that wait4(2) did not report: of daemons that are still running
// and of children that were not waited for. It returns "" if the times are unknown.
func jobSplit(n *reporter.Node) string {
	if n.Job == nil || n.Job.Attached {
		return ""
	}
	words := fmt.Sprintf("user %s, system %s", text.Seconds(n.Job.UserSeconds), text.Seconds(n.Job.SystemSeconds))
	if rest := n.Job.CPUSeconds - n.Job.UserSeconds - n.Job.SystemSeconds; rest >= max(0.05, 0.01*n.Job.CPUSeconds) {
		words += ", not waited for " + text.Seconds(rest)
	}
	return words
}

// joined joins the non-empty words with commas.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// KillLimit returns the memory limit in MiB at which the kernel killed the job of n. It returns 0 if there was no such
// kill or the limit is unknown. The limit of a single rank's group does not count as a limit of all ranks.
func KillLimit(n *reporter.Node) float64 {
	v := n.Verdict
	if v == nil || v.Cause != diagnosis.CauseOOMCgroup {
		return 0
	}
	limit := max(0, v.Number("limit_mb"))
	if len(n.Ranks) > 1 && (n.Limits == nil || float64(n.Limits.MemoryMB) != limit) {
		return 0
	}
	return limit
}

// jobPeak returns the peak memory of the whole job in MiB, or 0 if it is unknown. A job that the kernel killed at its
// limit had reached the limit, even if no sample shows it.
func jobPeak(n *reporter.Node) float64 {
	if limit := KillLimit(n); limit > 0 {
		return limit
	}
	if n.Job != nil && n.Job.PeakMemoryMB > 0 {
		return n.Job.PeakMemoryMB
	}
	return greatest(0, n.Metric(reporter.MetricJobMemoryPeak))
}

// jobMemoryNote returns a note on how the peak was counted and, if it fits in width cells, the peak of the largest
// process.
func jobMemoryNote(n *reporter.Node, peak float64, width int) string {
	note := "peak of the whole job"
	j := n.Job
	if j == nil {
		return note
	}
	switch j.MemoryKind { // only known values, because a file may contain any text
	case host.MemoryPSS, host.MemoryRSS, host.MemoryGroup:
		note += " (" + j.MemoryKind + ")"
	}
	if swapped := jobSwapped(n); swapped >= 1 {
		note += ", " + text.SizeText(swapped) + " swapped out"
	}
	if j.MaxRSSAtMost || !(j.MaxRSSMB > 0) || j.MaxRSSMB > 0.95*peak {
		return note
	}
	if more := note + ", largest process " + text.SizeText(j.MaxRSSMB); text.Width(more) <= width {
		return more
	}
	return note
}

// jobSwapped returns the peak amount of the job's memory in swap, in MiB, or 0 if unknown.
func jobSwapped(n *reporter.Node) float64 {
	return greatest(0, n.Summaries[collector.JobMemorySwap.Key()].Max)
}

// The node's shared memory gets a row if it grew by at least both of these amounts.
const (
	notableUnowned      = 16   // MiB
	notableUnownedShare = 0.05 // of the job's peak
)

// unownedNote describes shared memory that is shown next to the job's memory.
const unownedNote = "in /dev/shm or a tmpfs, owner not known"

// unowned returns the growth of the node's shared memory beyond the job's, in MiB, or 0 if it is insignificant.
func unowned(n *reporter.Node) float64 {
	if n.Job == nil || !(n.Job.UnownedMB >= max(notableUnowned, notableUnownedShare*jobPeak(n))) {
		return 0
	}
	return n.Job.UnownedMB
}

// limitRows returns the limits of the job, if they are lower than the node's, and how close the job came to them.
func limitRows(n *reporter.Node) []numberRow {
	l := n.Limits
	if l == nil {
		return nil
	}

	var rows numberRows
	if l.CPUs > 0 && (l.CPUQuota > 0 || n.Host != nil && l.CPUs < float64(n.Host.CPUs)) {
		by, of := cpuLimitedBy(l)
		rows = append(rows, numberRow{label: "CPU limit", value: text.Quantity{Number: text.CPUs(l.CPUs), Unit: "CPUs"},
			note: joined(shareText(n.Metric(reporter.MetricLimitCPU), " used"), by), of: of})
		rows.addChange(l.CPUsRange, reporter.CPUsText(l)+" CPUs")
	}
	rows.add(l.GivenCPUs > 0, numberRow{note: "the job " + reporter.CPUBindingText(l)})
	throttled := n.Metric(reporter.MetricThrottled)
	rows.add(!math.IsNaN(throttled) && l.LeastQuota() > 0, numberRow{label: "throttled", value: text.Percentage(throttled),
		note: "of the quota's periods, " + text.Seconds(n.Metric(reporter.MetricThrottledSeconds)) + " in all"})
	if l.LeastMemoryMB() > 0 {
		r := numberRow{label: "memory limit", value: text.Quantity{Number: "none"}, of: text.Printable(l.MemoryGroup),
			note: shareText(n.Metric(reporter.MetricLimitMemory), " reached")}
		if KillLimit(n) > 0 {
			r.note = "reached"
		}
		if l.MemoryMB > 0 { // otherwise it was removed before the end
			r.value = text.Size(float64(l.MemoryMB))
		}
		if r.of != "" {
			r.note = joined(r.note, "set by")
		}
		rows = append(rows, r)
		rows.addChange(l.MemoryRange, reporter.MemoryLimitText(l, text.SizeText))
	}
	return rows
}

// shareText returns v in percent, followed by word, or "" if v is unknown.
func shareText(v float64, word string) string {
	if math.IsNaN(v) {
		return ""
	}
	return text.Percent(v) + word
}

// cpuLimitedBy returns a phrase on the source of the CPU limit and, for the quota of a known control group, the name of
// the group.
func cpuLimitedBy(l *reporter.Limits) (by, of string) {
	switch {
	case l.CPUQuota > 0 && float64(l.CPUQuota) <= l.CPUs:
		if l.CPUGroup != "" {
			return "by quota of", text.Printable(l.CPUGroup)
		}
		return "by quota", ""
	case l.CPUSetCPUs > 0 && float64(l.CPUSetCPUs) <= l.CPUs:
		return "by cpuset", ""
	}
	return "by affinity", ""
}

// nodePressureRows returns rows on swap, on waiting tasks of the node if the job's waits are unknown, and on CPU time
// taken by the hypervisor. It omits insignificant numbers.
func nodePressureRows(n *reporter.Node, wall float64) []numberRow {
	var rows numberRows
	in, out, stolen := n.Metric(reporter.MetricSwapIn), n.Metric(reporter.MetricSwapOut), n.Metric(reporter.MetricSteal)
	rows.add(in > 0 || out > 0,
		numberRow{label: "swap", value: text.Size(in), note: "in, " + text.SizeText(out) + " out"})
	rows = append(rows, waitRows(n, wall, false)...)
	rows.add(stolen >= 1, numberRow{label: "stolen", value: text.Percentage(stolen),
		note: "of the CPU time, by other virtual machines"})
	return rows
}

// pressures lists the resources that tasks wait for. Waits below the least value to report are normal.
var pressures = []struct {
	label, note string
	job, node   string  // metrics
	from        float64 // least value to report, in percent of the time
}{
	{"memory wait", "of the time all tasks waited for memory", reporter.MetricJobPSIMemory, reporter.MetricPSIMemoryFull,
		1},
	{"disk wait", "of the time all tasks waited for storage", reporter.MetricJobPSIIO, reporter.MetricPSIIOFull, 10},
	{"CPU wait", "of the time a task waited for a CPU", reporter.MetricJobPSICPU, reporter.MetricPSICPUSome, 25},
}

// addChange adds a row on a limit that changed during the run.
func (l *numberRows) addChange(r *reporter.LimitRange, moved string) {
	if r != nil {
		*l = append(*l, numberRow{note: moved + ", " + reporter.LimitChangeText(r)})
	}
}

// notableAfter is the minimum length, in seconds, of a run with notable waits. In shorter runs, tasks always wait for
// something.
const notableAfter = 1

// waitRows returns rows on the waits of the job's tasks. If ofJob is not set, it returns rows on the waits of the
// node's tasks instead, for resources for which the job's waits are unknown. It omits insignificant waits.
func waitRows(n *reporter.Node, wall float64, ofJob bool) (rows numberRows) {
	for _, s := range pressures {
		v := n.Metric(s.job)
		if known := !math.IsNaN(v); known != ofJob {
			continue
		}
		if !ofJob {
			v = n.Metric(s.node)
		}
		rows.add(v >= s.from && !(wall < notableAfter),
			numberRow{label: s.label, value: text.Percentage(v), note: s.note})
	}
	return rows
}
