package main

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// trackedJob is a job of 1.2 s that prints the same on both streams and fails.
const trackedJob = `echo begins; echo begins >&2; sleep 1.2; echo ends; echo ends >&2; exit 7`

const (
	jobSays = "begins\nends\n"
	jobTime = 1200 * time.Millisecond
	// noise is the delay that a busy machine may add to a job, with or without perfagent. Only waiting for a server
	// takes longer.
	noise = 55 * time.Second
)

// oneSeries has a point in each window.
const oneSeries = "system/0/system_memory_usage_percentage"

// site is a strict fake server that can be broken and healed.
type site struct {
	*mlflowtest.Fake
	*mlflowtest.Listener
	uri  string
	heal func()
}

func newSite(t testing.TB) *site {
	t.Helper()
	fake := mlflowtest.NewFake()
	s := &site{Fake: fake, Listener: mlflowtest.Serve(t, fake)}
	s.uri, s.heal = s.URL, func() { fake.SetBefore(nil) }
	return s
}

// newRun creates a run for MLFLOW_RUN_ID.
func (s *site) newRun(t testing.TB) (id string) {
	t.Helper()
	return createdRun(t, s.client(t), mlflow.NewRun{ExperimentID: "0", Name: "given"})
}

func (s *site) client(t testing.TB) *mlflow.Client { return clientFor(t, mlflow.Config{URI: s.URL}) }

// only returns the server's only run.
func (s *site) only(t testing.TB) mlflowtest.RunData {
	t.Helper()
	return single(t, s.Runs())
}

// steps returns the windows with points in the run with the given ID, or in all runs if id is "".
func (s *site) steps(id string) (out []int64) {
	for _, r := range s.Runs() {
		if r.Info.RunID == id || id == "" {
			out = append(out, steps(r, 0)...)
		}
	}
	return out
}

// pushing prepares a run that pushes to a server.
func pushing(t testing.TB, uri string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := clitest.Perfagent(t, append([]string{"run", "--interval", "100ms"}, args...)...)
	return with(cmd, "MLFLOW_TRACKING_URI="+uri, "PERFAGENT_SUMMARY=never") // only messages about the push
}

// pushingJob prepares a run of trackedJob that pushes to a server.
func pushingJob(t testing.TB, uri string, flags ...string) *exec.Cmd {
	t.Helper()
	return pushing(t, uri, append(flags, "--", "sh", "-c", trackedJob)...)
}

// ourLine matches the message of a run with a pending push.
var ourLine = regexp.MustCompile(`^perfagent: MLflow: (.*); the report is safe; push it with: (.*)\n$`)

// pendingLine checks that stderr has only the job's output and the message that ourLine matches. It returns the error
// and the command in the message.
func pendingLine(o clitest.Outcome, t testing.TB, job string) (why, line string) {
	t.Helper()
	after, ok := strings.CutPrefix(o.Err, job)
	m := ourLine.FindStringSubmatch(after)
	if !ok || m == nil {
		t.Fatalf("stderr is not %q followed by one line of perfagent:\n%s", job, o.Err)
	}
	clitest.WantPrintable(t, m[0])
	return m[1], m[2]
}

// wantPending checks that the only report has a pending push, and returns its path.
func wantPending(o clitest.Outcome, t testing.TB, words ...string) (path string) {
	t.Helper()
	path = theReport(t, o)
	state := pushState(t, path, "0")
	if state.State != reporter.PushPending {
		t.Errorf("push state %+v, want pending", state)
	}
	for _, w := range words {
		if !strings.Contains(state.Error, w) {
			t.Errorf("push error %q lacks %q", state.Error, w)
		}
	}
	return path
}

// later runs a printed command in a fresh environment. It must exit with the given code.
func later(t testing.TB, code int, line string, env ...string) clitest.Outcome {
	t.Helper()
	cmd := clitest.Command(t, "/bin/sh", "-c", line)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	return mustExit(t, code, cmd)
}

