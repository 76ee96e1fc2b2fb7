package summary

import (
	"math"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// JobCards returns the usage of the jobs of a run, and the unused rest of the CPUs and the memory that they were
// allowed. Over several nodes, it has only the numbers that add up.
func JobCards(r *reporter.Report) []Highlight {
	var sum jobUsage
	for _, n := range r.EachNode() {
		sum.add(n, &r.Run)
	}
	var out []Highlight
	if sum.cpu > 0 {
		split := sum.split
		if len(r.Nodes) > 1 {
			split = "on all nodes"
		}
		out = append(out, Highlight{"CPU time", text.Seconds(sum.cpu), split})
	}
	out = append(out, unused("CPU not used", sum.cpuAllowed-sum.cpu, sum.cpuAllowed, cpuTime)...)
	n := onlyNode(r)
	if len(r.Nodes) != 1 || n == nil {
		return append(out, sum.rest()...)
	}

	killed := n.Verdict != nil && n.Verdict.Cause == diagnosis.CauseOOMCgroup && n.Verdict.Number("limit_mb") > 0
	if peak := jobPeak(n); peak > 0 && !killed {
		out = append(out, Highlight{"Peak memory", text.SizeText(peak), jobMemoryNote(n, peak, math.MaxInt)})
	} else if n.Job != nil && n.Job.MaxRSSMB > 0 && !killed {
		out = append(out, Highlight{"Peak memory", text.SizeText(n.Job.MaxRSSMB), "of the largest process"})
	}
	if more := unowned(n); more > 0 && !killed {
		out = append(out, Highlight{"Shared memory", text.SizeText(more), unownedNote})
	}
	if killed {
		out = append(out, Highlight{"Memory not used", "0 MiB", "at the peak"})
	} else {
		out = append(out, unused("Memory not used", sum.memoryAllowed-sum.memory, sum.memoryAllowed, memoryTime)...)
	}
	out = append(out, sum.rest()...)
	for _, row := range gpuRows(n) {
		out = append(out, row.highlight("GPUs"))
	}
	for _, row := range append(limitRows(n), jobPressureRows(n, r.Run.WallSeconds)...) {
		switch row.label {
		case "throttled":
			if n.Metric(reporter.MetricThrottled) > 0 {
				out = append(out, row.highlight(""))
			}
		case "job waits", "":
			if strings.Contains(row.note, "wait") {
				out = append(out, Highlight{"Waiting", valueOrDash(row.value), row.note})
			}
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
	processes, threads    float64 // the most on a node
}

// add adds the job on n.
func (u *jobUsage) add(n *reporter.Node, run *reporter.Run) {
	wall := run.WallSeconds
	if n.Job == nil && len(run.Command) == 0 {
		return
	}
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
	read, written := n.Metric(reporter.MetricJobRead), n.Metric(reporter.MetricJobWritten)
	if !math.IsNaN(read) {
		u.read += max(0, read)
	}
	if !math.IsNaN(written) {
		u.written += max(0, written)
	}
	u.processes = greatest(u.processes, n.Metric(reporter.MetricJobProcesses))
	u.threads = greatest(u.threads, n.Metric(reporter.MetricJobThreads))
}

// rest returns the highlights of storage and processes.
func (u *jobUsage) rest() []Highlight {
	var out []Highlight
	switch {
	case u.read == 0 && u.written == 0: // or unknown
	case u.written > u.read:
		out = append(out, Highlight{"Written to disk", text.SizeText(u.written), "read " + text.SizeText(u.read)})
	default:
		out = append(out, Highlight{"Read from disk", text.SizeText(u.read), "written " + text.SizeText(u.written)})
	}
	if u.processes > 0 {
		note := "seen at once"
		if u.threads > 0 {
			note += ", with " + text.Fixed(u.threads, 0) + " " + text.Plural(u.threads, "thread", "threads")
		}
		out = append(out, Highlight{"Processes", "at most " + text.Fixed(u.processes, 0), note})
	}
	return out
}

// unused returns a highlight of the rest that was not used of all that was allowed, or none if that is unknown.
func unused(label string, rest, all float64, format func(float64) string) []Highlight {
	if !(all > 0) {
		return nil
	}
	rest = max(0, rest)
	return []Highlight{{label, format(rest), Bar{Percent: 100 * rest / all}.Share() + " of what was allowed"}}
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
