package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// shell returns options that run a script, with the report in a temporary directory.
func shell(t *testing.T, script string) Options {
	t.Helper()
	return shellIn(filepath.Join(t.TempDir(), "out"), script)
}

// mustRun runs a command to its end.
func mustRun(t *testing.T, o Options) *Result {
	t.Helper()

	return check.Value(Run(t.Context(), o))(t)
}

// read reads the report of a result.
func read(t *testing.T, r *Result) *reporter.Report {
	t.Helper()

	return check.Value(reportfile.Read(r.ReportPath, 0))(t)
}

// whyMissing returns the reason why something is missing from a node, or "" if it is not missing.
func whyMissing(n *reporter.Node, what string) string {
	for _, m := range n.Missing {
		if m.What == what {
			return m.Why
		}
	}
	return ""
}

func TestRun_WritesReportAndPage(t *testing.T) {
	t.Parallel()
	o := shell(t, "echo working; sleep 0.2; exit 3")
	var out strings.Builder
	o.Stdout = &out
	o.Tags = map[string]string{"branch": "main"}

	r := mustRun(t, o)

	if r.ExitCode != 3 || r.Signal != "" || out.String() != "working\n" {
		t.Errorf("exit code %d, signal %q, stdout %q; want 3, none, \"working\\n\"", r.ExitCode, r.Signal, out.String())
	}
	if _, err := os.Stat(r.PagePath); err != nil {
		t.Error(err)
	}
	report := read(t, r)
	node := report.Nodes["0"]
	if report.Run.Tags["branch"] != "main" || *report.Run.ExitCode != 3 || node.Job == nil || node.Verdict.Cause != "exited" {
		t.Errorf("run %+v, job %+v, verdict %+v; want the tag, exit code 3, a job and the cause exited",
			report.Run, node.Job, node.Verdict)
	}
	if wall := report.Run.WallSeconds; wall < 0.2 {
		t.Errorf("run.wall_seconds = %v, want at least 0.2", wall)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Out, "*", "*.jsonl")); left != nil {
		t.Errorf("journals %q next to the report, want none", left)
	}
}

// Values that cannot be measured inside another program are listed as missing, with a reason.
func TestRun_LibraryGivesReasonForUnknownValues(t *testing.T) {
	t.Parallel()
	node := read(t, mustRun(t, shell(t, "true"))).Nodes["0"]

	if node.Agent.CPUSeconds != 0 || node.Agent.MaxRSSMB != 0 || whyMissing(node, "agent") == "" {
		t.Errorf("own use %+v, reason in missing %q; want zeros and a reason", node.Agent, whyMissing(node, "agent"))
	}
	if whyMissing(node, "orphans") == "" {
		t.Error("missing has no reason for orphans, want one")
	}
}

// If the command's arguments leave no room for more variables, the job gets the original environment.
func TestRun_FullEnvironmentStaysUnchanged(t *testing.T) {
	unsetMarks(t)
	fillEnvironment(t)
	o := shell(t, `test -z "$PERFAGENT_MARKS"`)

	r := mustRun(t, o)

	if r.ExitCode != 0 {
		t.Errorf("exit code %d, want 0: PERFAGENT_MARKS is set in the job", r.ExitCode)
	}
	if why := whyMissing(read(t, r).Nodes["0"], "environment"); !strings.Contains(why, "no room") {
		t.Errorf("the reason in missing is %q, want \"no room\" in it", why)
	}
}

// fillEnvironment fills the environment of the test until a shell can only just be started in it.
func fillEnvironment(t *testing.T) {
	const part = 100 << 10 // the kernel accepts no string longer than 128 KiB
	fill := func(n int) {
		for i := 0; n > 0; i++ {
			name := fmt.Sprintf("PERFAGENT_TEST_FILL_%d", i)
			t.Setenv(name, strings.Repeat("x", min(n, part)))
			n -= part
		}
	}
	tooLarge := func() bool {
		err := exec.Command("sh", "-c", `test -z "$PERFAGENT_MARKS"`).Run()
		if err != nil && !errors.Is(err, syscall.E2BIG) {
			t.Fatal(err)
		}
		return err != nil
	}

	const parts = 80
	n := 0
	for ; n < parts && !tooLarge(); n++ {
		fill((n + 1) * part)
	}
	if n == parts {
		t.Skip("this system has room for 8 MB")
	}
	last := fmt.Sprintf("PERFAGENT_TEST_FILL_%d", n-1)
	size := sort.Search(part, func(k int) bool {
		t.Setenv(last, strings.Repeat("x", k))
		return tooLarge()
	})
	t.Setenv(last, strings.Repeat("x", size-1))
}

