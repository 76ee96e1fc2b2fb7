package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter"

	"github.com/perfagent/perfagent/plotter/terminal"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/reporter/summary"
)

type showOptions struct {
	format string
	json   bool
	cpus   int
	out    string
	ops    bool
	// processes prints the table of processes.
	processes bool
	key       string
	byKey     bool // --key was given
	streams   streams
}

func newShow(s streams) *cobra.Command {
	o := &showOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "show [flags] [REPORT]",
		Short: "show a report as text, Markdown, CSV or JSON",
		Long: `Show a report of perfagent, perf.py's JSON, or the journal (node-N.jsonl) that a
crash left behind. For a directory, show the newest report below it; without an
argument, the newest one under --out.

  text      the summary, with charts that keep every peak
  markdown  the same for the job summary of a CI system
  csv       a row for each kept sample, with the minimum, mean and maximum of
            all the samples that it stands for
  json      the metrics as {"<node>": {"<metric>": number}} on stdout, those of
            phases as "phase.NAME.METRIC", those of operations and the like as
            "op.NAME.METRIC"; what is absent, and why, on stderr

With --processes, show the job's processes that used most CPU time and memory,
as text or JSON.

With --ops, show all that the job said of its operations and transfers, as text
or JSON. With --key, show what each operation did with one key.`,
		Example: `  perfagent show
  perfagent show perfagent-out/20260131-120000-a1b2c3/node-0.json
  perfagent show --format markdown >> "$GITHUB_STEP_SUMMARY"
  perfagent show --format csv > samples.csv
  perfagent show --json perf.json --cpus 8
  perfagent show --processes
  perfagent show --ops`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.show(cmd, args) },
	}

	f := cmd.Flags()
	f.StringVar(&o.format, "format", formatText, "output format: text, markdown, csv or json")
	f.BoolVar(&o.json, "json", false, "short for --format json")
	f.IntVar(&o.cpus, "cpus", 0,
		"number of logical CPUs of the node; needed for perf.py's JSON, which does not record it")
	f.StringVar(&o.out, "out", "perfagent-out", "find the newest report under `DIR` [$PERFAGENT_OUT]")
	f.BoolVar(&o.processes, "processes", false, "show the processes that used most CPU time and memory")
	f.BoolVar(&o.ops, "ops", false, "show all operations, counters, gauges, values, sets, attributes and transfers")
	f.StringVar(&o.key, "key", "", "show the calls, times and size of each operation on this `KEY`; implies --ops")

	return cmd
}

func (o *showOptions) show(cmd *cobra.Command, args []string) error {
	if o.cpus < 0 {
		return fmt.Errorf("--cpus: %d is negative", o.cpus)
	}
	if err := o.settleFormat(cmd); err != nil {
		return err
	}
	if err := o.settleOps(cmd); err != nil {
		return err
	}
	if err := o.settleProcesses(); err != nil {
		return err
	}
	if v := os.Getenv("PERFAGENT_OUT"); v != "" && !cmd.Flags().Changed("out") {
		o.out = v
	}

	path := o.out
	if len(args) == 1 {
		path = args[0]
	}

	if st, err := os.Stat(path); len(args) == 0 || err == nil && st.IsDir() {
		if path, err = newest(path); err != nil {
			return err
		}
	}

	report, err := reportfile.Read(path, o.cpus)
	if err != nil {
		return err
	}

	switch {
	case o.ops:
		return o.printOps(report)
	case o.processes:
		return o.printProcesses(report)
	}

	return o.print(report, path)
}

// The formats of show.
const (
	formatText     = "text"
	formatMarkdown = "markdown"
	formatCSV      = "csv"
	formatJSON     = "json"
)

