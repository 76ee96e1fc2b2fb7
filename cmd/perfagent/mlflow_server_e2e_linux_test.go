//go:build e2e

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// Whatever the server does at the job's end, the job is unaffected. One line names a command, which later pushes
// everything.
func TestE2E_MLflow_ServerFailureAtEndDoesNotAffectJob(t *testing.T) {
	together(t, endFaults(), func(t *testing.T, f fault) {
		s := newSite(t)
		f.begin(t, s)
		allowed := 1500 * time.Millisecond
		limit := allowed
		if f.limit > 0 {
			allowed, limit = f.limit, f.limit
		}
		if f.quick { // waiting would take longer than noise
			allowed, limit = 0, 2*noise
		}
		cmd := pushing(t, s.uri, "--push-timeout", limit.String(), "--", "sh", "-c", trackedJob)
		cmd.Env = append(cmd.Env, "HTTP_PROXY=", "http_proxy=", "HTTPS_PROXY=", "https_proxy=")
		start := time.Now()
		o := clitest.RunCommand(t, cmd)
		took := time.Since(start)
		wantUnharmed(t, o, took, allowed)
		why, line := pendingLine(o, t, jobSays)
		path := wantPending(o, t, f.words...)
		if state := reportertest.ReadFile(t, path).Nodes["0"].Push.MLflow; state.Error != why {
			t.Errorf("the report records the error %q, want %q as on stderr", state.Error, why)
		}
		if n := len(s.Runs()); n != 0 {
			t.Errorf("the broken server has %d runs, want 0", n)
		}
		if f.lost {
			pushElsewhere(t, s, line)
		} else {
			s.heal()
			var env []string
			if f.env != nil {
				env = f.env(s)
			}
			later(t, line, env...).Want(t, 0)
		}
		wantWhole(t, s.only(t), path)
		wantPushed(t, path, s.only(t).Info.RunID)
	})
}

// A server that recovers while perfagent waits gets everything, and nothing is printed.
func TestE2E_MLflow_RecoveredServerGetsEverything(t *testing.T) {
	failing := mlflowtest.Status(500, "application/json", `{"error_code": "INTERNAL_ERROR", "message": "oh"}`)
	together(t, map[string]struct {
		hook func(f *mlflowtest.Fake) mlflowtest.Hook
		gap  time.Duration // minimum time between the first three requests
	}{
		"500":                {func(*mlflowtest.Fake) mlflowtest.Hook { return mlflowtest.First(3, failing) }, 0},
		"429":                {func(*mlflowtest.Fake) mlflowtest.Hook { return mlflowtest.First(2, mlflowtest.RetryAfter(1)) }, time.Second},
		"truncated response": {func(*mlflowtest.Fake) mlflowtest.Hook { return mlflowtest.First(3, mlflowtest.HalfJSON()) }, 0},
		"lost response to a batch": {func(f *mlflowtest.Fake) mlflowtest.Hook {
			return mlflowtest.On("log-batch", mlflowtest.First(2, f.Applied(mlflowtest.Drop())))
		}, 0},
		"lost response to an upload": {func(f *mlflowtest.Fake) mlflowtest.Hook {
			return mlflowtest.On("artifacts", mlflowtest.First(2, f.Applied(mlflowtest.Drop())))
		}, 0},
		"lost response to a new run": {func(f *mlflowtest.Fake) mlflowtest.Hook {
			return mlflowtest.On("runs/create", mlflowtest.First(1, f.Applied(mlflowtest.Drop())))
		}, 0},
		"502 after a new run": {func(f *mlflowtest.Fake) mlflowtest.Hook {
			return mlflowtest.On("runs/create", mlflowtest.First(1, f.Applied(mlflowtest.HTML502())))
		}, 0},
		"truncated response to a new run": {func(f *mlflowtest.Fake) mlflowtest.Hook {
			return mlflowtest.On("runs/create", mlflowtest.First(1, f.Applied(mlflowtest.HalfJSON())))
		}, 0},
		"lost response to a new experiment": {func(f *mlflowtest.Fake) mlflowtest.Hook {
			return mlflowtest.On("experiments/create", mlflowtest.First(1, f.Applied(mlflowtest.Drop())))
		}, 0},
	}, func(t *testing.T, c struct {
		hook func(f *mlflowtest.Fake) mlflowtest.Hook
		gap  time.Duration
	}) {
		s := newSite(t)
		s.SetBefore(c.hook(s.Fake))
		cmd := pushing(t, s.uri, "--", "sh", "-c", trackedJob)
		cmd.Env = append(cmd.Env, "MLFLOW_EXPERIMENT_NAME=new one")
		start := time.Now()
		o := clitest.RunCommand(t, cmd)
		wantUnharmed(t, o, time.Since(start), 10*time.Second)
		if o.Err != jobSays {
			t.Errorf("stderr %q, want %q", o.Err, jobSays)
		}
		_, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
		wantWhole(t, s.only(t), path)
		wantPushed(t, path, s.only(t).Info.RunID)
		requests := s.Requests()
		for i := 1; i <= 2; i++ {
			if gap := requests[i].Time.Sub(requests[i-1].Time); gap < c.gap {
				t.Errorf("request %d came %v after the previous one, want at least %v", i, gap, c.gap)
			}
		}
	})
}

