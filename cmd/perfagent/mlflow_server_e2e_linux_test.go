//go:build e2e

package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
)

// Whatever the server does at the job's end, the job is unaffected. One line names a command, which later pushes
// everything.
func TestE2E_MLflow_ServerFailureAtEndDoesNotAffectJob(t *testing.T) {
	together(t, endFaults(), func(t *testing.T, f fault) {
		s := newSite(t)
		f.begin(t, s)
		limit := cmp.Or(f.limit, 1500*time.Millisecond)
		if f.quick { // waiting would take longer than noise
			limit = 2 * noise
		}
		attempt := func() (o clitest.Outcome, took time.Duration) {
			cmd := pushingJob(t, s.uri, "--push-timeout", limit.String())
			with(cmd, "HTTP_PROXY=", "http_proxy=", "HTTPS_PROXY=", "https_proxy=")
			start := time.Now()
			return clitest.RunCommand(t, cmd), time.Since(start)
		}
		o, took := attempt()
		for len(f.words) > 0 && !strings.Contains(o.Err, f.words[0]) && limit < noise { // no answer in time
			limit *= 6
			o, took = attempt()
		}
		allowed := limit
		if f.quick {
			allowed = 0
		}
		line, path := wantPushFailed(t, o, took, allowed, f.words...)
		if n := len(s.Runs()); n != 0 {
			t.Errorf("the broken server has %d runs, want 0", n)
		}
		if f.lost {
			later(t, 1, line, "MLFLOW_HTTP_REQUEST_MAX_RETRIES=0").WantLine(t, "resolve")
			line = strings.Replace(line, " push ", " push --mlflow "+s.URL+" ", 1)
		}
		s.heal()
		var env []string
		if f.env != nil {
			env = f.env(s)
		}
		s.wantLater(t, line, path, env...)
	})
}

// pushFails runs trackedJob, whose push fails within a time for a reason that contains words. It returns the printed
// command to push later and the path of the report.
func pushFails(t *testing.T, cmd *exec.Cmd, allowed time.Duration, words ...string) (line, path string) {
	t.Helper()
	start := time.Now()
	o := clitest.RunCommand(t, cmd)
	return wantPushFailed(t, o, time.Since(start), allowed, words...)
}

// wantPushFailed checks the outcome of trackedJob for pushFails.
func wantPushFailed(t *testing.T, o clitest.Outcome, took, allowed time.Duration, words ...string) (line, path string) {
	t.Helper()
	wantUnharmed(t, o, took, allowed)
	why, line := pendingLine(o, t, jobSays)
	path = wantPending(o, t, words...)
	if state := pushState(t, path, "0"); state.Error != why {
		t.Errorf("the report records the error %q, want %q as on stderr", state.Error, why)
	}
	return line, path
}

// A server that recovers while perfagent waits gets everything, and nothing is printed.
func TestE2E_MLflow_RecoveredServerGetsEverything(t *testing.T) {
	type recovery struct {
		path    string // of the failing requests; "" = all
		n       int    // failures
		then    mlflowtest.Hook
		applied bool
	}
	failing := mlflowtest.Status(500, "application/json", `{"error_code": "INTERNAL_ERROR", "message": "oh"}`)
	together(t, map[string]recovery{
		"500":                               {"", 3, failing, false},
		"429":                               {"", 2, mlflowtest.RetryAfter(1), false},
		"truncated response":                {"", 3, mlflowtest.HalfJSON(), false},
		"lost response to a batch":          {"log-batch", 2, mlflowtest.Drop(), true},
		"lost response to an upload":        {"artifacts", 2, mlflowtest.Drop(), true},
		"lost response to a new run":        {"runs/create", 1, mlflowtest.Drop(), true},
		"502 after a new run":               {"runs/create", 1, mlflowtest.HTML502(), true},
		"truncated response to a new run":   {"runs/create", 1, mlflowtest.HalfJSON(), true},
		"lost response to a new experiment": {"experiments/create", 1, mlflowtest.Drop(), true},
	}, func(t *testing.T, c recovery) {
		s := newSite(t)
		if c.applied {
			c.then = s.Applied(c.then)
		}
		s.SetBefore(mlflowtest.On(c.path, mlflowtest.First(c.n, c.then)))
		start := time.Now()
		o := clitest.RunCommand(t, with(pushingJob(t, s.uri), "MLFLOW_EXPERIMENT_NAME=new one"))
		wantUnharmed(t, o, time.Since(start), noise)
		if o.Err != jobSays {
			t.Errorf("stderr %q, want %q", o.Err, jobSays)
		}
		s.wantOnly(t, theReport(t, o))
	})
}

// With a push timeout of 0 there is no delay, and nothing is lost.
func TestE2E_MLflow_PushTimeoutZeroLosesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	line, path := pushFails(t, pushingJob(t, s.uri, "--push-timeout", "0"), 0)
	s.wantLater(t, line, path)
}

// Bad MLflow settings prevent a push, but not the job.
func TestE2E_MLflow_BadSettingsPreventPushButNotJob(t *testing.T) {
	t.Parallel()
	for variable, value := range map[string]string{
		"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "junk", "MLFLOW_HTTP_REQUEST_TIMEOUT": "-1",
		"MLFLOW_TRACKING_AWS_SIGV4": "true", "MLFLOW_TRACKING_TOKEN": "a\nb",
	} {
		s := newSite(t)
		line, path := pushFails(t, with(pushingJob(t, s.uri), variable+"="+value), 0, variable)
		later(t, 1, line, variable+"="+value).WantLine(t, variable)
		s.wantLater(t, line, path)
	}
}

