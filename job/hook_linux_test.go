//go:build amd64 || arm64

package job

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
)

// The end of a job is noticed even without a notification.
func TestSignals_AwaitChildNeedsNoNotification(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "0.5")
	check.Must(t, cmd.Start())
	seen := make(chan struct{})
	go func() {
		(&Signals{children: make(chan struct{}, 1)}).awaitChild(unix.WEXITED)
		close(seen)
	}()
	select {
	case <-seen:
	case <-time.After(10 * childPollInterval):
		t.Errorf("awaitChild did not return within %v after the end of a child", 10*childPollInterval)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
