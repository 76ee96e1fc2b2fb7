package host

import (
	"fmt"
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/timeout"
)

// treeTimeout is how long a Reading waits for the job's processes. Five thousand of them take 60
// ms. For one that hangs in exec, or in its memory, the kernel may not answer for as long as the
// disk does not; it is waited for once, not in every Reading.
const treeTimeout = 2 * time.Second

// longScan is the duration of a scan that was held up: what it met first is much older than what it
// met last.
const longScan = 250 * time.Millisecond

// A jobTree reads the job's processes.
type jobTree struct {
	tree    *process.Tree // nil = they cannot be found
	pid     int           // see JobOptions.PID
	home    string        // the control groups of that process at first, as procfs lists them; "" = not read yet
	caller  *timeout.Caller[treeResult]
	scan    func() treeResult // to the open question
	request treeRequest
	closing bool      // the next one is the last
	skewed  bool      // the scan before took long
	tabled  time.Time // when the table was made last
}

// A treeRequest says what is to be read beside CPU time and the number of processes: memory, storage
// bytes, and the table, also if that is not due.
type treeRequest struct {
	memory, storage, table bool
	// With the table it is read to what the processes have bound themselves: the masks of their threads and, if
	// these are set, their control groups and environments.
	groups, environs bool

	newest int64 // see process.Tree.Newest; 0 = not known
	final  bool  // it is the last one
	asked  time.Time
}

type treeResult struct {
	use        process.TreeUsage
	table      []process.Process // nil if it was not made
	selfLimits selfLimits        // nothing is known where the table was not made
	took       time.Duration     // since the question
	err        error
}

// tableEvery is how often a table of the processes is made where they are scanned more often. At the
// usual interval that is in each third sample.
const tableEvery = 2900 * time.Millisecond

func newJobTree(o JobOptions) *jobTree {
	t := &jobTree{tree: o.Tree, pid: o.PID, caller: timeout.NewCaller[treeResult]()}
	t.scan = t.scanTree
	return t
}

// read asks for the job's processes. A scan that took long leaves CPU time and storage to the next one,
// unless it is the last or all scans take long.
func (t *jobTree) read(q treeRequest) (treeResult, error) {
	q.final, q.asked = t.closing, time.Now()
	q.table = q.table || q.final || q.asked.Sub(t.tabled) >= tableEvery

	wait := time.Duration(0)
	if q.final { // the scan before is worth waiting for
		wait = treeTimeout
	}
	t.caller.Result(wait)
	if t.caller.Pending() {
		return treeResult{}, errTreeHangs
	}

	t.request = q
	a, ok := t.caller.Call(treeTimeout-time.Since(q.asked), t.scan)
	if !ok {
		return treeResult{}, errTreeHangs
	}

	if a.table != nil {
		t.tabled = q.asked
	}
	if t.skewed = a.took > longScan && !t.skewed && !q.final; t.skewed {
		a.use.Fresh, a.use.IOFresh = false, false
	}
	return a, a.err
}

var errTreeHangs = fmt.Errorf("read the job's processes: no answer within %v: "+
	"a process of this machine hangs, in exec or in its memory", treeTimeout)

// scanTree answers the open question.
func (t *jobTree) scanTree() (a treeResult) {
	q := t.request
	a.err = guard(func() (err error) {
		t.tree.MeasureMemory(q.memory)
		t.tree.MeasureStorage(q.storage)
		t.tree.SetNewestPID(q.newest)
		if q.final {
			t.tree.ForceNext()
		}
		a.use, err = t.tree.Read()
		if err == nil && q.table {
			a.table = t.tree.Table()
			a.selfLimits = t.readSelfLimits(t.tree.Workers(), q)
		}
		return err
	})
	a.took = time.Since(q.asked)
	return a
}

// idle returns the tree; nil if there is none, or if it is still being read.
func (t *jobTree) idle() *process.Tree {
	if t.caller.Result(0); t.caller.Pending() {
		return nil
	}
	return t.tree
}

// settled returns the table of a job of which no process is left; nil if it cannot be made.
func (t *jobTree) settled() []process.Process {
	tree := t.idle()
	if tree == nil {
		return nil
	}
	tree.FinishTable()
	return tree.Table()
}

// left returns the shared memory that a job of which no process is left may have left on the host; NaN if that is
// not known.
func (t *jobTree) left() float64 {
	if t.tree == nil {
		return math.NaN()
	}
	return t.tree.LeftoverShared()
}

// close closes what the tree holds open, unless it is still being read.
func (t *jobTree) close() {
	if tree := t.idle(); tree != nil {
		_ = tree.Close()
	}
}

// seen returns whether a process is known to be the job's (process.Tree.Seen). It is not known while
// a question is open.
func (t *jobTree) seen(pid int) process.Relation {
	if tree := t.idle(); tree != nil {
		return tree.ScannedRelation(pid)
	}
	return process.UnknownRelation
}

// relation does the same for a process that is there.
func (t *jobTree) relation(pid int) process.Relation {
	if t.tree == nil {
		return process.UnknownRelation
	}
	if seen := t.seen(pid); seen != process.UnknownRelation {
		return seen
	}
	return t.tree.CurrentRelation(pid)
}

// copy returns the job's processes for another goroutine, or nil if they cannot be found. What was
// known of them is not known while a question is open.
func (t *jobTree) copy() *process.Tree {
	if t.tree == nil {
		return nil
	}
	if tree := t.idle(); tree != nil {
		return tree.Clone()
	}
	return t.tree.CloneEmpty()
}
