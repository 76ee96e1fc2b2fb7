package reportertest

import (
	"strings"
	"time"

	"github.com/perfagent/perfagent/reporter"
)

// AddProcesses adds the processes of a job to each node of a report. The run must begin at RunStart. One process has
// markup and control characters in its command, and another has few known values. The last process has the highest peak
// memory.
func AddProcesses(r *reporter.Report) *reporter.Report {
	at := func(seconds float64) reporter.Time {
		return reporter.Time{Time: RunStart.Add(time.Duration(seconds * float64(time.Second)))}
	}
	for _, n := range r.Nodes {
		n.Processes = []reporter.Process{
			{PID: 1201, PPID: 1200, Command: "python3 train.py --token ***", Start: at(0.5), End: at(40), CPUSeconds: 120.25,
				EndedChildrenCPUSeconds: 0.5, PeakMemoryMB: 1500.5, Threads: 12},
			{PID: 99, PPID: 1200, Command: "<img src=x onerror=alert(1)>\x1b[31m " + strings.Repeat("long ", 20), Start: at(1), CPUSeconds: 60,
				PeakMemoryMB: 3.25, Threads: 1},
			{PID: 1200, PPID: 1199, Command: "sh job.sh", Start: at(0), CPUSeconds: 0.004, EndedChildrenCPUSeconds: 17.5},
			{PID: 41234, PPID: 1201, Command: "[loader]", Start: at(2), End: at(3), PeakMemoryMB: 2048, Threads: 3},
		}
	}
	return r
}

// AddDeaths adds the deaths of processes of a job to each node of a report. The run must begin at RunStart.
func AddDeaths(r *reporter.Report) *reporter.Report {
	at := func(seconds float64) reporter.Time {
		return reporter.Time{Time: RunStart.Add(time.Duration(seconds * float64(time.Second)))}
	}
	for _, n := range r.Nodes {
		n.Deaths = []reporter.Death{
			{PID: 1301, PPID: 1200, Command: "python3 worker.py", Start: at(0.5), End: at(40), Signal: "SIGBUS", CoreDumped: true, How: "connector",
				CPUSeconds: 12.5, PeakMemoryMB: 150.5},
			{PID: 1302, End: at(40.25), Signal: Hostile, How: "pidfd"},
			{PID: 1303, Command: "<b>\x1b[31m", End: at(41), ExitCode: new(3), How: "wait"},
			{PID: 1304, Command: "sleep 9", End: at(42), How: "unknown"},
		}
		n.QuietExits, n.MoreDeaths = 1, 1200
	}
	return r
}
