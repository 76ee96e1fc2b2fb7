package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// Values of --summary.
const (
	summaryAuto   = "auto" // the summary on a terminal, else the line if it is likely to be read (see wantsLine)
	summaryLine   = "line"
	summaryAlways = "always"
	summaryNever  = "never"
)

func summaries() []string { return []string{summaryAuto, summaryLine, summaryAlways, summaryNever} }

// wantsSummary reports whether to print the whole summary.
func (o *recordOptions) wantsSummary() bool {
	return o.summary == summaryAlways || o.summary == summaryAuto && isTerminal(o.streams.err)
}

// wantsLine reports whether to print the one-line summary. If stderr is not a terminal, it is left to the job: after
// success, the line is printed only under a scheduler or a CI system. As in shells, a SIGPIPE in a pipeline is not
// reported.
func (o *recordOptions) wantsLine(r *reporter.Report) bool {
	switch {
	case o.summary == summaryLine:
		return true
	case o.summary != summaryAuto || isTerminal(o.streams.err):
		return false
	}
	unread := o.piped && r.Run.Signal == "SIGPIPE"
	return summary.HasFailed(r) && !unread || inBatch()
}

// inBatch reports whether a scheduler or a CI system runs this process.
func inBatch() bool {
	if _, ok := scheduler.DetectSystem(os.LookupEnv); ok {
		return true
	}
	ci := os.Getenv("CI")
	return ci != "" && ci != "false" && ci != "0" ||
		os.Getenv("GITHUB_ACTIONS") != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// showSummary prints the summary, or the line, after the report has been written.
func (o *recordOptions) showSummary(r *agent.Result) {
	ignoreBackground()

	var out bytes.Buffer // one write, so that output does not interleave
	switch {
	case o.wantsSummary():
		_ = summary.Write(&out, r.Report, summaryOptions(r.Report, o.streams.err, r.ReportPath, r.PagePath))
	case o.wantsLine(r.Report):
		var write func(string) string
		if _, plain := o.streams.err.(*text.ASCIIWriter); plain {
			write = text.ASCII
		}
		out.WriteString(summary.Line(r.Report, cmp.Or(r.PagePath, r.ReportPath), write))
	default:
		return
	}
	if _, err := o.streams.err.Write(out.Bytes()); err != nil {
		o.Log.Debug(fmt.Sprintf("write summary: %v", err))
	}
}

// conclude prints the outcomes of the store and the push if the summary is printed, and logs them otherwise. Then it
// runs the --on-end command. r is nil if no job was started.
func (o *recordOptions) conclude(r *agent.Result) {
	if r == nil {
		return
	}
	defer o.notify(r)

	for _, outcome := range []string{r.Stored, r.Pushed} {
		switch {
		case outcome == "":
		case o.wantsSummary():
			fmt.Fprintf(o.streams.err, "perfagent: %s\n", text.Printable(outcome))
		default:
			o.Log.Debug(outcome)
		}
	}
}
