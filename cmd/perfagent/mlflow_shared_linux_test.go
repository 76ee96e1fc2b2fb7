package main

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// pendingReport returns the path of a report that was not pushed and that records the server uri.
func pendingReport(t testing.TB, uri string, args ...string) string {
	t.Helper()
	out := t.TempDir()
	call(append([]string{"run", "--out", out, "--interval", "100ms", "--mlflow", uri, "--push-timeout", "0"}, args...)...)
	_, path := reportertest.ReadSingle(t, out)
	return path
}

// A dry run changes nothing, and a failed push with flags does not change the server recorded in a pending report.
func TestPush_FailureKeepsRecordedServer(t *testing.T) {
	s := newSite(t)
	path := pendingReport(t, s.URL, "--", "true")
	before := clitest.Read(t, path)
	for _, args := range [][]string{
		{"--dry-run", "--mlflow", "http://127.0.0.1:1"}, {"--dry-run", "--mlflow-run-id", "nothing"}, {"--dry-run"},
		{"--mlflow-run-id", "nothing"}, {"--mlflow", "http://127.0.0.1:1"},
	} {
		insideWith(t, []string{"MLFLOW_HTTP_REQUEST_MAX_RETRIES=0"}, slices.Concat([]string{"push"}, args, []string{path})...)
		if after := clitest.Read(t, path); after != before {
			t.Fatalf("%v changed the report, want it unchanged", args)
		}
	}
	if n := len(s.Runs()); n != 0 {
		t.Errorf("%d runs on the server, want 0", n)
	}
	call("push", path).Want(t, 0)
	s.only(t)
}

// The job's MLFLOW_RUN_CONTEXT never prevents its start, and is only changed if its meaning stays the same.
func TestMLflow_OddRunContextNeverPreventsStart(t *testing.T) {
	for name, value := range map[string]string{
		"as long as the kernel allows": `{"k":"` + strings.Repeat("x", 128<<10-len(`MLFLOW_RUN_CONTEXT={"k":""}`)-1) + `"}`,
		"half a character":             `{"\ud800":"x"}`, "not UTF-8": "{\"\xff\":\"x\"}", "a list": `["a"]`, "null": "null", "junk": "{",
	} {
		o := insideWith(t, []string{"MLFLOW_RUN_CONTEXT=" + value}, "run", "--mlflow", "http://127.0.0.1:1", "--push-timeout", "0", "--",
			"sh", "-c", `printf %s "$MLFLOW_RUN_CONTEXT"`)
		if o.Want(t, 0); o.Out != value {
			t.Errorf("%s: the job's variable has %d bytes %.80q, want %d %.80q", name, len(o.Out), o.Out, len(value), value)
		}
	}
}

// If concurrent commands share an MLflow run, the run has all points of each command.
func TestMLflow_ParallelCommandsShareOneRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.newRun(t)
	var cmds []*exec.Cmd
	for k := range 6 {
		cmd := pushing(t, s.URL, "--run-id", fmt.Sprint("s", k), "--", "sleep", "1.2")
		cmds = append(cmds, with(cmd, "MLFLOW_RUN_ID="+id))
	}
	all := sideBySide(t, cmds...)
	got := s.only(t)
	var paths []string
	for _, o := range all {
		o.Want(t, 0)
		paths = append(paths, theReport(t, o))
	}
	for _, want := range histories(t, paths...)[oneSeries] { // two may have the same point, which is stored once
		if !slices.ContainsFunc(got.Metrics[oneSeries], func(p mlflowtest.Point) bool {
			return p.Step == want.Step && p.Timestamp == want.Timestamp && math.Abs(p.Value-want.Value) < 1e-6
		}) {
			t.Errorf("the point %v of a command is missing from %v", want, got.Metrics[oneSeries])
		}
	}
	if n := len(got.Metrics["node_cpu_hours"]); n != 6 || len(got.Artifacts) != 6 {
		t.Errorf("%d points of node_cpu_hours and %d artifacts, want 6 of each", n, len(got.Artifacts))
	}
}

// Concurrent pushes of copies of a report create only one run, although the copies share no lock.
func TestPush_ConcurrentPushesOfCopiesCreateOneRun(t *testing.T) {
	t.Parallel()
	for try := 1; ; try++ {
		alive, want, late := copiesPushedAtOnce(t)
		switch one := len(alive) == 1 && len(alive[0].Metrics[oneSeries]) == want; {
		case one:
			return
		case late < 250*time.Millisecond || try == 20: // concurrent pushes wait 300 ms for each other
			t.Fatalf("%d runs of concurrent pushes, want 1: %+v", len(alive), alive)
		}
		t.Logf("try %d: the copies created their runs %v apart", try, late)
	}
}

