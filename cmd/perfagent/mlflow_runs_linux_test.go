package main

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// The tests and the program have the same list of series.
func TestMLflow_SystemSeriesMatchProgram(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range pusher.AllSeries() {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(systemSeries)), slices.Sorted(slices.Values(names))); diff != "" {
		t.Errorf("system series of the program (-want +got):\n%s", diff)
	}
}

// The common cases work with the newest version. TestE2E_MLflow_EveryCaseWorksWithVersion3 has the other cases.
func TestMLflow_CommonCasesWorkWithVersion3(t *testing.T) {
	t.Parallel()
	onServer(t, mlflowtest.Options{Version: 3}, serverCases{
		"run of the job": testJobsOwnRun, "run created by perfagent": testOwnRuns, "a given run": testGivenRun,
		"repeated pushes": testPushedAgain, "merged report": testPushMerged, "a journal": testPushJournal,
		"server from the environment": testPushToTheShellsServer,
	})
}

// trains is a job that logs to MLflow independently of perfagent.
const trains = `
import sys, time
import mlflow
mlflow.set_experiment(sys.argv[1])
with mlflow.start_run(run_name="training"):
    mlflow.log_metric("loss", 0.5)
    mlflow.set_tag("of", "the job")
    time.sleep(0.5)
`

// If the job creates an MLflow run, perfagent's metrics are in that run.
func testJobsOwnRun(t *testing.T, s *mlflowtest.Server) {
	experiment := study(t)
	o := mustExit(t, 0, tracked(t, s, "", "run", "--interval", "100ms", "--mlflow", creatingNoRun(t, s).URL, "--node", "2",
		"--tag", "team=blue green", "--tag", "branch=main", "--", s.Python, "-c", trains, experiment))
	if strings.Contains(o.Out+o.Err, "perfagent") {
		t.Errorf("stdout %q, stderr %q; want no mention of perfagent", o.Out, o.Err)
	}
	run, r := wantPushedRun(t, s, experiment, o)
	if run.Info.RunName != "training" || run.Info.Status != "FINISHED" || run.Tags["of"] != "the job" || run.Latest["loss"] != 0.5 {
		t.Errorf("the run of the job is %+v with the tags %v, want it as the job left it", run.Info, run.Tags)
	}
	if by, there := run.Tags["perfagent.created_by"]; there {
		t.Errorf("perfagent.created_by is %q, want no such tag: the job created the run", by)
	}
	wantNames(t, run, r, "2")
	wantTags(t, run, r, s.Python+" -c '"+trains+"' "+experiment)
}

// hostSeries matches the series that every host has.
var hostSeries = regexp.MustCompile(`^(cpu_utilization|system_memory|disk|network)_`)

// wantNames checks that a run has all documented metrics and all series of a node.
func wantNames(t *testing.T, run mlflowtest.RunData, r *reporter.Report, node string) {
	t.Helper()
	n := r.Nodes[node]
	for _, name := range metricOrder {
		missing := slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool { return m.What == name })
		if _, there := run.Latest[name]; there == missing {
			t.Errorf("metric %s: in the run %v, missing from the report %v; want one of the two", name, there, missing)
		}
	}
	sourceFailed := slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool {
		return slices.Contains([]string{"cpu", "memory", "disk", "disk_io", "network", "clock"}, m.What)
	})
	for name := range systemSeries {
		points := byTime(run.Metrics["system/"+node+"/"+name])
		for _, p := range points {
			if at := time.UnixMilli(p.Timestamp); at.Before(r.Run.Start.Add(-time.Second)) || at.After(r.Run.End.Add(noise)) {
				t.Errorf("%s has a point at %v, want it between %v and %v", name, at, r.Run.Start, r.Run.End)
			}
		}
		if wall := r.Run.WallSeconds; wall > 1.2 && len(points) == 0 && hostSeries.MatchString(name) && !sourceFailed {
			t.Errorf("%s has no points for a job of %.1f s", name, wall)
		}
	}
}

