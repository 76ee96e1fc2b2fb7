//go:build amd64 || arm64

package job

import (
	"os"
	"syscall"
)

// What the kernel handed to this process, noted before the Go runtime set its own
// signal handlers and opened /dev/null for missing standard descriptors. Only a
// binary that was linked to begin at entry has it (go build -ldflags '-E
// github.com/perfagent/perfagent/job.entry', as scripts/build.sh does). In any
// other, these are 0 and the job starts with the defaults. They are package
// variables because there is nothing else yet when they are written.
var (
	ignoredBits uint64 // bit n: signal n was ignored; bit 0: the program began at entry
	closedBits  uint64 // bit n: descriptor n, of 0 to 2, was closed

	// processorAdded is 1 if the environment did not have GOMAXPROCS, and entry added GOMAXPROCS=1. With more, the
	// runtime makes four threads before the program begins, which costs a short run a twentieth.
	processorAdded uint64
)

// RemoveAddedGOMAXPROCS reports whether the Go runtime of this process was told to run goroutines on one thread at a
// time, though the environment did not say so. What it was told is no longer in the environment after the call, which
// must come before others read that.
func RemoveAddedGOMAXPROCS() bool {
	if processorAdded == 0 {
		return false
	}
	_ = os.Unsetenv("GOMAXPROCS")
	return true
}

// LacksEntryPoint reports whether this program was linked without the entry point that
// notes ignored signals and closed descriptors. It is false on systems that have
// no such entry point.
func LacksEntryPoint() bool { return ignoredBits&1 == 0 }

// ignoredAtStart reports whether a signal was ignored when the program was executed.
func ignoredAtStart(sig syscall.Signal) bool { return ignoredBits>>uint(sig)&1 == 1 }

// closedAtStart reports whether a standard descriptor was closed then.
func closedAtStart(fd int) bool { return closedBits>>uint(fd)&1 == 1 }
