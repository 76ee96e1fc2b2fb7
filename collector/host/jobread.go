package host

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/collector/series"
)

// mib is the number of bytes in a MiB.
const mib = 1 << 20

// The intervals at which the limits are read. Limits may change while the job runs, so the limits of a limited job are
// read in every sample (at the usual interval of 1 s). A job without limits rarely gets one, so its limits are read
// less often. The same applies if another perfagent measures the host.
const (
	limitsEvery   = 900 * time.Millisecond
	noLimitsEvery = 4900 * time.Millisecond
)

// A jobReader reads the job's usage.
type jobReader struct {
	JobOptions
	limits      Limits // the limits given to the job
	limitsAt    time.Duration
	selfLimits  selfLimits
	innerGroup  *cgroup.Group // group that all processes of the job have entered, see selfLimits; nil = none
	innerLimits cgroup.Limits // of innerGroup
	reclaimAt   time.Duration // when Reclaim was last read
	jobOnly     bool          // another perfagent measures the host
	// innerMemoryGroup is the JobUsage.InnerMemoryGroup that belongs to limits.
	innerMemoryGroup string
	// limitsFailed holds the reason for each unreadable limits file, by file name.
	limitsFailed map[string]error
	groupAt      time.Duration // when the group was last read
	closing      bool          // the next Reading is the final one
	// groupMemoryBefore is the group's memory at the baseline, without perfagent's. It was left by processes that have
	// ended.
	groupMemoryBefore float64
	// groupBaseline records which counters the group had at the baseline. These counters are never taken from the
	// processes, which have a different baseline.
	groupBaseline struct {
		cpu bool
		io  process.IO // NaN: the group lacked the counter
	}
	helper     *helper
	self       process.UsageReader
	gpus       *gpu.Monitor
	tree       *jobTree
	begun      time.Duration // time of the baseline
	tableAt    time.Duration // when the processes were last scanned only for the table
	groupCheck groupCheck
	hidden     bool // the main process is alive, but no process is visible
}

// final makes the next Reading, which is the last one, read everything, even sources that are not due.
func (j *jobReader) final() {
	j.closing, j.tree.closing = true, true
	if !j.AgentOutsideGroup { // otherwise, the group may be removed when the job ends
		j.limitsAt = 0
	}
}

// close closes the open files of the job's group and processes.
func (j *jobReader) close() {
	if j.Group != nil {
		j.Group.Close()
	}
	j.closeInnerGroup()
	j.tree.close()
}

// baseline reads the counters that may be above 0 when the job starts.
func (j *jobReader) baseline(out *Reading) *JobUsage {
	if j.Source == "" {
		return nil
	}
	j.begun = out.At.Mono
	use := out.newJobUsage()
	out.try(SourceJob, func() error { j.readGroup(use, out); return nil })
	if use.Memory > 0 && !j.Running {
		j.groupMemoryBefore = use.Memory
	}

	j.groupBaseline.cpu, j.groupBaseline.io = !math.IsNaN(use.CPUSeconds), use.IO
	j.groupCheck.begin(out.At.Mono, use, j.Running)
	switch {
	case j.Running:
		out.try(SourceJob, func() error { return j.readTree(use, out, ReapedUsage{}, math.NaN()) })
		return use
	case j.Source == JobFromTree:
		use.CPUSeconds, use.LivingCPUSeconds = 0, 0
	}
	use.IO = process.IO{} // the counters of the processes begin at 0
	if j.Source != JobFromTree && use.Group != nil {
		use.IO = ioOf(use.Group).With(use.IO, orElse)
	}
	return use
}

// ioOf returns the group's storage I/O.
func ioOf(c *cgroup.Counters) process.IO {
	io := process.UnknownIO()
	io.ReadBytes, io.WriteBytes = c.ReadBytes, c.WriteBytes
	return io
}

// read reads the job's whole usage, or nil if there is no job.
func (j *jobReader) read(out *Reading) *JobUsage {
	if j.Source == "" {
		return nil
	}
	use := out.newJobUsage()
	out.try(SourceJob, func() error {
		var reaped ReapedUsage
		if j.Reaped != nil {
			reaped = j.Reaped() // before the scan, so a process that ends between them is not counted twice
		}
		main, lives := process.CPUTime(reaped.MainPID) // before the group, so the group's CPU time includes it
		j.readGroup(use, out)
		atLeast := reaped.CPUSeconds + main.Seconds()
		if j.Source != JobFromTree && j.groupCheck.undercounts(use.CPUSeconds, atLeast) {
			j.groupCheck.outside = true
		}
		err := j.readTree(use, out, reaped, atLeast)
		use.Outside = j.groupCheck.outside
		if lives {
			err = cmp.Or(err, j.countMain(use))
		}
		use.reconcileTasks()
		j.applySelfLimits(use, out)
		return err
	})
	j.groupCheck.last = out.At.Mono
	return use
}

