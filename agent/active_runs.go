package agent

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/perfagent/perfagent"
)

// runs is the state shared by all runs. It is global because a process has one set of signal handlers, one heap, and
// one set of children.
var runs struct {
	mu     sync.Mutex
	active int  // runs that have not ended
	taken  bool // by a run with TakeOver, for good
}

var (
	errTaken = &OptionError{"TakeOver", errors.New("this process has been taken over by another run")}
	errBusy  = &OptionError{"TakeOver", errors.New("other runs are active in this process")}
)

// registerRun admits a run. A run with TakeOver must be the only run, now and later, because it waits for all children
// of the process, including those of other runs. leave must be called when the run has ended.
func registerRun(o Options) (leave func(), err error) {
	runs.mu.Lock()
	defer runs.mu.Unlock()

	switch {
	case runs.taken:
		return nil, errTaken
	case o.TakeOver && runs.active > 0:
		return nil, errBusy
	case o.TakeOver:
		runs.taken = true
		setUpRuntime(o.wantsOperations())
	}
	runs.active++

	return func() {
		runs.mu.Lock()
		defer runs.mu.Unlock()
		runs.active--
	}, nil
}

// allowSecondThread lets a second thread run goroutines in a process that was taken over, so that samples do not wait
// for the run's other tasks.
func (o *Options) allowSecondThread() {
	if o.TakeOver {
		runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
	}
}

// setUpRuntime tunes the runtime of a process that only measures. operations reports whether the job may send
// operations.
func setUpRuntime(operations bool) {
	// With one P, a goroutine that becomes ready wakes no other thread, and alternating goroutines stay on one thread.
	runtime.GOMAXPROCS(1)

	// Prefer low memory to low CPU, because collecting garbage takes next to no CPU here. In the first second it is the
	// other way round, because a short job would wait for the collection. A GOGC in the environment is meant for the
	// job, and overridden.
	first, later := 400, 25
	if operations {
		first, later = 200, 10
	}
	debug.SetGCPercent(first)
	time.AfterFunc(time.Second, func() { debug.SetGCPercent(later) })
}

// Version returns the version of perfagent in this program, as in the file VERSION: "1.0.0".
func Version() string {
	return perfagent.Version()
}
