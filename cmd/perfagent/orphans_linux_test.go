package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// perfagent neither waits for daemons of the job nor kills them.
func TestRun_NeitherWaitsForNorKillsDaemon(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--", "sh", "-c", `sleep 600 >/dev/null 2>&1 & echo $!; exit 3`)
	l := clitest.StartProcess(t, cmd)
	line := l.Next()
	if r := mustEnd(l, 3).Report(t); r.Run.WallSeconds > 300 {
		t.Errorf("the run took %v s, want at most 300: perfagent must not wait for a daemon", r.Run.WallSeconds)
	}
	if !clitest.Exists("/proc/" + line) {
		t.Error("the daemon is gone, want it still running")
	}
}

// Orphans are reaped and counted, even with perfagent as process 1.
func TestRun_CountsOrphans(t *testing.T) {
	t.Parallel()
	// The intermediate shell ends immediately, and its child uses CPU time. The job ends when the child has been
	// reaped.
	const job = `mkfifo held; sh -c 'sh -c "echo \$\$; i=0; while [ \$i -lt 100000 ]; do i=\$((i+1)); done" >held &'
		read pid <held; while kill -0 $pid 2>/dev/null; do sleep 0.01; done; exit 5`
	for name, args := range map[string][]string{
		"as ordinary process": nil, "as process 1": {"--pid", "--fork", "--mount-proc", "--kill-child"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Perfagent(t, "run", "--", "sh", "-c", job)
			if args != nil {
				testenv.NeedsRoot(t, "to create a pid namespace")
				unshare := testenv.NeedsTool(t, "unshare", "apt-get install util-linux")
				if out, err := clitest.Command(t, unshare, append(args, "true")...).CombinedOutput(); err != nil {
					t.Skipf("cannot create a pid namespace (%s): run the tests where root may create one", strings.TrimSpace(string(out)))
				}
				cmd = clitest.Command(t, unshare, append(args, cmd.Args...)...)
			}
			j := mustExit(t, 5, cmd).Report(t).Nodes["0"].Job
			if j.Orphans < 1 || j.UserSeconds+j.SystemSeconds < 0.01 || args != nil && j.PID > 100 {
				t.Errorf("job %+v, want at least 1 orphan and 0.01 s of CPU time", j)
			}
		})
	}
}

// A child that perfagent inherited from a shell by exec is not counted as part of the job.
func TestRun_DoesNotCountChildInheritedFromShell(t *testing.T) {
	t.Parallel()
	const burn = `import time
while time.process_time() < 0.5: pass`
	cmd := exec.Command("sh", "-c", `"$3" -c "$1" & exec "$2" run -- sh -c 'while kill -0 '$!' 2>/dev/null; do sleep 0.05; done'`, "sh", burn, clitest.Binary(t), testenv.Python(t))
	cmd.Dir = t.TempDir()
	if job := mustExit(t, 0, cmd).Report(t).Nodes["0"].Job; job.UserSeconds > 0.4 || job.Orphans != 0 {
		t.Errorf("user_seconds %v, orphans %d; want at most 0.4 and 0, without the shell's child", job.UserSeconds, job.Orphans)
	}
}
