//go:build e2e

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

// If the agent is killed, the view reports the kill and keeps the last values until q is pressed.
func TestE2E_Watch_ReportsKilledAgentAndKeepsValues(t *testing.T) {
	t.Parallel()
	run := watched(t, "", "--run-id", "r", "--interval", "50ms")
	w := watchOn(t, run.Cmd.Dir, nil)
	measured := regexp.MustCompile(`^CPU .*CPUs `)
	w.next("a sample", func(f watchFrame) bool { return measured.MatchString(f.row("CPU")) })
	plain := clitest.StartProcess(t, watchCommand(t, run.Cmd.Dir, nil, "--refresh", "100ms"))
	plain.Next()
	check.Must(t, unix.Kill(run.Cmd.Process.Pid, unix.SIGKILL))
	gone := regexp.MustCompile(`^r, perfagent has been gone since \d\d:\d\d:\d\d UTC, after \S`)
	f := w.next("the agent to be gone", func(f watchFrame) bool { return gone.MatchString(f.row("r, perfagent has been gone")) })
	if !strings.Contains(f.String(), " last ") || f.row("CPU") == "" {
		t.Errorf("the view of a killed agent lacks the last values or the row CPU:\n%s", f)
	}
	o, lines := plain.End()
	o.Want(t, 1)
	o.WantLine(t, `run "r" has no end`, "perfagent show perfagent-out/r/node-0.jsonl")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "perfagent has been gone since ") {
		t.Errorf("the last line is %q, want \"perfagent has been gone since \"", last)
	}
	w.quit()

	// A view that is started after the kill also reports it.
	w = watchOn(t, run.Cmd.Dir, nil, "r")
	w.next("the agent to be gone", func(f watchFrame) bool { return gone.MatchString(f.row("r, perfagent has been gone")) })
	w.quit()
	o = mustExit(t, 1, watchCommand(t, run.Cmd.Dir, nil))
	o.WantLine(t, "no run is active")
}

// A journal without a complete line and without a writer is from an agent that was killed at its start.
func TestE2E_Watch_EmptyJournalIsFromKilledAgent(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "half a head": `{"schema":"perf`} {
		dir := t.TempDir()
		path := filepath.Join(dir, "perfagent-out/r/node-0.jsonl")
		check.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		clitest.Write(t, path, text, 0o644)
		w := watchOn(t, dir, nil, "--refresh", "1h", "r")
		w.shows("starting")
		old := time.Now().Add(-time.Minute)
		check.Must(t, os.Chtimes(path, old, old))
		w.shows("perfagent is gone") // after five seconds without growth
		w.quit()
		o := mustExit(t, 1, watchCommand(t, dir, nil, "r"))
		o.WantLine(t, `run "r" has no end: its perfagent is gone`)
		if !strings.HasPrefix(o.Out, "perfagent is gone: ") {
			t.Errorf("%s: stdout %q, want \"perfagent is gone: \"", name, o.Out)
		}
	}
}

// A watcher needs almost no CPU time for a journal of maximum size that grows by one sample per second.
func TestE2E_Watch_LongRunIsCheap(t *testing.T) {
	t.Parallel()
	clitest.Binary(t)
	dir := t.TempDir()
	j, rec := watchJournal(t, dir, "long", journal.Head{Run: reporter.Run{Command: []string{"x"}}}, host.Info{CPUs: 2})
	defer func() { _ = j.Stop(clitest.Longest) }()
	n := 0
	for ; n < 1960; n++ {
		watchSample(j, rec, n)
		if n%32 == 0 { // the journal's queue is short
			at := fmt.Sprint(rec.Start.Wall.Unix() + int64(n))
			clitest.WaitUntil(t, "the sample is in the journal", func() bool { return strings.Contains(watchTail(t, j.Path()), at) })
		}
	}
	st, err := os.Stat(j.Path())
	check.Must(t, err)
	w := watchOn(t, dir, nil, "long")
	begin := time.Now()
	known := func() string { return fmt.Sprintf("%d samples, 1 s apart", n) }
	watchSample(j, rec, n)
	n++
	w.shows(known())
	for range 4 {
		watchSample(j, rec, n)
		n++
		w.shows(known())
	}
	w.quit()
	wall, state := time.Since(begin), w.Cmd.ProcessState
	cpu := state.UserTime() + state.SystemTime()
	t.Logf("journal of %d bytes: %v of CPU time in %v, including the start", st.Size(), cpu.Round(time.Millisecond), wall.Round(time.Millisecond))
	if cpu > wall/4 {
		t.Errorf("the watcher used %v of CPU time in %v, want at most a quarter", cpu, wall)
	}
}
