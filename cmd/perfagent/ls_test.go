package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/summary"
)

// On a terminal of 80 columns, the command of a run with a default name has 25 cells. A wide terminal shows all
// columns.
func TestLs_LeavesRoomForTheCommand(t *testing.T) {
	t.Parallel()
	used := func(v, of float64) *summary.Usage { return &summary.Usage{Used: &v, Of: &of, UsedMB: &v} }
	runs := []summary.Overview{
		{RunID: "20261127-015653-4f3734", Nodes: 1, WallSeconds: 7.7, ExitCode: new(0), CPU: used(0.97, 2), Memory: used(0.9, 0)},
		{RunID: "20261127-015648-ea5595", Nodes: 1, WallSeconds: 254, Signal: "SIGKILL", Cause: diagnosis.CauseOOMCgroup,
			CPU: used(0.17, 2), Memory: used(256, 0)},
	}
	for i := range runs {
		runs[i].Start = reporter.Time{Time: time.Now().Add(-time.Hour)}
		runs[i].Command = []string{"python3", "train.py", "--data", "shard.bin", "--epochs", "90"}
	}
	print := func(columns int) []string {
		var out strings.Builder
		check.Must(t, runTable(runs, columns).WriteText(&out, columns, false))
		return strings.Split(out.String(), "\n")
	}

	want := "20261127-015648-ea5595  out of memory  4.2m  256 MiB  python3 train.py --data s…"
	if got := print(80); got[2] != want || strings.Join(strings.Fields(got[0]), " ") != "RUN END TIME MEMORY COMMAND" {
		t.Errorf("80 columns:\n%s\nwant the line\n%s", strings.Join(got, "\n"), want)
	}
	runs[0].Nodes, runs[0].Ranks = 4, 16
	if got := print(80); got[2] != want {
		t.Errorf("80 columns, a run of four nodes:\n%s\nwant the line\n%s", strings.Join(got, "\n"), want)
	}
	if got := print(120); !strings.Contains(got[1], runs[0].Start.Local().Format("02 Jan 15:04")+"  succeeded") ||
		!strings.Contains(got[1], " 4 (16 ranks)  0.97 of 2") {
		t.Errorf("120 columns, a run of four nodes:\n%s\nwant its start, its nodes and its CPUs", strings.Join(got, "\n"))
	}
	runs[0].RunID, runs[1].RunID = "4711", "4712"
	if got := print(80); !strings.Contains(got[1], "  4 (16 ranks)  922 KiB  python3 train.py --data s") {
		t.Errorf("80 columns, short names:\n%s\nwant the nodes and at least 25 cells of the command", strings.Join(got, "\n"))
	}
}

func TestLs_DescribesEndAndTime(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]summary.Overview{
		"succeeded": {ExitCode: new(0)}, "exit 3": {ExitCode: new(3)}, "killed": {Signal: "SIGKILL"}, "killed (SEGV)": {Signal: "SIGSEGV"},
		"stopped (TERM)": {Signal: "SIGTERM"}, "stopped (HUP)": {Signal: "SIGHUP"}, "stopped (USR1)": {Signal: "SIGUSR1"},
		"stopped":   {Signal: "SIGTERM", Cause: diagnosis.CauseStopped},
		"disk full": {ExitCode: new(1), Cause: diagnosis.CauseDiskFull}, "time limit": {Signal: "SIGTERM", Cause: diagnosis.CauseTimeLimit},
		"out of memory": {ExitCode: new(0), Cause: diagnosis.CauseOOM}, "running": {State: summary.StateRunning},
		"lost": {State: summary.StateIncomplete}, "": {},
	} {
		if got := endOf(o); got != want {
			t.Errorf("endOf = %q, want %q", got, want)
		}
	}
	var got []string
	for _, seconds := range []float64{0.04, 16.34, 59.94, 59.96, 252, 3596, 3599, 11160, 86399, 1e6} {
		got = append(got, shortTime(seconds))
	}
	if want := "[40ms 16.3s 59.9s 1.0m 4.2m 59.9m 1.0h 3.1h 1.0d 11.6d]"; fmt.Sprint(got) != want {
		t.Errorf("shortTime = %v, want %s", got, want)
	}
}
