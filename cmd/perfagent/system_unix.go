//go:build unix

package main

import (
	"io"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
)

// agent is what perfagent itself has used so far.
func agent() reporter.Agent {
	return reporter.Agent{Version: version(), MaxRSSMB: float64(job.PeakRSS()) / collector.MiB, CPUSeconds: ownCPU()}
}

// ownCPU is the CPU time that perfagent itself has used so far, s; 0 = not known.
func ownCPU() float64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
}

// parentInSession tells whether our parent lives in our session: a shell that we
// were typed into, or a script, rather than the program behind a new terminal.
func parentInSession() bool {
	ours, err := unix.Getsid(0)
	theirs, errParent := unix.Getsid(unix.Getppid())
	return err == nil && errParent == nil && ours == theirs
}

// inForeground tells whether w is a terminal, and we are who it is for now. What is
// written there from the background disturbs, or even stops us ("stty tostop").
func inForeground(w io.Writer) bool {
	group, err := unix.IoctlGetInt(descriptor(w), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// ignoreBackground lets us write to the terminal from the background, where "stty
// tostop" would stop us instead. The job is over: nobody inherits it.
func ignoreBackground() { signal.Ignore(unix.SIGTTOU) }
