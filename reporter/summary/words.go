package summary

import (
	"slices"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Headline says in a few words how the run ended and how long it took: "exit 0
// after 9.6 s".
func Headline(r *reporter.Report) string {
	_, words := ending(r)
	return words
}

// Tags are the run's tags as KEY=VALUE, sorted and printable.
func Tags(r *reporter.Run) []string {
	var out []string
	for k, v := range r.Tags {
		out = append(out, text.Printable(k+"="+v))
	}
	slices.Sort(out)
	return out
}
