package summary

import "github.com/perfagent/perfagent/reporter"

// A Delta compares a number of the run with earlier runs of the same command.
type Delta struct {
	Label, Text string // "time", "+16 %"
	Outside     bool   // outside the range of the earlier runs
}

// Deltas returns how the run differs from earlier runs, and a note on these.
func Deltas(*reporter.Report) (list []Delta, note string) { return nil, "" }
