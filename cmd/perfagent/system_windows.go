package main

import (
	"io"
)

// dieWithShell is for terminals that send signals.
func dieWithShell(string) {}

// inForeground tells whether w is a terminal.
func inForeground(w io.Writer) bool { return isTerminal(w) }

// ignoreBackground is for terminals that stop who writes to them.
func ignoreBackground() {}
