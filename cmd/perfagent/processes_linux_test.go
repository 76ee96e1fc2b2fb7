package main

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// burning is the prelude of the jobs below: burn uses the CPU for some milliseconds, say names an orphan, and
// until_reaped waits until perfagent has reaped all named orphans.
const burning = `
import os, sys, time
def burn(ms):
    end = time.process_time() + ms / 1000
    while time.process_time() < end: pass
def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid
named, namer = os.pipe()
def say(pid): os.write(namer, b"%d\n" % pid)
def until_reaped():
    os.close(namer)
    for pid in open(named):
        while os.path.exists("/proc/" + pid.strip()): time.sleep(0.01)
`

// wantSum checks that the CPU times of the rows are sorted and sum to the CPU time of the job.
func wantSum(t *testing.T, n *reporter.Node) {
	t.Helper()
	var sum float64
	for i, p := range n.Processes {
		sum += p.CPUSeconds + p.EndedChildrenCPUSeconds
		if i > 0 && p.CPUSeconds > n.Processes[i-1].CPUSeconds {
			t.Errorf("row %d has %v s of CPU time, want at most %v as in the previous row",
				i, p.CPUSeconds, n.Processes[i-1].CPUSeconds)
		}
	}
	if want := n.Metrics["job_cpu_seconds"]; math.Abs(sum-want) > 0.01*want+0.03 || len(n.Processes) == 0 {
		t.Errorf("%d rows add up to %.3f s, want %.3f: %+v", len(n.Processes), sum, want, n.Processes)
	}
}

// processRow returns the row of a process.
func processRow(t *testing.T, n *reporter.Node, pid int) reporter.Process {
	t.Helper()
	i := slices.IndexFunc(n.Processes, func(p reporter.Process) bool { return p.PID == pid })
	if i < 0 {
		t.Fatalf("process %d has no row: %+v", pid, n.Processes)
	}
	return n.Processes[i]
}

// A job that ends before the first sample has the row of its main process, with secrets redacted.
func TestProcesses_ShortJobHasRowOfMainProcess(t *testing.T) {
	t.Parallel()
	o := mustRun(t, 3, "run", "--", "sh", "-c", "exit 3", "sh", "--password", "hunter2")
	n := o.Report(t).Nodes["0"]
	p := processRow(t, n, n.Job.PID)
	if len(n.Processes) != 1 || p.Command != "sh -c exit 3 sh --password ***" || p.Start.Before(n.Job.Start.Add(-20e6)) || p.Start.After(n.Job.End.Time) {
		t.Errorf("processes %+v, job %+v; want one row, redacted, within the time of the job", n.Processes, n.Job)
	}
	wantSum(t, n)
}

// The journal of a killed perfagent contains the table of processes.
func TestProcesses_JournalOfKilledPerfagentHasTable(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--run-id", "r", "--interval", "50ms", "--", "sh", "-c", "echo $$; read x", "sh", "--token", "s3cret")
	stdin, hold := clitest.Pipe(t)
	cmd.Stdin = stdin
	l := clitest.StartProcess(t, cmd)
	pid := l.Next()
	journal := filepath.Join(cmd.Dir, "perfagent-out", "r", "node-0.jsonl")
	untilHas(t, journal, `"processes"`, 1)
	l.Signal(syscall.SIGKILL)
	hold.Close() // the job also ends
	l.End()

	rows := decoded[map[string][]reporter.Process](t, wantCall(t, 0, "show", "--processes", "--json", journal).Out)["0"]
	if len(rows) != 1 || strconv.Itoa(rows[0].PID) != pid || rows[0].Command != "sh -c echo $$; read x sh --token ***" || !rows[0].End.IsZero() {
		t.Errorf("processes %+v, want one row of process %s, redacted and without an end", rows, pid)
	}
}

// The output of show --processes fits a terminal and is not cut in a pipe. Conflicting flags are rejected.
func TestShow_ProcessesFitTerminalAndAreWholeInPipe(t *testing.T) {
	t.Parallel()
	o := mustRun(t, 0, "run", "--", "sh", "-c", "true \x1b[31m"+strings.Repeat(" long", 50))
	report := filepath.Join(o.Dir, "perfagent-out")
	shown := mustRun(t, 0, "show", "--processes", "--out", report)
	clitest.WantPrintable(t, shown.Out)
	wantContains(t, shown.Out, strings.Repeat(" long", 30))
	screen, code := clitest.OnTerminal(t, clitest.Perfagent(t, "show", "--processes", "--out", report)).End()
	for line := range strings.Lines(screen) {
		if w := text.Width(strings.TrimRight(line, "\r\n")); w > 80 || code != 0 {
			t.Errorf("exit code %d, a line of %d columns; want 0, at most 80: %q", code, w, line)
		}
	}

	says(t, wantCall(t, 1, "show", "--out", report, "--processes", "--ops"), "only one of the two")
	says(t, wantCall(t, 1, "show", "--out", report, "--processes", "--format", "csv"), "printed as text or json")
}
