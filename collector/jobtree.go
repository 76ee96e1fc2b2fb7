package collector

import (
	"fmt"
	"runtime"
	"time"

	"github.com/perfagent/perfagent/process"
)

// treePatience is how long a Reading waits for the job's processes. Five thousand of them
// take 60 ms; one that hangs in exec, or in its memory, may have the kernel not answer for
// as long as its disk does not, and is then waited for once, not in every Reading.
const treePatience = 2 * time.Second

// jobTree reads the job's processes on a goroutine of its own, so that one that hangs is
// absent from the Reading instead of stopping the sampling.
type jobTree struct {
	tree    *process.Tree // nil = they cannot be found
	answer  chan treeAnswer
	pending bool // the answer was not here in time
	closing bool // the next one is the last
}

type treeAnswer struct {
	use  process.Use
	took time.Duration // from the question on
	err  error
}

func newJobTree(tree *process.Tree) jobTree {
	return jobTree{tree: tree, answer: make(chan treeAnswer, 1)}
}

// read asks for the job's processes, with what they have in memory or without, and tells how
// long that took. What came late to an earlier Reading is not used: it is of another time.
func (t *jobTree) read(memory bool) (process.Use, time.Duration, error) {
	begin, patience := time.Now(), treePatience // for both, when this is the last
	if t.pending {
		if !t.closing {
			patience = 0
		}
		if _, err := t.wait(patience); err != nil {
			return process.Use{}, 0, err
		}
		patience = treePatience - time.Since(begin)
		begin = time.Now()
	}
	t.pending = true
	hurry := t.closing
	go func() {
		var a treeAnswer
		a.err = guard(func() (err error) {
			if t.tree.Memory(memory); hurry {
				t.tree.Hurry()
			}
			a.use, err = t.tree.Read()
			return err
		})
		a.took = time.Since(begin)
		t.answer <- a
	}()
	runtime.Gosched() // the answer may be here after this, and no timer is needed
	a, err := t.wait(patience)
	if err != nil {
		return process.Use{}, 0, err
	}
	return a.use, a.took, a.err
}

// wait takes the answer, or fails where it is not there in time.
func (t *jobTree) wait(patience time.Duration) (treeAnswer, error) {
	select {
	case a := <-t.answer:
		t.pending = false
		return a, nil
	default:
	}
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case a := <-t.answer:
			t.pending = false
			return a, nil
		case <-timer.C:
		}
	}
	return treeAnswer{}, fmt.Errorf("read the job's processes: no answer within %v: a process of this machine hangs, in exec or in its memory", treePatience)
}

// foreign is process.Tree's Foreign; not known while a question is open.
func (t *jobTree) foreign(pid int) bool {
	return t.tree != nil && !t.pending && t.tree.Foreign(pid)
}
