//go:build unix

package main

import (
	"io"
	"os/signal"

	"golang.org/x/sys/unix"
)

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
