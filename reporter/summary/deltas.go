package summary

import "github.com/perfagent/perfagent/reporter"

// A Delta is the difference of a number of a run to the median of earlier runs.
type Delta struct {
	Label, Text, From string
	Outside           bool // outside the range of the earlier runs
}

// Deltas returns the differences to earlier runs, and the runs that they are relative to.
func Deltas(*reporter.Report) (list []Delta, note string) { return nil, "" }
