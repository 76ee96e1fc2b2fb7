package main

import (
	"io"
	"os/exec"
)

// reraiseForShell does nothing: terminals send no signals here.
func reraiseForShell(string) {}

// reraise does nothing: no process ends by a signal here.
func reraise(string) {}

// inForeground reports whether w is a terminal.
func inForeground(w io.Writer) bool { return isTerminal(w) }

// ignoreBackground does nothing: terminals stop no writers here.
func ignoreBackground() {}

// setProcessGroup does nothing: there are no process groups here.
func setProcessGroup(*exec.Cmd) {}
