package reporter

import (
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
)

// Process is the observed resource usage of one process of the job.
type Process struct {
	PID  int `json:"pid"`
	PPID int `json:"ppid"` // at the last observation
	// Command is redacted, and at most 200 bytes long.
	Command string `json:"command"`
	Start   Time   `json:"start"`
	// End is the time at which perfagent noticed the end; it is omitted if the process was still running.
	End Time `json:"end,omitzero"`
	// CPUSeconds is the user and system time of the process itself.
	CPUSeconds float64 `json:"cpu_seconds"`
	// EndedChildrenCPUSeconds is the CPU time of ended children that the process waited for and that have no row in the
	// table.
	EndedChildrenCPUSeconds float64 `json:"ended_children_cpu_seconds"`
	// PeakMemoryMB is the kernel's high-water mark of the process's resident memory, MiB; 0 = unknown.
	PeakMemoryMB float64 `json:"peak_memory_mb,omitzero"`
	Threads      int     `json:"threads,omitzero"` // the highest number in any sample; 0 = unknown
}

// newProcesses returns the rows of a recording's processes. If a process ended after end, the run's end, its row has
// end instead.
func newProcesses(rec *collector.Recording, end Time) []Process {
	var out []Process
	for _, p := range rec.Processes {
		row := Process{
			PID: p.PID, PPID: p.PPID, Command: p.Command, Threads: p.Threads,
			Start:                   Time{wallTime(rec, p.Start)},
			CPUSeconds:              text.Round(p.CPUSeconds, 6),
			EndedChildrenCPUSeconds: text.Round(p.EndedChildren, 6),
			PeakMemoryMB:            text.Round(p.PeakMemory/collector.MiB, 3),
		}
		if p.End > 0 {
			row.End = Time{wallTime(rec, p.End)}
			if row.End.After(end.Time) {
				row.End = end
			}
		}
		out = append(out, row)
	}
	return out
}

// largestProcessMB returns the highest peak memory of a recording's processes, MiB; 0 = unknown.
func largestProcessMB(rec *collector.Recording) float64 {
	var peak float64
	for _, p := range rec.Processes {
		peak = max(peak, p.PeakMemory)
	}
	return text.Round(peak/collector.MiB, 3)
}

// wallTime converts boot, a time since boot, to the time axis of the samples.
func wallTime(rec *collector.Recording, boot time.Duration) time.Time {
	return rec.Start.Wall.Add(boot - rec.Start.Boot)
}

// processesMissing returns the reason for missing rows, if reading the job's processes failed.
func processesMissing(rec *collector.Recording, job *Job) []Missing {
	if job == nil || len(rec.Processes) > 0 {
		return nil
	}
	for _, f := range rec.Failures {
		if f.Source == host.SourceJob {
			return []Missing{{What: collector.ProcessTable, Code: collector.ProcessesUnread, Why: f.Why}}
		}
	}
	return nil
}

// ProcessesMissing returns the reason for missing processes; "" if there is none.
func (n *Node) ProcessesMissing() string {
	if i := slices.IndexFunc(n.Missing, func(m Missing) bool { return m.What == collector.ProcessTable }); i >= 0 {
		return n.Missing[i].Why
	}
	return ""
}

// LargestProcess returns the process with the highest peak memory; false if there is none.
func (n *Node) LargestProcess() (Process, bool) {
	var out Process
	for _, p := range n.Processes {
		if p.PeakMemoryMB > out.PeakMemoryMB && !math.IsInf(p.PeakMemoryMB, 0) {
			out = p
		}
	}
	return out, out.PeakMemoryMB > 0
}
