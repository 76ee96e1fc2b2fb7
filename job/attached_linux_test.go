package job

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// attachTo starts a shell script and attaches to it.
func attachTo(t *testing.T, script string) (*exec.Cmd, *AttachedProcess) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	check.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	a := check.Value(Attach(cmd.Process.Pid))(t)
	t.Cleanup(a.Close)
	return cmd, a
}

func TestAttachedProcess_ReportsEndAndStatus(t *testing.T) {
	for _, c := range []struct {
		name, script string
		code         int
		signal       string
	}{
		{"exit", "read x; exit 7", 7, ""},
		{"signal", "read x; kill -USR1 $$", 138, "SIGUSR1"},
	} {
		for _, pidfd := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				r, w, err := os.Pipe()
				check.Must(t, err)
				defer r.Close()
				cmd := exec.Command("sh", "-c", c.script)
				cmd.Stdin = r
				check.Must(t, cmd.Start())
				a := check.Value(Attach(cmd.Process.Pid))(t)
				defer a.Close()
				if a.pid != cmd.Process.Pid || a.hasEnded() {
					t.Errorf("attached to process %d, ended %v; want %d, false", a.pid, a.hasEnded(), cmd.Process.Pid)
				}
				if !pidfd { // as with a kernel that lacks pidfd_open
					a.Close()
					a.file = nil
				}

				w.Close()
				if !a.Wait(t.Context(), time.Millisecond) {
					t.Error("Wait returned false for a process that ended, want true")
				}
				if _, _, err := a.Status(); pidfd && (err == nil || !strings.Contains(err.Error(), "has not waited")) {
					t.Errorf("Status before the parent has waited: error %v, want \"has not waited\"", err)
				}
				_ = cmd.Wait()
				code, signal, err := a.Status()
				switch {
				case !pidfd && (err == nil || !strings.Contains(err.Error(), "pidfd")):
					t.Errorf("Status without a pidfd: error %v, want one about pidfd", err)
				case pidfd && err != nil && strings.Contains(err.Error(), "Linux 6.15"):
					t.Skip("needs Linux 6.15, whose pidfd reports the exit code")
				case pidfd && (err != nil || code != c.code || signal != c.signal):
					t.Errorf("Status = %d, %q, %v; want %d, %q, nil", code, signal, err, c.code, c.signal)
				}
			})
		}
	}
}

// Wait returns when the context ends, with and without a pidfd, and leaves no goroutine behind.
func TestAttachedProcess_WaitEndsWithContext(t *testing.T) {
	cmd, a := attachTo(t, "exec sleep 100")
	for _, pidfd := range []bool{true, false} {
		if !pidfd {
			a.Close()
			a.file = nil
		}
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if a.Wait(ctx, time.Millisecond) {
				t.Errorf("with a pidfd %v: Wait returned true for a running process, want false", pidfd)
			}
			cancel()
		}
	}
	_ = cmd.Process.Signal(syscall.SIGKILL)
	if !a.Wait(t.Context(), time.Millisecond) {
		t.Error("Wait returned false for a killed process, want true")
	}
}

func TestAttach_FailsForEndedProcess(t *testing.T) {
	cmd := exec.Command("true")
	check.Must(t, cmd.Run())
	if _, err := Attach(cmd.Process.Pid); err == nil || !strings.HasSuffix(err.Error(), errNotThere.Error()) {
		t.Errorf("Attach to an ended process: error %v, want %q at its end", err, errNotThere)
	}
}
