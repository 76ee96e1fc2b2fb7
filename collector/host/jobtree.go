package host

import (
	"fmt"
	"time"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/timeout"
)

// treeTimeout is the longest time that a Reading waits for the scan of the job's processes, which takes 60 ms for five
// thousand. If a process hangs in exec or in a page fault, the kernel may block the scan until the disk responds. Only
// one Reading waits for such a scan.
const treeTimeout = 2 * time.Second

// longScan is the longest duration of an ordinary scan. In a longer scan, the first processes were read much earlier
// than the last.
const longScan = 250 * time.Millisecond

// A jobTree scans the job's processes, in a goroutine that may hang.
type jobTree struct {
	tree          *process.Tree // nil = the processes cannot be found
	pid           int           // see JobOptions.PID
	initialGroups string        // the initial control groups of process pid, as in procfs; "" = not read yet
	caller        *timeout.Caller[treeResult]
	scan          func() treeResult // carries out request
	request       treeRequest
	closing       bool      // the next scan is the last
	skewed        bool      // the previous scan took longer than longScan
	tableAt       time.Time // when the table was last built
}

// A treeRequest selects what to read. Now is set in the last request.
type treeRequest struct {
	process.Request
	table bool // build the table even if it is not due
	// groups and environs report whether to read control groups and environments with the table. The affinity of the
	// threads is always read.
	groups, environs bool

	at time.Time
}

type treeResult struct {
	use        process.TreeUsage
	table      []process.Process // nil if it was not built
	deaths     *process.Deaths   // nil if they are not known
	selfLimits selfLimits        // unknown if the table was not built
	took       time.Duration     // since the request
	err        error
}

// tableEvery is the interval at which the table is built if the processes are scanned more often: every third sample,
// at the usual interval of 1 s.
const tableEvery = 2900 * time.Millisecond

func newJobTree(o JobOptions) *jobTree {
	t := &jobTree{tree: o.Tree, pid: o.PID, caller: timeout.NewCaller[treeResult]()}
	t.scan = t.scanTree
	return t
}

// read scans the job's processes. If the scan took longer than longScan, the result has no CPU time and I/O, unless it
// is the last scan or the previous scan took longer than longScan as well.
func (t *jobTree) read(q treeRequest) (treeResult, error) {
	q.Now, q.at = t.closing, time.Now()
	q.table = q.table || q.Now || q.at.Sub(t.tableAt) >= tableEvery

	wait := time.Duration(0)
	if q.Now { // the pending scan is worth waiting for
		wait = treeTimeout
	}
	t.caller.Result(wait)
	if t.caller.Pending() {
		return treeResult{}, errTreeHangs
	}

	t.request = q
	a, ok := t.caller.Call(treeTimeout-time.Since(q.at), t.scan)
	if !ok {
		return treeResult{}, errTreeHangs
	}

	if a.table != nil {
		t.tableAt = q.at
	}
	if t.skewed = a.took > longScan && !t.skewed && !q.Now; t.skewed {
		a.use.Fresh, a.use.IOFresh = false, false
	}
	return a, a.err
}

var errTreeHangs = fmt.Errorf("read the job's processes: no response within %v: "+
	"a process on this machine hangs in exec or in its memory", treeTimeout)

// scanTree carries out the pending request.
func (t *jobTree) scanTree() (a treeResult) {
	q := t.request
	a.err = guard(func() (err error) {
		t.tree.Next = q.Request
		a.use, err = t.tree.Read()
		a.deaths = t.tree.Deaths()
		if err == nil && q.table {
			a.table = t.tree.Table()
			a.selfLimits = t.readSelfLimits(t.tree.Workers(), q)
		}
		return err
	})
	a.took = time.Since(q.at)
	return a
}

// finish completes the table and the deaths after the job's last process has ended.
func (t *jobTree) finish() (a treeResult) {
	if t.tree == nil {
		return a
	}
	a, _ = t.caller.Call(treeTimeout, func() treeResult {
		t.tree.FinishTable()
		return treeResult{table: t.tree.Table(), deaths: t.tree.Deaths()}
	})
	return a
}

// idle returns the tree, or nil if there is none or a scan is pending.
func (t *jobTree) idle() *process.Tree {
	if t.caller.Result(0); t.caller.Pending() {
		return nil
	}
	return t.tree
}

// close closes the tree's open files, unless a scan is pending.
func (t *jobTree) close() {
	if tree := t.idle(); tree != nil {
		tree.Close()
	}
}

// scannedRelation returns the relation of process pid to the job according to the scans (process.Tree.ScannedRelation).
// It is unknown while a scan is pending.
func (t *jobTree) scannedRelation(pid int) process.Relation {
	if tree := t.idle(); tree != nil {
		return tree.ScannedRelation(pid)
	}
	return process.UnknownRelation
}

// relation returns scannedRelation or, if it is unknown, the relation according to the process's current parents
// (process.Tree.CurrentRelation).
func (t *jobTree) relation(pid int) process.Relation {
	if t.tree == nil {
		return process.UnknownRelation
	}
	if seen := t.scannedRelation(pid); seen != process.UnknownRelation {
		return seen
	}
	return t.tree.CurrentRelation(pid)
}

// copy returns a copy of the tree for another goroutine, or nil if there is no tree. While a scan is pending, the copy
// is empty.
func (t *jobTree) copy() *process.Tree {
	if t.tree == nil {
		return nil
	}
	if tree := t.idle(); tree != nil {
		return tree.Clone()
	}
	return t.tree.CloneEmpty()
}