// For a job that logs nothing, perfagent creates an MLflow run with the status of the job.
func testOwnRuns(t *testing.T, s *mlflowtest.Server) {
	for _, c := range []struct {
		name, status  string
		code          int
		program, text string
	}{
		{"a shell command", "FINISHED", 0, "sh", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; sleep 1.3"},
		{"a script that does not log", "FINISHED", 0, s.Python, "import time; time.sleep(1.1)"},
		{"exit code 3", "FAILED", 3, "/bin/sh", "exit 3"},
		{"a signal", "KILLED", 137, "sh", "sleep 0.2; kill -9 $$"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			experiment := study(t)
			o := mustExit(t, c.code, tracked(t, s, experiment, "run", "--interval", "100ms", "--tag", "team=blue", "--",
				c.program, "-c", c.text))
			if o.Out != "" || o.Err != "" {
				t.Errorf("stdout %q, stderr %q; want none", o.Out, o.Err)
			}
			run, r := wantPushedRun(t, s, experiment, o)
			arguments := " -c '" + c.text + "'"
			name := filepath.Base(c.program) + arguments
			if i := run.Info; i.RunName != name || i.Status != c.status || i.StartTime != r.Run.Start.UnixMilli() || i.EndTime != r.Run.End.UnixMilli() {
				t.Errorf("run %+v, want %q, %s, from %v to %v", i, name, c.status, r.Run.Start, r.Run.End)
			}
			if run.Tags["perfagent.created_by"] != "perfagent" {
				t.Errorf("perfagent.created_by is %q, want perfagent", run.Tags["perfagent.created_by"])
			}
			wantNames(t, run, r, "0")
			wantTags(t, run, r, c.program+arguments)
		})
	}
}

// However a job uses MLflow, perfagent's metrics are in its earliest outermost run.
func testShapesOfJobs(t *testing.T, s *mlflowtest.Server) {
	for _, c := range []struct {
		name, lines string // of the job, after the import of MLflow and the choice of the experiment
		code        int
		run, status string // of the run that gets perfagent's metrics; "" = the only run
		runs        int
	}{
		{"two runs one after the other", `
with mlflow.start_run(run_name="first"):
    mlflow.log_metric("loss", 1)
with mlflow.start_run(run_name="second"):
    mlflow.log_metric("loss", 2)
`, 0, "first", "FINISHED", 2},
		{"nested runs", `
with mlflow.start_run(run_name="outer"):
    for i in range(2):
        with mlflow.start_run(run_name=f"inner {i}", nested=True):
            mlflow.log_metric("loss", i)
`, 0, "outer", "FINISHED", 3},
		{"autolog without start_run", `
import sklearn.linear_model
mlflow.sklearn.autolog(log_models=False, log_datasets=False)
sklearn.linear_model.LinearRegression().fit([[1], [2]], [1, 2])
`, 0, "", "FINISHED", 1},
		{"a run that raises", `
with mlflow.start_run(run_name="raises"):
    mlflow.log_metric("loss", 1)
    raise SystemExit(7)
`, 7, "raises", "FAILED", 1},
		{"a run that ended long before", `
with mlflow.start_run(run_name="early"):
    mlflow.log_metric("loss", 1)
time.sleep(2)
`, 0, "early", "FINISHED", 1},
		{"a run that is never ended", `
run = mlflow.MlflowClient().create_run(mlflow.get_experiment_by_name(sys.argv[1]).experiment_id, run_name="open",
    tags=mlflow.tracking.context.registry.resolve_tags())
`, 0, "open", "RUNNING", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			experiment := study(t)
			job := "import sys, time\nimport mlflow\nmlflow.set_experiment(sys.argv[1])\n" + c.lines
			path := theReport(t, mustExit(t, c.code, wrapped(t, s, "", s.Python, "-c", job, experiment)))
			runs, r := s.Runs(t, experiment), reportertest.ReadFile(t, path)
			if len(runs) != c.runs {
				t.Fatalf("%d runs, want %d: %s", len(runs), c.runs, runList(runs))
			}
			run := runs[0]
			if c.run != "" {
				run = runNamed(t, runs, c.run)
			}
			if i := run.Info; i.Status != c.status || i.EndTime >= r.Run.End.UnixMilli() {
				t.Errorf("run %+v, want status %s and an end before the job's, %v", i, c.status, r.Run.End)
			}
			wantHistories(t, run, path)
			wantArtifact(t, s, run.Info.RunID, "perfagent/node-0.json", path)
			for _, other := range runs {
				if other.Tags["perfagent.run_id"] != r.Run.ID || other.Tags["perfagent.invocation"] == "" {
					t.Errorf("run %q has the tags %v, want the run ID %s and an invocation", other.Info.RunName, other.Tags, r.Run.ID)
				}
				if other.Info.RunID != run.Info.RunID && len(steps(other, 0)) > 0 {
					t.Errorf("run %q also has time series, want them only in the job's run", other.Info.RunName)
				}
			}
		})
	}
}

