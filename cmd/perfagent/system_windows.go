package main

import "github.com/perfagent/perfagent/reporter"

// agent tells only the version: there is no rusage here.
func agent() reporter.Agent { return reporter.Agent{Version: version()} }

// parentInSession is for terminals that send signals.
func parentInSession() bool { return false }

// ignoreBackground is for terminals that stop who writes to them.
func ignoreBackground() {}
