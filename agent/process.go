package agent

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// taken reports whether this process has been taken over. It is global because a process is: it has
// one set of signal handlers and one heap.
var taken atomic.Bool

// errTaken is the error of a second run that asks for TakeOver.
var errTaken = &OptionError{"TakeOver", errors.New("this process has been taken over by another run")}

// takeOver gives the process to the run, for as long as it lives, and sets the runtime up for a
// process that does nothing but measure.
func takeOver() error {
	if taken.Swap(true) {
		return errTaken
	}

	// Two threads do for one sampling goroutine; a host of many CPUs would give the runtime as
	// many.
	runtime.GOMAXPROCS(min(2, runtime.NumCPU()))

	// Memory before CPU, of which collecting garbage takes next to nothing here, but not in the
	// first second: a short job would wait for it. A GOGC that is meant for the job, such as off,
	// is not for us.
	debug.SetGCPercent(400)
	time.AfterFunc(time.Second, func() { debug.SetGCPercent(25) })

	return nil
}
