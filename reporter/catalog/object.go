package catalog

import (
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/internal/parallel"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/summary"
)

// Object returns the summary of the launch. It reads the numbers of all nodes, but not their series. A file that
// cannot be read makes it Incomplete, and is its verdict.
func (l *Launch) Object() summary.Object {
	sources := make([]reporter.Source, len(l.Nodes))
	for i := range l.Nodes { // one after the other: several launches are read at a time
		report, err := l.Nodes[i].Numbers(0)
		if err != nil {
			return l.unreadable(err)
		}
		sources[i] = reporter.Source{Path: l.Nodes[i].Path(), Report: report}
	}
	whole, err := together(sources)
	if err != nil {
		return l.unreadable(err)
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

// Together returns the report of nodes together, several of which are read at a time. One is as it is in its file.
func Together(nodes []Node, read func(*Node) (*reporter.Report, error)) (*reporter.Report, error) {
	var sources []reporter.Source
	err := parallel.InOrder(len(nodes), func(i int, emit func(reporter.Source) error) error {
		report, err := read(&nodes[i])
		if err != nil {
			return err
		}
		return emit(reporter.Source{Path: nodes[i].Path(), Report: report})
	}, func(s reporter.Source) error {
		sources = append(sources, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return together(sources)
}

// together returns the only report, or all merged.
func together(sources []reporter.Source) (*reporter.Report, error) {
	if len(sources) == 1 {
		return sources[0].Report, nil
	}
	return diagnosis.Merge(sources)
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
