package catalog

import (
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/summary"
)

// Object returns the summary of the launch. It reads the numbers of all nodes, but not their series. A file that
// cannot be read makes it Incomplete, and is its verdict.
func (l *Launch) Object() summary.Object {
	var nodes []reporter.Source
	for i := range l.Nodes {
		report, err := l.Nodes[i].Numbers(0)
		if err != nil {
			return l.unreadable(err)
		}
		nodes = append(nodes, reporter.Source{Path: l.Nodes[i].Path(), Report: report})
	}

	whole := nodes[0].Report
	if len(nodes) > 1 {
		merged, err := diagnosis.Merge(nodes)
		if err != nil {
			return l.unreadable(err)
		}
		whole = merged
	}

	at := &l.Nodes[0]
	failed := summary.FailedNodes(whole)
	if i := slices.IndexFunc(l.Nodes, func(n Node) bool {
		return len(failed) > 0 && strconv.Itoa(n.Index) == failed[0]
	}); i >= 0 {
		at = &l.Nodes[i]
	}

	o := summary.NewObject(whole, at.Pieces[0].Path(), at.Pieces[0].Page())
	o.ID, o.RunID, o.State = l.ID(), l.RunID, l.stateOf(whole, o.State)

	return o
}

// unreadable returns the summary of a launch of which a file cannot be read.
func (l *Launch) unreadable(err error) summary.Object {
	o := summary.NewObject(&reporter.Report{Run: reporter.Run{ID: l.RunID}}, l.Nodes[0].Pieces[0].Path(), "")
	o.ID, o.State, o.Verdict = l.ID(), l.stateOf(nil, summary.Incomplete), text.Printable(err.Error())
	o.Start.Time, o.Nodes = l.Start, len(l.Nodes)

	return o
}

// IsAtWork reports whether anything of the run is being recorded.
func (r *Run) IsAtWork() bool {
	return slices.ContainsFunc(r.all, func(one *Recording) bool { return one.isAtWork(nil) })
}

// stateOf returns Running if anything of the launch is being recorded, else what the report says. report may be nil.
func (l *Launch) stateOf(report *reporter.Report, otherwise string) string {
	for i := range l.Nodes {
		n := &l.Nodes[i]
		var node *reporter.Node
		if report != nil {
			node = report.Nodes[strconv.Itoa(n.Index)]
		}
		if slices.ContainsFunc(n.Pieces, func(r *Recording) bool { return r.isAtWork(node) }) {
			return summary.Running
		}
	}
	if slices.ContainsFunc(l.Earlier, func(r *Recording) bool { return r.isAtWork(nil) }) {
		return summary.Running
	}

	return otherwise
}