// tellsEnvironment is a job that prints variables of its environment, one per line.
const tellsEnvironment = `echo "context $MLFLOW_RUN_CONTEXT"; echo "given ${MLFLOW_RUN_ID-none}"; echo "run $PERFAGENT_RUN_ID"; echo "node $PERFAGENT_NODE"`

// The job's environment gains the variables that identify its runs, and keeps the existing ones.
func testJobsEnvironment(t *testing.T, s *mlflowtest.Server) {
	t.Run("existing context", func(t *testing.T) {
		t.Parallel()
		experiment := study(t)
		o := mustExit(t, 0, with(wrapped(t, s, "", s.Python, "-c", trains, experiment),
			`MLFLOW_RUN_CONTEXT={"team": "blue <&> é", "perfagent.run_id": "old"}`))
		run, r := wantPushedRun(t, s, experiment, o)
		if run.Tags["team"] != "blue <&> é" || run.Tags["perfagent.run_id"] != r.Run.ID {
			t.Errorf("tags %v, want the team and the run ID of the report", run.Tags)
		}
	})
	for name, context := range map[string]string{"no context": "", "unreadable": `{"team": "blue`, "a list": ` ["team"] `, "null": "null"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			experiment := study(t)
			cmd := wrapped(t, s, experiment, "sh", "-c", tellsEnvironment)
			if context != "" {
				with(cmd, "MLFLOW_RUN_CONTEXT="+context)
			}
			o := mustExit(t, 0, cmd)
			run, r := wantPushedRun(t, s, experiment, o)
			if context == "" {
				invocation := run.Tags["perfagent.invocation"]
				context = fmt.Sprintf(`{"perfagent.invocation":"%s","perfagent.run_id":"%s"}`, invocation, r.Run.ID)
			}
			if want := "context " + context + "\ngiven none\nrun " + r.Run.ID + "\nnode 0\n"; o.Out != want {
				t.Errorf("environment of the job\n%s want\n%s", o.Out, want)
			}
			if run.Tags["perfagent.created_by"] != "perfagent" || o.Err != "" {
				t.Errorf("tags %v, want created_by perfagent; stderr %q, want none", run.Tags, o.Err)
			}
		})
	}
}

// The run in MLFLOW_RUN_ID gets the metrics of all commands, and its status stays unchanged.
func testGivenRun(t *testing.T, s *mlflowtest.Server) {
	experiment := study(t)
	id := givenRun(t, s, experiment)
	var paths []string
	for _, job := range []string{`sleep 1.4; echo "given $MLFLOW_RUN_ID"`, `sleep 0.3; echo "given $MLFLOW_RUN_ID"; exit 3`} {
		o := mustExit(t, 3*len(paths), with(wrapped(t, s, "not looked at", "sh", "-c", job), "MLFLOW_RUN_ID="+id))
		if o.Out != "given "+id+"\n" || o.Err != "" {
			t.Errorf("stdout %q, stderr %q; want \"given %s\" and no stderr", o.Out, o.Err, id)
		}
		paths = append(paths, theReport(t, o))
	}
	run := onlyRun(t, s, experiment)
	if i := run.Info; i.RunID != id || i.Status != "RUNNING" || i.EndTime != 0 || i.RunName != "given" {
		t.Errorf("run %+v, want the given run %s, still RUNNING", i, id)
	}
	wantHistories(t, run, paths...)
	wantArtifact(t, s, id, "perfagent/node-0.json", paths[0])
	if len(run.Artifacts) != 2 {
		t.Fatalf("artifacts %v, want the reports of both commands", run.Artifacts)
	}
	second := slices.IndexFunc(run.Artifacts, func(a mlflowtest.Artifact) bool { return a.Path != "perfagent/node-0.json" })
	wantArtifact(t, s, id, run.Artifacts[second].Path, paths[1])
	if len(s.Runs(t, "not looked at")) != 0 {
		t.Error("a run was created in another experiment, want only the given run")
	}
}

