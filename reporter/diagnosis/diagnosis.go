// Package diagnosis says how a job ended, and what to change: the verdict and the findings of a
// report.
//
// [New] and [Merge] are the two ways to a complete report. Both are reporter's function of the
// same name with a diagnosis on top. The tables of what can be said are [Causes], [Conditions]
// and [Rules].
package diagnosis

import "github.com/perfagent/perfagent/reporter"

// Input is what a complete report of one node is made from.
type Input struct {
	reporter.Input
	// Exit is what is known of the job's end beside Job.
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

// Merge puts the nodes of several reports into one, as reporter.Merge does, and concludes from
// all of them.
func Merge(inputs []reporter.Source) (*reporter.Report, error) {
	r, err := reporter.Merge(inputs)
	if err != nil {
		return nil, err
	}
	conclude(r)
	return r, nil
}

// conclude fills in what follows from the nodes together: the run's verdict, and findings.
func conclude(r *reporter.Report) {
	for _, n := range r.Nodes {
		if n != nil && n.Findings == nil {
			n.Findings = findings(n, &r.Run)
		}
	}
	addImbalance(r)
	r.Run.Verdict = worst(r)
}
