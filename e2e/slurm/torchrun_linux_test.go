//go:build e2e

package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/slurmtest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// torch runs a script from examples/torchrun on this host, with a substitute for torchrun. It returns the exit code and
// the reports.
func torch(t *testing.T, script string, env ...string) (int, []*reporter.Report) {
	t.Helper()
	bin := t.TempDir()
	for name, path := range map[string]string{
		"perfagent": clitest.Binary(t), "torchrun": testenv.Repository(t, "e2e/slurm/testdata/torchrun"),
	} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := clitest.Command(t, "sh", script)
	cmd.Dir = copied(t, "torchrun")
	cmd.Env = append(append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH")), env...)
	o := clitest.RunCommand(t, cmd)

	out := filepath.Join(cmd.Dir, "perfagent-out")
	var reports []*reporter.Report
	for _, path := range reportertest.InDir(t, out) {
		if filepath.Ext(path) != ".json" {
			t.Errorf("%s still exists, want only reports; stdout %s, stderr %s", path, o.Out, o.Err)
			continue
		}
		reports = append(reports, reportertest.ReadFile(t, filepath.Join(out, path)))
	}
	return o.Code, reports
}

// wantWorkers checks the report of two workers with half a second of CPU time each.
func wantWorkers(t *testing.T, n *reporter.Node) {
	t.Helper()
	if n.Identity == nil || !strings.HasPrefix(n.Identity.Launch, "torchrun-") || len(n.Ranks) != 2 {
		t.Fatalf("identity %+v with %d ranks, want a launch by torchrun with two", n.Identity, len(n.Ranks))
	}
	sum := 0.0
	for _, r := range n.Ranks {
		sum += r.Job.CPUSeconds
		if r.Job.CPUSeconds < 0.5 {
			t.Errorf("rank %d: CPU time = %v s, want at least 0.5 s", r.Rank, r.Job.CPUSeconds)
		}
	}
	if d := n.Job.CPUSeconds - sum; d < -1e-6 || d > 1e-6 {
		t.Errorf("CPU time of the node's job = %v s, want %v s, the sum of its ranks", n.Job.CPUSeconds, sum)
	}
}

// With perfagent around each worker, the report has every rank, and names the rank that failed first.
func TestTorchrun_AroundWorkersReportsEveryRank(t *testing.T) {
	t.Parallel()
	code, reports := torch(t, "workers.sh")
	if code != 0 || len(reports) != 1 {
		t.Fatalf("exit code %d and %d reports, want 0 and 1", code, len(reports))
	}
	wantWorkers(t, reports[0].Nodes["0"])

	code, reports = torch(t, "workers.sh", "FAIL=1")
	if code != 1 || len(reports) != 1 {
		t.Fatalf("exit code %d and %d reports, want 1 and 1", code, len(reports))
	}
	v := reports[0].Run.Verdict
	if host, _ := os.Hostname(); v == nil || !strings.HasPrefix(v.Text, "rank 1 on "+host+" exited with code 3") {
		t.Errorf("verdict %+v, want exit code 3 of rank 1 on %s", v, host)
	}
}

// With perfagent around torchrun, there is one job without ranks, with the CPU time of all workers.
func TestTorchrun_AroundAgentReportsOneJob(t *testing.T) {
	t.Parallel()
	code, reports := torch(t, "agent.sh")
	if code != 0 || len(reports) != 1 {
		t.Fatalf("exit code %d and %d reports, want 0 and 1", code, len(reports))
	}
	if n := reports[0].Nodes["0"]; len(n.Ranks) != 0 || n.Job.CPUSeconds < 1 {
		t.Errorf("%d ranks, CPU time %v s; want no ranks, and at least 1 s", len(n.Ranks), n.Job.CPUSeconds)
	}
}

// With perfagent around torchrun and around each worker, the workers are ranks of a separate launch in the same run.
// The CPU times of the two launches are not added.
func TestTorchrun_AroundBothSeparatesLaunches(t *testing.T) {
	t.Parallel()
	code, reports := torch(t, "both.sh")
	if code != 0 || len(reports) != 2 {
		t.Fatalf("exit code %d and %d reports, want 0 and 2", code, len(reports))
	}
	slices.SortFunc(reports, func(a, b *reporter.Report) int { return a.Run.Start.Compare(b.Run.Start.Time) })
	outer, inner := reports[0], reports[1]
	if outer.Run.ID != inner.Run.ID || len(outer.Nodes["0"].Ranks) != 0 {
		t.Errorf("runs %s and %s, want the same; %d ranks in the outer one, want 0",
			outer.Run.ID, inner.Run.ID, len(outer.Nodes["0"].Ranks))
	}
	wantWorkers(t, inner.Nodes["0"])
	if o, i := outer.Nodes["0"].Job.CPUSeconds, inner.Nodes["0"].Job.CPUSeconds; o < i {
		t.Errorf("torchrun with its workers used %v s, want at least the workers' %v s", o, i)
	}
}

// torchOnSlurm checks that the workers are ranks if Slurm starts one torchrun on each node.
func torchOnSlurm(t *testing.T, c *slurmtest.Cluster) {
	bin := filepath.Dir(testenv.Repository(t, "e2e/slurm/testdata/torchrun"))
	j := submit(t, c, "torchrun/slurm.sh", "PATH="+c.Path()+":"+bin+":"+os.Getenv("PATH"))
	nodes := j.reports(t, j.id)
	for i := range 2 {
		n := nodes[fmt.Sprintf("node-%d.json", i)]
		if n == nil {
			t.Fatalf("reports %v, want two nodes; the job printed\n%s", nodes, j.out)
		}
		wantWorkers(t, n)
		if n.Identity.NodeName != fmt.Sprintf("node%d", i+1) || n.Identity.WorldSize != 4 || n.Ranks[fmt.Sprint(2*i)] == nil {
			t.Errorf("node %d: identity %+v, ranks %v; want node%d of world size 4 with rank %d",
				i, n.Identity, n.Ranks, i+1, 2*i)
		}
	}
	j.wantList(t, c, "JOB: 2 x 4, exit code 0")
}
