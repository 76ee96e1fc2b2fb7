package host

import (
	"fmt"
	"time"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/patience"
)

// treePatience is how long a Reading waits for the job's processes. Five thousand of them
// take 60 ms; one that hangs in exec, or in its memory, may have the kernel not answer for
// as long as its disk does not, and is then waited for once, not in every Reading.
const treePatience = 2 * time.Second

// longScan is a scan that did not only work: what it met first is much older than what it
// met last.
const longScan = 250 * time.Millisecond

// jobTree reads the job's processes.
type jobTree struct {
	tree    *process.Tree // nil = they cannot be found
	asked   *patience.Asker[treeAnswer]
	closing bool // the next one is the last
	skewed  bool // the one before took long
}

type treeAnswer struct {
	use  process.Use
	took time.Duration // from the question on
	err  error
}

func newJobTree(tree *process.Tree) jobTree {
	return jobTree{tree: tree, asked: patience.New[treeAnswer]()}
}

// read asks for the job's processes, with what they have in memory or without, and tells how
// long that took. Of a scan that took long CPU time and storage are left to the next one,
// unless this is the last or all take long.
func (t *jobTree) read(memory bool) (process.Use, time.Duration, error) {
	begin, hurry := time.Now(), t.closing
	if hurry { // worth waiting for the scan before
		t.asked.Answer(treePatience)
	}

	a, ok := t.asked.Ask(treePatience-time.Since(begin), func() (a treeAnswer) {
		a.err = guard(func() (err error) {
			if t.tree.Memory(memory); hurry {
				t.tree.Hurry()
			}
			a.use, err = t.tree.Read()
			return err
		})
		a.took = time.Since(begin)
		return a
	})

	if !ok {
		return process.Use{}, 0, fmt.Errorf("read the job's processes: no answer within %v: a process of this machine hangs, in exec or in its memory", treePatience)
	}
	if t.skewed = a.took > longScan && !t.skewed && !hurry; t.skewed {
		a.use.Fresh, a.use.IOFresh = false, false
	}
	return a.use, a.took, a.err
}

// foreign is process.Tree's Foreign; not known while a question is open.
func (t *jobTree) foreign(pid int) bool {
	return t.tree != nil && !t.asked.Open() && t.tree.Foreign(pid)
}
