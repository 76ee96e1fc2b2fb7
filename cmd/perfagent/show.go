package main

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/plotter/terminal"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/reporter/summary"
)

type showOptions struct {
	format  *format
	verbose bool
	runFinder
	all       bool // each of several nodes in full
	ops       bool
	processes bool // the table of processes
	key       string
}

func newShow(s streams) *cobra.Command {
	o := &showOptions{runFinder: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:        "show [flags] [RUN]",
		SuggestFor: []string{"report", "summary", "stats", "view", "open"},
		Short:      "show a run as text, Markdown, CSV or JSON",
		Long: `Show what a run used, on all its nodes and ranks. RUN is a RUN-ID below --out,
RUN-ID@K for its K-th launch, @latest, @-2 for the one before it, the directory
of a run, a run in a store (STORE#RUN-ID), or a file: a report, the journal
(node-N.jsonl) that a crash left behind, or perf.py's JSON. Without RUN, show
the run that started last.

  text      how the run ended, what to do about it and everything it used; for
            several nodes, one line each, or each in full with --all
  md        the same, for the job summary of a CI system
  csv       a row for each kept sample, with the minimum, mean and maximum of
            all the samples that it represents
  json      the metrics as {"<node>": {"<metric>": number}} on stdout; phases
            are "phase.NAME.METRIC", operations and the like "op.NAME.METRIC",
            and ranks "rank.R.METRIC"; stderr gets the number of remarks about
            missing values, or all remarks with -v
  jsonl     a flat JSON object per node, each on its own line: what the job was
            given, what it used and how it ended; for tables of many runs

With --processes, show the processes of the job that used the most CPU time and
memory, as text or JSON.

With --ops, show everything that the job reported about its operations and
transfers, as text or JSON. With --key, show what each operation did with one
key.`,
		Example: `  perfagent show
  perfagent show trial-7
  perfagent show @-2
  perfagent show --format md >> "$GITHUB_STEP_SUMMARY"
  perfagent show --format csv > samples.csv
  perfagent show --json perf.json --cpus 8
  perfagent show --processes
  perfagent show --ops`,
		Args: atMostOne,
		RunE: o.runE(o.show),
	}

	f := o.addTo(cmd)
	f.BoolVar(&o.all, "all", false, "show each of several nodes in full")
	o.format = addFormat(f, formatText, formatMarkdown, formatCSV, formatJSON, "jsonl")
	o.addCPUs("the node")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "with --json: print all remarks on stderr, not just their number")
	f.BoolVar(&o.processes, "processes", false, "show the processes that used the most CPU time and memory")
	f.BoolVar(&o.ops, "ops", false, "show all operations, counters, gauges, values, sets, attributes and transfers")
	f.StringVar(&o.key, "key", "", "show the calls, times and size of each operation on this `KEY`; implies --ops")

	return cmd
}

func (o *showOptions) show(args []string) error {
	if err := o.checkTable(); err != nil {
		return err
	}

	found, err := o.findAndWarn(nameOf(args))
	if err != nil {
		return err
	}
	report, err := o.readShown(found)
	if err != nil {
		return err
	}
	if o.format.name == formatCSV {
		o.fill(report)
	}

	switch {
	case o.ops:
		return o.printOps(report)
	case o.processes:
		return o.printProcesses(report)
	}

	return o.print(report, found, nameOf(args))
}

// readShown reads the report of the found run. It skips series that are not shown, because the series of a thousand
// nodes do not fit into memory.
func (o *showOptions) readShown(found *catalog.Match) (*reporter.Report, error) {
	nodes := len(found.Nodes())
	if nodes == 1 { // it may be a merged report
		if head, err := reportfile.ReadHead(found.Paths()[0]); err == nil {
			nodes = max(1, head.Run.Nodes)
		}
	}
	if o.format.name != formatCSV && nodes > terminal.MaxNodes {
		return catalog.ReadMerged(found.Nodes(), func(n *catalog.Node) (*reporter.Report, error) {
			return n.ReadWithoutSeries(o.cpus)
		})
	}

	return o.readReport(found)
}