// wantWhole checks that a run has the same content as after an undisturbed push of a copy of the report.
func wantWhole(t testing.TB, got mlflowtest.RunData, path string) {
	t.Helper()
	s := newSite(t)
	call("push", "--mlflow", s.URL, copyOf(t, path, t.TempDir())).Want(t, 0)
	want := s.only(t)
	if len(want.Metrics) < 30 || len(want.Metrics[oneSeries]) == 0 {
		t.Errorf("an undisturbed push sends %d series with %d windows, want at least 30 series and 1 window",
			len(want.Metrics), len(want.Metrics[oneSeries]))
	}
	if d := cmp.Diff(want.Metrics, got.Metrics); d != "" {
		t.Errorf("metrics, compared with an undisturbed push (-want +got):\n%s", d)
	}
	for key, value := range want.Tags {
		if strings.HasPrefix(key, "perfagent.") && got.Info.RunName != "given" && got.Tags[key] != value {
			t.Errorf("tag %s is %q, want %q", key, got.Tags[key], value)
		}
	}
	if len(got.Artifacts) != 1 || got.Artifacts[0].Path != want.Artifacts[0].Path {
		t.Errorf("artifacts %+v, want %+v", got.Artifacts, want.Artifacts)
	}
	if a, b := want.Info, got.Info; b.RunName != "given" && (a.Status != b.Status || a.StartTime != b.StartTime || a.EndTime != b.EndTime) {
		t.Errorf("run %+v, want %+v", b, a)
	}
}

// wantOnly checks that the server's only run is complete.
func (s *site) wantOnly(t testing.TB, path string) {
	t.Helper()
	wantWhole(t, s.only(t), path)
	wantDone(t, path, s.only(t).Info.RunID)
}

// wantLater checks that a printed command pushes the report at path completely.
func (s *site) wantLater(t testing.TB, line, path string, env ...string) {
	t.Helper()
	later(t, 0, line, env...)
	s.wantOnly(t, path)
}

// wantUnharmed checks the exit code, stdout and times of trackedJob.
func wantUnharmed(t testing.TB, o clitest.Outcome, took, allowed time.Duration) {
	t.Helper()
	o.Want(t, 7)
	if o.Out != jobSays {
		t.Errorf("stdout %q, want %q", o.Out, jobSays)
	}
	j := o.Report(t).Nodes["0"].Job
	wall := j.End.Sub(j.Start.Time)
	if wall < jobTime || wall > jobTime+noise {
		t.Errorf("the job took %v, want %v", wall, jobTime)
	}
	if most := wall + allowed + noise; took > most {
		t.Errorf("perfagent took %v, want at most %v", took, most)
	}
}

// together runs all subtests concurrently, regardless of -parallel, because they mostly wait.
func together[T any](t *testing.T, list map[string]T, test func(t *testing.T, c T)) {
	t.Helper()
	t.Parallel()
	clitest.Binary(t)
	var all sync.WaitGroup
	for name, c := range list {
		all.Go(func() { t.Run(name, func(t *testing.T) { test(t, c) }) })
	}
	all.Wait()
}

// A fault breaks a server. The report's error then contains words.
type fault struct {
	begin func(t *testing.T, s *site) // sets s.heal unless the hook does
	words []string
	// quick marks a permanent failure, after which perfagent does not wait.
	quick bool
	// env returns the environment of the later push. lost is set if the server never returns to its address.
	env  func(s *site) []string
	lost bool
	// limit is the --push-timeout; 0 = a short one.
	limit time.Duration
}

// hook returns a function that makes h intercept the requests to a server.
func hook(h mlflowtest.Hook) func(*testing.T, *site) {
	return func(_ *testing.T, s *site) { s.SetBefore(h) }
}

// down closes a server until it is healed.
func (s *site) down() {
	s.Close()
	s.heal = s.Reopen
}

// silent replaces a server with a port on which only the kernel accepts connections, so there is never a response.
func silent(t *testing.T, s *site) {
	s.Close()
	var l net.Listener
	clitest.WaitUntil(t, "the server's port is free", func() (ok bool) {
		var err error
		l, err = net.Listen("tcp", strings.TrimPrefix(s.URL, "http://"))
		return err == nil
	})
	t.Cleanup(func() { l.Close() })
	s.heal = func() {
		l.Close()
		s.Reopen()
	}
}

// elsewhere redirects to another host and scheme.
func elsewhere(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("Location", "https://mlflow.example"+r.URL.RequestURI())
	w.WriteHeader(http.StatusPermanentRedirect)
	return true
}

