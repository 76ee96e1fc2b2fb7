package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
)

// The table of docs/report.md has the columns of the samples.
func TestDocs_SampleKeysEqualColumns(t *testing.T) {
	var out strings.Builder
	out.WriteString("| key | unit | meaning |\n|---|---|---|\n")
	row := func(c collector.ColumnInfo) {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", c.Key, unitCell(c.Unit), markdownCell.Replace(c.Label))
	}
	for c := range collector.NumColumns {
		if c != collector.Timestamp {
			row(c.Info())
		}
	}
	for k := range collector.GPUKey(collector.NumGPUKeys) {
		row(k.Info())
	}
	generatedPart(t, "../../docs/report.md", "keys", out.String())
}
