package agent

import (
	"runtime"
	"runtime/debug"
	"time"
)

// ownProcess sets the runtime up for a process that does nothing but measure.
func ownProcess() {
	// Two threads do for one sampling goroutine; a host of many CPUs would give the runtime as
	// many.
	runtime.GOMAXPROCS(min(2, runtime.NumCPU()))

	// Memory before CPU, of which collecting garbage takes next to nothing here, but not in the
	// first second: a short job would wait for it. A GOGC that is meant for the job, such as off,
	// is not for us.
	debug.SetGCPercent(400)
	time.AfterFunc(time.Second, func() { debug.SetGCPercent(25) })
}
