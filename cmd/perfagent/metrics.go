package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

func newMetrics(s streams) *cobra.Command {
	var format *format
	cmd := &cobra.Command{
		Use:   "metrics [TEXT]",
		Short: "list the metrics: unit, meaning, how they are computed",
		Long: `List all metrics, or those with TEXT in their name, with their units, their
meanings and how they are computed: first the metrics of the job and its limits,
then those of each GPU, where {i} is its number, then those of the node. The
JSON list is in the order of the report.`,
		Example: `  perfagent metrics
  perfagent metrics psi
  perfagent metrics --json`,
		Args: rangeArgs(0, 1, errors.New("one text, please, which the names contain")),
		RunE: func(_ *cobra.Command, args []string) error {
			metrics := allMetrics()
			if len(args) == 1 {
				part := strings.ToLower(args[0])
				metrics = slices.DeleteFunc(metrics, func(m reporter.Metric) bool { return !strings.Contains(m.Name, part) })
			}

			switch {
			case len(metrics) == 0:
				return noMetric(args[0])
			case format.name == formatJSON:
				return s.printJSON(metrics)
			}
			slices.SortStableFunc(metrics, reporter.ByGroup)
			if isTerminal(s.out) {
				return printMetricsFolded(s.out, metrics)
			}
			return printMetrics(s.out, metrics)
		},
	}

	format = addFormat(cmd.Flags(), formatTable, formatJSON)

	return cmd
}

// allMetrics returns reporter.Metrics followed by the metrics of each GPU, with {i} for the GPU's number.
func allMetrics() []reporter.Metric {
	return append(slices.Clone(reporter.Metrics()), reporter.GPUMetrics()...)
}

// noMetric returns the error for a part that occurs in no metric's name.
func noMetric(part string) error {
	var names []string
	for _, m := range allMetrics() {
		names = append(names, m.Name)
	}

	return fmt.Errorf(`no metric has "%s" in its name; %s`, part, text.DidYouMean(text.Nearest(part, names), `"%s"`,
		"perfagent metrics lists them all"))
}

func printMetrics(w io.Writer, metrics []reporter.Metric) error {
	t := table.Table{Columns: table.Left("NAME", "UNIT", "MEANING", "HOW")}
	for _, m := range metrics {
		t.Add(table.Texts(m.Name, string(m.Unit), m.Meaning, m.How)...)
	}
	return t.WriteText(w, 0, false)
}

// printMetricsFolded prints the metrics as wrapped lines, because a terminal is too narrow for the table.
func printMetricsFolded(w io.Writer, metrics []reporter.Metric) error {
	var out strings.Builder
	for _, m := range metrics {
		fmt.Fprintf(&out, "%s, %s\n", m.Name, m.Unit)
		for _, words := range []string{m.Meaning, "= " + m.How} {
			for _, line := range text.Wrap(words, summary.Width-4, 20) {
				fmt.Fprintf(&out, "    %s\n", line)
			}
		}
	}

	_, err := io.WriteString(w, out.String())
	return err
}
