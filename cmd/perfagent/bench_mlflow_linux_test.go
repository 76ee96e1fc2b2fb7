package main

import (
	"context"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// monitored is a job with MLflow's own monitor. It ends when its stdin is closed, and prints how many seconds the end
// of the run took.
const monitored = `
import sys, time
import mlflow
mlflow.enable_system_metrics_logging()
mlflow.start_run()
print("ready", flush=True)
sys.stdin.read()
begin = time.perf_counter()
mlflow.end_run()
print("delay", time.perf_counter() - begin, file=sys.stderr)
`

// timed is a job that prints the time at which it ends.
const timed = `echo ready; cat; date +%s.%N`

// BenchmarkMLflow compares a job that pushes to a real server with MLflow's own monitor, which uses the same server at
// the same time. It measures CPU time and requests per hour in steady state, and the delay at the end of the job.
func BenchmarkMLflow(b *testing.B) {
	server := mlflowtest.Start(b, mlflowtest.Options{})
	ours, theirs := newFront(b, server.URL), newFront(b, server.URL)
	for b.Loop() {
		monitor := held(b, exec.Command(server.Python, "-c", monitored), server.Env("MLFLOW_TRACKING_URI="+theirs.URL))
		pushing := held(b, exec.Command(clitest.Binary(b), "run", "--", "sh", "-c", timed), append(os.Environ(), "MLFLOW_TRACKING_URI="+ours.URL))
		plain := held(b, exec.Command(clitest.Binary(b), "run", "--", "sh", "-c", timed), append(os.Environ(), "MLFLOW_TRACKING_URI="))
		time.Sleep(32 * time.Second) // perfagent waits 30 s for the job's own run
		all := []*heldJob{monitor, pushing, plain}
		from, before := time.Now(), [3]time.Duration{}
		requests := [2]int{len(ours.answered), len(theirs.answered)}
		for i, j := range all {
			before[i] = cpuTime(b, j.Cmd.Process.Pid)
		}
		time.Sleep(2 * time.Minute)
		var cpu [3]float64 // seconds per hour
		hours := time.Since(from).Hours()
		for i, j := range all {
			cpu[i] = (cpuTime(b, j.Cmd.Process.Pid) - before[i]).Seconds() / hours
		}
		b.ReportMetric(cpu[0], "monitor-cpu-s/h")
		b.ReportMetric(cpu[1], "perfagent-cpu-s/h")
		b.ReportMetric((cpu[1]-cpu[2])*1000/360, "of-it-push-ms/window")
		b.ReportMetric(float64(len(theirs.answered)-requests[1])/hours, "monitor-requests/h")
		b.ReportMetric(float64(len(ours.answered)-requests[0])/hours, "perfagent-requests/h")
		b.ReportMetric(pushing.release(b), "perfagent-delay-ms")
		b.ReportMetric(plain.release(b), "unpushed-delay-ms")
		monitor.release(b)
		delay, err := strconv.ParseFloat(lastWord(monitor.Stderr.String()), 64)
		if err != nil {
			b.Fatal(err, monitor.Stderr)
		}
		b.ReportMetric(delay*1000, "monitor-delay-ms")
	}
}

// heldJob is a job that runs until its stdin is closed.
type heldJob struct {
	*clitest.Process
	stdin io.Closer
}

func held(b *testing.B, cmd *exec.Cmd, env []string) *heldJob {
	b.Helper()
	cmd.Dir, cmd.Env = b.TempDir(), env
	stdin, err := cmd.StdinPipe()
	check.Must(b, err)
	j := &heldJob{clitest.StartProcess(b, cmd), stdin}
	j.Expect("ready")
	return j
}

// release ends the job and returns the milliseconds between the time that the job printed and the end of the process.
// It returns 0 if the job printed no time.
func (j *heldJob) release(b *testing.B) float64 {
	b.Helper()
	j.stdin.Close()
	out := mustEnd(j.Process, 0)
	now := float64(time.Now().UnixNano()) / 1e9
	ended, err := strconv.ParseFloat(lastWord(out.Out), 64)
	if err != nil {
		return 0 // the job prints no time
	}
	return (now - ended) * 1000
}

func lastWord(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexAny(s, " \n")+1:]
}