func TestRun_KilledJobHasExitCodeAndSignal(t *testing.T) {
	t.Parallel()
	r := mustRun(t, shell(t, "kill -KILL $$"))

	if r.ExitCode != 137 || r.Signal != "SIGKILL" || r.FromTerminal {
		t.Errorf("exit code %d, signal %q, from terminal %v; want 137, SIGKILL, false", r.ExitCode, r.Signal, r.FromTerminal)
	}
}

func TestRun_FailedStartReturnsErrorAndLeavesNoFiles(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]error{
		"perfagent-no-such-command": job.ErrNotFound, noInterpreter(t): job.ErrNotFound,
		t.TempDir(): job.ErrNotExecutable, "": ErrNoCommand,
	} {
		o := shell(t, "")
		if o.Args = []string{command}; command == "" {
			o.Args = nil
		}
		if r, err := Run(t.Context(), o); r != nil || !errors.Is(err, want) {
			t.Errorf("%q: result %+v, error %v; want none, %v", o.Args, r, err, want)
		}
		wantAbsent(t, o.Out)
	}
}

// noInterpreter returns the path of a script that cannot be started.
func noInterpreter(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	check.Must(t, os.WriteFile(path, []byte("#!/no/such/interpreter\n"), 0o755))
	return path
}

// wantAbsent checks that none of the paths exist.
func wantAbsent(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("stat %s: %v, want %v", path, err, fs.ErrNotExist)
		}
	}
}

// A job that ends on TERM keeps its exit code.
func TestRun_CanceledContext_KeepsExitCodeOfJob(t *testing.T) {
	t.Parallel()
	o := shell(t, `trap 'exit 7' TERM; echo started; while :; do sleep 0.05; done`)

	r, err := Run(untilOutput(t, &o), o)

	if !errors.Is(err, context.Canceled) || r == nil || r.ExitCode != 7 {
		t.Fatalf("result %+v, error %v; want exit code 7, %v", r, err, context.Canceled)
	}
	if *read(t, r).Run.ExitCode != 7 {
		t.Errorf("exit code %d in the report, want 7", *read(t, r).Run.ExitCode)
	}
}

// untilOutput returns a context that ends when the job of o writes to its stdout.
func untilOutput(t *testing.T, o *Options) context.Context {
	written, out := io.Pipe()
	o.Stdout = out
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = written.Read(make([]byte, 1))
		cancel()
		_, _ = io.Copy(io.Discard, written)
	}()
	return ctx
}

// If the context is already done, Run starts no job and leaves no files.
func TestRun_CanceledBeforeStart_StartsNoJob(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	o := shell(t, "touch "+started)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	r, err := Run(ctx, o)

	if !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("result %+v, error %v; want none, %v", r, err, context.Canceled)
	}
	wantAbsent(t, started, o.Out)
}

// A report that cannot be written anywhere is a failure of perfagent, but the Result still has the job's exit code.
func TestRun_UnwritableReportReturnsErrNoReport(t *testing.T) {
	if os.Getenv("AGENT_TEST_NO_ROOM") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRun_UnwritableReportReturnsErrNoReport$", "-test.v")
		if testing.CoverMode() != "" {
			cmd.Args = append(cmd.Args, "-test.gocoverdir="+t.TempDir())
		}
		cmd.Env = append(os.Environ(), "AGENT_TEST_NO_ROOM=1", "TMPDIR=/proc/1/nowhere")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}

	o := shellIn("/proc/1/nowhere", "exit 5")
	r, err := Run(t.Context(), o)

	if !errors.Is(err, ErrNoReport) || !errors.Is(err, fs.ErrNotExist) || r == nil || r.ExitCode != 5 || r.Report == nil || r.ReportPath != "" {
		t.Errorf("Run: result %+v, error %v; want exit code 5, a Report without a path, ErrNoReport", r, err)
	}

	over, cancel := context.WithCancel(t.Context())
	cancel()
	o.Args = nil
	if r, err := Sidecar(over, o); r != nil || !errors.Is(err, ErrNoReport) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Sidecar with no room for its report: %+v, %v; want nil, ErrNoReport", r, err)
	}
}

