package main

import (
	"errors"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// printOps prints the operations and transfers of the job or, with --key, what each operation did with one key.
func (o *showOptions) printOps(report *reporter.Report) error {
	switch {
	case report.PooledOperations() == nil:
		return errors.New("operations were not recorded: perfagent run --ops on")
	case o.format.name == formatJSON:
		return o.printOpsJSON(report)
	case o.given("key"):
		return summary.WriteOperationKey(o.streams.out, report, o.key)
	}
	return summary.WriteOperations(o.streams.out, report)
}

// printOpsJSON prints the operations and transfers of every node in the format of the report or, with --key, the
// statistics of one key by operation.
func (o *showOptions) printOpsJSON(report *reporter.Report) error {
	nodes := make(map[string]map[string]any, len(report.Nodes))
	for _, name := range report.NodeNames() {
		n, parts := report.Nodes[name], make(map[string]any)
		switch {
		case o.given("key") && n.Operations != nil:
			for series, keys := range n.Operations.Keys {
				if stats, ok := keys[o.key]; ok {
					parts[series] = stats
				}
			}
		case !o.given("key"):
			if n.Operations != nil {
				parts["operations"] = n.Operations
			}
			if n.Transfers != nil {
				parts["transfers"] = n.Transfers
			}
		}
		nodes[name] = parts
	}

	return o.streams.printJSON(nodes)
}
