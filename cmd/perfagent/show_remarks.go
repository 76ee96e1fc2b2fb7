package main

import (
	"fmt"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// remarksOn returns the remarks on report: why it is incomplete, which values are missing and why, and the nodes'
// remarks.
func remarksOn(report *reporter.Report) []string {
	var remarks []string
	if report.Run.Incomplete != "" {
		remarks = append(remarks, report.Run.Incomplete)
	}

	for _, name := range report.NodeNames() {
		n := report.Nodes[name]
		for _, words := range append(byReason(n.Missing), n.Remarks()...) {
			remarks = append(remarks, "node "+name+": "+words)
		}
	}

	return remarks
}

// printRemarks prints all remarks to stderr with -v. Otherwise it prints their number, and whether the report is
// incomplete.
func (o *showOptions) printRemarks(report *reporter.Report) {
	remarks := remarksOn(report)
	if !o.verbose && len(remarks) > 0 {
		words := fmt.Sprintf("%s on what is absent or special; add -v to print %s",
			text.Count(len(remarks), "remark", "remarks"), text.Plural(len(remarks), "it", "them"))
		if report.Run.Incomplete != "" {
			words = report.Run.Incomplete + "; " + words
		}
		remarks = []string{words}
	}

	for _, words := range remarks {
		fmt.Fprintf(o.streams.err, "perfagent: %s\n", text.Printable(words))
	}
}
