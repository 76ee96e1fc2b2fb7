//go:build e2e

package slurm

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/slurmtest"
)

// gathered checks that the nodes of a step put their reports into a store, and that merge gets the number of nodes from
// the reports.
func gathered(t *testing.T, c *slurmtest.Cluster) {
	dir := t.TempDir()
	address := "proxystore+file://" + dir + "/store"
	step := c.Command(t, "srun", "--quiet", "-N2", "perfagent", "run", "--store", address, "--push-timeout", "10m", "--", "sleep", "0.2")
	clitest.RunCommand(t, step).Want(t, 0)

	o := clitest.RunCommand(t, c.Command(t, "perfagent", "ls", "--json", address))
	o.Want(t, 0)
	var runs []struct {
		ID    string `json:"id"`
		Nodes int    `json:"nodes"`
	}
	if err := json.Unmarshal([]byte(o.Out), &runs); err != nil || len(runs) != 1 || runs[0].Nodes != 2 {
		t.Fatalf("ls --json of the store: error %v, want one run with 2 nodes: %s", err, o.Out)
	}

	out := filepath.Join(dir, "job.json")
	clitest.RunCommand(t, c.Command(t, "perfagent", "merge", address+"#"+runs[0].ID, "--wait", "10m", "--to", out)).Want(t, 0)
	r := reportertest.ReadFile(t, out)
	if g := r.Run.Gather; g == nil || g.NodesExpected != 2 || g.NodesFound != 2 || r.Nodes["1"].Host.Hostname != "node2" {
		t.Errorf("gathered %+v, want 2 of 2 nodes, with node2 as the second", g)
	}
}
