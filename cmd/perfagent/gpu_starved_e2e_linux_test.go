//go:build e2e

package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// A GPU (of the strict fake) that waits while the job keeps a CPU busy gives a finding with an estimate of its energy;
// a busy GPU does not.
func TestE2E_Finding_GPUThatWaitsForJobIsStarved(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 7 s")
	}

	for name, starves := range map[string]bool{"waits": true, "busy": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := smi
			if starves { // busy for a second in three
				program = strings.Replace(smi, "while :; do\n", "while :; do\n  v[utilization.gpu]=$(( SECONDS % 3 == 0 ? 90 : 0 ))\n", 1)
			}
			env, _ := withGPUs(t, program)
			cmd := clitest.Perfagent(t, "run", "--interval", "200ms", "--", "sh", "-c",
				`for i in 1 2 3 4 5 6 7 8; do timeout 7 sh -c 'while :; do :; done' & done; wait; true`) // the machine is shared
			cmd.Env = append(cmd.Env, append(env, "CUDA_VISIBLE_DEVICES=1")...)
			o := clitest.RunCommand(t, cmd)
			o.Want(t, 0)
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
					t.Errorf("finding %q: want idle 30 to 90 and gaps 1 to 4 in the evidence %v", f.Text, f.Evidence)
				}
			}
			idle := n.GPUs[1].Idle
			if starves != (idle != nil) || starves && !(idle.Seconds > 0.3*n.Metric("wall_seconds") && idle.JobCPUs > 0) {
				t.Fatalf("starving %v: idle %+v, want values only then, for most of the run", starves, idle)
			}
			// On a busy machine no job keeps a CPU busy.
			if busy := starves && (idle.JobCPUs >= 0.8 || idle.WaitingForStorePct >= 50 || idle.DiskMBPerSecond >= 50); found != busy {
				t.Errorf("finding gpu_starved %v, want %v; findings %+v, idle %+v", found, busy, n.Findings, idle)
			}
			if found { // on the page and in the terminal, too
				_, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
				page := clitest.Read(t, strings.TrimSuffix(path, ".json")+".html")
				show := clitest.Perfagent(t, "show")
				show.Dir = o.Dir
				shown := strings.Join(strings.Fields(clitest.RunCommand(t, show).Out), " ")
				for where, words := range map[string]string{"page": page, "terminal": shown} {
					if !strings.Contains(words, " idle for ") || !strings.Contains(words, " of up to ") {
						t.Errorf("the %s lacks \"idle for\" or \"of up to\", the report of a starved GPU", where)
					}
				}
			}
			if joules, wall := n.Metric("gpu_1_energy_joules"), n.Metric("wall_seconds"); !(math.Abs(joules-300.5*wall) < 0.3*300.5*wall) {
				t.Errorf("gpu_1_energy_joules %v in %v s, want 300.5 W times the seconds, to 30 %%", joules, wall)
			}
		})
	}
}
