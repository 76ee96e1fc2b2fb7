package plottertest

import (
	"testing"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// WithVerdict returns r with a verdict and findings for each of its nodes and ranks.
func WithVerdict(t testing.TB, r *reporter.Report) *reporter.Report {
	t.Helper()
	merged, err := diagnosis.Merge([]reporter.SourceReport{{Path: "x", Report: r}})
	if err != nil {
		t.Fatal(err)
	}
	return merged
}
