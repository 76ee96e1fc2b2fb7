package journal

import (
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
)

// The table is written only if it has changed, and less often if it is large.
func TestJournal_WritesLargeTablesLessOften(t *testing.T) {
	for name, c := range map[string]struct {
		rows  int
		every time.Duration
	}{"one process": {1, 4 * time.Second}, "forty processes": {40, tableLate}} {
		t.Run(name, func(t *testing.T) {
			rec := collector.NewRecording(host.Instant{}, time.Second, 10)
			j, written := &Journal{}, []time.Duration(nil)
			for second := range 61 {
				rec.End.Mono = time.Duration(second) * time.Second
				rec.Processes = nil
				for i := range c.rows {
					rec.Processes = append(rec.Processes, process.Process{PID: i + 1, Command: strings.Repeat("x", 180), CPUSeconds: float64(second)})
				}
				if len(j.appendTable(nil, rec)) > 0 {
					written = append(written, rec.End.Mono)
				}
			}
			if len(written) < 3 || written[0] != 0 || written[2]-written[1] != c.every {
				t.Errorf("the table was written at %v, want every %v", written, c.every)
			}

			rec.End.Mono += time.Hour
			j.appendTable(nil, rec)
			rec.End.Mono += time.Hour
			if out := j.appendTable(nil, rec); len(out) > 0 {
				t.Errorf("the unchanged table was written again: %s", out)
			}
		})
	}
}

// A table with a negative number, or with a process without an ID, is damaged.
func TestCheckTable_RejectsDamage(t *testing.T) {
	if err := checkTable([]process.Process{{PID: 1, CPUSeconds: 2, PeakMemory: 3}}); err != nil {
		t.Errorf("checkTable of a valid table: %v, want nil", err)
	}
	for _, p := range []process.Process{{}, {PID: -1}, {PID: 1, PPID: -1}, {PID: 1, Start: -1}, {PID: 1, End: -1}, {PID: 1, Threads: -1},
		{PID: 1, CPUSeconds: -1}, {PID: 1, EndedChildren: -1}, {PID: 1, PeakMemory: -1}} {
		if checkTable([]process.Process{p}) == nil {
			t.Errorf("checkTable accepted %+v, want an error", p)
		}
	}
}
