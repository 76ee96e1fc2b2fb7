//go:build unix

package main

import (
	"io"
	"os/signal"

	"github.com/perfagent/perfagent/job"

	"golang.org/x/sys/unix"
)

// dieWithShell ends this process by the signal that its job died of, if the parent is a shell that
// we were typed into, or a script, rather than the program behind a new terminal: if the parent
// lives in our session.
func dieWithShell(signal string) {
	ours, err := unix.Getsid(0)
	theirs, errParent := unix.Getsid(unix.Getppid())
	if err == nil && errParent == nil && ours == theirs {
		job.Reraise(unix.SignalNum(signal))
	}
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
