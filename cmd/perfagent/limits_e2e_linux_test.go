//go:build e2e

package main

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// If a job reaches the process limit of its control group, fork returns EAGAIN, as without perfagent, and perfagent
// exits with the job's exit code.
func TestE2E_Run_KeepsExitCodeAtProcessLimitOfGroup(t *testing.T) {
	group := "/sys/fs/cgroup/pids/perfagent-test-" + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("cannot create a cgroup v1 group for pids (%v): run as root on a host with cgroup v1", err)
	}
	defer os.Remove(group)
	if err := os.WriteFile(group+"/pids.max", []byte("50"), 0o644); err != nil {
		t.Skip(err)
	}
	const job = `import os, signal, sys, time
pids = []
try:
    while True:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        pids.append(pid)
except BlockingIOError:
    time.sleep(0.5)
for pid in pids:
    os.kill(pid, signal.SIGKILL)
sys.exit(6)`
	for range 5 {
		o := mustExit(t, 6, clitest.Script(t, "sh", fmt.Sprintf(`echo $$ >%s/cgroup.procs; exec "$P" "$@"`, group),
			"run", "--summary", "never", "--interval", "10ms", "--", testenv.Python(t), "-c", job))
		if o.Err != "" {
			t.Errorf("stderr %q, want none", o.Err)
		}
		clitest.WaitUntil(t, "the control group is empty", func() bool { return clitest.Read(t, group+"/pids.current") == "0\n" })
	}
}
