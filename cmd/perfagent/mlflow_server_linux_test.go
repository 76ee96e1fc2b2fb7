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
	"github.com/perfagent/perfagent/internal/reportertest"
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
	noise = 20 * time.Second
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
	run, err := s.client(t).CreateRun(t.Context(), mlflow.NewRun{ExperimentID: "0", Name: "given", StartTime: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return run.ID
}

func (s *site) client(t testing.TB) *mlflow.Client {
	t.Helper()
	c, err := mlflow.New(mlflow.Config{URI: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// only returns the server's only run.
func (s *site) only(t testing.TB) mlflowtest.RunData {
	t.Helper()
	runs := s.Runs()
	if len(runs) != 1 {
		t.Fatalf("the server has %d runs, want 1", len(runs))
	}
	return runs[0]
}

// steps returns the windows with points in the run with the given ID, or in all runs if id is "".
func (s *site) steps(id string) (out []int64) {
	for _, r := range s.Runs() {
		if r.Info.RunID != id && id != "" {
			continue
		}
		for _, p := range r.Metrics[oneSeries] {
			out = append(out, p.Step)
		}
	}
	return out
}

// pushing prepares a run that pushes to a server.
func pushing(t testing.TB, uri string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := clitest.Perfagent(t, append([]string{"run", "--interval", "100ms"}, args...)...)
	cmd.Env = append(cmd.Env, "MLFLOW_TRACKING_URI="+uri, "PERFAGENT_SUMMARY=never") // only messages about the push
	return cmd
}

// insideFor runs a command line in the test's process, with uri as the tracking server.
func insideFor(t *testing.T, uri string, args ...string) clitest.Outcome {
	t.Helper()
	l := insideCommand(t, args...)
	l.Env = []string{"MLFLOW_TRACKING_URI=" + uri, "PERFAGENT_SUMMARY=never"}
	return l.perform(t)
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
	r, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
	wantPendingIn(t, r, words...)
	return path
}

func wantPendingIn(t testing.TB, r *reporter.Report, words ...string) {
	t.Helper()
	state := r.Nodes["0"].Push.MLflow
	if state.State != reporter.PushPending {
		t.Errorf("push state %+v, want pending", state)
	}
	for _, w := range words {
		if !strings.Contains(state.Error, w) {
			t.Errorf("push error %q lacks %q", state.Error, w)
		}
	}
}

// later runs a printed command in a fresh environment.
func later(t testing.TB, line string, env ...string) clitest.Outcome {
	t.Helper()
	cmd := clitest.Command(t, "/bin/sh", "-c", line)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	return clitest.RunCommand(t, cmd)
}

// undisturbed pushes a copy of a report to a server without faults.
func undisturbed(t testing.TB, path string) mlflowtest.RunData {
	t.Helper()
	s := newSite(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	twin := clitest.Write(t, filepath.Join(t.TempDir(), filepath.Base(path)), string(data), 0o644)
	call("push", "--mlflow", s.URL, twin).Want(t, 0)
	return s.only(t)
}

// wantWhole checks that a run has the same content as after an undisturbed push.
func wantWhole(t testing.TB, got mlflowtest.RunData, path string) {
	t.Helper()
	want := undisturbed(t, path)
	if len(want.Metrics) < 30 || len(want.Metrics[oneSeries]) == 0 {
		t.Errorf("an undisturbed push sends %d series with %d windows, want at least 30 series and 1 window",
			len(want.Metrics), len(want.Metrics[oneSeries]))
	}
	if d := cmp.Diff(want.Metrics, got.Metrics); d != "" {
		t.Errorf("metrics, compared with an undisturbed push (-want +got):\n%s", d)
	}
	for key, points := range got.Metrics {
		for i := 1; i < len(points); i++ {
			if points[i].Step <= points[i-1].Step {
				t.Errorf("%s: step %d follows step %d, want increasing steps", key, points[i].Step, points[i-1].Step)
			}
		}
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

// wantPushed checks that a report records a complete push.
func wantPushed(t testing.TB, path, runID string) {
	t.Helper()
	if state := reportertest.ReadFile(t, path).Nodes["0"].Push.MLflow; state.State != reporter.PushDone || state.RunID != runID {
		t.Errorf("push state %+v, want done in run %s", state, runID)
	}
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

// silent replaces a server with one that accepts connections and never responds.
func silent(t *testing.T, s *site) {
	s.Close()
	var l net.Listener
	clitest.WaitUntil(t, "the server's port is free", func() (ok bool) {
		var err error
		l, err = net.Listen("tcp", strings.TrimPrefix(s.URL, "http://"))
		return err == nil
	})
	var mu sync.Mutex
	var conns []net.Conn
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
		}
	}()
	s.heal = sync.OnceFunc(func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			c.Close()
		}
		s.Reopen()
	})
	t.Cleanup(func() { l.Close() })
}

// elsewhere redirects to another host and scheme.
func elsewhere() mlflowtest.Hook {
	return func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Location", "https://mlflow.example"+r.URL.RequestURI())
		w.WriteHeader(http.StatusPermanentRedirect)
		return true
	}
}

// endFaults returns the faults of a server at the job's end.
func endFaults() map[string]fault {
	return map[string]fault{
		"connection refused": {words: []string{"refused"}, begin: func(_ *testing.T, s *site) {
			s.Close()
			s.heal = s.Reopen
		}},
		"no response to a connection": {words: []string{"no response"}, begin: silent},
		"no response to a request":    {words: []string{"no response"}, begin: hook(mlflowtest.Hang())},
		"one byte per second":         {begin: hook(mlflowtest.Slow())},
		"500":                         {words: []string{"500", "INTERNAL_ERROR"}, begin: hook(mlflowtest.Status(500, "application/json", `{"error_code": "INTERNAL_ERROR", "message": "oh"}`))},
		"429":                         {words: []string{"429"}, begin: hook(mlflowtest.RetryAfter(3600)), quick: true},
		"502 HTML":                    {words: []string{"502"}, begin: hook(mlflowtest.HTML502())},
		"truncated response":          {words: []string{"cut off"}, begin: hook(mlflowtest.HalfJSON())},
		"closes the connection":       {words: []string{"closed the connection"}, begin: hook(mlflowtest.Drop())},
		"another service":             {words: []string{"MLflow server"}, begin: hook(mlflowtest.Status(200, "text/html", "<html>Log in</html>")), quick: true},
		"redirect to https":           {words: []string{"https://mlflow.example"}, begin: hook(elsewhere()), quick: true},
		"bad certificate": {words: []string{"certificate", "MLFLOW_TRACKING_SERVER_CERT_PATH"}, quick: true, begin: func(t *testing.T, s *site) {
			uri, ca := mlflowtest.TLSProxy(t, s.URL)
			s.uri, s.heal = uri, func() { s.uri = ca }
		}, env: func(s *site) []string { return []string{"MLFLOW_TRACKING_SERVER_CERT_PATH=" + s.uri} }},
		"name that does not resolve": {words: []string{"resolve"}, lost: true, limit: noise, begin: func(_ *testing.T, s *site) { s.uri = "http://x.invalid:5000" }},
	}
}

// pushElsewhere pushes to another server after the first one was lost.
func pushElsewhere(t *testing.T, s *site, line string) {
	t.Helper()
	o := later(t, line, "MLFLOW_HTTP_REQUEST_MAX_RETRIES=0")
	o.Want(t, 1)
	o.WantLine(t, "resolve")
	later(t, strings.Replace(line, " push ", " push --mlflow "+s.URL+" ", 1)).Want(t, 0)
}

// serverless are tracking URIs without a server.
var serverless = []string{"file:///tmp/mlruns", "./mlruns", "/tmp/mlruns", "sqlite:///mlflow.db", "postgresql://me:geheim@db/mlflow",
	"databricks", "databricks://profile", "plugin://x", "azureml://eastus.api.azureml.ms/mlflow/v1.0", "arn:aws:sagemaker:us-east-1:1:mlflow-tracking-server/x"}

// A URI that perfagent cannot push to is reported once, at the end; the job is unaffected.
func TestMLflow_UnusableURIIsReportedOnceAtTheEnd(t *testing.T) {
	for _, uri := range serverless {
		for name, o := range map[string]clitest.Outcome{
			"by variable": insideFor(t, uri, "run", "--", "sh", "-c", "echo job; exit 7"),
			"by flag":     inside(t, "run", "--summary", "never", "--mlflow", uri, "--", "sh", "-c", "echo job; exit 7"),
		} {
			o.Want(t, 7)
			if o.Out != "job\n" {
				t.Errorf("%s, %s: stdout %q, want \"job\\n\"", uri, name, o.Out)
			}
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

// A bad MLFLOW_TRACKING_URI does not prevent a job; a bad flag does.
func TestMLflow_BadVariableDoesNotPreventJob(t *testing.T) {
	for _, uri := range []string{"http://", "http:// x", "https://:5000", "http://[::1", "http://a:b:c", "gopher://x", "http://me:geheim@", "\x1b[31m://", "http://x:99999"} {
		o := insideFor(t, uri, "run", "--push-timeout", "100ms", "--", "sh", "-c", "echo job; exit 7")
		o.Want(t, 7)
		if o.Out != "job\n" {
			t.Errorf("%q: stdout %q, want \"job\\n\"", uri, o.Out)
		}
		o.WantLine(t, "MLflow")
		if state := o.Report(t).Nodes["0"].Push.MLflow; state.State == reporter.PushDone || state.Error == "" {
			t.Errorf("%q: push state %+v, want one that is not done, with an error", uri, state)
		}
		if strings.Contains(o.Err, "geheim") {
			t.Errorf("%q: stderr has the password: %s", uri, o.Err)
		}
	}
	for _, uri := range []string{"nonsense", "AUTO", "http://", "http://[::1", "http://x y", "http:x"} {
		cmd := insideCommand(t, "run", "--mlflow", uri, "--", "sh", "-c", "echo job >mark")
		o := cmd.perform(t)
		o.Want(t, 125)
		o.WantLine(t, "--mlflow")
		if _, err := os.Stat(filepath.Join(o.Dir, "mark")); err == nil {
			t.Errorf("--mlflow %q: the job ran, want it not started", uri)
		}
		if len(reportertest.InDir(t, filepath.Join(o.Dir, "perfagent-out"))) != 0 {
			t.Errorf("--mlflow %q: a report was written, want none", uri)
		}
	}
}

// If the disk fills up while the server is down, the report is in another directory, and the command names it.
func TestMLflow_CommandNamesOtherDirectoryIfDiskIsFull(t *testing.T) {
	t.Parallel()
	for _, tmpFull := range []bool{false, true} {
		t.Run(fmt.Sprint("temporary directory full: ", tmpFull), func(t *testing.T) {
			t.Parallel()
			out, tmp := clitest.Mount(t, "size=1m", 0), t.TempDir()
			if tmpFull {
				tmp = out
			}
			s := newSite(t)
			s.Close()
			r, w := clitest.Pipe(t)
			cmd := pushing(t, s.uri, "--interval", "10ms", "--out", out, "--push-timeout", "300ms", "--", "sh", "-c", "echo ready; read x; sleep 1.2; exit 7")
			cmd.Stdin = r
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			l := clitest.StartProcess(t, cmd)
			l.Expect("ready")
			clitest.WaitUntil(t, "samples are in the journal", func() bool {
				paths := reportertest.InDir(t, out)
				if len(paths) != 1 {
					return false
				}
				text, _ := os.ReadFile(filepath.Join(out, paths[0]))
				return strings.Count(string(text), "\n") > 120 // more than a second of lines
			})
			clitest.Fill(t, out)
			w.Close()
			o, _ := l.End()
			o.Want(t, 7)
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
			later(t, line).Want(t, 0)
			wantWhole(t, s.only(t), path)
		})
	}
}

// post sends a request that perfagent's client cannot send.
func (s *site) post(t testing.TB, name, body string) {
	t.Helper()
	resp, err := http.Post(s.URL+"/api/2.0/mlflow/"+name, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s, want 200", name, resp.Status)
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
	data, err := reporter.Encode(reporter.New(reporter.Input{Run: reporter.Run{ID: "big", Command: []string{"big"}}, Recording: rec}))
	if err != nil {
		t.Fatal(err)
	}
	return clitest.Write(t, filepath.Join(t.TempDir(), "node-0.json"), string(data), 0o644)
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

// Ctrl-C ends the push after the job.
func TestMLflow_CtrlCEndsPush(t *testing.T) {
	t.Parallel()
	s, came := newSite(t), make(chan struct{})
	s.SetBefore(after(0, came))
	cmd := pushing(t, s.uri, "--push-timeout", "60s", "--summary", "always", "--", "sh", "-c", trackedJob)
	m := clitest.OnTerminal(t, cmd)
	occurs(t, "the push has begun", came)
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
const livePatience = 20 * time.Second

// liveRun is a job of several windows that are pushed live to a given run.
type liveRun struct {
	*site
	t     *testing.T
	id    string
	l     *clitest.Process
	begun time.Time
	hold  io.Closer // closing it ends the job
}

// begin starts a job that prints each element of seconds after that many seconds, and ends when end is called.
func begin(t *testing.T, s *site, env []string, seconds ...float64) *liveRun {
	t.Helper()
	r := &liveRun{site: s, t: t, id: s.newRun(t)}
	text, before := "", 0.0
	for _, n := range seconds {
		text += fmt.Sprintf("sleep %g; echo %g; ", n-before, n)
		before = n
	}
	cmd := pushing(t, s.uri, "--", "sh", "-c", text+"read end; echo ends >&2; exit 7")
	cmd.Env = append(append(cmd.Env, "MLFLOW_RUN_ID="+r.id, "PERFAGENT_PUSH_TIMEOUT="+livePatience.String()), env...)
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
	o, _ := r.l.End()
	o.Want(r.t, 7)
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
	_, path := reportertest.ReadSingle(r.t, filepath.Join(o.Dir, "perfagent-out"))
	for _, run := range r.Runs() {
		if run.Info.RunID == r.id {
			wantWhole(r.t, run, path)
			if run.Info.Status != "RUNNING" {
				r.t.Errorf("status of the given run %s, want RUNNING: the push must not end it", run.Info.Status)
			}
		}
	}
	wantPushed(r.t, path, r.id)
}

// since returns the requests after the n-th.
func (r *liveRun) since(n int) []mlflowtest.Request { return r.Requests()[n:] }

func liveServerDies(t *testing.T) {
	r := begin(t, newSite(t), nil, 21.5)
	r.reach(0)
	r.Close()
	r.l.Expect("21.5")
	r.Reopen()
	r.reach(2)
	if got := r.steps(r.id); !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("windows in the run while the job runs: %v, want 0, 1, 2", got)
	}
	o := r.end(21.5)
	if o.Err != "ends\n" {
		t.Errorf("stderr %q, want \"ends\\n\"", o.Err)
	}
	r.whole(o)
}

func liveServerHangs(t *testing.T) {
	s := newSite(t)
	r := begin(t, s, []string{"PERFAGENT_PUSH_TIMEOUT=3s"}, 12.5)
	s.SetBefore(mlflowtest.Hang())
	r.l.Expect("12.5")
	clitest.WaitUntil(t, "the server received a request", func() bool { return len(r.since(1)) > 0 })
	o := r.end(12.5)
	_, line := pendingLine(o, t, "ends\n")
	wantPending(o, t, "no response")
	if n := len(r.since(1)); n < 2 {
		t.Errorf("%d requests while the job ran, want at least 2 although the server hangs", n)
	}
	s.SetBefore(nil)
	later(t, line).Want(t, 0)
	r.whole(o)
}

func liveRunDeleted(t *testing.T) {
	s := newSite(t)
	r := begin(t, s, nil, 21.5)
	r.reach(0)
	s.DeleteRun(r.id)
	r.l.Expect("21.5")
	o := r.end(21.5)
	_, line := pendingLine(o, t, "ends\n")
	path := wantPending(o, t, r.id, "deleted", "--mlflow-run-id")
	p := later(t, line)
	p.Want(t, 1)
	p.WantLine(t, "deleted", "--mlflow-run-id")
	other := s.newRun(t)
	later(t, strings.Replace(line, " push ", " push --mlflow-run-id "+other+" ", 1)).Want(t, 0)
	for _, run := range s.Runs() {
		if run.Info.RunID == other {
			wantWhole(t, run, path)
		}
	}
	wantPushed(t, path, other)
}

// ownRun runs a job without a given MLflow run, so perfagent creates one while the job runs. The job ends after live
// has returned. ownRun returns the path of the report.
func ownRun(t *testing.T, s *site, live func()) (path string) {
	t.Helper()
	cmd := pushing(t, s.uri, "--", "sh", "-c", "sleep 15; echo 15; read end; exit 7")
	var hold io.Closer
	cmd.Stdin, hold = clitest.Pipe(t)
	l := clitest.StartProcess(t, cmd)
	l.Expect("15")
	if n := len(s.Runs()); n != 0 {
		t.Errorf("%d runs while the push waits for the job's own run, want 0", n)
	}
	clitest.WaitUntil(t, "there is a run", func() bool { return len(s.Runs()) > 0 })
	live()
	if status := s.only(t).Info.Status; status != "RUNNING" {
		t.Errorf("run status %s while the job runs, want RUNNING", status)
	}
	hold.Close()
	o, _ := l.End()
	o.Want(t, 7)
	if o.Err != "" {
		t.Errorf("stderr %q, want none", o.Err)
	}
	_, path = reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
	wantWhole(t, s.only(t), path)
	wantPushed(t, path, s.only(t).Info.RunID)
	return path
}

func liveOwnRun(t *testing.T) {
	s := newSite(t)
	ownRun(t, s, func() {
		clitest.WaitUntil(t, "the server has three windows", func() bool { return slices.Equal(s.steps(""), []int64{0, 1, 2}) })
	})
	// Looking for the job's run takes three requests per window, and a batch takes one. At the end perfagent reads the
	// run and sends the rest.
	if n := len(s.Requests()); n > 20 {
		t.Errorf("%d requests for three windows, want at most 20", n)
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

func liveNeverThere(t *testing.T) {
	s := newSite(t)
	s.Close()
	cmd := pushing(t, s.uri, "--push-timeout", "1s", "--", "sh", "-c", "sleep 21.2; echo 21.2; exit 7")
	l := clitest.StartProcess(t, cmd)
	l.Expect("21.2")
	start := time.Now()
	o, _ := l.End()
	o.Want(t, 7)
	if took := time.Since(start); took > time.Second+noise {
		t.Errorf("perfagent ended %v after the job, want at most %v", took, time.Second+noise)
	}
	_, line := pendingLine(o, t, "")
	path := wantPending(o, t, "refused")
	s.Reopen()
	later(t, line).Want(t, 0)
	wantWhole(t, s.only(t), path)
	if got := s.steps(""); !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("windows in the run %v, want 0, 1, 2", got)
	}
}

// A wrong password is not retried repeatedly.
func liveRefused(t *testing.T) {
	s := newSite(t)
	s.SetBefore(mlflowtest.Status(http.StatusUnauthorized, "text/plain", "You are not authenticated."))
	l := clitest.StartProcess(t, pushing(t, s.uri, "--", "sh", "-c", "sleep 21.2; echo 21.2; exit 7"))
	l.Expect("21.2")
	o, _ := l.End()
	o.Want(t, 7)
	_, line := pendingLine(o, t, "")
	path := wantPending(o, t, "401", "MLFLOW_TRACKING_USERNAME")
	if n := len(s.Requests()); n > 3 {
		t.Errorf("%d requests with a wrong password, want at most 3", n)
	}
	s.SetBefore(nil)
	later(t, line).Want(t, 0)
	wantWhole(t, s.only(t), path)
}