// print writes the report, which was found by name, to stdout in the chosen format.
func (o *showOptions) print(report *reporter.Report, found *catalog.Match, name string) error {
	switch o.format.name {
	case formatMarkdown:
		return o.printMarkdown(report)
	case formatCSV:
		return reporter.WriteCSV(o.streams.rawOut(), report)
	case formatJSON:
		return o.printJSON(report)
	case "jsonl":
		return o.printRows(report, found)
	}
	return o.printText(report, found, name)
}

func (o *showOptions) printMarkdown(report *reporter.Report) error {
	drawn := terminal.ReportSparklines(report, summary.Width, false) // not ASCII: browsers ignore the locale
	return summary.WriteMarkdown(o.streams.rawOut(), report,
		summary.Options{JobSparklines: drawn.Job, NodeSparklines: drawn.Node})
}

// printRows prints one line of JSON for each node.
func (o *showOptions) printRows(report *reporter.Report, found *catalog.Match) error {
	path, _ := reportPaths(found)
	for _, row := range summary.Rows(report, path) {
		row.Report = o.copies.WithReferences(row.Report)
		line, err := text.JSON(row)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(o.streams.rawOut(), "%s\n", visibleJSON(line)); err != nil {
			return err
		}
	}
	return nil
}

// printText prints the long summary of the report, which was found by name.
func (o *showOptions) printText(report *reporter.Report, found *catalog.Match, name string) error {
	path, page := reportPaths(found)
	path = o.copies.WithReferences(path)
	so := summaryOptions(report, o.streams.out, path, page)
	so.Long, so.Whole = true, o.all

	switch _, _, stored := parseReference(name); {
	case stored:
		name = path // which has no password
	case name == "" || strings.HasPrefix(name, "@"): // the name may soon denote another run
		name = found.String()
	}
	so.Show = text.ShellQuote(name)
	if o.given("out") {
		so.Show = "--out " + text.ShellQuote(o.out) + " " + so.Show
	}

	return summary.Write(o.streams.out, report, so)
}

// reportPaths returns the paths of the report and its page. For several reports it returns their directory and "".
func reportPaths(found *catalog.Match) (path, page string) {
	paths := found.Paths()
	if len(paths) > 1 {
		return found.Launch.Dir, ""
	}
	return paths[0], pageBeside(paths[0])
}

// pageBeside returns the path of the page of the report at path, or "" if that page does not exist.
func pageBeside(path string) string {
	page := plotter.PagePath(path)
	if st, err := os.Stat(page); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	return page
}

// printJSON prints the metrics of every node on stdout, and the remarks on stderr.
func (o *showOptions) printJSON(report *reporter.Report) error {
	nodes := make(map[string]reporter.Values, len(report.Nodes))
	for _, name := range report.NodeNames() {
		nodes[name] = numbersOf(report.Nodes[name])
	}
	o.printRemarks(report)

	return o.streams.printJSON(nodes)
}

// numbersOf returns the metrics of a node, including its phases, operations, transfers and ranks.
func numbersOf(n *reporter.Node) reporter.Values {
	all := n.PhaseValues()
	maps.Copy(all, n.OperationValues())
	maps.Copy(all, n.RankValues())
	maps.Copy(all, n.Metrics)

	return all
}

// byReason returns a line for each reason, with the values that are missing for that reason.
func byReason(missing []reporter.Missing) []string {
	var whys []string
	what := make(map[string][]string)
	for _, m := range missing {
		if len(what[m.Why]) == 0 {
			whys = append(whys, m.Why)
		}
		what[m.Why] = append(what[m.Why], m.What)
	}
	for i, why := range whys {
		whys[i] = strings.Join(what[why], ", ") + ": " + why
	}

	return whys
}

// visibleJSON escapes the terminal control characters that encoding/json leaves in data: DEL, C1 controls, and
// bidirectional marks. In JSON they can only occur in strings.
func visibleJSON(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for _, r := range string(data) {
		if r < 0x7f || unicode.IsPrint(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}

	return out
}
