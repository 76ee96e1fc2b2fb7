package summary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// Headline returns how the run ended and how long it took, in a few words: "exit 0 after 9.6 s".
func Headline(r *reporter.Report) string {
	_, words := ending(r)
	return words
}

// Tags returns the run's tags as KEY=VALUE, sorted and printable.
func Tags(r *reporter.Run) []string {
	var out []string
	for k, v := range r.Tags {
		out = append(out, text.Printable(k+"="+v))
	}
	slices.Sort(out)
	return out
}

// ending returns how the run ended and how long it took.
func ending(r *reporter.Report) (style, string) {
	run, length := r.Run, text.Seconds(r.Run.Wall())
	switch {
	case run.Incomplete != "":
		return alarm, "still running or lost; last sample at " + length
	case run.Signal != "" && run.ExitCode != nil:
		signal := text.Clip(text.Printable(run.Signal), 20)
		return alarm, fmt.Sprintf("killed by %s (exit %d) after %s", signal, *run.ExitCode, length)
	case run.ExitCode != nil && *run.ExitCode != 0:
		return alarm, fmt.Sprintf("failed (exit %d) after %s", *run.ExitCode, length)
	case run.ExitCode != nil:
		return bold, "exit 0 after " + length
	case len(r.Nodes) > 0 && len(perfpyNodes(r)) == len(r.Nodes):
		return bold, "perf.py's samples of " + length
	}
	if v := run.Verdict; v != nil && v.Cause == diagnosis.CauseUnknown { // an attached job's exit code
		return bold, "ended after " + length
	}
	return bold, "sampled for " + length
}

// CommandLine returns a command as one line of printable text. It quotes arguments that would look like
// several.
func CommandLine(command []string) string {
	words := make([]string, len(command))
	for i, arg := range command {
		words[i] = text.Printable(arg)
		if arg == "" || strings.Contains(arg, " ") {
			words[i] = "'" + words[i] + "'"
		}
	}
	return strings.Join(words, " ")
}

// runLine returns the name of the run, its node or number of nodes, and its start.
func runLine(r *reporter.Report) string {
	words := []string{text.Clip(text.Printable(r.Run.ID), 34)}
	if r.Run.ID == "" {
		words[0] = text.Absent
	}
	if names := r.NodeNames(); len(names) == 1 {
		words = append(words, "node "+text.Clip(text.Printable(names[0]), 10))
	} else {
		words = append(words, fmt.Sprintf("%d nodes", len(names)))
	}
	if !r.Run.Start.IsZero() {
		words = append(words, r.Run.Start.UTC().Format("2006-01-02 15:04 MST"))
	}
	return strings.Join(words, ", ")
}
