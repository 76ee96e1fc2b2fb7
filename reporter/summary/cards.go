package summary

import (
	"math"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// JobCards returns the usage of the jobs of a run, and the unused part of the CPUs and the memory that they were
// allowed to use. For several nodes, it returns only numbers that can be added up.
func JobCards(r *reporter.Report) []Highlight {
	var sum jobUsage
	for _, n := range r.EachNode() {
		sum.add(n, &r.Run)
	}
	if len(r.Nodes) > 1 {
		sum.split = "on all nodes"
	}
	var out highlights
	out.add(sum.cpu > 0, "CPU time", text.Seconds(sum.cpu), sum.split)
	out.addUnused("CPU not used", sum.cpuAllowed-sum.cpu, sum.cpuAllowed, cpuTime)
	n := onlyNode(r)
	if len(r.Nodes) != 1 {
		return append(out, sum.rest()...)
	}

	if KillLimit(n) > 0 {
		out.add(true, "Memory not used", "0 MiB", "at the peak")
	} else {
		if peak := jobPeak(n); peak > 0 {
			out.add(true, "Peak memory", text.SizeText(peak), jobMemoryNote(n, peak, math.MaxInt))
		} else if n.Job != nil {
			out.add(n.Job.MaxRSSMB > 0, "Peak memory", text.SizeText(n.Job.MaxRSSMB), "of the largest process")
		}
		out.add(unowned(n) > 0, "Shared memory", text.SizeText(unowned(n)), unownedNote)
		out.addUnused("Memory not used", sum.memoryAllowed-sum.memory, sum.memoryAllowed, memoryTime)
	}
	out = append(out, sum.rest()...)
	for _, row := range gpuRows(n) {
		out = append(out, row.highlight("GPUs"))
	}
	for _, row := range limitRows(n) {
		if row.label == "throttled" && n.Metric(reporter.MetricThrottled) > 0 {
			out = append(out, row.highlight(""))
		}
	}
	return out
}

// jobUsage is the usage of the jobs on all nodes. Times are in seconds; a product of memory and time is in MiB·s.
type jobUsage struct {
	cpu, cpuAllowed       float64
	memory, memoryAllowed float64
	split                 string
	read, written         float64
	processes, threads    float64 // the greatest numbers on any node
}

// add adds the usage of the job on n.
func (u *jobUsage) add(n *reporter.Node, run *reporter.Run) {
	if n.Job == nil && len(run.Command) == 0 {
		return
	}
	wall := run.WallSeconds
	if w := n.Wall(); w > 0 {
		wall = w
	}
	if cpu := cpuOfJob(n); !math.IsNaN(cpu) {
		u.cpu += cpu
		if _, of := cpuBar(n, run); of > 0 && !math.IsInf(of, 0) {
			u.cpuAllowed += cpusGiven(n, of) * wall
		}
	}
	u.split = jobSplit(n)
	if used, of := memoryBar(n, run); used > 0 && of > 0 && !math.IsInf(of, 0) {
		u.memory, u.memoryAllowed = u.memory+used*wall, u.memoryAllowed+of*wall
	}
	u.read += greatest(0, n.Metric(reporter.MetricJobRead))
	u.written += greatest(0, n.Metric(reporter.MetricJobWritten))
	u.processes = greatest(u.processes, n.Metric(reporter.MetricJobProcesses))
	u.threads = greatest(u.threads, n.Metric(reporter.MetricJobThreads))
}

// rest returns the highlights of storage and processes.
func (u *jobUsage) rest() (out highlights) {
	read, written := text.SizeText(u.read), text.SizeText(u.written)
	out.add(u.written > u.read, "Written to disk", written, "read "+read)
	out.add(u.read > 0 && u.read >= u.written, "Read from disk", read, "written "+written)
	words := text.Parts{"seen at once"}
	words.Add(u.threads > 0, "with %s", text.Count(u.threads, "thread", "threads"))
	out.add(u.processes > 0, "Processes", "at most "+text.Fixed(u.processes, 0), words.String())
	return out
}

// cpuTime formats CPU time: "12.8 CPU·s", "0.36 CPU·h".
func cpuTime(seconds float64) string {
	if seconds < 360 {
		return text.Fixed(seconds, 1) + " CPU·s"
	}
	return text.Hours(seconds/3600) + " CPU·h"
}

// memoryTime formats a product of memory and time, in MiB·s: "1.2 GiB·min", "0.36 GiB·h".
func memoryTime(v float64) string {
	switch gib := v / 1024; {
	case gib < 6:
		return text.Fixed(gib, 2) + " GiB·s"
	case gib < 360:
		return text.Fixed(gib/60, 1) + " GiB·min"
	default:
		return text.Hours(gib/3600) + " GiB·h"
	}
}

// addUnused adds a highlight on rest, the unused part of the allowed amount all, if all is known.
func (l *highlights) addUnused(label string, rest, all float64, format func(float64) string) {
	rest = max(0, rest)
	l.add(all > 0, label, format(rest), Bar{Percent: 100 * rest / all}.Share()+" of what was allowed")
}