// BenchmarkPushHour pushes the report of a one-hour job (3,600 samples at 1 Hz) to a real server afterwards.
func BenchmarkPushHour(b *testing.B) {
	server := mlflowtest.Start(b, mlflowtest.Options{})
	front := newFront(b, server.URL)
	var took []float64
	for b.Loop() {
		client, err := mlflow.New(mlflow.Config{URI: front.URL})
		check.Must(b, err)
		report, before := madeUp(b, 3600, len(took)), len(front.answered)
		data := encoded(b, report)
		file := pusher.Artifact{Name: "node-0.json", Data: func(string) ([]byte, error) { return data, nil }}
		begin := time.Now()
		plan, err := pusher.Prepare(context.Background(), client, report, pusher.Options{Artifacts: []pusher.Artifact{file}})
		check.Must(b, err)
		check.Must(b, plan.Send(context.Background()))
		took = append(took, time.Since(begin).Seconds())
		b.ReportMetric(float64(len(front.answered)-before), "requests")
		b.ReportMetric(float64(plan.Points), "points")
		client.Close()
	}
	b.ReportMetric(clitest.Median(took), "s/push")
}

// BenchmarkPushNodes pushes a merged report of sixty nodes with 1,000 samples each to a real server, as perfagent push
// RUN-ID does.
func BenchmarkPushNodes(b *testing.B) {
	const nodes = 60
	server := mlflowtest.Start(b, mlflowtest.Options{})
	path := mergedReport(b, nodes, 1000)
	for b.Loop() { // run once, because a second push would find everything on the server
		begin := time.Now()
		mustRun(b, 0, "push", "--mlflow", server.URL, path)
		took := time.Since(begin)
		b.ReportMetric(nodes/took.Minutes(), "nodes/min")
		b.ReportMetric(took.Seconds(), "s/push")
	}
}

// mergedReport writes the report of a launch on several nodes with four ranks each.
func mergedReport(b *testing.B, nodes, seconds int) (path string) {
	b.Helper()
	var sources []reporter.SourceReport
	for i := range nodes {
		r := madeUp(b, seconds, 0)
		n := r.Nodes["0"]
		n.Identity = &reporter.Identity{Node: &i, NodeFrom: "SLURM_NODEID", Nodes: nodes, RanksOnNode: 4, WorldSize: 4 * nodes}
		n.Ranks = make(map[string]*reporter.Rank)
		for rank := 4 * i; rank < 4*i+4; rank++ {
			metrics := reporter.Values{reporter.MetricJobCPU: float64(rank)}
			n.Ranks[strconv.Itoa(rank)] = &reporter.Rank{
				Rank: rank, ExitCode: new(0), Metrics: metrics, Missing: []reporter.Missing{},
			}
		}
		r.Run.ID = "bench-nodes"
		r.Nodes = map[string]*reporter.Node{strconv.Itoa(i): n}
		sources = append(sources, reporter.SourceReport{Path: strconv.Itoa(i), Report: r})
	}
	merged, err := reporter.Merge(sources)
	check.Must(b, err)
	path = filepath.Join(b.TempDir(), "merged.json")
	writeReport(b, path, merged)
	return path
}

// madeUp returns the report of a simulated run of the given number of seconds. Each k gives a different run.
func madeUp(tb testing.TB, seconds, k int) *reporter.Report {
	tb.Helper()
	start := host.Instant{Wall: time.Now().Add(-time.Duration(seconds+k) * time.Second)}
	rec := collector.NewRecording(start, time.Second, 1000)
	for i := range seconds {
		var s collector.Sample
		for c := range s.Values {
			s.Values[c], s.Weights[c] = 50+50*math.Sin(float64(i)/float64(60+c)), 1
		}
		s.Values[collector.Timestamp] = float64(start.Wall.Add(time.Duration(i+1)*time.Second).UnixMilli()) / 1000
		rec.Add(&s)
		rec.End = host.Instant{Wall: start.Wall, Mono: time.Duration(i+1) * time.Second, Boot: time.Duration(i+1) * time.Second}
	}
	run := reporter.Run{ID: "bench-" + strconv.FormatInt(start.Wall.UnixNano(), 36), Command: []string{"hour"}, ExitCode: new(0)}
	return reporter.New(reporter.Input{Run: run, Recording: rec, Agent: reporter.Agent{Version: "bench"}})
}
