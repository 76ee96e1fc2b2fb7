package agent

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// taken reports whether this process has been taken over. It is global because a process has one set
// of signal handlers and one heap.
var taken atomic.Bool

// errTaken is the error of a second run that asks for TakeOver.
var errTaken = &OptionError{"TakeOver", errors.New("this process has been taken over by another run")}

// takeOver gives the process to the run for good, and sets up the runtime for a process that only
// measures.
func takeOver() error {
	if taken.Swap(true) {
		return errTaken
	}

	// Two threads are enough for one sampling goroutine; the default is one per CPU.
	runtime.GOMAXPROCS(min(2, runtime.NumCPU()))

	// Prefer low memory to low CPU, because collecting garbage takes next to no CPU here. Not in the
	// first second, though: a short job would wait for it. A GOGC in the environment is meant for
	// the job and overridden.
	debug.SetGCPercent(400)
	time.AfterFunc(time.Second, func() { debug.SetGCPercent(25) })

	return nil
}