// A push to a deleted experiment fails. Once the experiment is restored, the command in the hint works.
func TestE2E_MLflow_PushesToExperimentOnceRestored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := createdExperiment(t, s.client(t), "gone")
	s.DeleteExperiment("gone")
	line, path := pushFails(t, with(pushingJob(t, s.uri), "MLFLOW_EXPERIMENT_NAME=gone"), 0, "gone", "deleted", "restore")
	later(t, 1, line)
	resp, err := http.Post(s.URL+"/api/2.0/mlflow/experiments/restore", "application/json",
		strings.NewReader(fmt.Sprintf(`{"experiment_id": %q}`, id)))
	check.Must(t, err)
	resp.Body.Close()
	s.wantLater(t, line, path)
	if name := s.only(t).Info.ExperimentName; name != "gone" {
		t.Errorf("the run is in experiment %q, want \"gone\"", name)
	}
}

// A push that is killed at any point resumes when it is started again.
func TestE2E_Push_KilledPushResumes(t *testing.T) {
	type kill struct {
		path string
		n    int // requests that pass
		sig  syscall.Signal
	}
	together(t, map[string]kill{
		"before the run is created": {"runs/create", 0, syscall.SIGKILL},
		"at the first batch":        {"log-batch", 0, syscall.SIGKILL},
		"between batches":           {"log-batch", 5, syscall.SIGKILL},
		"before the artifact":       {"artifacts", 0, syscall.SIGKILL},
		"before the final update":   {"runs/update", 0, syscall.SIGKILL},
		"interrupted by SIGINT":     {"log-batch", 5, syscall.SIGINT},
	}, func(t *testing.T, c kill) {
		s, path, came := newSite(t), bigReport(t), make(chan struct{})
		s.SetBefore(mlflowtest.On(c.path, after(c.n, came)))
		l := clitest.StartProcess(t, clitest.Perfagent(t, "push", "--mlflow", s.URL, path))
		occurs(t, "the push is in the middle", came)
		l.Signal(c.sig)
		if o, _ := l.End(); c.sig == syscall.SIGINT {
			o.Want(t, 1)
			clitest.WantLines(t, pushProgress.ReplaceAllString(o.Err, ""), 1, 2)
		}
		s.SetBefore(nil)
		call("push", "--mlflow", s.URL, path).Want(t, 0)
		if n := len(s.only(t).Metrics[oneSeries]); n != 500 {
			t.Errorf("%d points, want 500", n)
		}
		s.wantOnly(t, path)
	})
}

// A signal after the job's end ends the push. The report has been written by then.
func TestE2E_MLflow_SignalEndsPushAfterReport(t *testing.T) {
	together(t, map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}, func(t *testing.T, sig syscall.Signal) {
		s, came := newSite(t), make(chan struct{})
		s.SetBefore(after(0, came))
		l := clitest.StartProcess(t, pushingJob(t, s.uri, "--push-timeout", "60s"))
		pushBegins(t, came, l.Cmd.Dir)
		path := wantPending(clitest.Outcome{Dir: l.Cmd.Dir}, t)
		start := time.Now()
		l.Signal(sig)
		o, rest := l.End()
		if took := time.Since(start); took > noise {
			t.Errorf("perfagent ended %v after the signal, want at most %v", took, noise)
		}
		o.Want(t, 7)
		if strings.Join(rest, "\n")+"\n" != jobSays {
			t.Errorf("stdout %q, want %q", rest, jobSays)
		}
		_, line := pendingLine(o, t, jobSays)
		wantPending(o, t)
		s.heal()
		s.wantLater(t, line, path)
	})
}

// A sidecar ends in time after TERM, whatever its server does.
func TestE2E_Sidecar_HangingServerDoesNotDelayTERM(t *testing.T) {
	together(t, map[string]func(t *testing.T, s *site){"hangs": hook(mlflowtest.Hang()), "silent": silent, "slow": hook(mlflowtest.Slow())},
		func(t *testing.T, begin func(*testing.T, *site)) {
			s := newSite(t)
			begin(t, s)
			l, path := beside(t, []string{"MLFLOW_TRACKING_URI=" + s.uri}, "--push-timeout", "1s")
			untilLines(t, path+"l", 60) // there are points to push
			start := time.Now()
			l.Signal(syscall.SIGTERM)
			o := mustEnd(l, 0)
			if took := time.Since(start); took > time.Second+noise {
				t.Errorf("perfagent ended %v after TERM, want at most %v", took, time.Second+noise)
			}
			_, line := pendingLine(o, t, "")
			wantPending(o, t)
			s.heal()
			s.wantLater(t, line, path)
		})
}

// Whatever the server does while the job runs, all points are in the run at the end, each once. Live pushes resume as
// soon as the server recovers.
func TestE2E_MLflow_ServerFailureDuringJobLosesNoPoint(t *testing.T) {
	together(t, map[string]func(t *testing.T){
		"server restarts":        liveServerDies,
		"server hangs":           liveServerHangs,
		"run is deleted":         liveRunDeleted,
		"run of perfagent":       liveOwnRun,
		"lost response to a run": liveOwnRunLost,
		"server never reachable": liveNeverThere,
		"wrong password":         liveRefused,
	}, func(t *testing.T, test func(*testing.T)) { test(t) })
}
