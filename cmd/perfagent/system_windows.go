package main

import (
	"io"

	"github.com/perfagent/perfagent/reporter"
)

// agent tells only the version: there is no rusage here.
func agent() reporter.Agent { return reporter.Agent{Version: version()} }

// ownCPU is not known here.
func ownCPU() float64 { return 0 }

// parentInSession is for terminals that send signals.
func parentInSession() bool { return false }

// inForeground tells whether w is a terminal.
func inForeground(w io.Writer) bool { return isTerminal(w) }

// ignoreBackground is for terminals that stop who writes to them.
func ignoreBackground() {}
