package host

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/process"
)

// A groupCheck compares the CPU time of the job's group with a lower bound, which comes from wait4(2) and the job's
// processes. The group has counted less if processes have moved to another group, as with container engines, or if its
// counter is always 0, as in gVisor. After such a finding, the processes are read as well.
type groupCheck struct {
	outside  bool // the group does not count all processes of the job
	caughtUp bool // CPU time that the group had missed before outside was set has been added

	cpu                counterPair
	groupIO, processIO process.IO // baselines of IO

	last    time.Duration // time of the previous Reading
	scanned time.Duration // when the processes were last compared with the group
}

// A counterPair holds two values of a counter at the same moment: the group's, and the sum over the processes. NaN
// means unknown.
type counterPair struct{ group, processes float64 }

// excess returns how much more the processes have counted than the group since p. It returns 0 if the difference is
// negative or unknown.
func (p counterPair) excess(group, processes float64) float64 {
	if more := (processes - p.processes) - (group - p.group); more > 0 {
		return more
	}
	return 0
}

// begin sets the baseline. If the job is already running, the earlier usage of its processes is not known yet.
func (w *groupCheck) begin(now time.Duration, use *JobUsage, running bool) {
	w.last, w.scanned = now, now
	w.cpu, w.groupIO = counterPair{group: use.CPUSeconds}, use.IO
	if running {
		w.cpu.processes, w.processIO = math.NaN(), process.UnknownIO()
	}
}

// undercounts reports whether group, the CPU time that the group has counted, is less than atLeast, a lower bound of
// the job's CPU time. The slack of 20 ms and 2 % covers the first moments of a process, before it enters its group.
func (w *groupCheck) undercounts(group, atLeast float64) bool {
	return w.cpu.excess(group, atLeast) > 0.02+0.02*(group-w.cpu.group)
}

// verifyGroup compares the CPU time of the group with the CPU time of the processes, which were read later. The
// processes may have used the additional CPU time between the two reads, so it reads the group again before it sets
// outside.
func (j *jobReader) verifyGroup(use *JobUsage, tree process.TreeUsage, reaped ReapedUsage, now time.Duration) {
	w := &j.groupCheck
	if !tree.Fresh {
		return
	}

	processes := reaped.CPUSeconds + tree.CPUSeconds
	if math.IsNaN(w.cpu.processes) {
		w.cpu = counterPair{use.CPUSeconds, processes}
	}
	if !w.outside && w.undercounts(use.CPUSeconds, processes) {
		w.outside = w.undercounts(j.Group.Read().CPUSeconds-j.selfUsage().CPUSeconds, processes)
	}
	if w.outside {
		w.addUncountedCPU(use, processes)
	}
	w.scanned = now
}

// addUncountedCPU adds to use the CPU time that the processes have counted and the group has not. Its first call also
// sets LateCPUSeconds.
func (w *groupCheck) addUncountedCPU(use *JobUsage, processes float64) {
	more := w.cpu.excess(use.CPUSeconds, processes)
	if !w.caughtUp && w.scanned < w.last {
		use.LateCPUSeconds = more
	}
	w.caughtUp = true
	use.CPUSeconds += more
}

// addUncountedIO adds to use the storage I/O that the processes have counted and the group has not.
func (w *groupCheck) addUncountedIO(use *JobUsage, processes process.IO) {
	more := processes.Minus(w.processIO).Minus(use.IO.Minus(w.groupIO))
	use.IO = use.IO.With(more, func(group, more float64) float64 {
		if more > 0 {
			return group + more
		}
		return group
	})
}

// addUncounted completes the usage of a job that has processes outside its group.
func (j *jobReader) addUncounted(use *JobUsage, a treeResult, reaped ReapedUsage) {
	tree, w := a.use, &j.groupCheck
	if !tree.Fresh { // the group's value alone would be less than in earlier Readings
		use.CPUSeconds = math.NaN()
	}
	if w.addUncountedIO(use, reaped.Plus(tree.IO)); !tree.IOFresh {
		use.IO = process.UnknownIO()
	}
	use.Lag = a.took

	if tree.Memory > use.Memory {
		use.Memory, use.MemoryKind = tree.Memory, tree.MemoryKind
		use.Swap, use.Unowned = tree.Swap, tree.Unowned
	}
	use.MemoryLowerBound = max(use.MemoryLowerBound, tree.MemoryLowerBound)
	use.Processes, use.Threads = max(use.Processes, tree.Processes), max(use.Threads, tree.Threads)
}
