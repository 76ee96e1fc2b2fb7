package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// A dashboard is the part of a Grafana dashboard's JSON that contains the queries to Prometheus.
type dashboard struct {
	Title  string
	Panels []struct {
		ID          int
		Type, Title string
		Targets     []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

func readDashboard(t *testing.T, name string) dashboard {
	t.Helper()
	return decoded[dashboard](t, clitest.Read(t, testenv.Repository(t, "deploy/grafana/"+name)))
}

// queries returns the queries of the dashboard for all runs, by location.
func (d dashboard) queries(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	ids := make(map[int]bool)
	variables := strings.NewReplacer("$run_id", ".*", "$node", ".*", "$__rate_interval", "10s")
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: two panels have the ID %d", d.Title, p.ID)
		}
		ids[p.ID] = true
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("dashboard %s: the %[3]s %[4]q has %[2]d queries, want none in a row and some in a panel",
				d.Title, len(p.Targets), p.Type, p.Title)
		}
		for i, target := range p.Targets {
			all[fmt.Sprintf("%d %s, query %d", p.ID, p.Title, i+1)] = variables.Replace(target.Expr)
		}
	}

	labels := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for _, v := range d.Templating.List {
		if m := labels.FindStringSubmatch(v.Definition); m != nil {
			all["variable "+v.Name] = variables.Replace(fmt.Sprintf(`count by (%s) (%s)`, m[2], m[1]))
		}
	}

	return all
}

// Slurm runs a batch script as a task without a step ID. The directory of its report has the name that sacct shows.
func TestDeploy_SlurmBatchScriptReportsUnderItsStepName(t *testing.T) {
	t.Parallel()
	task := startTold(t, nil)
	out := t.TempDir()
	script := func(name string) {
		t.Helper()
		o := mustExit(t, 0, with(clitest.Command(t, testenv.Repository(t, "deploy/slurm/"+name)),
			"PATH="+filepath.Dir(clitest.Binary(t))+":"+os.Getenv("PATH"), "PERFAGENT_OUT="+out,
			"SLURM_JOB_ID=4711", "SLURM_PROCID=0", "SLURM_TASK_PID="+task.pid()))
		wantSilence(t, o)
	}

	script("taskprolog.sh")
	task.Signal(syscall.SIGKILL)
	task.End()
	script("taskepilog.sh")
	if r := reportertest.ReadFile(t, filepath.Join(out, "4711.batch", "node-0.json")); r.Run.ID != "4711.batch" || r.Run.Incomplete != "" {
		t.Errorf("run %+v, want the complete run 4711.batch", r.Run)
	}
	if left := reportertest.InDir(t, out); len(left) != 1 {
		t.Errorf("reports %q, want one", left)
	}
}