// With a push timeout of 0 there is no delay, and nothing is lost.
func TestE2E_MLflow_PushTimeoutZeroLosesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	start := time.Now()
	o := clitest.RunCommand(t, pushing(t, s.uri, "--push-timeout", "0", "--", "sh", "-c", trackedJob))
	wantUnharmed(t, o, time.Since(start), 0)
	_, line := pendingLine(o, t, jobSays)
	path := wantPending(o, t)
	later(t, line).Want(t, 0)
	wantWhole(t, s.only(t), path)
}

// Bad MLflow settings prevent a push, but not the job.
func TestE2E_MLflow_BadSettingsPreventPushButNotJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ variable, value string }{
		{"MLFLOW_HTTP_REQUEST_MAX_RETRIES", "junk"}, {"MLFLOW_HTTP_REQUEST_TIMEOUT", "-1"}, {"MLFLOW_TRACKING_AWS_SIGV4", "true"}, {"MLFLOW_TRACKING_TOKEN", "a\nb"},
	} {
		s := newSite(t)
		cmd := pushing(t, s.uri, "--", "sh", "-c", trackedJob)
		cmd.Env = append(cmd.Env, c.variable+"="+c.value)
		start := time.Now()
		o := clitest.RunCommand(t, cmd)
		wantUnharmed(t, o, time.Since(start), 0)
		_, line := pendingLine(o, t, jobSays)
		path := wantPending(o, t, c.variable)
		p := later(t, line, c.variable+"="+c.value)
		p.Want(t, 1)
		p.WantLine(t, c.variable)
		later(t, line).Want(t, 0)
		wantWhole(t, s.only(t), path)
	}
}

// A push to a deleted experiment fails. Once the experiment is restored, the command in the hint works.
func TestE2E_MLflow_PushesToExperimentOnceRestored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e, err := s.client(t).EnsureExperiment(t.Context(), "gone")
	if err != nil {
		t.Fatal(err)
	}
	s.DeleteExperiment("gone")
	cmd := pushing(t, s.uri, "--", "sh", "-c", trackedJob)
	cmd.Env = append(cmd.Env, "MLFLOW_EXPERIMENT_NAME=gone")
	start := time.Now()
	o := clitest.RunCommand(t, cmd)
	wantUnharmed(t, o, time.Since(start), 0)
	_, line := pendingLine(o, t, jobSays)
	path := wantPending(o, t, "gone", "deleted", "restore")
	later(t, line).Want(t, 1)
	s.post(t, "experiments/restore", fmt.Sprintf(`{"experiment_id": %q}`, e.ID))
	later(t, line).Want(t, 0)
	wantWhole(t, s.only(t), path)
	if name := s.only(t).Info.ExperimentName; name != "gone" {
		t.Errorf("the run is in experiment %q, want \"gone\"", name)
	}
}

