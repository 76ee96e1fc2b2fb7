package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/perfagent/perfagent/internal/redact"
	"github.com/perfagent/perfagent/plotter/terminal"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// descriptor returns the file descriptor of stdout or stderr, or -1 for any other writer. It avoids File.Fd, which may
// also make the open file blocking for the job.
func descriptor(w io.Writer) int {
	w = rawWriter(w)
	if r, ok := w.(*redact.Writer); ok {
		w = r.Unwrap()
	}
	if p, ok := w.(*timeoutWriter); ok {
		w = p.w
	}

	switch w {
	case os.Stdout:
		return 1
	case os.Stderr:
		return 2
	}

	return -1
}

func isTerminal(w io.Writer) bool { return term.IsTerminal(descriptor(w)) }

// isPipe reports whether w writes to a pipe.
func isPipe(w io.Writer) bool {
	f, ok := rawWriter(w).(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// colorful reports whether to write colors to w, according to NO_COLOR and TERM.
func colorful(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// summaryOptions returns the options for a summary of r on w. path and page are the paths of the report and its page.
func summaryOptions(r *reporter.Report, w io.Writer, path, page string) summary.Options {
	columns := width(w)
	drawn := terminal.ReportSparklines(r, min(columns, summary.Width), !isUTF8Locale())
	return summary.Options{
		Color: colorful(w), ASCII: !isUTF8Locale(), Width: columns, Path: path, Page: page,
		JobSparklines: drawn.Job, NodeSparklines: drawn.Node, Curve: terminal.Spark,
	}
}

// width returns the width of the terminal w in cells, or 80 if unknown.
func width(w io.Writer) int {
	if columns, _, err := term.GetSize(descriptor(w)); err == nil && columns > 0 {
		return columns
	}
	return 80
}