// readGroup sets the limits in use, and the numbers that the control group counts.
func (j *jobReader) readGroup(use *JobUsage, out *Reading) {
	use.Limits = j.readLimits(out.At.Mono)
	use.InnerMemoryGroup = j.innerMemoryGroup
	out.failFiles(SourceCgroup, j.limitsFailed)
	if j.Group == nil && j.GroupErr != nil {
		out.fail(SourceCgroup, j.GroupErr)
	}
	rarely := j.Source == JobFromTree && !use.Limits.limited() && !j.closing && j.groupAt > 0
	if j.Group == nil || rarely && out.At.Mono-j.groupAt < sharedGroupEvery {
		return
	}

	j.groupAt = out.At.Mono
	c := &out.buffers.group
	*c = j.Group.Read()
	use.Group, use.Shared = c, j.Source == JobFromTree
	out.failFiles(SourceCgroup, c.Failed)
	if j.Source == JobFromTree {
		return
	}

	self := j.selfUsage()
	use.CPUSeconds = c.CPUSeconds - self.CPUSeconds
	use.PageCache, use.Own = c.PageCache, self.Private+j.groupMemoryBefore
	// Own is an estimate. If no memory remains, the job is too small for the estimate, and its processes are read instead.
	if memory := c.Memory + orElse(c.Swap, 0) - c.PageCache - use.Own; memory > 0 {
		use.Memory, use.MemoryLowerBound, use.Swap = memory, memory, c.Swap
		use.Parts = MemoryParts{c.Anon, c.PageCache, c.Shmem, c.Kernel, c.Sock, c.HugeTLB}
	}
	use.IO = ioOf(c)
	use.Processes, use.Threads = max(0, c.Processes-self.Processes), max(0, c.Threads-self.Threads)
	if !math.IsNaN(use.Memory) { // the group may lack the memory controller
		use.MemoryKind = MemoryGroup
	}

	if use.Processes == 0 && (j.Running || j.Reaped != nil && j.Reaped().JobEnded) {
		// Without processes, the job's current values are unknown.
		use.Processes, use.Threads, use.Memory = math.NaN(), math.NaN(), math.NaN()
		use.MemoryLowerBound, use.Swap, use.Parts = math.NaN(), math.NaN(), unknownParts()
	}
}

// sharedGroupEvery is the interval at which a group without limits that also holds other processes is read. Only its
// OOM kills matter.
const sharedGroupEvery = 5 * time.Second

// readTree reads the job's processes and sets the numbers that the control group did not count. It does not read them
// if the group counted everything and the table is not due. atLeast is a lower bound of the job's CPU time, from its
// reaped processes and its main process.
func (j *jobReader) readTree(use *JobUsage, out *Reading, reaped ReapedUsage, atLeast float64) error {
	known := [...]float64{use.CPUSeconds, use.Memory, use.Processes, use.Threads, use.ReadBytes}
	counted := j.Source != JobFromTree && !j.groupCheck.outside && !slices.ContainsFunc(known[:], math.IsNaN)
	table := counted && j.tableDue(out.At.Mono)

	switch {
	case counted && !table && !j.VerifyGroup:
		return nil
	case j.Tree == nil && j.Source != JobFromTree:
		use.TableErr = j.TreeErr
		if j.groupCheck.outside {
			j.groupCheck.addUncountedCPU(use, atLeast)
		}
		return nil
	case reaped.JobEnded: // no process is left
		j.takeReaped(use, reaped)
		a := j.tree.finish()
		use.Table, use.Deaths = a.table, a.deaths
		if j.Source == JobFromTree && j.Tree != nil {
			use.Unowned = j.Tree.LeftoverShared()
		}
		return j.TreeErr
	case j.Tree == nil:
		return j.TreeErr
	}

	q := treeRequest{table: table}
	q.NoMemory = counted || !j.groupCheck.outside && !math.IsNaN(use.Memory)
	q.NoIO = counted && !table // the table needs I/O, because a group does not count calls
	if out.Load != nil {
		q.NewestPID = out.Load.NewestPID
	}
	q.groups, q.environs = j.Source == JobFromTree, j.gpus != nil && len(j.gpus.Read().Devices) > 0
	a, err := j.tree.read(q)
	if err == nil {
		use.Table, use.Deaths, use.Environs = a.table, a.deaths, a.selfLimits.environs
		j.setSelfLimits(a.selfLimits)
		err = fileErrors(a.use.Failed)
		j.takeTree(use, a, reaped, out.At.Mono)
	} else if j.groupCheck.outside { // the group's values alone would be less than in earlier Readings
		use.CPUSeconds, use.IO = math.NaN(), process.UnknownIO()
	}
	if counted { // scanned only for the table
		use.TableErr, err = err, nil
	}
	return err
}