// Two consecutive recordings of a node are both complete in a run, whichever is longer, and whichever is pushed first.
func testTwoRecordingsInOneRun(t *testing.T, s *mlflowtest.Server) {
	for _, c := range []struct {
		name          string
		first, second int // seconds
		backwards     bool
	}{
		{"the second is shorter", 45, 4, false},
		{"the second is longer", 4, 45, false},
		{"the later one is pushed first", 25, 25, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			id := givenRun(t, s, study(t))
			// The second recording begins when the first one ends.
			paths := []string{writeSynthetic(t, synthetic{run: "a", seconds: c.first}),
				writeSynthetic(t, synthetic{run: "b", seconds: c.second, after: time.Duration(c.first) * time.Second})}
			if c.backwards {
				slices.Reverse(paths)
			}
			if run := pushedTwice(t, s, id, paths); len(run.Artifacts) != 2 {
				t.Errorf("artifacts %v, want two reports", run.Artifacts)
			}
		})
	}
}

// pushedTwice pushes reports to a run twice, and checks that the run has all points once.
func pushedTwice(t *testing.T, s *mlflowtest.Server, id string, paths []string) mlflowtest.RunData {
	t.Helper()
	for range 2 {
		for _, path := range paths {
			pushNow(t, s, "", "--mlflow-run-id", id, path)
		}
	}
	run := s.ReadBack(t, id)
	wantHistories(t, run, paths...)
	return run
}

// Recordings of the same time with nearly all values in common are all complete, even if a request repeats many stored
// points.
func testTwinRecordings(t *testing.T, s *mlflowtest.Server) {
	id, origin := givenRun(t, s, study(t)), time.Now().Add(-time.Hour)
	var paths []string
	for k := range 3 {
		paths = append(paths, writeSynthetic(t, synthetic{run: fmt.Sprint("twin", k), origin: origin, seconds: 45, jobMB: float64(k)}))
	}
	pushedTwice(t, s, id, paths)
}

// sideBySide runs prepared processes concurrently and waits for them.
func sideBySide(t *testing.T, cmds ...*exec.Cmd) (out []clitest.Outcome) {
	t.Helper()
	var all []*clitest.Process
	for _, cmd := range cmds {
		all = append(all, clitest.StartProcess(t, cmd))
	}
	for _, l := range all {
		o, _ := l.End()
		out = append(out, o)
	}
	return out
}

// Two nodes of a run share the MLflow run that perfagent creates.
func testTwoNodesAtOnce(t *testing.T, s *mlflowtest.Server) {
	experiment := study(t)
	id := "r" + newInvocation()
	stdin, end := clitest.Pipe(t)
	start := func(node, job string) *clitest.Process {
		cmd := tracked(t, s, experiment, "run", "--interval", "100ms", "--run-id", id, "--node", node, "--", "sh", "-c", job)
		cmd.Stdin = stdin
		return clitest.StartProcess(t, cmd)
	}
	// At the end of its job, node 1 waits 5 s for node 0's run. This is too short if the server is busy, so node 1 has
	// a longer job.
	one, zero := start("1", "read x; exit 1"), start("0", "sleep 1.2; exit 0")
	outcomes := []clitest.Outcome{mustEnd(zero, 0)}
	end.Close()
	outcomes = append(outcomes, mustEnd(one, 1))
	var paths []string
	for _, o := range outcomes {
		if o.Err != "" {
			t.Errorf("stderr %q, want none", o.Err)
		}
		paths = append(paths, theReport(t, o))
	}
	run := onlyRun(t, s, experiment)
	wantHistories(t, run, paths...)
	if run.Info.Status != "FAILED" || run.Tags["perfagent.node.0.host"] == "" || run.Tags["perfagent.node.1.host"] == "" {
		t.Errorf("run %+v, tags %v; want FAILED, with the hosts of both nodes", run.Info, run.Tags)
	}
	for _, path := range paths {
		wantArtifact(t, s, run.Info.RunID, "perfagent/"+filepath.Base(path), path)
	}
}

