//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// The scripts in deploy/slurm record every task of a step to its end, although the step does not use perfagent. The
// task keeps its exit code, and only reports are left.
func TestSlurm_TaskPrologRecordsEveryTask(t *testing.T) {
	t.Parallel()
	s := newSlurm(t, 120)
	bin := filepath.Dir(clitest.Binary(t))
	steps := func(t *testing.T, more ...string) (clitest.Outcome, string) {
		t.Helper()
		out := t.TempDir()
		cmd := s.command(t, "srun", "--ntasks=2", "--task-prolog="+testenv.Repository(t, "deploy/slurm/taskprolog.sh"),
			"--task-epilog="+testenv.Repository(t, "deploy/slurm/taskepilog.sh"), "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 5")
		cmd.Env = append(append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "PERFAGENT_OUT="+out, "PERFAGENT_INTERVAL=100ms"), more...)
		return clitest.RunCommand(t, cmd), out
	}

	o, out := steps(t)
	o.Want(t, 5)
	r, path := reportertest.ReadSingle(t, out)
	ranks := r.Nodes["0"].Ranks
	if len(ranks) != 2 || r.Run.Incomplete != "" {
		t.Fatalf("%s: %+v with ranks %v, want both tasks; stderr: %s", path, r.Run, ranks, o.Err)
	}
	for name, rank := range ranks {
		if rank.Incomplete != "" || rank.Job == nil || rank.Job.CPUSeconds == 0 {
			t.Errorf("%s: rank %s is %+v, want a complete rank with CPU time", path, name, rank)
		}
	}
	left, err := filepath.Glob(filepath.Join(out, "*", "task-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files left: %q (%v), want none", left, err)
	}

	o, out = steps(t, "NO_PERFAGENT=1")
	o.Want(t, 5)
	if reports := reportertest.InDir(t, out); len(reports) > 0 || strings.Contains(o.Err, "perfagent") {
		t.Errorf("reports %q, stderr %s; want no reports, and no mention of perfagent", reports, o.Err)
	}
}
