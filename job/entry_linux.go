//go:build amd64 || arm64

package job

import "syscall"

// What the kernel handed to this process, noted before the Go runtime set its
// own signal handlers and opened /dev/null for missing standard descriptors.
// Only a binary that was linked to begin at entry (go build -ldflags '-E
// github.com/perfagent/perfagent/job.entry', as make build does) has them; in
// any other they stay 0 and the job starts with the defaults. They are package
// variables because there is nothing else yet when they are written.
var (
	ignoredBits uint64 // bit n: signal n was ignored
	closedBits  uint64 // bit n: descriptor n, of 0 to 2, was closed
)

// ignoredAtStart tells whether a signal was ignored when perfagent was executed.
func ignoredAtStart(sig syscall.Signal) bool { return ignoredBits>>uint(sig)&1 == 1 }

// closedAtStart tells whether a standard descriptor was closed then.
func closedAtStart(fd int) bool { return closedBits>>uint(fd)&1 == 1 }