// endFaults returns the faults of a server at the job's end.
func endFaults() map[string]fault {
	return map[string]fault{
		"connection refused":          {words: []string{"refused"}, begin: func(_ *testing.T, s *site) { s.down() }},
		"no response to a connection": {words: []string{"no response"}, begin: silent},
		"no response to a request":    {words: []string{"no response"}, begin: hook(mlflowtest.Hang())},
		"one byte per second":         {begin: hook(mlflowtest.Slow())},
		"500":                         {words: []string{"500", "INTERNAL_ERROR"}, begin: hook(mlflowtest.Status(500, "application/json", `{"error_code": "INTERNAL_ERROR", "message": "oh"}`))},
		"429":                         {words: []string{"429"}, begin: hook(mlflowtest.RetryAfter(3600)), quick: true},
		"502 HTML":                    {words: []string{"502"}, begin: hook(mlflowtest.HTML502())},
		"truncated response":          {words: []string{"cut off"}, begin: hook(mlflowtest.HalfJSON())},
		"closes the connection":       {words: []string{"closed the connection"}, begin: hook(mlflowtest.Drop())},
		"another service":             {words: []string{"MLflow server"}, begin: hook(mlflowtest.Status(200, "text/html", "<html>Log in</html>")), quick: true},
		"redirect to https":           {words: []string{"https://mlflow.example"}, begin: hook(elsewhere), quick: true},
		"bad certificate": {words: []string{"certificate", "MLFLOW_TRACKING_SERVER_CERT_PATH"}, quick: true, begin: func(t *testing.T, s *site) {
			uri, ca := mlflowtest.TLSProxy(t, s.URL)
			s.uri, s.heal = uri, func() { s.uri = ca }
		}, env: func(s *site) []string { return []string{"MLFLOW_TRACKING_SERVER_CERT_PATH=" + s.uri} }},
		"name that does not resolve": {words: []string{"resolve"}, lost: true, limit: 20 * time.Second, begin: func(_ *testing.T, s *site) { s.uri = "http://x.invalid:5000" }},
	}
}

// serverless are tracking URIs without a server.
var serverless = []string{"file:///tmp/mlruns", "./mlruns", "/tmp/mlruns", "sqlite:///mlflow.db", "postgresql://me:geheim@db/mlflow",
	"databricks", "databricks://profile", "plugin://x", "azureml://eastus.api.azureml.ms/mlflow/v1.0", "arn:aws:sagemaker:us-east-1:1:mlflow-tracking-server/x"}

// echoJob runs a job in the test's process, and checks its exit code and stdout.
func echoJob(t *testing.T, env []string, flags ...string) clitest.Outcome {
	t.Helper()
	o := insideWith(t, env, slices.Concat([]string{"run", "--summary", "never"}, flags, []string{"--", "sh", "-c", "echo job; exit 7"})...)
	if o.Want(t, 7); o.Out != "job\n" {
		t.Errorf("%q, %q: stdout %q, want \"job\\n\"", env, flags, o.Out)
	}
	return o
}

// A URI that perfagent cannot push to is reported once, at the end; the job is unaffected.
func TestMLflow_UnusableURIIsReportedOnceAtTheEnd(t *testing.T) {
	for _, uri := range serverless {
		for name, o := range map[string]clitest.Outcome{
			"by variable": echoJob(t, []string{"MLFLOW_TRACKING_URI=" + uri}), "by flag": echoJob(t, nil, "--mlflow", uri),
		} {
			o.WantLine(t, "MLflow")
			state := o.Report(t).Nodes["0"].Push.MLflow
			if state.State != reporter.PushOff || state.Error == "" || !strings.Contains(o.Err, state.Error) {
				t.Errorf("%s, %s: push state %+v, want off with the error of stderr: %s", uri, name, state, o.Err)
			}
			if strings.Contains(o.Err+state.URI+state.Error, "geheim") {
				t.Errorf("%s, %s: a password is shown: stderr %s, push state %+v", uri, name, o.Err, state)
			}
		}
	}
}

// A bad MLFLOW_TRACKING_URI does not prevent a job. TestRun_NamesBadOption has bad flags, which do.
func TestMLflow_BadVariableDoesNotPreventJob(t *testing.T) {
	for _, uri := range []string{"http://", "http:// x", "https://:5000", "http://[::1", "http://a:b:c", "gopher://x", "http://me:geheim@", "\x1b[31m://", "http://x:99999"} {
		o := echoJob(t, []string{"MLFLOW_TRACKING_URI=" + uri}, "--push-timeout", "100ms")
		o.WantLine(t, "MLflow")
		if state := o.Report(t).Nodes["0"].Push.MLflow; state.State == reporter.PushDone || state.Error == "" {
			t.Errorf("%q: push state %+v, want one that is not done, with an error", uri, state)
		}
		if strings.Contains(o.Err, "geheim") {
			t.Errorf("%q: stderr has the password: %s", uri, o.Err)
		}
	}
}