// settleFormat combines --format and --json.
func (o *showOptions) settleFormat(cmd *cobra.Command) error {
	switch o.format {
	case formatText, formatMarkdown, formatCSV, formatJSON:
	default:
		return fmt.Errorf("--format: %q is not text, markdown, csv or json", o.format)
	}

	if !o.json {
		return nil
	}
	if cmd.Flags().Changed("format") && o.format != formatJSON {
		return fmt.Errorf("--json and --format %s: only one format can be printed, use one of the two", o.format)
	}

	o.format = formatJSON
	return nil
}

// print writes the report at path to stdout in the chosen format.
func (o *showOptions) print(report *reporter.Report, path string) error {
	switch o.format {
	case formatJSON:
		return o.printJSON(report)
	case formatCSV:
		return reporter.WriteCSV(o.streams.out, report)
	case formatMarkdown:
		pictures := terminal.Pictures(report, summary.Width, false) // for browsers: the locale here does not matter
		return summary.WriteMarkdown(o.streams.out, report, summary.MarkdownOptions{Pictures: pictures})
	}
	so := summaryOptions(report, o.streams.out, path, pageBeside(path))
	so.AllPhases = true

	return summary.Write(o.streams.out, report, so)
}

// pageBeside returns the page beside a report, or "" if there is none.
func pageBeside(path string) string {
	page := plotter.PagePath(path)
	if st, err := os.Stat(page); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	return page
}

// printJSON prints the metrics of every node, and on stderr what is absent.
func (o *showOptions) printJSON(report *reporter.Report) error {
	nodes := make(map[string]reporter.Values, len(report.Nodes))
	if report.Run.Incomplete != "" {
		o.remark("", report.Run.Incomplete)
	}

	for _, name := range report.NodeNames() {
		n := report.Nodes[name]
		nodes[name] = numbersOf(n)
		for _, why := range byReason(n.Missing) {
			o.remark(name, why)
		}
		for _, remark := range n.Remarks() {
			o.remark(name, remark)
		}
	}

	data, err := json.MarshalIndent(nodes, "", "  ")
	if err != nil {
		return err
	}

	_, err = fmt.Fprintf(o.streams.out, "%s\n", visibleJSON(data))
	return err
}

// numbersOf returns the metrics of a node and the numbers of its phases, operations and transfers.
func numbersOf(n *reporter.Node) reporter.Values {
	all := n.PhaseValues()
	maps.Copy(all, n.WorkValues())
	maps.Copy(all, n.Metrics)

	return all
}

// byReason lists what is missing, one line for each reason.
func byReason(missing []reporter.Missing) []string {
	var whys []string
	what := make(map[string]string, len(missing))
	for _, m := range missing {
		if before, ok := what[m.Why]; ok {
			what[m.Why] = before + ", " + m.What
			continue
		}
		what[m.Why] = m.What
		whys = append(whys, m.Why)
	}

	for i, why := range whys {
		whys[i] = what[why] + ": " + why
	}

	return whys
}

// visibleJSON escapes what encoding/json does not escape and a terminal may obey: DEL, the C1
// controls, and marks that change the direction of text. JSON has none of them outside strings.
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

func (o *showOptions) remark(node, words string) {
	if node != "" {
		words = "node " + node + ": " + words
	}
	fmt.Fprintf(o.streams.err, "perfagent: %s\n", text.Printable(words))
}

// newest returns the most recently modified report or journal under out.
func newest(out string) (string, error) {
	recordingName := regexp.MustCompile(`^node-\d+(\.\d+)?\.jsonl?$`)
	best, at := "", time.Time{}
	err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == out {
				return err
			}
			return nil // a run that was just removed, or that we may not read
		}

		if d.IsDir() || !recordingName.MatchString(d.Name()) {
			return nil
		}
		if info, err := d.Info(); err == nil && (best == "" || info.ModTime().After(at)) {
			best, at = path, info.ModTime()
		}

		return nil
	})

	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && best == "":
		return "", fmt.Errorf("show: no report under %s: record one with perfagent run, or name a report", out)
	case err != nil:
		return "", fmt.Errorf("show: look for the newest report: %w", err)
	}

	return best, nil
}
