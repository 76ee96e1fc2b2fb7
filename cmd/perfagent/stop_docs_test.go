package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
)

// The table of docs/stop-if.md has the columns of the samples.
func TestDocs_StopKeysEqualColumns(t *testing.T) {
	cell := strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`)
	var out strings.Builder
	out.WriteString("| key | unit | meaning |\n|---|---|---|\n")
	row := func(c collector.ColumnInfo) {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", c.Key, cell.Replace(string(c.Unit)), cell.Replace(c.Label))
	}
	for c := range collector.NumColumns {
		if c != collector.Timestamp {
			row(c.Info())
		}
	}
	for k := range collector.GPUKey(collector.NumGPUKeys) {
		row(k.Info())
	}
	generatedPart(t, "../../docs/stop-if.md", "keys", out.String())
}