// A push that is killed at any point resumes when it is started again.
func TestE2E_Push_KilledPushResumes(t *testing.T) {
	together(t, map[string]struct {
		path string
		n    int // requests that pass
		sig  syscall.Signal
	}{
		"before the run is created": {"runs/create", 0, syscall.SIGKILL},
		"at the first batch":        {"log-batch", 0, syscall.SIGKILL},
		"between batches":           {"log-batch", 5, syscall.SIGKILL},
		"before the artifact":       {"artifacts", 0, syscall.SIGKILL},
		"before the final update":   {"runs/update", 0, syscall.SIGKILL},
		"interrupted by SIGINT":     {"log-batch", 5, syscall.SIGINT},
	}, func(t *testing.T, c struct {
		path string
		n    int
		sig  syscall.Signal
	}) {
		s, path, came := newSite(t), bigReport(t), make(chan struct{})
		s.SetBefore(mlflowtest.On(c.path, after(c.n, came)))
		l := clitest.StartProcess(t, clitest.Perfagent(t, "push", "--mlflow", s.URL, path))
		occurs(t, "the push is in the middle", came)
		l.Signal(c.sig)
		if o, _ := l.End(); c.sig == syscall.SIGINT {
			o.Want(t, 1)
			clitest.WantLines(t, o.Err, 1, 3) // one of the lines may be progress
		}
		s.SetBefore(nil)
		o := call("push", "--mlflow", s.URL, path)
		o.Want(t, 0)
		got := s.only(t)
		if n := len(got.Metrics[oneSeries]); n != 500 {
			t.Errorf("%d points, want 500", n)
		}
		wantWhole(t, got, path)
		wantPushed(t, path, got.Info.RunID)
	})
}

// A signal after the job's end ends the push. The report has been written by then.
func TestE2E_MLflow_SignalEndsPushAfterReport(t *testing.T) {
	together(t, map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}, func(t *testing.T, sig syscall.Signal) {
		s, came := newSite(t), make(chan struct{})
		s.SetBefore(after(0, came))
		l := clitest.StartProcess(t, pushing(t, s.uri, "--push-timeout", "60s", "--", "sh", "-c", trackedJob))
		occurs(t, "the push has begun", came)
		r, path := reportertest.ReadSingle(t, filepath.Join(l.Cmd.Dir, "perfagent-out"))
		wantPendingIn(t, r)
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
		later(t, line).Want(t, 0)
		wantWhole(t, s.only(t), path)
	})
}

// A sidecar ends in time after TERM, whatever its server does.
func TestE2E_Sidecar_HangingServerDoesNotDelayTERM(t *testing.T) {
	together(t, map[string]func(t *testing.T, s *site){"hangs": hook(mlflowtest.Hang()), "silent": silent, "slow": hook(mlflowtest.Slow())},
		func(t *testing.T, begin func(*testing.T, *site)) {
			s := newSite(t)
			begin(t, s)
			l, path := beside(t, []string{"MLFLOW_TRACKING_URI=" + s.uri}, "--push-timeout", "1s")
			clitest.WaitUntil(t, "there are points to push", func() bool {
				text, _ := os.ReadFile(strings.TrimSuffix(path, ".json") + ".jsonl")
				return bytes.Count(text, []byte("\n")) > 60
			})
			start := time.Now()
			l.Signal(syscall.SIGTERM)
			o, _ := l.End()
			o.Want(t, 0)
			if took := time.Since(start); took > time.Second+noise {
				t.Errorf("perfagent ended %v after TERM, want at most %v", took, time.Second+noise)
			}
			_, line := pendingLine(o, t, "")
			wantPending(o, t)
			s.heal()
			later(t, line).Want(t, 0)
			wantWhole(t, s.only(t), path)
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
