package plottertest

import (
	"testing"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// Concluded returns a report with what follows from all of its nodes and ranks.
func Concluded(t testing.TB, r *reporter.Report) *reporter.Report {
	t.Helper()
	merged, err := diagnosis.Merge([]reporter.Source{{Path: "x", Report: r}})
	if err != nil {
		t.Fatal(err)
	}
	return merged
}
