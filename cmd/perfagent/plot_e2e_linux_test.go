//go:build e2e

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
)

// plot draws the journal that a killed perfagent left.
func TestE2E_Plot_DrawsJournalOfKilledPerfagent(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--run-id", "r", "--interval", "10ms", "--", "sleep", "20")
	journal := filepath.Join(cmd.Dir, "perfagent-out", "r", "node-0.jsonl")
	l := clitest.StartProcess(t, cmd)
	clitest.WaitUntil(t, "samples are in the journal", func() bool {
		text, _ := os.ReadFile(journal)
		return strings.Count(string(text), "\n") > 4
	})
	l.Signal(unix.SIGKILL)
	l.End()
	if got := plotPages(t, filepath.Join(cmd.Dir, "perfagent-out")); len(got) != 0 {
		t.Errorf("a killed perfagent left the pages %q, want none", got)
	}
	for _, name := range []string{"x.html", "x.svg"} {
		o := clitest.Run(t, "plot", journal, "--to", name)
		o.Want(t, 0)
		text, err := os.ReadFile(filepath.Join(o.Dir, name))
		if err != nil || !regexp.MustCompile(`Still running or lost; the last sample is from`).Match(text) {
			t.Errorf("%s lacks \"Still running or lost; the last sample is from\" (%v)", name, err)
		}
	}
}
