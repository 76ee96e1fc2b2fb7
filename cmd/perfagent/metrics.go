package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

func newMetrics(s streams) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "list every metric with its unit, its meaning and how it is computed",
		Example: `  perfagent metrics
  perfagent metrics --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return printMetricsJSON(s.out)
			}
			if isTerminal(s.out) {
				return printMetricsFolded(s.out)
			}
			return printMetrics(s.out)
		},
	}

	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")

	return cmd
}

// allMetrics returns the metrics of the table, then the metrics of each GPU; {i} is its number.
func allMetrics() []reporter.Metric {
	return append(slices.Clone(reporter.Metrics()), reporter.GPUMetrics()...)
}

func printMetricsJSON(w io.Writer) error {
	data, err := json.MarshalIndent(allMetrics(), "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}

func printMetrics(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "NAME\tUNIT\tMEANING\tHOW")
	for _, m := range allMetrics() {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", m.Name, m.Unit, m.Meaning, m.How)
	}
	return tab.Flush()
}

// printMetricsFolded prints for a terminal, where the lines of the table are too long.
func printMetricsFolded(w io.Writer) error {
	var out strings.Builder
	for _, m := range allMetrics() {
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
