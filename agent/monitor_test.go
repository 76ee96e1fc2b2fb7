package agent

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// burn uses the given number of seconds of CPU time in this process.
func burn(seconds float64) {
	for from := ownCPU(); ownCPU()-from < seconds; {
		for i := range 1 << 16 {
			_ = math.Sqrt(float64(i))
		}
	}
}

// burnChild uses CPU time in a child, and returns the amount in seconds.
func burnChild(t *testing.T) float64 {
	t.Helper()

	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	check.Must(t, cmd.Run())

	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}

// A Monitor measures the process and its children from Start to Stop.
func TestMonitor_CountsTheProcessAndItsChildren(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU")
	burn(0.3) // before Start: not counted
	burnChild(t)
	before := programUsage()

	m := check.Value(Start(t.Context(), Options{Out: filepath.Join(t.TempDir(), "out"), MLflow: Off, Interval: 50 * time.Millisecond}))(t)
	burn(0.5)
	burnChild(t)
	r, err := m.Stop()
	after := programUsage()

	if err != nil || r.ExitCode != 0 || r.Signal != "" {
		t.Fatalf("result %+v, error %v; want no exit code, no signal, no error", r, err)
	}
	report := read(t, r)
	n := report.Nodes["0"]
	want := after.UserSeconds + after.SystemSeconds - before.UserSeconds - before.SystemSeconds
	for name, got := range map[string]float64{
		"job.user_seconds + system_seconds": n.Job.UserSeconds + n.Job.SystemSeconds,
		"job.cpu_seconds":                   n.Job.CPUSeconds,
		"job_cpu_seconds":                   n.Metrics["job_cpu_seconds"],
	} {
		if got > want+0.05 || got < 0.8*want-0.05 {
			t.Errorf("%s is %.3f, want about the %.3f s that the process used from Start to Stop", name, got, want)
		}
	}
	cores := n.Job.CPUSeconds / n.Wall() // on average
	if n.Job.PeakMemoryMB < 1 || n.Metrics["max_t_job_processes"] < 1 || n.Metrics["max_t_job_cpu_cores"] < cores/2 {
		t.Errorf("peak %v MiB, %v processes, %v CPUs; want at least 1, 1, %v",
			n.Job.PeakMemoryMB, n.Metrics["max_t_job_processes"], n.Metrics["max_t_job_cpu_cores"], cores/2)
	}
	if report.Run.ExitCode != nil || n.Verdict != nil || report.Run.Command[0] != os.Args[0] || n.Job.PID != os.Getpid() {
		t.Errorf("exit code %v, verdict %v, command %q, process %d; want none, none, this program",
			report.Run.ExitCode, n.Verdict, report.Run.Command, n.Job.PID)
	}
}

// A Monitor leaves out a child's usage before Start, although the kernel counts it when the child has ended.
func TestMonitor_LeavesOutChildsUsageBeforeStart(t *testing.T) {
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo used; read x")
	out := check.Value(cmd.StdoutPipe())(t)
	in := check.Value(cmd.StdinPipe())(t)
	check.Must(t, cmd.Start())
	check.Value(out.Read(make([]byte, 1)))(t)

	m := check.Value(Start(t.Context(), Options{Out: filepath.Join(t.TempDir(), "out"), MLflow: Off, HTML: Never}))(t)
	in.Close()
	_ = cmd.Wait()
	r := check.Value(m.Stop())(t)

	earlier := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	n := read(t, r).Nodes["0"]
	for name, got := range map[string]float64{
		"job.user_seconds + system_seconds": n.Job.UserSeconds + n.Job.SystemSeconds,
		"job_cpu_seconds":                   n.Metrics["job_cpu_seconds"],
	} {
		if runtime.GOOS == "linux" && got > earlier/2 {
			t.Errorf("%s is %.3f, want at most half of the %.3f s that the child used before Start", name, got, earlier)
		}
	}
	if runtime.GOOS == "linux" && (whyMissing(n, "job") == "" || !n.Job.MaxRSSAtMost) {
		t.Errorf("child that ran before Start: reason in missing %q, want one; MaxRSSAtMost %v, want true",
			whyMissing(n, "job"), n.Job.MaxRSSAtMost)
	}
}

