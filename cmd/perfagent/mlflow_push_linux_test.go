package main

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/mlflow"
)

// pushAgain is the number of repetitions of each test of concurrent pushes below.
const pushAgain = 3

// A report that two processes push concurrently, and that is pushed once more, is in one run, with each point once.
func testPushedAgain(t *testing.T, s *mlflowtest.Server) {
	for i := range pushAgain {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			experiment := study(t)
			path := writeSynthetic(t, synthetic{run: "r" + newInvocation(), seconds: 125, code: 1})
			for _, o := range sideBySide(t, tracked(t, s, experiment, "push", path), tracked(t, s, experiment, "push", path)) {
				o.Want(t, 0)
			}
			if said := pushNow(t, s, experiment, path).Out; !strings.Contains(said, "0 metrics and 0 points sent") {
				t.Errorf("third push prints %q, want 0 metrics and 0 points sent", said)
			}
			run := onlyRun(t, s, experiment)
			wantHistories(t, run, path)
			wantSteps(t, run, 0, 13)
			wantArtifact(t, s, run.Info.RunID, "perfagent/node-0.json", path)
		})
	}
}

// wantSteps checks that a node's series have the steps 0…n−1.
func wantSteps(t *testing.T, run mlflowtest.RunData, node, n int) {
	t.Helper()
	var want []int64
	for i := range n {
		want = append(want, int64(i))
	}
	if got := steps(run, node); !slices.Equal(got, want) {
		t.Errorf("steps %v, want 0 to %d", got, n-1)
	}
}

// wantStepsOf checks that the series of node 0 have the steps that a report, in a file of any kind, calls for.
func wantStepsOf(t *testing.T, run mlflowtest.RunData, path string) {
	t.Helper()
	report := clitest.Write(t, filepath.Join(t.TempDir(), "node-0.json"), string(encoded(t, readAny(t, path))), 0o600)
	if got, want := steps(run, 0), steps(mlflowtest.RunData{Metrics: histories(t, report)}, 0); !slices.Equal(got, want) {
		t.Errorf("steps %v, want %v", got, want)
	}
}

// wantSame checks that two runs have the same points.
func wantSame(t *testing.T, got, want mlflowtest.RunData) {
	t.Helper()
	for _, run := range []mlflowtest.RunData{got, want} {
		for key, points := range run.Metrics {
			run.Metrics[key] = byTime(points)
		}
	}
	if diff := cmp.Diff(want.Metrics, got.Metrics); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

// copyOf copies a file into a directory.
func copyOf(t testing.TB, path, dir string) string {
	t.Helper()
	return clitest.Write(t, filepath.Join(dir, filepath.Base(path)), clitest.Read(t, path), 0o644)
}

// Concurrent pushes of copies of a report, which share no lock, store common points once.
func testCopiesPushedAtOnce(t *testing.T, s *mlflowtest.Server) {
	for i := range pushAgain {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			id := givenRun(t, s, study(t))
			path := writeSynthetic(t, synthetic{run: "r", seconds: 600})
			var cmds []*exec.Cmd
			for _, path := range []string{path, copyOf(t, path, t.TempDir())} {
				cmds = append(cmds, tracked(t, s, "", "push", "--mlflow-run-id", id, path))
			}
			for _, o := range sideBySide(t, cmds...) {
				o.Want(t, 0)
			}
			wantHistories(t, s.ReadBack(t, id), path)
		})
	}
}

// If the response to a stored batch is lost, the batch is sent again and stored once.
func testAnswerIsLost(t *testing.T, s *mlflowtest.Server) {
	experiment, f := study(t), newFront(t, s.URL)
	f.lose.Store(true)
	path := writeSynthetic(t, synthetic{run: "r" + newInvocation(), seconds: 600})
	cmd := tracked(t, s, experiment, "push", "--mlflow", f.URL, path)
	mustExit(t, 0, with(cmd, "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER=0"))
	run := onlyRun(t, s, experiment)
	wantHistories(t, run, path)
	wantDone(t, path, run.Info.RunID)
	if f.lose.Load() {
		t.Error("no response was lost, so no batch was sent again")
	}
}