// takeTree sets the numbers in use that are still unknown from a, the result of a scan of the job's processes.
func (j *jobReader) takeTree(use *JobUsage, a treeResult, reaped ReapedUsage, now time.Duration) {
	tree := a.use
	if j.Source != JobFromTree {
		j.verifyGroup(use, tree, reaped, now)
	}
	if j.groupCheck.outside {
		j.addUncounted(use, a, reaped)
	}
	if math.IsNaN(use.CPUSeconds) && !j.groupBaseline.cpu && tree.Fresh {
		use.CPUSeconds, use.LivingCPUSeconds, use.Lag = reaped.CPUSeconds+tree.CPUSeconds, tree.CPUSeconds, a.took
	}
	if j.Running { // the caller's count of the job's CPU time includes the living processes
		use.LivingCPUSeconds = math.NaN()
	}
	if math.IsNaN(use.Memory) && !math.IsNaN(tree.Memory) {
		use.Memory, use.MemoryKind, use.MemoryStale = tree.Memory, tree.MemoryKind, !tree.MemoryUpToDate
		use.MemoryLowerBound, use.Swap, use.Unowned = tree.MemoryLowerBound, tree.Swap, tree.Unowned
		use.Parts = MemoryParts{tree.Anon, tree.File, tree.Shmem, math.NaN(), math.NaN(), tree.HugeTLB}
	}
	if tree.Processes > 0 { // without processes, the numbers are unknown
		use.Processes, use.Threads = orElse(use.Processes, tree.Processes), orElse(use.Threads, tree.Threads)
	}
	if tree.IOFresh {
		notOfGroup := j.groupBaseline.io.With(reaped.Plus(tree.IO), func(group, processes float64) float64 {
			if math.IsNaN(group) {
				return processes
			}
			return math.NaN()
		})
		use.IO = use.IO.With(notOfGroup, orElse)
	}
}

// countMain makes use count at least the main process, which is alive. If no process is visible, procfs hides
// processes, so the numbers read so far are not the job's.
func (j *jobReader) countMain(use *JobUsage) error {
	wasHidden := j.hidden
	j.hidden = j.Source == JobFromTree && j.Tree != nil && math.IsNaN(use.Processes)
	if j.hidden {
		use.CPUSeconds, use.LivingCPUSeconds, use.IO = math.NaN(), math.NaN(), process.UnknownIO()
	}
	use.Processes = max(use.Processes, 1)
	if wasHidden && j.hidden { // if hidden only once, the main process may just be ending
		return errHidden
	}
	return nil
}

// reconcileTasks makes the numbers of processes and threads consistent, because they are not counted at the same
// moment. Without processes, both numbers are unknown.
func (u *JobUsage) reconcileTasks() {
	switch {
	case u.Processes == 0:
		u.Processes, u.Threads = math.NaN(), math.NaN()
	case u.Threads < u.Processes:
		u.Threads = u.Processes
	}
}

var errHidden = errors.New(
	"read the job's processes: procfs hides the main process, because it belongs to another user (hidepid)")

// tableEarly and tableLate are the intervals at which the processes of a job with a control group are scanned, in its
// first two seconds and later.
const (
	tableEarly = time.Second
	tableLate  = 5 * time.Second
)

// tableDue reports whether to scan the processes of a job with a control group now: 1 s and 2 s after the start, then
// every 5 s, and at the end.
func (j *jobReader) tableDue(now time.Duration) bool {
	every := tableLate
	if j.tableAt-j.begun < 2*tableEarly {
		every = tableEarly
	}
	if now-max(j.tableAt, j.begun) < every && !j.closing {
		return false
	}
	j.tableAt = now
	return true
}

// orElse returns v, or other if v is NaN.
func orElse(v, other float64) float64 {
	if math.IsNaN(v) {
		return other
	}
	return v
}

// takeReaped fills in use from the rusage of reaped processes when the job has no process left. Memory and the number
// of processes stay unknown.
func (j *jobReader) takeReaped(use *JobUsage, reaped ReapedUsage) {
	if j.groupCheck.outside {
		j.groupCheck.addUncountedCPU(use, reaped.CPUSeconds)
		j.groupCheck.addUncountedIO(use, reaped.IO)
	}
	if math.IsNaN(use.CPUSeconds) {
		use.CPUSeconds, use.LivingCPUSeconds = reaped.CPUSeconds, 0
	}
	bytes := reaped.IO
	bytes.ReadCalls, bytes.WriteCalls = math.NaN(), math.NaN() // rusage does not count calls
	use.IO = use.IO.With(bytes, orElse)
}

// readLimits returns the limits given to the job. It reads them only when due.
func (j *jobReader) readLimits(now time.Duration) Limits {
	every := noLimitsEvery
	if j.limits.limited() && !j.jobOnly {
		every = limitsEvery
	}
	if j.limitsAt > 0 && now-j.limitsAt < every {
		return j.limits
	}

	l := Limits{CPUQuota: series.Unknown(), MemoryMB: series.Unknown(), AffinityCPUs: affinity(j.PID)}
	if l.AffinityCPUs == 0 { // the process has ended
		l.AffinityCPUs = j.limits.AffinityCPUs
	}
	if j.Group != nil {
		g := j.Group.Limits()
		if l.take(&g); len(g.Failed) > 0 && j.limitsAt > 0 { // keep the last known limits
			l = j.limits
		} else {
			j.innerMemoryGroup = g.InnerMemoryGroup
		}
		j.limitsFailed = g.Failed
	}
	l.CPUs = l.minCPUs()
	j.limits, j.limitsAt = l, now
	return l
}
