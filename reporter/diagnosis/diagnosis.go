// Package diagnosis determines how a job ended and what to change: the verdict and the findings of a report.
//
// [New], [Combine] and [Merge] return complete reports. Each calls reporter's function of the same name and adds the
// diagnosis. docs/verdict.md and docs/findings.md list the possible results; [Conditions] and [Rules] are their tables
// in code.
package diagnosis

import "github.com/perfagent/perfagent/reporter"

// Input is the input for a complete report of one node.
type Input struct {
	reporter.Input
	// Exit holds what is known about the job's end besides its exit status.
	Exit ExitContext
}

// New returns the report of one node, with its verdict and findings.
func New(in Input) *reporter.Report {
	r := reporter.New(in.Input)
	for _, n := range r.Nodes { // there is only one
		n.Verdict = newVerdict(n, r.Run, in.Recording, in.Exit)
		n.LogTail = in.Exit.LogTail
		for _, rank := range n.Ranks { // there is only one
			rank.Verdict = n.Verdict
		}
	}
	conclude(r)
	return r
}

// Merge merges the nodes of several reports into one, as reporter.Merge does, and adds the findings and the verdict on
// all nodes together.
func Merge(inputs []reporter.SourceReport) (*reporter.Report, error) {
	return concluded(reporter.Merge(inputs))
}

// Combine combines parts, the reports of a node's ranks, as reporter.Combine does, and adds the verdict and the
// findings. The node gets the exit code of the rank that failed first.
func Combine(parts []reporter.SourceReport) (*reporter.Report, error) {
	return concluded(reporter.Combine(parts))
}

// concluded calls conclude for r and returns r, unless err is set.
func concluded(r *reporter.Report, err error) (*reporter.Report, error) {
	if err == nil {
		conclude(r)
	}
	return r, err
}

// conclude sets the findings of the nodes. It gives the run the verdict of the job that failed first and, if there are
// several jobs, the exit code and signal of that job.
func conclude(r *reporter.Report) {
	for _, n := range r.Nodes {
		concludeNode(n) // findings depend on the node's verdict
		if n != nil && n.Findings == nil {
			n.Findings = findings(n, &r.Run)
		}
	}

	list := allEndings(r)
	first, _ := firstFailure(list)
	r.Run.Verdict = first.verdict
	if len(list) > 1 && first.outcome != outcomeSucceeded && first.code != nil {
		r.Run.ExitCode, r.Run.Signal = first.code, first.signal
	}
	addPeerFindings(r)
}

// concludeNode gives a node with ranks the verdict, exit code and signal of the rank that failed first.
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
		job := *n.Job // other reports may share it
		job.ExitCode, job.Signal = first.code, first.signal
		n.Job = &job
	}
}
