package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestUsageReader_SelfIsThisProcess(t *testing.T) {
	var r UsageReader
	u := r.Self()
	if u.Processes != 1 || u.Threads < 1 || u.Private <= 0 || u.Private > 1<<32 {
		t.Errorf("usage of this process %+v, want 1 process and its memory", u)
	}
	treeBurn(50)
	if again := r.Self(); again.CPUSeconds < u.CPUSeconds || again.CPUSeconds < 0.03 {
		t.Errorf("usage after 50 ms of work %+v, want at least 0.03 s and at least %+v", again, u)
	}
}

// A subtree is a process and all its descendants, even while they sleep.
func TestUsageReader_SubtreeIncludesDescendants(t *testing.T) {
	if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid())); err != nil {
		t.Skip("needs a kernel that lists children (CONFIG_PROC_CHILDREN)")
	}
	cmd := exec.Command("sh", "-c", "sleep 60 & sleep 60 & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})

	var r UsageReader
	var u Usage
	for begin := time.Now(); u.Processes != 3 && time.Since(begin) < time.Minute; time.Sleep(time.Millisecond) {
		u = r.Subtree(cmd.Process.Pid)
	}
	if u.Processes != 3 || u.Threads != 3 || !(u.Private > 0) {
		t.Errorf("usage of a shell with two children %+v, want 3 processes, 3 threads and some memory", u)
	}
}

func TestUsageReader_SubtreeOfMissingProcessIsZero(t *testing.T) {
	var r UsageReader
	if u := r.Subtree(1 << 30); u != (Usage{}) {
		t.Errorf("usage of a missing process %+v, want zero", u)
	}
}
