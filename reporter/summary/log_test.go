package summary

import (
	"bytes"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// loggedEnd returns the report of a job that failed, with a log.
func loggedEnd(said string, lines ...string) *reporter.Report {
	return with(endedReport(1, "", diagnosis.CauseExited, "exited with code 1; its log ends with "+diagnosis.LogErrorWords(said), map[string]any{"exit_code": 1.0}),
		func(n *reporter.Node, run *reporter.Run) {
			n.LogTail = &reporter.LogTail{Stream: reporter.LogBoth, File: "/logs/job.log", Lines: lines, Shared: true}
			n.Verdict.LogError = &reporter.LogError{Kind: said, Line: "CUDA out of memory. a-line"}
		})
}

// The action names the error in the log once, and no sentence contains a line of the log.
func TestConclude_NamesErrorInLog(t *testing.T) {
	t.Parallel()
	c := Conclude(loggedEnd("cuda_oom"))
	check.Equal(t, c.Action, "Read its own output, which ends with a CUDA out-of-memory error: it exited by itself, "+
		"perfagent saw no limit reached, and no out-of-memory kill was recorded.", "action")
	check.Equal(t, c.How, "", "details")

	r := with(endedReport(139, "SIGSEGV", diagnosis.CauseSignal, "killed by SIGSEGV; its log ends with a bus error", nil),
		func(n *reporter.Node, _ *reporter.Run) { n.Verdict.LogError = &reporter.LogError{Kind: "bus_error"} })
	check.Equal(t, Conclude(r).How, "Its log ends with a bus error.", "details after a crash")
	r.Run.Verdict.LogError.Kind = "a later kind"
	check.Equal(t, Conclude(r).How, "Its log ends with a bus error.", "details of a later kind")
}

// A long summary and Markdown have the lines; the summary at the end and the line have none.
func TestWrite_LogIsInLongSummaryOnly(t *testing.T) {
	t.Parallel()
	r := loggedEnd("cuda_oom", "    step()", "RuntimeError: a-line "+strings.Repeat("word ", 30), "```", "<b>@me</b>", "\x1b[1m")
	var long, short, markdown bytes.Buffer
	check.Must(t, Write(&long, r, Options{Long: true}))
	check.Must(t, Write(&short, r, Options{}))
	check.Must(t, WriteMarkdown(&markdown, r, Options{}))

	for _, words := range []string{long.String(), markdown.String()} {
		check.Contains(t, "summary", words, "Last 5 lines of stdout and stderr, /logs/job.log, where others may have written,", "a-line", `\x1b[1m`)
	}
	check.Contains(t, "summary", long.String(), "\n      step()\n  RuntimeError: a-line word")
	check.Contains(t, "Markdown", markdown.String(), "````text\n    step()\n")
	if all := short.String() + Line(r, "r.json", nil); strings.Contains(all, "a-line") || strings.Contains(all, "job.log") {
		t.Errorf("short summary or line has the log:\n%s", all)
	}
	check.True(t, strings.Count(short.String(), "\n") <= shortLines, "the short summary is too long:\n%s", &short)
}

func TestLogLines_IsBounded(t *testing.T) {
	t.Parallel()
	hostile := strings.Repeat("\x1b\u202e", 100_000)
	r := loggedEnd("cuda_oom", make([]string, 5000)...)
	tail := r.Nodes["0"].LogTail
	tail.Stream, tail.File, tail.Lines[4999] = hostile, hostile, hostile
	title, lines := LogLines(r, 60)
	if size := len(title) + len(strings.Join(lines, "")); len(lines) != 60 || size > 4000 {
		t.Errorf("%d lines of %d bytes, want 60 of at most 4000", len(lines), size)
	}
	check.Equal(t, text.Printable(title+strings.Join(lines, "")), title+strings.Join(lines, ""), "printable text")

	tail.Lines = nil
	if title, lines := LogLines(r, 60); title != "" || lines != nil {
		t.Errorf("lines of an empty log: %q, %q; want none", title, lines)
	}
}
