package main

import (
	"io"
	"os/exec"
)

// reraiseForShell does nothing: terminals send no signals on Windows.
func reraiseForShell(string) {}

// reraise does nothing: signals do not end processes on Windows.
func reraise(string) {}

// inForeground reports whether w is a terminal.
func inForeground(w io.Writer) bool { return isTerminal(w) }

// ignoreBackground does nothing: terminals do not stop writers on Windows.
func ignoreBackground() {}

// setProcessGroup does nothing: there are no process groups on Windows.
func setProcessGroup(*exec.Cmd) {}
