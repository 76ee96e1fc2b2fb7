//go:build e2e

package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// If a GPU of a fake nvidia-smi waits while the job keeps a CPU busy, the report has a finding with the energy that the
// idle GPU used. A busy GPU gives no finding.
func TestE2E_Finding_ReportsGPUThatWaitsForJob(t *testing.T) {
	testenv.SkipIfShort(t, "7 s for its runs")
	for name, starves := range map[string]bool{"waits": true, "busy": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for try := 1; ; try++ { // a busy machine delays nvidia-smi
				wrong := wrongWithGPUs(t, starves)
				if len(wrong) == 0 {
					return
				}
				if try == 3 {
					t.Fatal(strings.Join(wrong, "\n"))
				}
				t.Logf("try %d: %s", try, wrong)
			}
		})
	}
}

// wrongWithGPUs runs a job while GPUs wait for it or are busy, and returns what is wrong with its report.
func wrongWithGPUs(t *testing.T, starves bool) (wrong []string) {
	t.Helper()
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	program := smi
	if starves { // busy for one second in three
		program = strings.Replace(smi, "while :; do\n", "while :; do\n  v[utilization.gpu]=$(( SECONDS % 3 == 0 ? 90 : 0 ))\n", 1)
	}
	env, _ := withGPUs(t, program)
	cmd := clitest.Perfagent(t, "run", "--interval", "200ms", "--", "sh", "-c", `until [ -s "$SMI_PID.said" ]; do sleep 0.05; done;
		for i in 1 2 3 4 5 6 7 8; do timeout 7 sh -c 'while :; do :; done' & done; wait; true`) // eight loops, because the machine is shared
	o := mustExit(t, 0, with(cmd, append(env, "CUDA_VISIBLE_DEVICES=1")...))
	n := o.Report(t).Nodes["0"]

	found := false
	for _, f := range n.Findings {
		if f.ID != "gpu_starved" {
			continue
		}
		found = true
		idle, _ := f.Evidence["idle_pct"].(float64)
		gaps, _ := f.Evidence["gaps"].(float64)
		if idle < 30 || idle > 90 || gaps < 1 || gaps > 4 {
			fail("finding %q: evidence %v, want idle_pct 30 to 90 and gaps 1 to 4", f.Text, f.Evidence)
		}
	}
	idle := n.GPUs[1].Idle
	if starves != (idle != nil) || starves && !(idle.Seconds > 0.3*n.Metric("wall_seconds") && idle.JobCPUs > 0) {
		fail("Idle of GPU 1 = %+v; want it for a starved GPU only (%v), with over 30 %% of the run's time and JobCPUs above 0", idle, starves)
		return wrong
	}
	// On a busy machine, the job may not keep a CPU busy, and then there is no finding.
	if busy := starves && (idle.JobCPUs >= 0.8 || idle.WaitingForStorePct >= 50 || idle.DiskMBPerSecond >= 50); found != busy {
		fail("finding gpu_starved present: %v, want %v; findings %+v, idle %+v", found, busy, n.Findings, idle)
	}
	if found { // the page and the terminal show it, too
		_, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
		page := clitest.Read(t, strings.TrimSuffix(path, ".json")+".html")
		shown := strings.Join(strings.Fields(call("show", path).Out), " ")
		for where, words := range map[string]string{"page": page, "terminal": shown} {
			if !strings.Contains(words, " idle for ") || !strings.Contains(words, " of up to ") {
				fail("the %s lacks \"idle for\" or \"of up to\" for the starved GPU", where)
			}
		}
	}
	if joules, wall := n.Metric("gpu_1_energy_joules"), n.Metric("wall_seconds"); !(math.Abs(joules-300.5*wall) < 0.3*300.5*wall) {
		fail("gpu_1_energy_joules %v in %v s, want 300.5 W times the seconds, within 30 %%", joules, wall)
	}
	return wrong
}
