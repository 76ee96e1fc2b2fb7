//go:build e2e

package main

import (
	"testing"

	"github.com/perfagent/perfagent/internal/mlflowtest"
)

func TestE2E_MLflow_EveryCaseWorksWithVersion3(t *testing.T) {
	t.Parallel()
	s := mlflowServers.Get(t, mlflowtest.Options{Version: 3})
	long := startLongJob(t, s)
	t.Run("during a job", testMLflow3)
	t.Run("live pushes", func(t *testing.T) { long.testLivePushing(t, s) })
}

// testMLflow3 runs the tests that fit into the duration of the long job.
func testMLflow3(t *testing.T) {
	onServer(t, mlflowtest.Options{Version: 3}, serverCases{
		"kinds of jobs": testShapesOfJobs, "environment of the job": testJobsEnvironment, "TLS": testTLS,
		"two recordings in one run": testTwoRecordingsInOneRun, "twin recordings": testTwinRecordings,
		"copies pushed concurrently": testCopiesPushedAtOnce, "lost response": testAnswerIsLost,
		"read-only directory": testReadOnlyFolder, "perf.py": testPushPerfPy, "sidecar": testSidecarPushes,
		"nodes one after the other": testPushNodeAfterNode, "two nodes concurrently": testTwoNodesAtOnce,
		"run of another node": testRunOfAnotherNode, "hour of samples": testPushAnHour,
	})
}

func TestE2E_MLflow_EveryCaseWorksWithVersion2(t *testing.T) {
	t.Parallel()
	onServer(t, mlflowtest.Options{Version: 2}, serverCases{
		"run of the job": testJobsOwnRun, "run created by perfagent": testOwnRuns, "a given run": testGivenRun,
		"two recordings in one run": testTwoRecordingsInOneRun, "twin recordings": testTwinRecordings,
		"repeated pushes": testPushedAgain, "copies pushed concurrently": testCopiesPushedAtOnce,
		"lost response": testAnswerIsLost, "server from the environment": testPushToTheShellsServer,
		"two nodes concurrently": testTwoNodesAtOnce, "a journal": testPushJournal,
	})
}

// A file store stores a repeated point twice, so the only concurrent pushes here are serialized by a lock.
func TestE2E_MLflow_WorksWithFileStoreOfVersion2(t *testing.T) {
	t.Parallel()
	onServer(t, mlflowtest.Options{Version: 2, FileStore: true}, serverCases{
		"run created by perfagent": testOwnRuns, "two recordings in one run": testTwoRecordingsInOneRun,
		"repeated pushes": testPushedAgain,
	})
}

// The phases of a job are metrics of its run, under names that the server accepts.
func TestE2E_MLflow_PhasesAreMetricsOfRun(t *testing.T) {
	t.Parallel()
	s := mlflowServers.Get(t, mlflowtest.Options{})
	experiment := study(t)
	o := mustExit(t, 0, wrapped(t, s, experiment, "sh", "-c",
		`echo '{"phase":"load <1>"}' >> "$PERFAGENT_MARKS"; sleep 0.3; echo '{"phase":"train"}' >> "$PERFAGENT_MARKS"; sleep 0.3`))
	n, run := o.Report(t).Nodes["0"], onlyRun(t, s, experiment)
	for phase, prefix := range map[string]string{"load <1>": "phase/load _1_/", "train": "phase/train/"} {
		p := n.Phase(phase)
		if p == nil {
			t.Fatalf("phases %+v lack %q", n.Phases, phase)
		}
		for key, want := range map[string]float64{
			"seconds": p.Seconds, "job_avg_cpu_cores": p.Metrics["job_avg_cpu_cores"],
			"job_peak_memory_mb": p.Metrics["job_peak_memory_mb"],
		} {
			if got := run.Metrics[prefix+key]; len(got) != 1 || got[0].Value != want || got[0].Step != 0 {
				t.Errorf("points of %s%s: %v, want one of %v at step 0", prefix, key, got, want)
			}
		}
	}
}
