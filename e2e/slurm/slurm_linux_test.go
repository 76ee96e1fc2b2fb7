//go:build e2e

package slurm

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/slurmtest"
	"github.com/perfagent/perfagent/reporter"
)

// In the ranks of a real Slurm cluster with two nodes, perfagent detects its identity, and all ranks have one RUN-ID.
func TestSlurm(t *testing.T) {
	c := slurmtest.Start(t)
	t.Run("cluster", func(t *testing.T) { // ends when all its parallel subtests have ended
		for _, s := range []struct {
			name string
			test func(*testing.T, *slurmtest.Cluster)
		}{
			{"identity", identity}, {"exact sums", exactSums}, {"exit codes", exitCodes}, {"uneven", uneven},
			{"cancelled", cancelled}, {"ranks.sh", exampleRanks}, {"steps.sh", exampleSteps}, {"wrapped.sh", exampleWrapped},
			{"array.sh", exampleArray}, {"hetero.sh", exampleHetero}, {"requeue.sh", exampleRequeue},
			{"mpi.sh", exampleMPI}, {"oom.sh", exampleOOM}, {"torchrun", torchOnSlurm}, {"store", gathered},
		} {
			t.Run(s.name, func(t *testing.T) { t.Parallel(); s.test(t, c) })
		}
	})
	t.Run("node lost", func(t *testing.T) { nodeLost(t, c) })
}

// A rank is the output of "perfagent env --json" in a rank.
type rank struct {
	RunID    string            `json:"run_id"`
	Identity reporter.Identity `json:"identity"`
}

// String returns the identity of a rank in one line, without the number of the job.
func (r rank) String() string {
	id := r.Identity
	text := fmt.Sprintf("%s, %s:", id.NodeName, id.Launch)
	for _, part := range []struct {
		name  string
		value *int
	}{{"node", id.Node}, {"rank", id.Rank}, {"local", id.LocalRank}, {"on node", &id.RanksOnNode}, {"of", &id.WorldSize}, {"nodes", &id.Nodes}} {
		if part.value != nil {
			text += fmt.Sprintf(" %s %d", part.name, *part.value)
		}
	}
	return text
}

// identity checks the identity of each rank in every kind of step.
func identity(t *testing.T, c *slurmtest.Cluster) {
	for _, s := range []struct {
		name  string
		words []string // options of srun
		want  []string
	}{
		{"2 nodes, 8 ranks", []string{"-N2", "--ntasks-per-node=4"}, []string{
			"node1, step-0: node 0 rank 0 local 0 on node 4 of 8 nodes 2",
			"node1, step-0: node 0 rank 1 local 1 on node 4 of 8 nodes 2",
			"node1, step-0: node 0 rank 2 local 2 on node 4 of 8 nodes 2",
			"node1, step-0: node 0 rank 3 local 3 on node 4 of 8 nodes 2",
			"node2, step-0: node 1 rank 4 local 0 on node 4 of 8 nodes 2",
			"node2, step-0: node 1 rank 5 local 1 on node 4 of 8 nodes 2",
			"node2, step-0: node 1 rank 6 local 2 on node 4 of 8 nodes 2",
			"node2, step-0: node 1 rank 7 local 3 on node 4 of 8 nodes 2",
		}},
		{"3 ranks and 1 rank", []string{"-N2", "-n4"}, []string{
			"node1, step-0: node 0 rank 0 local 0 on node 3 of 4 nodes 2",
			"node1, step-0: node 0 rank 1 local 1 on node 3 of 4 nodes 2",
			"node1, step-0: node 0 rank 2 local 2 on node 3 of 4 nodes 2",
			"node2, step-0: node 1 rank 3 local 0 on node 1 of 4 nodes 2",
		}},
		{"round robin", []string{"-N2", "-n4", "--distribution=cyclic", "--ntasks-per-node=2"}, []string{
			"node1, step-0: node 0 rank 0 local 0 on node 2 of 4 nodes 2",
			"node2, step-0: node 1 rank 1 local 0 on node 2 of 4 nodes 2",
			"node1, step-0: node 0 rank 2 local 1 on node 2 of 4 nodes 2",
			"node2, step-0: node 1 rank 3 local 1 on node 2 of 4 nodes 2",
		}},
	} {
		dir := t.TempDir()
		args := append([]string{"--quiet", "--output=" + dir + "/%t", "--error=none"}, s.words...)
		clitest.RunCommand(t, c.Command(t, "srun", append(args, "perfagent", "env", "--json")...)).Want(t, 0)
		wantRanks(t, s.name, dir, s.want)
	}
}

// wantRanks compares the identities that ranks have written, each into a file with the number of the rank as its name.
// The run must have the number of the job as its ID, and the nodes must be from Slurm's list.
func wantRanks(t *testing.T, name, dir string, want []string) {
	t.Helper()
	var got []string
	run := ""
	for i := range want {
		var r rank
		if err := json.Unmarshal([]byte(clitest.Read(t, filepath.Join(dir, strconv.Itoa(i)))), &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r.String())
		if run == "" {
			run = r.RunID
		}
		if r.RunID != run || r.RunID != r.Identity.JobID || r.Identity.NodeFrom != "SLURM_JOB_NODELIST" {
			t.Errorf("%s: run %q, want %q, and the same as job %q; source of the node %s, want SLURM_JOB_NODELIST",
				name, r.RunID, run, r.Identity.JobID, r.Identity.NodeFrom)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: identities\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// srun runs a step. It returns the outcome, and the directory with the reports.
func srun(t *testing.T, c *slurmtest.Cluster, flags, job []string) (clitest.Outcome, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	args := append([]string{"--quiet"}, flags...)
	args = append(args, "perfagent", "run", "--out", out, "--interval", "100ms", "--")
	return clitest.RunCommand(t, c.Command(t, "srun", append(args, job...)...)), out
}

// exitCodes checks that srun's exit code is the same with and without perfagent, whichever rank fails.
func exitCodes(t *testing.T, c *slurmtest.Cluster) {
	for _, job := range []string{
		"exit $SLURM_PROCID", "test $SLURM_PROCID != 2 || exit 77", "test $SLURM_PROCID != 3 || kill -SEGV $$",
		"test $SLURM_PROCID != 1 || kill -KILL $$",
	} {
		shell := []string{"sh", "-c", job}
		flags := []string{"-N2", "--ntasks-per-node=2"}
		without := clitest.RunCommand(t, c.Command(t, "srun", append(append([]string{"--quiet"}, flags...), shell...)...))
		with, _ := srun(t, c, flags, shell)
		if with.Code != without.Code || without.Code == 0 {
			t.Errorf("%s: exit code of srun = %d with perfagent, %d without; want equal codes other than 0",
				job, with.Code, without.Code)
		}
	}
}
