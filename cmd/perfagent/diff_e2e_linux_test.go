//go:build e2e

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
)

// The test makes three sets of ten real runs in turn. Two sets run the same job, and one runs a job that does 20 % more
// work. The gate fires only for the slower job.
//
// At the significance level of 5 %, one comparison of equal sets in twenty shows a change. On two CPUs with five other
// busy programs, the CPU time of equal jobs varied by 2 to 40 %, and one of six changes of 20 % was not found. So the
// test repeats a failed comparison with new runs, at most 15 times. A broken diff fails every attempt, and a correct
// one fails all of them only once in millions of test runs, on any machine. The tests of package comparer check the
// same without noise.
func TestE2E_Diff_GateFiresOnlyForSlowerJob(t *testing.T) {
	clitest.Binary(t)
	const runs, attempts = 10, 16
	base := uint64(0) // from the least disturbed calibration
	for range 5 {
		base = max(base, diffRoundsOf(t, 150*time.Millisecond))
	}
	begin := time.Now()
	for attempt := range attempts {
		if time.Since(begin) > 10*time.Minute {
			t.Error("the machine is too slow for another attempt")
			break
		}
		out := t.TempDir()
		for range runs {
			for name, work := range map[string]uint64{"before": base, "again": base, "after": base * 6 / 5} { // random order
				cmd := clitest.AsHelper(clitest.Perfagent(t, "run", "--no-page", "--out", out, "--run-id", name, "--"), "diffburn")
				mustExit(t, 0, with(cmd, fmt.Sprintf("%s=%d", diffWork, work)))
			}
		}
		gate := []string{"--format", "json", "--fail-if", "job_cpu_seconds > +10%", "before"}
		more, same := diffIn(t, out, append(gate, "after")...), diffIn(t, out, append(gate, "again")...)
		morePct, moreChanged := diffCPU(t, more)
		samePct, sameChanged := diffCPU(t, same)
		t.Logf("20 %% more work: %+.1f %%, changed: %v, exit %d; equal: %+.1f %%, changed: %v, exit %d", morePct, moreChanged, more.Code, samePct, sameChanged, same.Code)
		if moreChanged && morePct < 50 && more.Code == 1 && !sameChanged && same.Code == 0 {
			clitest.WantLines(t, more.Err, 1, 1)
			if same.Err != "" {
				t.Errorf("equal sets: stderr %q, want none", same.Err)
			}
			return
		}
		t.Logf("attempt %d failed", attempt+1)
	}
	t.Errorf("diff did not distinguish the slower job from an equal job in %d attempts", attempts)
}