func shellIn(out, script string) Options {
	return Options{
		Args: []string{"sh", "-c", script}, Out: out, MLflow: Off,
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
	}
}

// Concurrent runs do not interfere with each other or with other children of the program.
func TestRun_ConcurrentRunsDoNotInterfere(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 3 {
		o := shell(t, fmt.Sprintf("sleep 0.2; exit %d", 10+i))
		all.Go(func() {
			if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 10+i {
				t.Errorf("run %d: result %+v, error %v; want exit code %d", i, r, err, 10+i)
			}
		})
	}
	for i := range 30 {
		all.Go(func() {
			err := exec.Command("sh", "-c", fmt.Sprintf("exit %d", i)).Run()
			var exit *exec.ExitError
			if i == 0 && err != nil || i > 0 && (!errors.As(err, &exit) || exit.ExitCode() != i) {
				t.Errorf("child %d: %v, want exit code %d", i, err, i)
			}
		})
	}
	all.Wait()
}

// Run waits for a descendant that outlives the job and keeps its stdout open, but takes no samples in that time.
func TestRun_SamplingEndsWithTheJob(t *testing.T) {
	testenv.SkipIfShort(t, "seconds for a process that outlives its job")
	t.Parallel()
	o := shell(t, "sleep 0.2; (sleep 2; echo late) & exit 3")
	var out strings.Builder
	o.Stdout, o.Interval = &out, 50*time.Millisecond

	r := mustRun(t, o)

	ended := read(t, r).Run.End
	late := slices.DeleteFunc(r.Report.Nodes["0"].Samples.Column("timestamp"), func(at float64) bool {
		return at <= float64(ended.UnixNano())/1e9
	})
	if len(late) > 2 {
		t.Errorf("samples after the job's end, at %v: %v, want at most 2", ended, late)
	}
	if out.String() != "late\n" || r.ExitCode != 3 {
		t.Errorf("exit code %d, stdout %q; want 3, \"late\\n\"", r.ExitCode, out.String())
	}
}

// broken is a stream with reads and writes that fail.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error)  { return 0, b.err }
func (b broken) Write([]byte) (int, error) { return 0, b.err }

// Lost output is a failure of perfagent, but the Result still has the job's exit code.
func TestRun_FailedStreamReturnsErrorAndExitCode(t *testing.T) {
	t.Parallel()
	trouble := errors.New("trouble")
	for name, o := range map[string]Options{
		"Stdin":  {Stdin: broken{trouble}, Stdout: io.Discard, Stderr: io.Discard},
		"Stdout": {Stdin: strings.NewReader(""), Stdout: broken{trouble}, Stderr: io.Discard},
		"Stderr": {Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: broken{trouble}},
	} {
		run := shell(t, "cat; echo out; echo trouble >&2; exit 3")
		run.Stdin, run.Stdout, run.Stderr = o.Stdin, o.Stdout, o.Stderr

		r, err := Run(t.Context(), run)

		if !errors.Is(err, trouble) || r == nil || r.ExitCode != 3 || r.ReportPath == "" {
			t.Errorf("failing %s: result %+v, error %v; want exit code 3, a report, %v", name, r, err, trouble)
		}
	}
}

