package reporter

import (
	"slices"

	"github.com/perfagent/perfagent/internal/text"
)

// Headline says in a few words how the run ended and how long it took: "exit 0
// after 9.6 s".
func Headline(r *Report) string {
	_, words := ending(r)
	return words
}

// CommandLine is the wrapped command as one line of printable text; arguments that
// would look like several are quoted.
func CommandLine(command []string) string { return commandLine(command) }

// Tags are the run's tags as KEY=VALUE, sorted and printable.
func Tags(r *Run) []string {
	var out []string
	for k, v := range r.Tags {
		out = append(out, text.Printable(k+"="+v))
	}
	slices.Sort(out)
	return out
}
