package plotter

import (
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// operationsOf returns a node with only the data of n that the tables of operations need; nil if operations were not
// recorded.
func operationsOf(n *reporter.Node) *reporter.Node {
	if n.Operations == nil && n.Transfers == nil {
		return nil
	}

	out := &reporter.Node{Transfers: n.Transfers}
	if n.Operations != nil {
		operations := *n.Operations
		operations.Keys = nil // there may be many keys, and the page does not show them
		out.Operations = &operations
	}

	return out
}

// operationsView is the page's view of the operations and transfers of all nodes.
type operationsView struct {
	Notes  []string
	Tables []operationsTable
}

// operationsView returns the operations and transfers of all nodes; nil if none were recorded.
func (p *Page) operationsView() *operationsView {
	all, unseen := &reporter.Report{Nodes: make(map[string]*reporter.Node)}, 0
	for _, n := range p.nodes {
		all.Nodes[n.name] = n.operations
		unseen = max(unseen, n.unseen)
	}
	ops := all.PooledOperations()
	if ops == nil {
		return nil
	}

	var notes text.Parts
	lost := int(ops.Dropped.Datagrams())
	notes.Add(lost > 0, "Counts and sums are at least what is shown: %s of the job could not be read.",
		text.Count(lost, "datagram", "datagrams"))
	notes.Add(len(ops.Times)+len(ops.Counters)+len(ops.Gauges)+len(ops.Values)+len(ops.Transfers) == 0,
		"The job has reported no operations.")
	notes.Add(ops.Nodes > 1, "p90 is the worst node's; over all nodes, it is at most that.")
	notes.Add(unseen > 0, "A chart shows the %d lines with the highest peaks; the report has %d more.", maxLines, unseen)
	view := &operationsView{Notes: notes}
	for _, kind := range reporter.OperationKinds() {
		t := operationsTable{Name: kind.Noun() + "s"}
		if kind != reporter.OpKind {
			t.Title = strings.ToUpper(t.Name[:1]) + t.Name[1:]
		}
		t.Heads, t.Rows = ops.Table(kind, reporter.OutputPage)
		for _, row := range t.Rows {
			for i, cell := range row {
				row[i] = text.Printable(cell)
			}
		}
		view.Tables = append(view.Tables, t)
	}
	return view
}

// operationsTable is a table of one kind of series.
type operationsTable struct {
	Name  string
	Title string   // "" for the first table
	Heads []string // headings of the columns; the first column is the series
	Rows  [][]string
}
