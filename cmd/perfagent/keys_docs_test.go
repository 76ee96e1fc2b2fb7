package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
)

// The table of keys in docs/report.md lists the columns of the samples.
func TestDocs_SampleKeysEqualColumns(t *testing.T) {
	const rate = "_per_second" // in the row of the counter
	columns := make(map[string]bool)
	for c := range collector.NumColumns {
		columns[c.Key()] = true
	}
	var out strings.Builder
	out.WriteString("| key | unit | meaning |\n|---|---|---|\n")
	row := func(c collector.ColumnInfo) {
		name, unit := c.Key, unitCell(c.Unit)
		if columns[name+rate] {
			name, unit = name+"`, `…"+rate, unit+", "+unit+"/s"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name, unit, markdownCell.Replace(c.Label))
	}
	for c := range collector.NumColumns {
		if counter, found := strings.CutSuffix(c.Key(), rate); c != collector.Timestamp && (!found || !columns[counter]) {
			row(c.Info())
		}
	}
	for k := range collector.GPUKey(collector.NumGPUKeys) {
		row(k.Info())
	}
	generatedPart(t, "../../docs/report.md", "keys", out.String())
}