// If a program changes its working directory, the report is still written to the initial directory.
func TestMonitor_OutIsRelativeToInitialDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	m := check.Value(Start(t.Context(), Options{Out: "out", RunID: "r", MLflow: Off, HTML: Always}))(t)
	began := check.Value(os.Getwd())(t)
	t.Chdir(t.TempDir())

	r, err := m.Stop()

	report, page := filepath.Join(began, "out", "r", "node-0.json"), filepath.Join(began, "out", "r", "node-0.html")
	if err != nil || r.ReportPath != report || r.PagePath != page {
		t.Fatalf("result %+v, error %v; want the report %s and the page %s", r, err, report, page)
	}
	if left, _ := os.ReadDir(filepath.Dir(report)); len(left) != 2 {
		t.Errorf("files %v, want only the report and the page", left)
	}
}

// Stop may be called more than once, and after the context has ended.
func TestMonitor_SecondStopReturnsSameResult(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := check.Value(Start(ctx, Options{Out: filepath.Join(t.TempDir(), "out"), MLflow: Off}))(t)
	cancel()

	first, err := m.Stop()
	again, errAgain := m.Stop()

	if err != nil || errAgain != nil || first != again || first.ReportPath == "" {
		t.Errorf("Stop: %+v, %v, then %+v, %v; want the same Result with a report both times", first, err, again, errAgain)
	}
}

// A Monitor leaves out usage after the end of its context.
func TestMonitor_LeavesOutUsageAfterContext(t *testing.T) {
	testenv.SkipIfShort(t, "half a second of CPU")
	ctx, cancel := context.WithCancel(t.Context())
	m := check.Value(Start(ctx, Options{Out: filepath.Join(t.TempDir(), "out"), MLflow: Off, HTML: Never}))(t)
	cancel()
	m.samplingResults <- <-m.samplingResults // sampling has ended
	done := time.Now()
	burn(0.5)

	r := check.Value(m.Stop())(t)

	report := read(t, r)
	n := report.Nodes["0"]
	if cpu := n.Job.UserSeconds + n.Job.SystemSeconds; cpu > 0.4 || n.Metrics["job_cpu_seconds"] > 0.4 {
		t.Errorf("%.3f s of CPU, job_cpu_seconds %v; want at most 0.4, without the usage after the end of ctx",
			cpu, n.Metrics["job_cpu_seconds"])
	}
	if n.Job.End.After(done) || report.Run.End.After(done) {
		t.Errorf("the job ended at %v, the run at %v; want both before %v, when the context was done",
			n.Job.End, report.Run.End, done)
	}
}

// The limits of a command and of the program itself come from the same control group.
func TestMonitor_HasSameLimitsAsCommand(t *testing.T) {
	t.Parallel()
	m := check.Value(Start(t.Context(), Options{Out: filepath.Join(t.TempDir(), "out"), MLflow: Off, HTML: Never}))(t)
	r := check.Value(m.Stop())(t)

	got, want := read(t, r).Nodes["0"], read(t, mustRun(t, shell(t, "true"))).Nodes["0"]
	if !reflect.DeepEqual(got.Limits, want.Limits) || got.Job.Cgroup != want.Job.Cgroup {
		t.Errorf("limits %+v in %q, want the limits of a command: %+v in %q",
			got.Limits, got.Job.Cgroup, want.Limits, want.Job.Cgroup)
	}
}

func TestSidecar_WatchesUntilContextIsDone(t *testing.T) {
	t.Parallel()
	o := Options{Out: filepath.Join(t.TempDir(), "out"), MLflow: Off, Interval: 20 * time.Millisecond}

	report := read(t, untilSampled(t, o, 1))

	if n := report.Nodes["0"]; n.Job != nil || n.Sampling.Samples < 2 || report.Run.Command != nil || report.Run.Incomplete != "" {
		t.Errorf("run %+v, job %+v, %d samples; want a complete run without command and job, at least 2 samples",
			report.Run, n.Job, n.Sampling.Samples)
	}
}

