//go:build unix

package main

import (
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
)

// agent is what perfagent itself has used so far.
func agent() reporter.Agent {
	a := reporter.Agent{Version: version(), MaxRSSMB: float64(job.PeakRSS()) / collector.MiB}
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) == nil {
		a.CPUSeconds = float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
	}
	return a
}

// parentInSession tells whether our parent lives in our session: a shell that we
// were typed into, or a script, rather than the program behind a new terminal.
func parentInSession() bool {
	ours, err := unix.Getsid(0)
	theirs, errParent := unix.Getsid(unix.Getppid())
	return err == nil && errParent == nil && ours == theirs
}

// ignoreBackground lets us write to the terminal from the background, where "stty
// tostop" would stop us instead. The job is over: nobody inherits it.
func ignoreBackground() { signal.Ignore(unix.SIGTTOU) }