// A job reaped by other code has an unknown exit code, which is an error.
func TestFailure_UnknownExitStatusIsAnError(t *testing.T) {
	t.Parallel()
	reaped := errors.New("wait for process 1: no child processes")

	if err := failure(job.Status{ExitCode: 255, Err: reaped}); !errors.Is(err, reaped) {
		t.Errorf("failure of a reaped job = %v, want %v", err, reaped)
	}
	if err := failure(job.Status{ExitCode: 255}); err != nil {
		t.Errorf("failure of a job that exits with 255 = %v, want nil", err)
	}
}

func TestRun_CallsOnReportBeforeItReturns(t *testing.T) {
	t.Parallel()
	o := shell(t, "true")
	var told string
	o.OnReport = func(r *Result) {
		if _, err := os.Stat(r.ReportPath); err == nil {
			told = r.ReportPath
		}
	}

	if r := mustRun(t, o); told != r.ReportPath {
		t.Errorf("OnReport got %q as the path of an existing report, want %q", told, r.ReportPath)
	}
}

func TestRun_ReportNamesReader(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]string{"": Auto, Auto: Auto, Gopsutil: Gopsutil} {
		o := shell(t, "sleep 0.2")
		o.Reader, o.Interval = option, 50*time.Millisecond
		n := read(t, mustRun(t, o)).Nodes["0"]
		if n.Sampling.Reader != want {
			t.Errorf("option %q: the reader is %q, want %q", option, n.Sampling.Reader, want)
		}
		for _, source := range []string{"cpu", "memory", "disk", "disk_io", "network", "load"} {
			if why := whyMissing(n, source); why != "" {
				t.Errorf("reader %q: %s is missing (%s), want it measured", want, source, why)
			}
		}
	}
}

func TestRun_CompatWritesPerfPyLayout(t *testing.T) {
	t.Parallel()
	o := shell(t, "read until_sampled")
	o.Compat, o.Interval = PerfPy, 50*time.Millisecond

	r := untilSampled(t, o, 2)

	if n := read(t, r).Nodes["0"]; n.Origin != reporter.OriginPerfPy || n.Samples.Len() < 2 {
		t.Errorf("origin %q, %d samples; want %q, at least 2", n.Origin, n.Samples.Len(), reporter.OriginPerfPy)
	}
}

// The runtime of the calling program is not changed.
func TestRun_DoesNotChangeTheRuntime(t *testing.T) {
	procs, percent := runtime.GOMAXPROCS(0), debug.SetGCPercent(123)
	defer debug.SetGCPercent(percent)

	mustRun(t, shell(t, "true"))

	if got := runtime.GOMAXPROCS(0); got != procs {
		t.Errorf("GOMAXPROCS %d after the run, want %d as before", got, procs)
	}
	if got := debug.SetGCPercent(123); got != 123 {
		t.Errorf("GC percent %d after the run, want 123 as before", got)
	}
}

func TestOptions_ErrorNamesBadOption(t *testing.T) {
	t.Parallel()
	negative := -1
	for option, o := range map[string]Options{
		"Interval":  {Interval: time.Millisecond},
		"MaxLength": {MaxLength: 1},
		"Node":      {Node: &negative},
		"HTML":      {HTML: "sometimes"},
		"Cgroup":    {Cgroup: Create},
		"Compat":    {Compat: "perf"},
		"Reader":    {Reader: "psutil"},
		"DiskPaths": {DiskPaths: []string{"/", ""}},
		"MLflow":    {MLflow: "::"},
		"Listen":    {Listen: "x:y:z"},
		"RunID":     {RunID: "../x"},
		"Tags":      {Tags: map[string]string{"": "x"}},
	} {
		o.Args = []string{"true"}
		for name, call := range map[string]func() (any, error){
			"Run":     func() (any, error) { return Run(t.Context(), o) },
			"Start":   func() (any, error) { return Start(t.Context(), o) },
			"Sidecar": func() (any, error) { return Sidecar(t.Context(), o) },
		} {
			_, err := call()
			var bad *OptionError
			if !errors.As(err, &bad) || bad.Option != option {
				t.Errorf("%s with a bad %s: error %v, want an *OptionError that names it", name, option, err)
			}
		}
	}
}

