//go:build e2e

package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
)

// TestE2E_Diff_RealRuns: of three sets of ten real runs, in turn, two are of one job and
// one of a job that does 20 % more. The gate tells them apart.
//
// Equal sets look changed one time in twenty, by the test's definition. On two CPUs
// that five other programs wanted, the CPU time of equal work varied by 2 to 40 %, and
// one change in six by 20 % was not found. So the whole is repeated with fresh runs
// when it does not come out, fifteen times at most: a diff that is wrong fails each time,
// one that is right fails them all once in millions of runs, be the machine as it may.
// TestCompare_LevelAndPower of comparer has the same claims without a machine's noise.
func TestE2E_Diff_RealRuns(t *testing.T) {
	clitest.Binary(t)
	const runs, attempts = 10, 16
	base := uint64(0) // of the calibration that was disturbed least
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
			for name, work := range map[string]uint64{"before": base, "again": base, "after": base * 6 / 5} { // in any order
				cmd := clitest.AsHelper(clitest.Perfagent(t, "run", "--html", "never", "--out", out, "--run-id", name, "--"), "diffburn")
				cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", diffWork, work))
				clitest.RunCommand(t, cmd).Want(t, 0)
			}
		}
		more := call("diff", "--format", "json", "--fail-if", "job_cpu_seconds > +10%", filepath.Join(out, "before"), filepath.Join(out, "after"))
		same := call("diff", "--format", "json", "--fail-if", "job_cpu_seconds > +10%", filepath.Join(out, "before"), filepath.Join(out, "again"))
		morePct, moreChanged := diffCPU(t, more)
		samePct, sameChanged := diffCPU(t, same)
		t.Logf("20 %% more work: %+.1f %%, changed: %v, exit %d; equal: %+.1f %%, changed: %v, exit %d", morePct, moreChanged, more.Code, samePct, sameChanged, same.Code)
		if moreChanged && morePct < 50 && more.Code == 1 && !sameChanged && same.Code == 0 {
			clitest.WantLines(t, more.Err, 1, 1)
			if same.Err != "" {
				t.Errorf("equal sets: %q on stderr", same.Err)
			}
			return
		}
		t.Logf("attempt %d did not come out", attempt+1)
	}
	t.Errorf("not in any of %d attempts", attempts)
}
