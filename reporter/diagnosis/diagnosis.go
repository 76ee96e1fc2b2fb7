// Package diagnosis says how a job ended, and what to change: the verdict and the findings of a
// report.
//
// [New], [Combine] and [Merge] make complete reports. Each calls reporter's function of the same name and adds
// the diagnosis. docs/verdict.md and docs/findings.md have the tables of possible results; [Conditions] and [Rules]
// are those of the code.
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
		for _, rank := range n.Ranks { // one
			rank.Verdict = n.Verdict
		}
	}
	conclude(r)
	return r
}

// Merge merges the nodes of several reports into one, as reporter.Merge does, and draws conclusions
// from all of them.
func Merge(inputs []reporter.SourceReport) (*reporter.Report, error) {
	return concluded(reporter.Merge(inputs))
}

// Combine puts the pieces of a node together, as reporter.Combine does, and says which of its ranks failed first and
// what to change. The exit code is that of this rank.
func Combine(pieces []reporter.SourceReport) (*reporter.Report, error) {
	return concluded(reporter.Combine(pieces))
}

// concluded returns a report with its conclusions, unless there is an error.
func concluded(r *reporter.Report, err error) (*reporter.Report, error) {
	if err != nil {
		return nil, err
	}
	conclude(r)
	return r, nil
}

// conclude fills in what follows from all nodes together: findings, and the run's verdict with the exit
// code of the job that it is about.
func conclude(r *reporter.Report) {
	for _, n := range r.Nodes {
		concludeNode(n) // findings go by its verdict
		if n != nil && n.Findings == nil {
			n.Findings = findings(n, &r.Run)
		}
	}
	concludeRun(r)
	addPeerFindings(r)
}

// concludeRun gives the run the verdict, exit code and signal of the first job that failed.
func concludeRun(r *reporter.Report) {
	var list []ending
	for name, n := range r.Nodes {
		list = append(list, endingsOf(name, n)...)
	}

	first, _ := firstFailure(list)
	r.Run.Verdict = first.verdict
	if len(list) > 1 && first.outcome != outcomeSucceeded && first.code != nil {
		r.Run.ExitCode, r.Run.Signal = first.code, first.signal
	}
}

// concludeNode gives a node of several ranks the verdict, exit code and signal of the first of them that
// failed.
func concludeNode(n *reporter.Node) {
	if n == nil || len(n.Ranks) == 0 {
		return
	}
	first, ok := firstFailure(endingsOf("", n))
	if !ok {
		return
	}

	n.Verdict = first.verdict
	if n.Job != nil {
		job := *n.Job // other reports may have it, too
		job.ExitCode, job.Signal = first.code, first.signal
		n.Job = &job
	}
}