// A run copies its options, so the caller may change them.
func TestOptions_AreCopied(t *testing.T) {
	t.Parallel()
	node := 3
	o := Options{
		Args: []string{"true"}, Node: &node, DiskPaths: []string{"/"}, Tags: map[string]string{"branch": "main"},
		Out: filepath.Join(t.TempDir(), "out"), MLflow: Off,
	}
	m, settled := check.Value(Start(t.Context(), o))(t), o.withDefaults()

	node, o.Args[0], o.DiskPaths[0], o.Tags["branch"] = 4, "false", "/no/such", "other"

	if r, err := m.Stop(); err != nil || r.Report.Run.Tags["branch"] != "main" || r.Report.Nodes["3"] == nil {
		t.Errorf("tags %v, nodes %v, error %v; want the options at Start: main, 3", r.Report.Run.Tags, r.Report.Nodes, err)
	}
	if *settled.Node != 3 || settled.Args[0] != "true" || settled.DiskPaths[0] != "/" || settled.Tags["branch"] != "main" {
		t.Errorf("options with defaults changed to %+v, want those before the change", settled)
	}
}

// A run with TakeOver is the only run of its process. Concurrent and later runs return an error.
func TestRun_TakeOverExcludesOtherRuns(t *testing.T) {
	if os.Getenv("AGENT_TEST_TAKE_OVER") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRun_TakeOverExcludesOtherRuns$", "-test.v")
		cmd.Env = append(os.Environ(), "AGENT_TEST_TAKE_OVER=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}

	o := shellIn(t.TempDir(), "exit 6")
	monitor := check.Value(Start(t.Context(), o))(t)
	o.TakeOver = true
	var bad *OptionError
	if r, err := Run(t.Context(), o); r != nil || !errors.As(err, &bad) || bad.Option != "TakeOver" {
		t.Errorf("Run with TakeOver during a Monitor: %+v, %v; want nil, an *OptionError of TakeOver", r, err)
	}
	if _, err := monitor.Stop(); err != nil {
		t.Error(err)
	}

	r, err := Run(t.Context(), o)
	if err != nil || r.ExitCode != 6 || whyMissing(r.Report.Nodes["0"], "orphans") != "" || r.Report.Nodes["0"].Agent.CPUSeconds == 0 {
		t.Errorf("Run with TakeOver: %+v, %v; want exit code 6, orphans counted, own CPU time", r, err)
	}

	for _, o.TakeOver = range []bool{true, false} {
		if r, err := Run(t.Context(), o); r != nil || !errors.Is(err, errTaken) {
			t.Errorf("later Run with TakeOver %v: %+v, %v; want nil, %v", o.TakeOver, r, err, errTaken)
		}
		if r, err := Sidecar(t.Context(), o); r != nil || !errors.Is(err, errTaken) {
			t.Errorf("later Sidecar with TakeOver %v: %+v, %v; want nil, %v", o.TakeOver, r, err, errTaken)
		}
	}
	if m, err := Start(t.Context(), o); m != nil || !errors.Is(err, errTaken) {
		t.Errorf("later Start: %+v, %v; want nil, %v", m, err, errTaken)
	}
}

// The report in the Result has the same push state as the file.
func TestRun_ResultHasPushStateOfFile(t *testing.T) {
	t.Parallel()
	o := shell(t, "true")
	o.MLflow, o.PushTimeout = "http://127.0.0.1:9", -1

	r := mustRun(t, o)

	got, want := r.Report.Nodes["0"].Push, read(t, r).Nodes["0"].Push
	if got == nil || want == nil || *got != *want || got.MLflow.State != reporter.PushPending || got.MLflow.Error == "" {
		t.Errorf("push %+v in the Result, %+v in the file; want both equal, pending, with an error", got, want)
	}
}

// stopping returns options that run a script until a rule holds.
func stopping(t *testing.T, script string, rules ...string) Options {
	t.Helper()
	o := shell(t, script)
	o.Interval, o.StopIf = 50*time.Millisecond, rules
	return o
}

func TestRun_StopsWhenARuleHolds(t *testing.T) {
	t.Parallel()
	r := mustRun(t, stopping(t, "exec sleep 600", "job_processes >= 1"))

	if r.ExitCode != 143 || r.Signal != "SIGTERM" {
		t.Errorf("exit code %d, signal %q; want 143, SIGTERM", r.ExitCode, r.Signal)
	}
	v := read(t, r).Run.Verdict
	if v.Cause != "stopped_by_rule" || v.Evidence["rule"] != "job_processes >= 1" || v.Evidence["killed"] != false {
		t.Errorf("verdict %+v, want stopped_by_rule by job_processes >= 1, not killed", v)
	}
}

// A child that ignores TERM and keeps the pipe of Stdout open is killed after StopGrace, and Run returns.
func TestRun_KillsProcessesThatIgnoreTERM(t *testing.T) {
	t.Parallel()
	o := stopping(t, `trap '' TERM; setsid sleep 600 & while :; do sleep 0.02; done`, "job_processes >= 2 for 100ms")
	o.StopGrace = 200 * time.Millisecond
	o.Stdout = new(strings.Builder) // a pipe, which the child keeps open

	r := mustRun(t, o)

	if v := read(t, r).Run.Verdict; r.ExitCode != 137 || v.Cause != "stopped_by_rule" || v.Evidence["killed"] != true {
		t.Errorf("exit code %d, verdict %+v; want 137, stopped_by_rule and killed", r.ExitCode, v)
	}
}

// If ctx ends during StopGrace, after the main process has received TERM, the remaining processes are killed
// immediately.
func TestRun_EndOfContextEndsStopGrace(t *testing.T) {
	t.Parallel()
	// The child writes when the main process, the only writer of the pipe, has ended.
	pipe := filepath.Join(t.TempDir(), "pipe")
	o := stopping(t, `mkfifo `+pipe+`; exec 3<>`+pipe+`
		sh -c 'trap "" TERM; read x; echo ended; sleep 600' <`+pipe+` 3>&- & wait`, "job_processes >= 2 for 200ms")
	o.StopGrace = time.Hour

	r, err := Run(untilOutput(t, &o), o)

	if !errors.Is(err, context.Canceled) || r == nil || r.ExitCode != 143 {
		t.Errorf("result %+v, error %v; want exit code 143, %v", r, err, context.Canceled)
	}
}

func TestOptions_StopIfIsChecked(t *testing.T) {
	t.Parallel()
	var bad *OptionError
	o := stopping(t, "true", "job_memroy_mb > 1")
	var unknown *collector.UnknownKeyError
	if _, err := Run(t.Context(), o); !errors.As(err, &bad) || bad.Option != "StopIf" || !errors.As(err, &unknown) {
		t.Errorf("Run with an unknown key in StopIf: error %v, want an *OptionError with it", err)
	}

	o = stopping(t, "", "job_processes >= 1")
	if _, err := Start(t.Context(), o); !errors.As(err, &bad) || bad.Option != "StopIf" {
		t.Errorf("Start with StopIf: error %v, want an *OptionError of StopIf", err)
	}
	if _, err := Sidecar(t.Context(), o); !errors.As(err, &bad) || bad.Option != "StopIf" {
		t.Errorf("Sidecar with StopIf: error %v, want an *OptionError of StopIf", err)
	}
}

// When a job is stopped, other children of the program keep running.
func TestRun_StopKillsNoOtherChild(t *testing.T) {
	t.Parallel()
	other := stopping(t, "read line; exit 7")
	in, out := io.Pipe()
	other.Stdin = in
	ended := make(chan *Result, 1)
	go func() {
		r, _ := Run(context.Background(), other)
		ended <- r
	}()

	o := stopping(t, `trap '' TERM; while :; do sleep 0.02; done`, "job_processes >= 2")
	o.StopGrace = -1
	if r := mustRun(t, o); r.ExitCode != 137 {
		t.Errorf("stopped job: exit code %d, want 137", r.ExitCode)
	}
	out.Close()
	if r := <-ended; r.ExitCode != 7 {
		t.Errorf("the other job: exit code %d, want 7", r.ExitCode)
	}
}
