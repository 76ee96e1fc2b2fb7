package journal

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
)

// Each line has only the new deaths, and all lines together give the same deaths, even if some had to be dropped.
func TestJournal_LinesHaveNewDeaths(t *testing.T) {
	rec := collector.NewRecording(host.Instant{}, time.Second, 10)
	read := collector.NewRecording(host.Instant{}, time.Second, 10)
	j, lines := &Journal{}, 0
	var now process.Deaths
	for second := range 12 {
		for i := range second * 20 {
			d := process.Death{PID: 1 + 1000*second + i, How: process.DeathConnector, End: time.Duration(second), ExitCode: 1}
			if i%3 == 0 {
				d.Signal, d.ExitCode = "SIGSEGV", 0
			}
			now.Add(d)
		}
		now.Quiet, now.Last = int64(second), &process.Death{PID: 5, How: process.DeathWaited, ExitCode: second}
		published := now
		published.List = append([]process.Death(nil), now.List...)
		rec.Deaths = &published
		for range 2 { // the second time, nothing is new
			out := j.appendDeaths([]byte(`{"x":0`), rec)
			if string(out) == `{"x":0` {
				continue
			}
			lines++
			var line sampleLine
			check.Must(t, json.Unmarshal(append(out, '}'), &line))
			check.Must(t, addDeaths(read, line.Deaths))
		}
	}
	check.Equal(t, lines, 11, "lines with deaths")
	check.Equal(t, len(read.Deaths.List), len(now.List), "number of deaths")
	check.Equal(t, fmt.Sprint(*read.Deaths.Last, read.Deaths.Quiet, read.Deaths.Dropped), fmt.Sprint(*now.Last, now.Quiet, now.Dropped), "last, quiet and dropped")
	check.Equal(t, read.Deaths.List[len(read.Deaths.List)-1], now.List[len(now.List)-1], "newest death")
}

// A death with a negative number, without an ID or without a source is damaged.
func TestCheckDeaths_RejectsDamage(t *testing.T) {
	good := process.Death{PID: 1, How: process.DeathZombie}
	check.Must(t, checkDeaths(&process.Deaths{List: []process.Death{good}, Last: &good, Quiet: 1}))
	check.Must(t, checkDeaths(nil))
	for _, d := range []process.Death{{How: "wait"}, {PID: 1}, {PID: 1, How: "wait", PPID: -1}, {PID: 1, How: "wait", Start: -1}, {PID: 1, How: "wait", End: -1},
		{PID: 1, How: "wait", Struck: -1}, {PID: 1, How: "wait", ExitCode: -1}, {PID: 1, How: "wait", CPUSeconds: -1}, {PID: 1, How: "wait", PeakMemory: -1}} {
		if checkDeaths(&process.Deaths{List: []process.Death{d}}) == nil || checkDeaths(&process.Deaths{Last: &d}) == nil {
			t.Errorf("checkDeaths accepted %+v, want an error", d)
		}
	}
	check.True(t, checkDeaths(&process.Deaths{Quiet: -1}) != nil && checkDeaths(&process.Deaths{Dropped: -1}) != nil, "negative counts are accepted")
}
