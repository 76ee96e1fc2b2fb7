package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/check"
)

// inSlurm sets the environment variables of a rank of a Slurm step.
func inSlurm(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{
		"SLURM_JOB_ID": "4713", "SLURM_ARRAY_JOB_ID": "4711", "SLURM_ARRAY_TASK_ID": "3", "SLURM_STEP_ID": "0",
		"SLURM_PROCID": "3", "SLURM_LOCALID": "0", "SLURM_NODEID": "1", "SLURMD_NODENAME": "node2",
		"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_TASKS_PER_NODE": "3,1", "RANK": "s3cret",
	} {
		t.Setenv(name, value)
	}
}

func TestEnv_PrintsIdentityAndItsSources(t *testing.T) {
	inSlurm(t)
	const want = `run id         4711_3  SLURM_ARRAY_JOB_ID, SLURM_ARRAY_TASK_ID
node           1       SLURM_NODEID
node name      node2   SLURMD_NODENAME
nodes          2       SLURM_STEP_NUM_NODES
rank           3       SLURM_PROCID
local rank     0       SLURM_LOCALID
ranks on node  1       SLURM_STEP_TASKS_PER_NODE
world size     4       SLURM_STEP_NUM_TASKS
scheduler      Slurm   SLURM_JOB_ID
job id         4713    SLURM_JOB_ID
launch         step-0  SLURM_STEP_ID
ignored:
  RANK: torchrun sets LOCAL_RANK, GROUP_RANK and LOCAL_WORLD_SIZE too
`

	if got := output(t, "env"); got != want {
		t.Errorf("env printed:\n%swant:\n%s", got, want)
	}
}

func TestEnv_JSON_OmitsValuesOfIgnoredVariables(t *testing.T) {
	inSlurm(t)
	t.Setenv("PERFAGENT_RUN_ID", "mine")
	t.Setenv("PERFAGENT_NODE", "7")

	out := output(t, "env", "--json")
	var found agent.Detection
	check.Must(t, json.Unmarshal([]byte(out), &found))

	id := found.Identity
	if found.RunID != "mine" || found.From["run_id"] != "PERFAGENT_RUN_ID" || id.Node == nil || *id.Node != 7 ||
		id.NodeFrom != "PERFAGENT_NODE" || id.Rank == nil || *id.Rank != 3 || id.RanksOnNode != 1 || id.Nodes != 2 ||
		found.From["rank"] != "SLURM_PROCID" || len(found.Ignored) != 1 || found.Ignored[0].Name != "RANK" {
		t.Errorf("env --json printed %s, want node 7 from PERFAGENT_NODE, rank 3 from SLURM_PROCID, and RANK ignored",
			out)
	}
	if strings.Contains(out, "s3cret") {
		t.Errorf("env --json prints the value of an ignored variable: %s", out)
	}
}
