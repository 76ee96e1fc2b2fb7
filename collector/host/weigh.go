package host

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/process"
)

// A weigher holds the CPU time that the job's group has counted against what the job has used at least, by wait4(2)
// and by its processes. A group has less where processes have moved to another one, as those of container engines do,
// and where its counter is a stub of zeros, as in gVisor. From then on the processes are followed, too.
type weigher struct {
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
func (w *weigher) begin(now time.Duration, use *JobUse, running bool) {
	w.last, w.scanned = now, now
	w.cpu, w.ofGroup = pair{group: use.CPUSeconds}, use.IO
	if running {
		w.cpu.processes, w.ofTasks = math.NaN(), process.UnknownIO()
	}
}

// lacks reports whether the group has counted less CPU time than was certainly used when it was read. The first
// moments of a process, before it enters its group, are within the slack.
func (w *weigher) lacks(group, atLeast float64) bool {
	return w.cpu.excess(group, atLeast) > 0.02+0.02*(group-w.cpu.group)
}

// prove holds the group's CPU time against that of the processes, which were read after it: what they have used
// meanwhile is no proof, so the group is read again before it is disbelieved.
func (j *jobReader) prove(use *JobUse, tree process.Use, reaped Reaped, now time.Duration) {
	w := &j.weigher
	if !tree.Fresh {
		return
	}

	processes := reaped.CPUSeconds + tree.CPUSeconds
	if math.IsNaN(w.cpu.processes) {
		w.cpu = pair{use.CPUSeconds, processes}
	}
	if !w.outside && w.lacks(use.CPUSeconds, processes) {
		w.outside = w.lacks(j.Group.Read().CPUSeconds-j.selfUsage().CPUSeconds, processes)
	}
	if w.outside {
		w.takeCPU(use, processes)
	}
	w.scanned = now
}

// takeCPU takes the CPU time of the processes, on the scale of the group, where it is more than the group's.
func (w *weigher) takeCPU(use *JobUse, processes float64) {
	more := w.cpu.excess(use.CPUSeconds, processes)
	if !w.taken && w.scanned < w.last {
		use.Late = more
	}
	w.taken = true
	use.CPUSeconds += more
}

// takeStorage does so with what was read from storage and written to it.
func (w *weigher) takeStorage(use *JobUse, processes process.IO) {
	more := processes.Minus(w.ofTasks).Minus(use.IO.Minus(w.ofGroup))
	use.IO = use.IO.With(more, func(group, more float64) float64 {
		if more > 0 {
			return group + more
		}
		return group
	})
}

// takeOutside takes what the processes say of a job that is not in its group as a whole.
func (j *jobReader) takeOutside(use *JobUse, a treeAnswer, reaped Reaped) {
	tree, w := a.use, &j.weigher
	if !tree.Fresh { // what the group has would be less than before
		use.CPUSeconds = math.NaN()
	}
	if w.takeStorage(use, reaped.Plus(tree.IO)); !tree.IOFresh {
		use.IO = process.UnknownIO()
	}
	use.Lag = a.took

	if tree.Memory > use.Memory {
		use.Memory, use.MemoryKind = tree.Memory, tree.MemoryKind
		use.Swap, use.Unowned = tree.Swap, tree.Unowned
	}
	use.MemoryProven = max(use.MemoryProven, tree.Proven)
	use.Processes, use.Threads = max(use.Processes, tree.Processes), max(use.Threads, tree.Threads)
}