// copiesPushedAtOnce returns the resulting runs, the number of points that each series should have, and the time
// between the creations of the runs.
func copiesPushedAtOnce(t *testing.T) (alive []mlflowtest.RunData, points int, apart time.Duration) {
	t.Helper()
	s := newSite(t)
	path := pendingReport(t, s.URL, "--", "sleep", "0.3")
	var cmds []*exec.Cmd
	for k := range 3 {
		twin := clitest.Write(t, filepath.Join(t.TempDir(), fmt.Sprint(k, ".json")), clitest.Read(t, path), 0o644)
		cmds = append(cmds, clitest.Perfagent(t, "push", twin))
	}
	for _, o := range sideBySide(t, cmds...) {
		o.Want(t, 0)
	}
	made := slices.DeleteFunc(s.Requests(), func(r mlflowtest.Request) bool { return !strings.Contains(r.Path, "runs/create") })
	alive = slices.DeleteFunc(s.Runs(), func(r mlflowtest.RunData) bool { return r.Info.LifecycleStage == "deleted" })
	return alive, len(histories(t, path)[oneSeries]), made[len(made)-1].Time.Sub(made[0].Time)
}

// Pushing the journal of a running run sends no point that changes later.
func TestPush_JournalOfRunningRunSendsOnlyFinalPoints(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cmd := pushing(t, s.URL, "--run-id", "on", "--", "sh", "-c", "echo ready; read end")
	end, err := cmd.StdinPipe()
	check.Must(t, err)
	begun := time.Now()
	l := clitest.StartProcess(t, cmd)
	l.Expect("ready")
	journal := untilLines(t, filepath.Join(cmd.Dir, "perfagent-out/on/node-0.jsonl"), 12)
	call("push", journal).Want(t, 0)
	if got, n := s.only(t).Info.Status, len(s.steps("")); n > int(time.Since(begun)/(10*time.Second)) || got != mlflow.Running {
		t.Errorf("%d points, status %s; want at most one per 10 s, %s", n, got, mlflow.Running)
	}
	end.Close()
	o, _ := l.End()
	got := s.only(t)
	wantStepsOf(t, got, theReport(t, o))
	if got.Info.Status != mlflow.Finished && got.Info.Status != mlflow.Failed {
		t.Errorf("status %s, want FINISHED or FAILED", got.Info.Status)
	}
}

// A push of a perf.py file finds the MLflow run of earlier pushes, including the push at the end of the job. Metrics
// that need --cpus are sent later.
func TestPush_FindsRunOfPerfPyFile(t *testing.T) {
	testenv.SkipIfShort(t, "a second for its pushes")
	t.Parallel()
	s := newSite(t)
	out := t.TempDir()
	call("run", "--out", out, "--interval", "100ms", "--mlflow", s.URL, "--compat", "perf.py", "--run-id", "p", "--", "sleep", "0.5").Want(t, 0)
	path := filepath.Join(out, "p/node-0.json")
	if n := len(s.only(t).Metrics["max_t_mem_percent"]); n != 1 {
		t.Fatalf("%d points of max_t_mem_percent, want 1 from the push at the end", n)
	}
	call("push", "--mlflow", s.URL, path).Want(t, 0)
	s.only(t)
	other := newSite(t)
	call("push", "--mlflow", other.URL, path).Want(t, 0)
	call("push", "--mlflow", other.URL, "--cpus", "8", path).Want(t, 0)
	if hours := other.only(t).Metrics["node_cpu_hours"]; len(hours) != 1 {
		t.Errorf("points of node_cpu_hours %v, want 1 from --cpus", hours)
	}
}

// The nodes of a merged report are pushed to the runs of their jobs.
func TestPush_MergedNodesGoToRunsOfTheirJobs(t *testing.T) {
	testenv.SkipIfShort(t, "a second for its pushes")
	t.Parallel()
	s := newSite(t)
	c := s.client(t)
	dir := t.TempDir()
	args := []string{"merge", "--to", filepath.Join(dir, "all.json")}
	want := make(map[string]string)
	for _, node := range []string{"0", "1"} {
		path := pendingReport(t, s.URL, "--run-id", "pair", "--node", node, "--", "sleep", "0.3")
		args = append(args, path)
		want[node] = createdRun(t, c, mlflow.NewRun{ExperimentID: "0", Name: "job", Tags: []mlflow.Tag{
			{Key: pusher.TagInvocation, Value: pushState(t, path, node).Invocation}, {Key: pusher.TagRunID, Value: "pair"}}})
	}
	call(args...).Want(t, 0)
	call("push", args[2]).Want(t, 0)
	for node, id := range want {
		if got := pushState(t, args[2], node); got.State != reporter.PushDone || got.RunID != id {
			t.Errorf("push state of node %s: %+v, want done in run %s", node, got, id)
		}
	}
	for _, r := range s.Runs() {
		if len(r.Metrics["max_t_mem_percent"]) != 1 || len(r.Artifacts) != 1 {
			t.Errorf("run %s: %d points of max_t_mem_percent, artifacts %v; want 1 of each",
				r.Info.RunID, len(r.Metrics["max_t_mem_percent"]), r.Artifacts)
		}
	}
}