// The MLflow run that the job of one node creates gets the metrics of other nodes with the same run ID. A later run
// with that ID does not use it.
func testRunOfAnotherNode(t *testing.T, s *mlflowtest.Server) {
	experiment, id, server := study(t), "r"+newInvocation(), creatingNoRun(t, s).URL
	stdin, end := clitest.Pipe(t)
	prepare := func(node string, job ...string) *clitest.Process {
		args := []string{"run", "--interval", "100ms", "--mlflow", server, "--run-id", id, "--node", node, "--"}
		cmd := tracked(t, s, experiment, append(args, job...)...)
		cmd.Stdin = stdin
		return clitest.StartProcess(t, cmd)
	}
	one := prepare("1", "sh", "-c", "echo ready; read x; exit 0")
	one.Expect("ready")
	zero := prepare("0", s.Python, "-c", livesOn, experiment)
	job := zero.Field("run")
	end.Close()
	var paths []string
	for _, l := range []*clitest.Process{one, zero} {
		path := theReport(t, mustEnd(l, 0))
		paths = append(paths, path)
		wantDone(t, path, job)
	}
	wantHistories(t, onlyRun(t, s, experiment), paths...)
	o := mustExit(t, 0, tracked(t, s, experiment, "run", "--run-id", id, "--", "sh", "-c", "sleep 0.2"))
	runs := s.Runs(t, experiment)
	if len(runs) != 2 {
		t.Fatalf("runs %s, want the job's run and one more", runList(runs))
	}
	wantHistories(t, runNamed(t, runs, "long"), paths...)
	wantHistories(t, runNamed(t, runs, "sh -c 'sleep 0.2'"), theReport(t, o))
}

// A sidecar also pushes. If no server responds, it prints one line with the command to push later.
func testSidecarPushes(t *testing.T, s *mlflowtest.Server) {
	for _, c := range []struct{ uri, timeout, state string }{
		{s.URL, "10m", reporter.PushDone}, {"http://127.0.0.1:9", "1s", reporter.PushPending},
	} {
		t.Run(c.state, func(t *testing.T) {
			t.Parallel()
			experiment := study(t)
			cmd := tracked(t, s, experiment, "sidecar", "--interval", "50ms", "--run-id", "s", "--mlflow", c.uri, "--push-timeout", c.timeout)
			l := clitest.StartProcess(t, cmd)
			path := filepath.Join(cmd.Dir, "perfagent-out/s/node-0.json")
			untilLines(t, path+"l", 25) // a second of samples
			l.Signal(unix.SIGTERM)
			o := mustEnd(l, 0)
			if state := pushState(t, path, "0"); state.State != c.state {
				t.Errorf("push state %+v, want %s", state, c.state)
			}
			if c.state == reporter.PushPending {
				o.WantLine(t, "perfagent push ", path)
				return
			}
			run := onlyRun(t, s, experiment)
			wantArtifact(t, s, run.Info.RunID, "perfagent/node-0.json", path)
			if o.Err != "" || run.Info.Status != "FINISHED" || run.Info.RunName != "perfagent s" || run.Tags["perfagent.created_by"] != "perfagent" {
				t.Errorf("stderr %q, run %+v, tags %v; want no stderr, the finished run \"perfagent s\", and created_by perfagent",
					o.Err, run.Info, run.Tags)
			}
			if len(steps(run, 0)) == 0 {
				t.Error("the run has no time series, want those of the sidecar")
			}
		})
	}
}
