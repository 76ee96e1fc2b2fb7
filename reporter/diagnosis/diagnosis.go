// Package diagnosis says how a job ended, and what to change: the verdict and the findings of a
// report.
//
// [New] and [Merge] make complete reports. Each calls reporter's function of the same name and adds
// the diagnosis. The tables of possible results are [Causes], [Conditions] and [Rules].
package diagnosis

import "github.com/perfagent/perfagent/reporter"

// Input is the input for a complete report of one node.
type Input struct {
	reporter.Input
	// Exit is what is known about the job's end in addition to Job.
	Exit ExitContext
}

// New returns the report of one node, with its verdict and findings.
func New(in Input) *reporter.Report {
	r := reporter.New(in.Input)
	for _, n := range r.Nodes { // one
		n.Verdict = newVerdict(n, r.Run, in.Recording, in.Exit)
	}
	conclude(r)
	return r
}

// Merge merges the nodes of several reports into one, as reporter.Merge does, and draws conclusions
// from all of them.
func Merge(inputs []reporter.Source) (*reporter.Report, error) {
	r, err := reporter.Merge(inputs)
	if err != nil {
		return nil, err
	}
	conclude(r)
	return r, nil
}

// conclude fills in what follows from all nodes together: the run's verdict, and findings.
func conclude(r *reporter.Report) {
	for _, n := range r.Nodes {
		if n != nil && n.Findings == nil {
			n.Findings = findings(n, &r.Run)
		}
	}
	addImbalance(r)
	r.Run.Verdict = runVerdict(r)
}
