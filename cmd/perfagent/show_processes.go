package main

import (
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// checkTable rejects flags that conflict with --ops, --key and --processes. With --key it sets ops.
func (o *showOptions) checkTable() error {
	o.ops = o.ops || o.given("key")
	other := o.format.name != formatText && o.format.name != formatJSON
	switch {
	case o.ops && other:
		return fmt.Errorf("--ops and --format %v: operations are printed as text or json", o.format)
	case o.ops && o.processes:
		return errors.New("--processes and --ops: only one of the two can be printed")
	case o.processes && other:
		return fmt.Errorf("--processes and --format %v: processes are printed as text or json", o.format)
	}
	return nil
}

// printProcesses prints the processes of every node, as a table or as JSON in the format of the report.
func (o *showOptions) printProcesses(report *reporter.Report) error {
	nodes, why, found := make(map[string][]reporter.Process), "", false
	for _, name := range report.NodeNames() {
		n := report.Nodes[name]
		nodes[name] = append([]reporter.Process{}, n.Processes...)
		found = found || len(n.Processes)+len(n.Deaths) > 0
		if missing := n.ProcessesMissing(); missing != "" {
			why = ": " + missing
			fmt.Fprintf(o.streams.err, "perfagent: node %s: processes: %s\n", text.Printable(name), text.Printable(missing))
		}
	}
	if !found {
		return errors.New("the report has no processes: no job was recorded, or none of its processes was seen" + why)
	}

	if o.format.name != formatJSON {
		columns := 0 // no limit, for a pipe
		if isTerminal(o.streams.out) {
			columns = width(o.streams.out)
		}
		return summary.WriteProcesses(o.streams.out, report, columns)
	}
	return o.streams.printJSON(nodes)
}
