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

// Summary returns the summary of the launch. It reads the numbers of all nodes, but not their series. If a file is
// unreadable, the summary is incomplete, and the error is its verdict.
func (l *Launch) Summary() summary.Overview {
	sources := make([]reporter.SourceReport, len(l.Nodes))
	for i := range l.Nodes { // sequential, because the caller reads several launches in parallel
		report, err := l.Nodes[i].ReadWithoutSeries(0)
		if err != nil {
			return l.unreadable(err)
		}
		sources[i] = reporter.SourceReport{Path: l.Nodes[i].Path(), Report: report}
	}
	whole, err := mergeSources(sources)
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

	o := summary.NewOverview(whole, at.Entries[0].Path(), at.Entries[0].Page())
	o.ID, o.RunID, o.State = l.ID(), l.RunID, l.stateOf(whole, o.State)

	return o
}

// ReadMerged reads nodes in parallel, and returns their merged report. A single node's report is returned unchanged.
func ReadMerged(nodes []Node, read func(*Node) (*reporter.Report, error)) (*reporter.Report, error) {
	var sources []reporter.SourceReport
	err := parallel.InOrder(len(nodes), func(i int, emit func(reporter.SourceReport) error) error {
		report, err := read(&nodes[i])
		if err != nil {
			return err
		}
		return emit(reporter.SourceReport{Path: nodes[i].Path(), Report: report})
	}, func(s reporter.SourceReport) error {
		sources = append(sources, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return mergeSources(sources)
}

// mergeSources returns the merged report of all sources, or the report of a single source.
func mergeSources(sources []reporter.SourceReport) (*reporter.Report, error) {
	if len(sources) == 1 {
		return sources[0].Report, nil
	}
	return diagnosis.Merge(sources)
}

// unreadable returns the summary of a launch with an unreadable file.
func (l *Launch) unreadable(err error) summary.Overview {
	o := summary.NewOverview(&reporter.Report{Run: reporter.Run{ID: l.RunID}}, l.Nodes[0].Entries[0].Path(), "")
	o.ID, o.State, o.Verdict = l.ID(), l.stateOf(nil, summary.StateIncomplete), text.Printable(err.Error())
	o.Start.Time, o.Nodes = l.Start, len(l.Nodes)

	return o
}

// IsActive reports whether any part of the run is being recorded.
func (r *Run) IsActive() bool {
	return slices.ContainsFunc(r.entries, func(one *Entry) bool { return one.isActive(nil) })
}

// stateOf returns summary.StateRunning if any part of the launch is being recorded, and its argument otherwise in all
// other cases. report may be nil.
func (l *Launch) stateOf(report *reporter.Report, otherwise string) string {
	for i := range l.Nodes {
		n := &l.Nodes[i]
		var node *reporter.Node
		if report != nil {
			node = report.Nodes[strconv.Itoa(n.Index)]
		}
		if slices.ContainsFunc(n.Entries, func(r *Entry) bool { return r.isActive(node) }) {
			return summary.StateRunning
		}
	}
	if slices.ContainsFunc(l.OlderEntries, func(r *Entry) bool { return r.isActive(nil) }) {
		return summary.StateRunning
	}

	return otherwise
}
