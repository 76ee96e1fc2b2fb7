//go:build amd64 || arm64

package job

import (
	"os"
	"syscall"
)

// State that the kernel handed to this process, recorded before the Go runtime sets its signal handlers and opens
// /dev/null for missing standard descriptors. It is set only in a binary linked with entry as its entry point (go build
// -ldflags '-E github.com/perfagent/perfagent/job.entry', as scripts/build.sh does). In any other binary these
// variables are 0 and the job starts with the defaults. They are package variables because no other memory exists when
// entry writes them.
var (
	ignoredBits uint64 // bit n: signal n was ignored; bit 0: the program began at entry
	closedBits  uint64 // bit n: descriptor n (0 to 2) was closed

	// processorAdded is 1 if the environment lacked GOMAXPROCS and entry added GOMAXPROCS=1. With a higher value, the
	// runtime makes four threads before the program begins, which costs a short run 5 % of its time.
	processorAdded uint64
)

// RemoveAddedGOMAXPROCS reports whether entry added GOMAXPROCS=1 to the environment, and removes it. Call it before
// other code reads the environment.
func RemoveAddedGOMAXPROCS() bool {
	if processorAdded == 0 {
		return false
	}
	_ = os.Unsetenv("GOMAXPROCS")
	return true
}

// LacksEntryPoint reports whether this program was linked without entry, which records ignored signals and closed
// descriptors. It returns false on systems for which there is no such entry point.
func LacksEntryPoint() bool { return ignoredBits&1 == 0 }

// ignoredAtStart reports whether a signal was ignored when the program was executed.
func ignoredAtStart(sig syscall.Signal) bool { return ignoredBits>>uint(sig)&1 == 1 }

// closedAtStart reports whether a standard descriptor was closed when the program was executed.
func closedAtStart(fd int) bool { return closedBits>>uint(fd)&1 == 1 }