// If the disk fills up while the server is down, the report is in another directory, and the command names it.
func TestMLflow_CommandNamesOtherDirectoryIfDiskIsFull(t *testing.T) {
	t.Parallel()
	for _, tmpFull := range []bool{false, true} {
		t.Run(fmt.Sprint("temporary directory full: ", tmpFull), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.Close()
			o, tmp, _ := fillingUp(t, tmpFull, pushing(t, s.uri, "--push-timeout", "300ms"))
			clitest.WantLines(t, o.Err, 2, 2)
			first, rest, _ := strings.Cut(o.Err, "\n")
			if !strings.Contains(first, "no space") {
				t.Errorf("stderr %q lacks \"no space\"", first)
			}
			o.Err = rest
			_, line := pendingLine(o, t, "")
			path := strings.Fields(line)[2]
			if want := map[bool]string{false: ".json", true: ".jsonl"}[tmpFull]; filepath.Ext(path) != want || !strings.HasPrefix(path, tmp) {
				t.Errorf("the command names %s, want a %s file below %s", path, want, tmp)
			}
			s.Reopen()
			later(t, 0, line)
			wantWhole(t, s.only(t), path)
		})
	}
}

// bigReport writes a report of more than an hour, with a sample every 10 s, and returns its path.
func bigReport(t testing.TB) (path string) {
	t.Helper()
	const n, every = 500, 10 * time.Second
	start := host.Instant{Wall: time.Now().Add(-n * every).Truncate(time.Millisecond), Mono: time.Hour, Boot: time.Hour}
	rec := collector.NewRecording(start, every, 2*n)
	for i := range n {
		var s collector.Sample
		for c := range s.Values {
			s.Values[c], s.Weights[c] = math.Mod(float64(i*(c+1)), 97), every.Seconds()
		}
		at := time.Duration(i+1)*every - time.Second
		s.Values[collector.Timestamp] = float64(start.Wall.Add(at).UnixMilli()) / 1000
		rec.Add(&s)
		rec.End = host.Instant{Wall: start.Wall.Add(at), Mono: start.Mono + at, Boot: start.Boot + at}
	}
	r := reporter.New(reporter.Input{Run: reporter.Run{ID: "big", Command: []string{"big"}}, Recording: rec})
	return clitest.Write(t, filepath.Join(t.TempDir(), "node-0.json"), string(encoded(t, r)), 0o644)
}

// after returns a hook that lets n requests pass, then closes came and blocks all later requests.
func after(n int, came chan<- struct{}) mlflowtest.Hook {
	var seen atomic.Int64
	hang := mlflowtest.Hang()
	return func(w http.ResponseWriter, r *http.Request) bool {
		switch k := seen.Add(1); {
		case k <= int64(n):
			return false
		case k == int64(n)+1:
			close(came)
		}
		return hang(w, r)
	}
}

// occurs waits for an event.
func occurs(t testing.TB, what string, event <-chan struct{}) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(clitest.Longest):
		t.Fatalf("did not happen within %v: %s", clitest.Longest, what)
	}
}

// pushBegins waits until a run's push at its end has begun. The first request, at which came is closed, may be from a
// live push.
func pushBegins(t testing.TB, came <-chan struct{}, dir string) {
	t.Helper()
	occurs(t, "a push has begun", came)
	clitest.WaitUntil(t, "there is a report", func() bool {
		reports, _ := filepath.Glob(filepath.Join(dir, "perfagent-out/*/node-0.json"))
		return len(reports) == 1
	})
}

