package main

import (
	"io"
)

// dieWithShell does nothing: terminals send no signals here.
func dieWithShell(string) {}

// inForeground reports whether w is a terminal.
func inForeground(w io.Writer) bool { return isTerminal(w) }

// ignoreBackground does nothing: terminals stop no writers here.
func ignoreBackground() {}