// A read-only report can be pushed, and a second push finds its run.
func testReadOnlyFolder(t *testing.T, s *mlflowtest.Server) {
	experiment := study(t)
	dir := clitest.Mount(t, "size=1m", 0)
	path := copyOf(t, writeSynthetic(t, synthetic{run: "r" + newInvocation(), seconds: 25}), dir)
	check.Must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for range 2 {
		mustExit(t, 0, tracked(t, s, experiment, "push", path)).WantLine(t, dir, "read-only")
	}
	run := onlyRun(t, s, experiment)
	wantHistories(t, run, path)
	if run.Info.Status != "FINISHED" {
		t.Errorf("run %+v, want status FINISHED", run.Info)
	}
}

// A perf.py file cannot record a push, but a second push finds its run.
func testPushPerfPy(t *testing.T, s *mlflowtest.Server) {
	experiment := study(t)
	// The numbers are made unique: otherwise the push would find the run of another test with the same numbers.
	text := strings.Replace(clitest.Read(t, "testdata/perf.py.json"), "1000.0", fmt.Sprintf("%.3f", float64(time.Now().UnixMilli()%999_000)/1000), 1)
	path := clitest.Write(t, filepath.Join(t.TempDir(), "perf.json"), text, 0o644)
	pushNow(t, s, experiment, "--cpus", "8", path)
	first := onlyRun(t, s, experiment)
	pushNow(t, s, experiment, "--cpus", "8", copyOf(t, path, t.TempDir()))
	run := onlyRun(t, s, experiment)
	wantSame(t, run, first)
	if after := clitest.Read(t, path); after != text {
		t.Errorf("the file was changed by the push:\n%s", after)
	}
	if got := artifact(t, s, run.Info.RunID, "perfagent/perf.json"); string(got) != text {
		t.Errorf("artifact perf.json differs from the file:\n%s", got)
	}
	for _, name := range metricOrder[:18] {
		if points := run.Metrics[name]; len(points) != 1 || points[0].Step != 3 {
			t.Errorf("%s has the points %v, want one at step 3", name, points)
		}
	}
	if len(steps(run, 3)) == 0 || run.Info.Status != "FINISHED" {
		t.Errorf("steps %v of node 3, run %+v; want some steps, status FINISHED", steps(run, 3), run.Info)
	}
}

func testPushMerged(t *testing.T, s *mlflowtest.Server) {
	experiment, id := study(t), "r"+newInvocation()
	parts := []string{writeSynthetic(t, synthetic{run: id, seconds: 25}),
		writeSynthetic(t, synthetic{run: id, seconds: 35, node: 1, after: time.Second, code: 2})}
	path := filepath.Join(t.TempDir(), "merged.json")
	clitest.Run(t, "merge", parts[0], parts[1], "--to", path).Want(t, 0)
	pushNow(t, s, experiment, path)
	got := onlyRun(t, s, experiment)
	wantHistories(t, got, path)
	wantSteps(t, got, 0, 3)
	wantSteps(t, got, 1, 4)
	if got.Info.Status != "FAILED" || got.Tags["perfagent.node.0.host"] != "host-0" || got.Tags["perfagent.node.1.host"] != "host-1" {
		t.Errorf("run %+v, tags %v; want FAILED, host-0 and host-1", got.Info, got.Tags)
	}
	wantArtifact(t, s, got.Info.RunID, "perfagent/merged.json", path)
}

// Two nodes that are pushed one after the other are in the same run.
func testPushNodeAfterNode(t *testing.T, s *mlflowtest.Server) {
	for _, order := range []string{"01", "10"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			experiment, id := study(t), "r"+newInvocation()
			var paths []string
			for _, digit := range order {
				y := synthetic{run: id, seconds: 25, node: int(digit - '0')}
				y.after, y.code = time.Duration(y.node)*time.Second, y.node
				paths = append(paths, writeSynthetic(t, y)) // the report contains the current time
			}
			for _, path := range paths {
				pushNow(t, s, experiment, path)
			}
			o := mustRun(t, 0, "merge", paths[0], paths[1], "--to", "merged.json")
			pushNow(t, s, experiment, filepath.Join(o.Dir, "merged.json")) // the merged report names the run
			run := onlyRun(t, s, experiment)
			wantHistories(t, run, paths...)
			if r := reportertest.ReadFile(t, paths[strings.Index(order, "1")]); run.Info.Status != "FAILED" || run.Info.EndTime != r.Run.End.UnixMilli() {
				t.Errorf("run %+v, want FAILED at the end of node 1, %v", run.Info, r.Run.End)
			}
		})
	}
}

