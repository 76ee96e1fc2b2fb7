//go:build e2e

package slurm

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/slurmtest"
	"github.com/perfagent/perfagent/reporter"
)

// closedNodes returns the nodes in the reports of a run with the given number of nodes. The ranks of each node must
// have been combined into one report, with no other files left.
func closedNodes(t *testing.T, out string, nodes int) []*reporter.Node {
	t.Helper()
	paths := reportertest.InDir(t, out)
	var list []*reporter.Node
	for i := range nodes {
		want := fmt.Sprintf("node-%d.json", i)
		if len(paths) != nodes || filepath.Base(paths[i]) != want {
			t.Fatalf("files %q, want node-0.json to node-%d.json", paths, nodes-1)
		}
		n := reportertest.ReadFile(t, filepath.Join(out, paths[i])).Nodes[strconv.Itoa(i)]
		if n == nil {
			t.Fatalf("%s lacks node %d", paths[i], i)
		}
		list = append(list, n)
	}
	return list
}

// exactSums checks that there is one report per node, with the CPU time of each rank, their sum, and one series of the
// host.
func exactSums(t *testing.T, c *slurmtest.Cluster) {
	truth := t.TempDir()
	out := filepath.Join(t.TempDir(), "out")
	cmd := c.Command(t, "srun", "--quiet", "-N2", "--ntasks-per-node=4", "perfagent", "run", "--out", out, "--interval", "100ms", "--")
	cmd = clitest.AsHelper(cmd, "burn")
	cmd.Env = append(cmd.Env, burnSeconds+"=0.3", burnDir+"="+truth)
	clitest.RunCommand(t, cmd).Want(t, 0)

	for i, n := range closedNodes(t, out, 2) {
		host := fmt.Sprintf("node%d", i+1)
		if n.Host == nil || n.Host.Hostname != host || len(n.Ranks) != 4 {
			t.Fatalf("node %d has host %+v and %d ranks, want %s with 4", i, n.Host, len(n.Ranks), host)
		}
		sum := 0.0
		for r := 4 * i; r < 4*i+4; r++ {
			took, err := strconv.ParseFloat(clitest.Read(t, filepath.Join(truth, strconv.Itoa(r))), 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += took
			got := n.Ranks[strconv.Itoa(r)]
			if got == nil || got.Job == nil {
				t.Fatalf("rank %d on %s = %v, want a rank with a job", r, host, got)
			}
			wantCPU(t, fmt.Sprintf("rank %d", r), got.Job.CPUSeconds, took)
		}
		wantCPU(t, host, n.Job.CPUSeconds, sum)
		wantOneSeries(t, n)
	}
}

// wantCPU compares a CPU time with the time that the ranks read just before their ends. Both are in seconds.
func wantCPU(t *testing.T, who string, got, truth float64) {
	t.Helper()
	if over := got - truth; over < -0.001 || over > 0.05+truth/100 {
		t.Errorf("%s: CPU time = %.4f s, want the kernel's %.4f s", who, got, truth)
	}
	t.Logf("%s: the report %.4f s, the kernel %.4f s", who, got, truth)
}

// wantOneSeries checks that the host was measured by one rank at a time.
func wantOneSeries(t *testing.T, n *reporter.Node) {
	t.Helper()
	holders := n.Sampling.HostSpans
	if len(holders) == 0 {
		t.Fatalf("no rank measured the host: %+v", n.Sampling)
	}
	for i, h := range holders {
		if i > 0 && h.Start.Before(holders[i-1].End.Time) {
			t.Errorf("two ranks measured the host at the same time: %+v", holders)
		}
	}
	host := clitest.Metric(t, n, "cpu_avg_utilization_pct")
	if host <= 0 {
		t.Errorf("CPU usage of the host = %v, want above 0", host)
	}
}

// uneven checks a step with three ranks on one node and one on the other.
func uneven(t *testing.T, c *slurmtest.Cluster) {
	o, out := srun(t, c, []string{"-N2", "-n4"}, []string{"true"})
	o.Want(t, 0)
	for i, n := range closedNodes(t, out, 2) {
		if want := []int{3, 1}[i]; len(n.Ranks) != want {
			t.Errorf("%d ranks on node %d, want %d", len(n.Ranks), i, want)
		}
	}
}

// canceled checks a canceled step: slurmstepd ends every rank, and every report must have this cause.
func cancelled(t *testing.T, c *slurmtest.Cluster) {
	out := filepath.Join(t.TempDir(), "out")
	l := clitest.StartProcess(t, c.Command(t, "srun", "--quiet", "--job-name=cancelled", "-N2", "--ntasks-per-node=2",
		"perfagent", "run", "--out", out, "--", "sh", "-c", "echo ready; exec sleep 600"))
	for range 4 {
		l.Expect("ready")
	}
	clitest.RunCommand(t, c.Command(t, "scancel", "--name=cancelled")).Want(t, 0)
	l.End()
	clitest.WaitUntil(t, "both nodes' reports", func() bool { return len(reportertest.InDir(t, out)) == 2 })
	for i, n := range closedNodes(t, out, 2) {
		for name, r := range n.Ranks {
			if r.Verdict == nil || r.Verdict.Cause != "signal" || r.Verdict.Evidence["sender"] != "slurmstepd" {
				t.Errorf("node %d, rank %s: verdict %+v, want a signal from slurmstepd", i, name, r.Verdict)
			}
		}
	}
}

// nodeLost checks a step in which one of two nodes loses power. Slurm ends the ranks of the other node when it notices
// the loss. The journals of the lost ranks must have the recording of their node.
func nodeLost(t *testing.T, c *slurmtest.Cluster) {
	out := filepath.Join(t.TempDir(), "out")
	l := clitest.StartProcess(t, c.Command(t, "srun", "--quiet", "-N2", "--ntasks-per-node=2",
		"perfagent", "run", "--out", out, "--interval", "100ms", "--run-id", "lost", "--", "sh", "-c", "echo ready; exec sleep 600"))
	for range 4 {
		l.Expect("ready")
	}
	clitest.WaitUntil(t, "a sample in each journal", func() bool { return len(reportertest.InDir(t, out)) == 4 })
	c.Nodes[1].Kill(t)
	begin := time.Now()
	o, _ := l.End()
	t.Logf("srun ended %.0f s after the node, with exit code %d", time.Since(begin).Seconds(), o.Code)
	clitest.WaitUntil(t, "the report of the node that is left", func() bool {
		return clitest.Exists(filepath.Join(out, "lost", "node-0.json"))
	})

	files := []string{"lost/node-0.json", "lost/node-1.rank-2.jsonl", "lost/node-1.rank-3.jsonl"}
	if got := reportertest.InDir(t, out); !slices.Equal(got, files) {
		t.Fatalf("files %q, want %q", got, files)
	}
	r := reportertest.ReadFile(t, filepath.Join(out, files[0]))
	for name, rank := range r.Nodes["0"].Ranks {
		if rank.Verdict == nil || rank.Verdict.Cause != "signal" || rank.Verdict.Evidence["sender"] != "slurmstepd" {
			t.Errorf("rank %s: verdict %+v, want a signal from slurmstepd", name, rank.Verdict)
		}
	}
	show := clitest.RunCommand(t, c.Command(t, "perfagent", "show", "--out", out, "lost"))
	for _, want := range []string{"node1", "node2", "2 nodes"} {
		if !strings.Contains(show.Out, want) {
			t.Errorf("output of show lacks %q:\n%s%s", want, show.Out, show.Err)
		}
	}
	list := clitest.RunCommand(t, c.Command(t, "perfagent", "ls", "--out", out, "--json"))
	if !strings.Contains(list.Out, `"state": "incomplete"`) || !strings.Contains(list.Out, `"ranks": 4`) {
		t.Errorf("output of ls lacks an incomplete run with four ranks:\n%s%s", list.Out, list.Err)
	}

	c.StartNode(1)
	c.WaitIdle(t)
}
