package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
)

// BenchmarkList lists a thousand runs with one node each.
func BenchmarkList(b *testing.B) {
	out := b.TempDir()
	data, err := reporter.Encode(reportertest.Large(0, 1, 500))
	check.Must(b, err)
	for i := range 1000 {
		dir := filepath.Join(out, fmt.Sprintf("run-%d", i))
		check.Must(b, os.Mkdir(dir, 0o755))
		check.Must(b, os.WriteFile(filepath.Join(dir, "node-0.json"), data, 0o644))
	}
	b.ResetTimer()

	for b.Loop() {
		if runs, err := catalog.List(out); err != nil || len(runs) != 1000 {
			b.Fatal(len(runs), err)
		}
	}
}
