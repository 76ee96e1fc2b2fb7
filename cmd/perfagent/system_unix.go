//go:build unix

package main

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// agent is what perfagent itself has used so far (getrusage(2)).
func agent() reporter.Agent {
	a := reporter.Agent{Version: version()}
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return a
	}
	a.CPUSeconds = float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
	unit := 1024.0 // ru_maxrss is in KiB
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	a.MaxRSSMB = float64(ru.Maxrss) * unit / collector.MiB
	return a
}

// parentInSession tells whether our parent lives in our session: a shell that we
// were typed into, or a script, rather than the program behind a new terminal.
func parentInSession() bool {
	ours, err := unix.Getsid(0)
	theirs, errParent := unix.Getsid(unix.Getppid())
	return err == nil && errParent == nil && ours == theirs
}