// A job that a program runs through this package has PERFAGENT_MARKS, like a job of the perfagent command.
func TestRun_ReadsMarksOfJob(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the job is a shell script")
	}
	unsetMarks(t)
	var out strings.Builder
	r, err := Run(context.Background(), Options{
		Args: []string{"sh", "-c", `echo '{"phase":"load"}' >> "$PERFAGENT_MARKS"; echo half >> "$PERFAGENT_MARKS"
			echo "$PERFAGENT_MARKS"; sleep 0.2`},
		Out: t.TempDir(), RunID: "m", Interval: 20 * time.Millisecond, Stdout: &out,
	})
	check.Must(t, err)

	n := r.Report.Nodes["0"]
	if len(n.Phases) != 1 || n.Phases[0].Name != "load" || len(n.Marks) != 1 || n.Marks[0].Text != "half" {
		t.Errorf("phases %v, marks %v; want one phase load and one mark half", n.Phases, n.Marks)
	}
	path := strings.TrimSpace(out.String())
	if !filepath.IsAbs(path) {
		t.Errorf("PERFAGENT_MARKS is %q in the job, want an absolute path", path)
	}
	wantAbsent(t, path)
	if _, set := os.LookupEnv(marks.Variable); set {
		t.Errorf("%s is set in the program itself, want it only in the job", marks.Variable)
	}
}

// unsetMarks removes PERFAGENT_MARKS, which is set if perfagent runs the test.
func unsetMarks(t *testing.T) {
	t.Helper()
	t.Setenv(marks.Variable, "")
	os.Unsetenv(marks.Variable)
}

// A program that watches itself has a marks file, and its environment stays unchanged.
func TestMonitor_ReadsMarksAndKeepsTheEnvironment(t *testing.T) {
	unsetMarks(t)
	m := check.Value(Start(context.Background(), Options{Out: t.TempDir(), RunID: "m", Interval: 20 * time.Millisecond}))(t)
	if _, set := os.LookupEnv(marks.Variable); set {
		t.Errorf("%s is set in the program, want its environment unchanged", marks.Variable)
	}

	now := marks.UnixSeconds(time.Now())
	check.Must(t, marks.Append(m.MarksPath(), marks.Line{IsPhase: true, Text: "load", At: now}))
	check.Must(t, marks.Append(m.MarksPath(), marks.Line{Text: "half", At: now}))
	burn(0.2)
	r := check.Value(m.Stop())(t)

	n := r.Report.Nodes["0"]
	if len(n.Phases) != 1 || len(n.Marks) != 1 || !(n.Phases[0].Metrics[reporter.MetricJobCPU] > 0.05) {
		t.Errorf("phases %+v, marks %v; want one phase with more than 0.05 s of CPU, and one mark", n.Phases, n.Marks)
	}
	reportertest.Validate(t, check.Value(reporter.Encode(r.Report))(t))
}

// A sidecar keeps the marks file while other recordings of the node are active. The last recording removes it.
func TestSidecar_KeepsMarksFileForOtherRecordings(t *testing.T) {
	dir := t.TempDir()
	o := Options{Out: dir, RunID: "r", MLflow: Off, HTML: Never, Interval: 20 * time.Millisecond}
	monitor := check.Value(Start(t.Context(), o))(t)
	path := monitor.MarksPath()
	mark := func(l marks.Line) { check.Must(t, marks.Append(path, l)) }
	mark(marks.Line{Text: "before"})
	mark(marks.Line{IsPhase: true, Text: "load", At: marks.UnixSeconds(time.Now())})

	side := untilSampled(t, o, 2)
	mark(marks.Line{Text: "after"})
	r := check.Value(monitor.Stop())(t)

	n := side.Report.Nodes["0"]
	if len(n.Marks) != 0 || len(n.Phases) != 1 || n.Phases[0].Name != "load" || n.Phases[0].Seconds == 0 {
		t.Errorf("sidecar: marks %v, phases %v; want no marks, and the phase load with its time", n.Marks, n.Phases)
	}
	n = r.Report.Nodes["0"]
	if len(n.Marks) != 2 || len(n.Phases) != 1 || whyMissing(n, "marks") != "" {
		t.Errorf("Monitor: marks %v, phases %v, reason in missing %q; want 2 marks, 1 phase, no reason",
			n.Marks, n.Phases, whyMissing(n, "marks"))
	}
	wantAbsent(t, path)
}
