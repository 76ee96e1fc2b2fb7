//go:build e2e

package main

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
)

// plot draws the journal that a killed perfagent left.
func TestE2E_Plot_DrawsJournalOfKilledPerfagent(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--run-id", "r", "--interval", "10ms", "--", "sleep", "600")
	journal := filepath.Join(cmd.Dir, "perfagent-out", "r", "node-0.jsonl")
	l := clitest.StartProcess(t, cmd)
	untilHas(t, journal, "\n", 5)
	l.Signal(unix.SIGKILL)
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // the job
	l.End()
	if got := plotPages(t, filepath.Join(cmd.Dir, "perfagent-out")); len(got) != 0 {
		t.Errorf("a killed perfagent left the pages %q, want none", got)
	}
	for _, name := range []string{"x.html", "x.svg"} {
		o := mustRun(t, 0, "plot", journal, "--to", name)
		wantContains(t, clitest.Read(t, filepath.Join(o.Dir, name)), "Still running or lost; the last sample is from")
	}
}