// Ctrl-C ends the push after the job.
func TestMLflow_CtrlCEndsPush(t *testing.T) {
	t.Parallel()
	s, came := newSite(t), make(chan struct{})
	s.SetBefore(after(0, came))
	cmd := pushingJob(t, s.uri, "--push-timeout", "60s", "--summary", "always")
	m := clitest.OnTerminal(t, cmd)
	pushBegins(t, came, cmd.Dir)
	start := time.Now()
	m.Send("\x03")
	screen, code := m.End()
	if took := time.Since(start); took > noise || code != 7 {
		t.Errorf("exit code %d after %v, want 7 within %v", code, took, noise)
	}
	if !strings.Contains(screen, "push it with: ") || !strings.Contains(screen, "exit 7") {
		t.Errorf("screen lacks \"push it with: \" or \"exit 7\": %s", screen)
	}
	wantPending(clitest.Outcome{Dir: cmd.Dir}, t)
}

// livePatience is the maximum duration of a live run's final push.
const livePatience = time.Minute

// liveRun is a job of several windows that are pushed live to a given run.
type liveRun struct {
	*site
	t     *testing.T
	id    string
	l     *clitest.Process
	begun time.Time
	hold  io.Closer // closing it ends the job
}

// begin starts a job that prints seconds after that many seconds, and ends when end is called.
func begin(t *testing.T, s *site, seconds float64, env ...string) *liveRun {
	t.Helper()
	r := &liveRun{site: s, t: t, id: s.newRun(t)}
	job := fmt.Sprintf("sleep %[1]g; echo %[1]g; read end; echo ends >&2; exit 7", seconds)
	cmd := pushing(t, s.uri, "--", "sh", "-c", job)
	with(with(cmd, "MLFLOW_RUN_ID="+r.id, "PERFAGENT_PUSH_TIMEOUT="+livePatience.String()), env...)
	cmd.Stdin, r.hold = clitest.Pipe(t)
	r.begun = time.Now()
	r.l = clitest.StartProcess(t, cmd)
	return r
}

// reach waits until the server has points of a window, while the job runs.
func (r *liveRun) reach(step int64) {
	r.t.Helper()
	clitest.WaitUntil(r.t, fmt.Sprintf("the server has points of window %d", step), func() bool { return slices.Contains(r.steps(r.id), step) })
}

// end ends the job and checks its exit code and times.
func (r *liveRun) end(seconds float64) clitest.Outcome {
	r.t.Helper()
	released := time.Now()
	r.hold.Close()
	o := mustEnd(r.l, 7)
	took := time.Since(released)
	j := o.Report(r.t).Nodes["0"].Job
	planned := time.Duration(seconds * float64(time.Second))
	if wall := j.End.Sub(j.Start.Time); wall < planned || wall > released.Sub(r.begun)+noise || took > livePatience+noise {
		r.t.Errorf("the job took %v, want at least %v; perfagent ended after %v, want at most %v",
			wall, planned, took, livePatience+noise)
	}
	return o
}

// whole checks that the run is complete after the push.
func (r *liveRun) whole(o clitest.Outcome) {
	r.t.Helper()
	run, path := runNamed(r.t, r.Runs(), r.id), theReport(r.t, o)
	if wantWhole(r.t, run, path); run.Info.Status != "RUNNING" {
		r.t.Errorf("status of the given run %s, want RUNNING: the push must not end it", run.Info.Status)
	}
	wantDone(r.t, path, r.id)
}

func liveServerDies(t *testing.T) {
	r := begin(t, newSite(t), 21.5)
	r.reach(0)
	r.Close()
	r.l.Expect("21.5")
	r.Reopen()
	r.reach(2)
	live := r.steps(r.id)
	o := r.end(21.5)
	if o.Err != "ends\n" {
		t.Errorf("stderr %q, want \"ends\\n\"", o.Err)
	}
	r.whole(o)
	if all := r.steps(r.id); !slices.Equal(live, all[:len(live)]) {
		t.Errorf("windows in the run while the job runs: %v, want the first ones of %v", live, all)
	}
}

func liveServerHangs(t *testing.T) {
	s := newSite(t)
	r := begin(t, s, 12.5, "PERFAGENT_PUSH_TIMEOUT=3s")
	s.SetBefore(mlflowtest.Hang())
	r.l.Expect("12.5")
	clitest.WaitUntil(t, "the server received a request", func() bool { return len(s.Requests()) > 1 })
	o := r.end(12.5)
	_, line := pendingLine(o, t, "ends\n")
	wantPending(o, t, "no response")
	if n := len(s.Requests()) - 1; n < 2 {
		t.Errorf("%d requests while the job ran, want at least 2 although the server hangs", n)
	}
	s.SetBefore(nil)
	later(t, 0, line)
	r.whole(o)
}

