package reporter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// deathReport returns the report of a job of 10 s with the given deaths and exit code.
func deathReport(t *testing.T, d *process.Deaths, code int) *reporter.Node {
	t.Helper()
	rec := collector.NewRecording(host.Instant{Wall: reportertest.RunStart, Boot: time.Hour}, time.Second, 100)
	rec.Deaths = d
	start, end := reporter.Time{Time: reportertest.RunStart}, reporter.Time{Time: reportertest.RunStart.Add(10 * time.Second)}
	r := reporter.New(reporter.Input{Recording: rec, Run: reporter.Run{ID: "r", Start: start, End: end, WallSeconds: 10},
		Job: &reporter.Job{PID: 7, Start: start, End: end, ExitCode: &code}})
	return r.Nodes["0"]
}

// The deaths in a report have the times of the samples, and end with the run.
func TestNew_HasDeaths(t *testing.T) {
	d := &process.Deaths{Quiet: 3, Dropped: 2, Missing: "why", List: []process.Death{
		{PID: 8, PPID: 7, Command: "c", Signal: "SIGSEGV", CoreDumped: true, How: "wait", Start: time.Hour, End: time.Hour + 20*time.Second, CPUSeconds: 0.12345678, PeakMemory: 3 << 20},
		{PID: 9, ExitCode: 4, How: "zombie", End: time.Hour + time.Second},
		{PID: 10, How: "unknown", End: time.Hour + 2*time.Second},
		{PID: 7, Signal: "SIGKILL", How: "connector", End: time.Hour + 10*time.Second},
	}}
	at := func(seconds int) reporter.Time {
		return reporter.Time{Time: reportertest.RunStart.Add(time.Duration(seconds) * time.Second)}
	}
	n := deathReport(t, d, 1)
	check.Equal(t, n.Deaths, []reporter.Death{
		{PID: 9, ExitCode: new(4), How: "zombie", End: at(1)},
		{PID: 10, How: "unknown", End: at(2)},
		{PID: 8, PPID: 7, Command: "c", Signal: "SIGSEGV", CoreDumped: true, How: "wait", Start: at(0), End: at(10), CPUSeconds: 0.123457, PeakMemoryMB: 3},
	}, "deaths")
	missing := reporter.Missing{What: "deaths", Code: reporter.NoExitStatus, Why: "why"}
	check.True(t, n.QuietExits == 3 && n.MoreDeaths == 2 && slices.Contains(n.Missing, missing), "%d quiet, %d more, missing %v", n.QuietExits, n.MoreDeaths, n.Missing)
	check.Equal(t, len(deathReport(t, d, 0).Deaths), 2, "number of deaths in a job that succeeded, without the unknown one")
}

// Of many deaths, a report lists those by a signal, then those with the most CPU time.
func TestNew_LimitsDeaths(t *testing.T) {
	d := &process.Deaths{}
	for i := range 150 {
		one := process.Death{PID: 100 + i, How: "connector", ExitCode: 1, CPUSeconds: float64(i % 75), End: time.Hour + time.Duration(i)*time.Millisecond}
		if i < 60 {
			one.Signal, one.CPUSeconds = "SIGKILL", 0
		}
		d.List = append(d.List, one)
	}
	n := deathReport(t, d, 1)
	signals, least := 0, 99.0
	for _, one := range n.Deaths {
		if one.Signal != "" {
			signals++
		} else {
			least = min(least, one.CPUSeconds)
		}
	}
	inOrder := slices.IsSortedFunc(n.Deaths, func(a, b reporter.Death) int { return a.End.Compare(b.End.Time) })
	check.True(t, len(n.Deaths) == 100 && n.MoreDeaths == 50 && signals == 60 && least == 50 && inOrder,
		"%d deaths in order (%v), %d more, %d by signals, the others with %v s of CPU time or more", len(n.Deaths), inOrder, n.MoreDeaths, signals, least)
}

// The deaths of several ranks are joined by time, each with its rank.
func TestCombine_JoinsDeaths(t *testing.T) {
	rank := func(number int, quiet int64, ends ...int) plan {
		return plan{Rank: number, OnNode: 2, End: 10, Exit: 1, Change: func(rec *collector.Recording) {
			rec.Deaths = &process.Deaths{Quiet: quiet, Dropped: 1}
			for _, at := range ends {
				rec.Deaths.List = append(rec.Deaths.List, process.Death{PID: 10*number + at, Signal: "SIGSEGV", How: "wait",
					End: rec.Start.Boot + time.Duration(at)*time.Second})
			}
		}}
	}
	_, n := combined(t, partsOf(t, rank(0, 2, 1, 5), rank(1, 3, 3))...)
	var got []int
	for _, d := range n.Deaths {
		got = append(got, d.PID, *d.Rank)
	}
	check.Equal(t, got, []int{1, 0, 13, 1, 5, 0}, "processes and ranks")
	check.True(t, n.QuietExits == 5 && n.MoreDeaths == 2, "%d quiet, %d more; want 5, 2", n.QuietExits, n.MoreDeaths)
}
