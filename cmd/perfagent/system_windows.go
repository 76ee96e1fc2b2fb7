package main

import (
	"io"
	"os/exec"
)

// dieWithShell does nothing: terminals send no signals here.
func dieWithShell(string) {}

// dieBy does nothing: no process ends by a signal here.
func dieBy(string) {}

// inForeground reports whether w is a terminal.
func inForeground(w io.Writer) bool { return isTerminal(w) }

// ignoreBackground does nothing: terminals stop no writers here.
func ignoreBackground() {}

// inOwnGroup does nothing: there are no process groups here.
func inOwnGroup(*exec.Cmd) {}