func liveRunDeleted(t *testing.T) {
	s := newSite(t)
	r := begin(t, s, 21.5)
	r.reach(0)
	s.DeleteRun(r.id)
	r.l.Expect("21.5")
	o := r.end(21.5)
	_, line := pendingLine(o, t, "ends\n")
	path := wantPending(o, t, r.id, "deleted", "--mlflow-run-id")
	later(t, 1, line).WantLine(t, "deleted", "--mlflow-run-id")
	other := s.newRun(t)
	later(t, 0, strings.Replace(line, " push ", " push --mlflow-run-id "+other+" ", 1))
	wantWhole(t, runNamed(t, s.Runs(), other), path)
	wantDone(t, path, other)
}

// ownRun runs a job without a given MLflow run, so perfagent creates one while the job runs. The job ends after live
// has returned.
func ownRun(t *testing.T, s *site, live func()) {
	t.Helper()
	cmd := pushing(t, s.uri, "--", "sh", "-c", "sleep 15; echo 15; read end; exit 7")
	var hold io.Closer
	cmd.Stdin, hold = clitest.Pipe(t)
	begun := time.Now()
	l := clitest.StartProcess(t, cmd)
	l.Expect("15")
	if n := len(s.Runs()); n != 0 && time.Since(begun) < 30*time.Second {
		t.Errorf("%d runs while the push waits for the job's own run, want 0", n)
	}
	clitest.WaitUntil(t, "there is a run", func() bool { return len(s.Runs()) > 0 })
	live()
	if status := s.only(t).Info.Status; status != "RUNNING" {
		t.Errorf("run status %s while the job runs, want RUNNING", status)
	}
	hold.Close()
	o := mustEnd(l, 7)
	if o.Err != "" {
		t.Errorf("stderr %q, want none", o.Err)
	}
	s.wantOnly(t, theReport(t, o))
}

func liveOwnRun(t *testing.T) {
	s := newSite(t)
	ownRun(t, s, func() {
		clitest.WaitUntil(t, "the server has three windows", func() bool { return len(s.steps("")) >= 3 })
	})
	// Looking for the job's run takes three requests per window, and a batch takes one. At the end perfagent reads the
	// run and sends the rest.
	if n, most := len(s.Requests()), 11+3*len(s.steps("")); n > most {
		t.Errorf("%d requests for %d windows, want at most %d", n, len(s.steps("")), most)
	}
}

// perfagent creates only one run, even if the response to the request is lost.
func liveOwnRunLost(t *testing.T) {
	s := newSite(t)
	s.SetBefore(mlflowtest.On("runs/create", mlflowtest.First(1, s.Applied(mlflowtest.Drop()))))
	ownRun(t, s, func() {
		clitest.WaitUntil(t, "there are points", func() bool { return len(s.steps("")) > 0 })
	})
}

// neverPushed runs a job of three windows on a broken server. The push fails for a reason that contains words, and a
// command pushes everything once the server is healed.
func neverPushed(t *testing.T, s *site, words ...string) {
	t.Helper()
	cmd := pushing(t, s.uri, "--push-timeout", (2 * noise).String(), "--", "sh", "-c", "sleep 21.2; echo 21.2; exit 7")
	l := clitest.StartProcess(t, cmd)
	l.Expect("21.2")
	start := time.Now()
	o := mustEnd(l, 7)
	if took := time.Since(start); took > noise {
		t.Errorf("perfagent ended %v after the job, want at most %v", took, noise)
	}
	requests := len(s.Requests())
	_, line := pendingLine(o, t, "")
	path := wantPending(o, t, words...)
	s.heal()
	s.wantLater(t, line, path)
	if got := s.steps(""); got[len(got)-1] < 2 || int64(requests) > 1+got[len(got)-1] {
		t.Errorf("windows in the run %v, want 0, 1, 2; %d requests to the broken server, want at most one for each",
			got, requests)
	}
}

func liveNeverThere(t *testing.T) {
	s := newSite(t)
	s.down()
	neverPushed(t, s, "refused")
}

// A wrong password is not retried repeatedly.
func liveRefused(t *testing.T) {
	s := newSite(t)
	s.SetBefore(mlflowtest.Status(http.StatusUnauthorized, "text/plain", "You are not authenticated."))
	neverPushed(t, s, "401", "MLFLOW_TRACKING_USERNAME")
}