// The journal of a killed perfagent becomes an incomplete run with the status KILLED.
func testPushJournal(t *testing.T, s *mlflowtest.Server) {
	experiment := study(t)
	cmd := tracked(t, s, experiment, "run", "--interval", "20ms", "--run-id", "r"+newInvocation(), "--", "sh", "-c", "echo ready; exec sleep 600")
	l := clitest.StartProcess(t, cmd)
	l.Expect("ready")
	path := untilLines(t, filepath.Join(cmd.Dir, "perfagent-out", cmd.Args[5], "node-0.jsonl"), 60) // more than a second
	l.Signal(unix.SIGKILL)
	check.Must(t, unix.Kill(-cmd.Process.Pid, unix.SIGKILL)) // the job
	clitest.Wait(t, cmd)
	for range 2 {
		pushNow(t, s, "", path) // the journal records the experiment
	}
	run := onlyRun(t, s, experiment)
	if run.Info.Status != "KILLED" || run.Tags["perfagent.incomplete"] != "true" || run.Info.EndTime == 0 || run.Info.RunName != "sh -c 'echo ready; exec sleep 600'" {
		t.Errorf("run %+v, tags %v; want KILLED, incomplete, and named for the command", run.Info, run.Tags)
	}
	wantStepsOf(t, run, path)
	wantArtifact(t, s, run.Info.RunID, "perfagent/node-0.jsonl", path)
}

// livesOn is a job that creates a run at its start, and ends at EOF on stdin.
const livesOn = `
import sys
import mlflow
mlflow.set_experiment(sys.argv[1])
with mlflow.start_run(run_name="long") as run:
    print("run", run.info.run_id, flush=True)
    sys.stdin.read()
`

// longJob is a job that runs during other tests.
type longJob struct {
	experiment string
	front      *front
	slow       time.Duration // from the start of perfagent until the job has its run
	id         string        // MLflow run of the job
	process    *clitest.Process
	end        io.Closer // stdin of the job
}

// startLongJob starts a job that outlives the subtests of t.
func startLongJob(t *testing.T, s *mlflowtest.Server) *longJob {
	t.Helper()
	j := &longJob{experiment: study(t), front: creatingNoRun(t, s)}
	cmd := tracked(t, s, "", "run", "--interval", "200ms", "--max-length", "20000", "--mlflow", j.front.URL, "--", s.Python, "-c", livesOn, j.experiment)
	cmd.Stdin, j.end = clitest.Pipe(t)
	begun := time.Now()
	j.process = clitest.StartProcess(t, cmd)
	j.id = j.process.Field("run") // before other tests make the server and the machine busy
	j.slow = time.Since(begun)
	return j
}

// batchesOf returns the requests that send batches.
func batchesOf(asked []string) []string {
	return slices.DeleteFunc(slices.Clone(asked), func(r string) bool { return !strings.HasSuffix(r, "/runs/log-batch") })
}

