//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/mlflow"
)

// A slow push that sends only tags and no values succeeds.
func TestE2E_Push_SlowPushOfTagsOnlySucceeds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := pendingReport(t, s.URL, "--", "true")
	call("push", path).Want(t, 0)
	other := clitest.Write(t, filepath.Join(t.TempDir(), "other.json"), clitest.Read(t, path), 0o644)
	s.SetBefore(func(_ http.ResponseWriter, r *http.Request) bool {
		select { // slower than the delay before progress is shown
		case <-time.After(1100 * time.Millisecond):
		case <-r.Context().Done():
		}
		return false
	})
	call("push", other).Want(t, 0)
	if got := s.only(t); len(got.Artifacts) != 2 {
		t.Errorf("artifacts %+v, want 2", got.Artifacts)
	}
}

// If two nodes end at the same time and one of them has failed, the run has failed.
func TestE2E_MLflow_FailureOfOneNodeFailsRun(t *testing.T) {
	t.Parallel()
	for k := range 4 {
		s := newSite(t)
		job := func(node, code int) *exec.Cmd {
			return pushing(t, s.URL, "--run-id", "two", "--node", fmt.Sprint(node), "--", "sh", "-c", fmt.Sprintf("sleep 0.5; exit %d", code))
		}
		sideBySide(t, job(0, 5*(k%2)), job(1, 5*((k+1)%2)))
		got := s.only(t)
		if got.Info.Status != mlflow.Failed || got.Tags[pusher.TagExitCode] != "5" {
			t.Errorf("status %s, exit code tag %s; want %s, 5", got.Info.Status, got.Tags[pusher.TagExitCode], mlflow.Failed)
		}
	}
}

// A file that replaced the report during a push is not overwritten; the report is written to another path.
func TestE2E_MLflow_DoesNotOverwriteReportReplacedDuringPush(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.SetBefore(mlflowtest.Hang())
	cmd := pushing(t, s.URL, "--push-timeout", "10m", "--run-id", "x", "--", "sh", "-c", "exit 5")
	precious := clitest.Write(t, filepath.Join(cmd.Dir, "precious.txt"), "mine", 0o644)
	l := clitest.StartProcess(t, cmd)
	path := filepath.Join(cmd.Dir, "perfagent-out/x/node-0.json")
	clitest.WaitUntil(t, "the push has begun", func() bool { return len(s.Requests()) > 0 })
	check.Must(t, os.Remove(path))
	check.Must(t, os.Symlink(precious, path))
	l.Signal(syscall.SIGTERM) // ends the push
	o := mustEnd(l, 5)
	if got := clitest.Read(t, precious); got != "mine" {
		t.Errorf("the file that replaced the report is now %q, want \"mine\"", got)
	}
	before, _, _ := strings.Cut(o.Err, "perfagent: MLflow")
	_, line := pendingLine(o, t, before)
	s.SetBefore(nil)
	later(t, 0, line)
	if s.only(t).Tags[pusher.TagExitCode] != "5" {
		t.Error("the report that was written elsewhere lacks exit code 5")
	}
}
