//go:build e2e

package main

import (
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
)

func TestE2E_MLflow_EveryCaseWorksWithVersion3(t *testing.T) {
	t.Parallel()
	s := mlflowServers.Get(t, mlflowtest.Options{Version: 3})
	long := startLongJob(t, s)
	t.Run("meanwhile", testMLflow3)
	t.Run("live", func(t *testing.T) { long.testLivePushing(t, s) })
}

// testMLflow3 runs the tests that fit into the duration of a job.
func testMLflow3(t *testing.T) {
	onServer(t, mlflowtest.Options{Version: 3},
		serverCase{"shapes of jobs", testShapesOfJobs},
		serverCase{"environment of the job", testJobsEnvironment},
		serverCase{"two recordings in one run", testTwoRecordingsInOneRun},
		serverCase{"twin recordings", testTwinRecordings},
		serverCase{"copies pushed at once", testCopiesPushedAtOnce},
		serverCase{"an answer is lost", testAnswerIsLost},
		serverCase{"a read-only folder", testReadOnlyFolder},
		serverCase{"perf.py", testPushPerfPy},
		serverCase{"node after node", testPushNodeAfterNode},
		serverCase{"two nodes at once", testTwoNodesAtOnce},
		serverCase{"run of another node", testRunOfAnotherNode},
		serverCase{"an hour", testPushAnHour},
		serverCase{"TLS", testTLS},
		serverCase{"sidecar", testSidecarPushes},
	)
}

func TestE2E_MLflow_EveryCaseWorksWithVersion2(t *testing.T) {
	t.Parallel()
	onServer(t, mlflowtest.Options{Version: 2},
		serverCase{"own run of the job", testJobsOwnRun},
		serverCase{"a run of our own", testOwnRuns},
		serverCase{"a given run", testGivenRun},
		serverCase{"two recordings in one run", testTwoRecordingsInOneRun},
		serverCase{"twin recordings", testTwinRecordings},
		serverCase{"pushed again", testPushedAgain},
		serverCase{"copies pushed at once", testCopiesPushedAtOnce},
		serverCase{"an answer is lost", testAnswerIsLost},
		serverCase{"the shell names the server", testPushToTheShellsServer},
		serverCase{"two nodes at once", testTwoNodesAtOnce},
		serverCase{"a journal", testPushJournal},
	)
}

// A file store stores a repeated point twice, so the concurrent pushes here are those that a lock separates.
func TestE2E_MLflow_WorksWithFileStoreOfVersion2(t *testing.T) {
	t.Parallel()
	onServer(t, mlflowtest.Options{Version: 2, FileStore: true},
		serverCase{"a run of our own", testOwnRuns},
		serverCase{"two recordings in one run", testTwoRecordingsInOneRun},
		serverCase{"pushed again", testPushedAgain},
	)
}

// The phases of a job are metrics of its run, under names that the server accepts.
func TestE2E_MLflow_PhasesAreMetricsOfRun(t *testing.T) {
	t.Parallel()
	s := mlflowServers.Get(t, mlflowtest.Options{})
	experiment := study(t)
	o := clitest.RunCommand(t, wrapped(t, s, experiment, "sh", "-c",
		`echo '{"phase":"load <1>"}' >> "$PERFAGENT_MARKS"; sleep 0.3; echo '{"phase":"train"}' >> "$PERFAGENT_MARKS"; sleep 0.3`))
	o.Want(t, 0)

	n, run := o.Report(t).Nodes["0"], onlyRun(t, s, experiment)
	for phase, prefix := range map[string]string{"load <1>": "phase/load _1_/", "train": "phase/train/"} {
		p := n.Phase(phase)
		if p == nil {
			t.Fatalf("phases %+v lack the one that the run has as a metric", n.Phases)
		}
		for key, want := range map[string]float64{
			"seconds": p.Seconds, "job_avg_cpu_cores": p.Metrics["job_avg_cpu_cores"],
			"job_peak_memory_mb": p.Metrics["job_peak_memory_mb"],
		} {
			if got := run.Metrics[prefix+key]; len(got) != 1 || got[0].Value != want || got[0].Step != 0 {
				t.Errorf("%s%s: %v, want %v", prefix, key, got, want)
			}
		}
	}
}