// While a job runs, its full windows are sent to the server with one request each; at the end the run has the same
// points as after a single push of the report.
func (j *longJob) testLivePushing(t *testing.T, s *mlflowtest.Server) {
	var asked []string
	clitest.WaitUntil(t, "two batches are sent", func() bool {
		asked = append(asked, j.front.rest()...)
		return len(batchesOf(asked)) > 1
	})
	batches, early := len(batchesOf(asked)), s.ReadBack(t, j.id)
	// Three requests for each full window before the job created its run, and two to find the run.
	most := 2 + 3*int(1+j.slow/(10*time.Second))
	if first := len(asked) - batches; first > most || !strings.HasSuffix(asked[first], "/runs/log-batch") {
		t.Errorf("%d requests before the first batch, want at most %d: %q", first, most, asked)
	}
	n := len(steps(early, 0))
	if n < batches || early.Info.Status != "RUNNING" {
		t.Errorf("%d windows sent, %d in the run, want all of them; run %+v, want RUNNING", batches, n, early.Info)
	}
	j.end.Close()
	o := mustEnd(j.process, 0)
	if strings.Contains(o.Err, "perfagent:") {
		t.Errorf("stderr %q, want no message of perfagent", o.Err)
	}
	run, path := onlyRun(t, s, j.experiment), theReport(t, o)
	wantHistories(t, run, path)
	all := steps(run, 0)
	if len(all) <= n || !slices.Equal(steps(early, 0), all[:n]) || run.Info.RunID != j.id || run.Info.Status != "FINISHED" {
		t.Errorf("windows %v at the end and %v while the job ran, want the same and more at the end; run %+v, want %s, FINISHED",
			all, steps(early, 0), run.Info, j.id)
	}
	wantDone(t, path, j.id)
	if rest := j.front.rest(); len(rest) > 15+len(all)-n {
		t.Errorf("%d requests for %d windows at the end, want at most 15 more: %q", len(rest), len(all)-n, rest)
	}
	fresh := givenRun(t, s, study(t))
	pushNow(t, s, "", "--mlflow-run-id", fresh, path)
	again := s.ReadBack(t, fresh)
	wantHistories(t, again, path)
	wantSame(t, again, run)
}

// An hour of samples takes few requests.
func testPushAnHour(t *testing.T, s *mlflowtest.Server) {
	for _, maxLength := range []int{1000, 10_000} {
		t.Run(fmt.Sprint("ring of ", maxLength), func(t *testing.T) {
			t.Parallel()
			experiment, f := study(t), newFront(t, s.URL)
			createdExperiment(t, clientFor(t, mlflow.Config{URI: s.URL}), experiment)
			path := writeSynthetic(t, synthetic{run: "r" + newInvocation(), seconds: 3600, maxLength: maxLength})
			mustExit(t, 0, tracked(t, s, experiment, "push", "--mlflow", f.URL, path)) // progress may be printed
			asked := f.rest()
			if batches := len(batchesOf(asked)); batches > 18 || len(asked) > 25 {
				t.Errorf("%d batches, want at most 18; %d requests, want at most 25: %q", batches, len(asked), asked)
			}
			if maxLength < 3600 {
				return // reading all points back takes too long
			}
			run := onlyRun(t, s, experiment)
			wantHistories(t, run, path)
			wantSteps(t, run, 0, 361) // the last sample begins a window
		})
	}
}

// If the clocks of a node and the server differ, perfagent prints the difference and records it in the report. The
// times in the report stay unchanged.
func TestMLflow_ReportsClockDifferenceAndKeepsTimes(t *testing.T) {
	t.Parallel()
	for off, which := range map[time.Duration]string{time.Hour: "behind", -time.Hour: "ahead of", 0: ""} {
		site := newSite(t)
		site.SetBefore(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
			return false
		})
		begin := time.Now()
		o := mustExit(t, 0, pushing(t, site.URL, "--summary", "always", "--", "true"))
		r := o.Report(t)
		got := r.Nodes["0"].Push.MLflow.Error
		if which == "" && got == "" {
			continue // equal clocks
		}
		says := regexp.MustCompile(`the clock of this node is at least 3[56]\d\d\.\d s ` + which + ` the server's: ` +
			`times are from the node's clock`)
		if !says.MatchString(got) || !says.MatchString(o.Err) {
			t.Errorf("clock off by %v: the report records %q and stderr is\n%s\nwant %v in both, unless 0", off, got, o.Err, says)
		}
		if r.Run.Start.Before(begin.Add(-time.Second)) || r.Run.Start.After(time.Now()) {
			t.Errorf("%s: the run began at %v, want a time after %v", which, r.Run.Start, begin)
		}
	}
}
