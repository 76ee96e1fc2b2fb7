package host

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/process"
)

// A groupCheck holds the CPU time that the job's group has counted against what the job has used at least, by wait4(2)
// and by its processes. A group has less where processes have moved to another one, as those of container engines do,
// and where its counter is a stub of zeros, as in gVisor. From then on the processes are followed, too.
type groupCheck struct {
	outside bool // the group has been found to lack processes
	taken   bool // what it lacked by then has been taken

	cpu              pair
	ofGroup, ofTasks process.IO // as cpu

	last    time.Duration // the Reading before
	scanned time.Duration // when the processes were held against the group last
}

// A pair is where a counter of the group and that of the processes stood at one moment. NaN is unknown.
type pair struct{ group, processes float64 }

// excess returns by how much more the processes have counted since then; 0 if that is not known.
func (p pair) excess(group, processes float64) float64 {
	if more := (processes - p.processes) - (group - p.group); more > 0 {
		return more
	}
	return 0
}

// begin takes the baseline. What the processes of a job that runs already had used by then is not known yet.
func (w *groupCheck) begin(now time.Duration, use *JobUsage, running bool) {
	w.last, w.scanned = now, now
	w.cpu, w.ofGroup = pair{group: use.CPUSeconds}, use.IO
	if running {
		w.cpu.processes, w.ofTasks = math.NaN(), process.UnknownIO()
	}
}

// undercounts reports whether the group has counted less CPU time than was certainly used when it was read. The first
// moments of a process, before it enters its group, are within the slack.
func (w *groupCheck) undercounts(group, atLeast float64) bool {
	return w.cpu.excess(group, atLeast) > 0.02+0.02*(group-w.cpu.group)
}

// verifyGroup holds the group's CPU time against that of the processes, which were read after it: what they have used
// meanwhile is no proof, so the group is read again before it is disbelieved.
func (j *jobReader) verifyGroup(use *JobUsage, tree process.TreeUsage, reaped ReapedUsage, now time.Duration) {
	w := &j.groupCheck
	if !tree.Fresh {
		return
	}

	processes := reaped.CPUSeconds + tree.CPUSeconds
	if math.IsNaN(w.cpu.processes) {
		w.cpu = pair{use.CPUSeconds, processes}
	}
	if !w.outside && w.undercounts(use.CPUSeconds, processes) {
		w.outside = w.undercounts(j.Group.Read().CPUSeconds-j.selfUsage().CPUSeconds, processes)
	}
	if w.outside {
		w.addUncountedCPU(use, processes)
	}
	w.scanned = now
}

// addUncountedCPU takes the CPU time of the processes, on the scale of the group, where it is more than the group's.
func (w *groupCheck) addUncountedCPU(use *JobUsage, processes float64) {
	more := w.cpu.excess(use.CPUSeconds, processes)
	if !w.taken && w.scanned < w.last {
		use.LateCPUSeconds = more
	}
	w.taken = true
	use.CPUSeconds += more
}

// addUncountedIO does so with what was read from storage and written to it.
func (w *groupCheck) addUncountedIO(use *JobUsage, processes process.IO) {
	more := processes.Minus(w.ofTasks).Minus(use.IO.Minus(w.ofGroup))
	use.IO = use.IO.With(more, func(group, more float64) float64 {
		if more > 0 {
			return group + more
		}
		return group
	})
}

// addUncounted takes what the processes say of a job that is not in its group as a whole.
func (j *jobReader) addUncounted(use *JobUsage, a treeResult, reaped ReapedUsage) {
	tree, w := a.use, &j.groupCheck
	if !tree.Fresh { // what the group has would be less than before
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
