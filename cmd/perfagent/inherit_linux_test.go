package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

func needsEntry(t *testing.T) {
	t.Helper()
	if !hasEntry() {
		t.Skip("perfagent has no entry point before the Go runtime on " + runtime.GOARCH + ": see docs/wrapping.md")
	}
}

// The job inherits ignored signals and closed descriptors as it would without perfagent.
func TestRun_JobInheritsIgnoredSignalsAndClosedDescriptors(t *testing.T) {
	t.Parallel()
	needsEntry(t)
	const job = `grep SigIgn /proc/$$/status; for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; true`
	for name, surroundings := range map[string]string{
		"defaults":         ``,
		"nohup":            `trap "" HUP`,
		"background job":   `trap "" INT QUIT`,
		"many signals":     `trap "" HUP INT QUIT PIPE TERM USR1 USR2 ALRM TSTP`,
		"no stdin":         `exec <&-`,
		"no stderr":        `exec 2>&-`,
		"no stdin, no INT": `trap "" INT TERM; exec <&-`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(args ...string) string {
				cmd := exec.Command("sh", append([]string{"-c", surroundings + "\n" + `exec "$@"`, "sh"}, args...)...)
				cmd.Dir = t.TempDir()
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v: %v", args, err)
				}
				return string(out)
			}
			want, got := run("sh", "-c", job), run(clitest.Binary(t), "run", "--", "sh", "-c", job)
			if got != want {
				t.Errorf("with perfagent the job inherits\n%swant, as without perfagent,\n%s", got, want)
			}
		})
	}
}

// For each signal, the release build and a plain go build pass an ignored signal on to the job as docs/wrapping.md
// states.
func TestRun_JobInheritsIgnoredSignalsAsDocumentedForBuild(t *testing.T) {
	t.Parallel()
	needsEntry(t)
	plain := []string{"HUP", "INT", "TSTP", "TTIN", "TTOU", "CONT"}
	released := append(plain, "TERM", "QUIT", "USR1", "USR2", "WINCH", "ALRM", "ABRT", "XCPU", "PIPE", "XFSZ",
		"VTALRM", "IO", "PWR")
	before := ignoredInJob(t, ":") // on some machines, all processes ignore a signal that the C library uses
	for path, passed := range map[string][]string{clitest.PlainBinary(t): plain, clitest.Binary(t): released} {
		for sig := unix.Signal(1); sig <= 31; sig++ {
			name := strings.TrimPrefix(unix.SignalName(sig), "SIG")
			if sig == unix.SIGKILL || sig == unix.SIGSTOP {
				continue
			}
			want := before
			if slices.Contains(passed, name) {
				want |= 1 << (sig - 1)
			}
			if got := ignoredInJob(t, fmt.Sprintf("trap '' %d", sig), path, "run", "--"); got != want {
				t.Errorf("%s with SIG%s ignored: SigIgn of the job = %x, want %x", path, name, got, want)
			}
		}
	}
}

// ignoredInJob returns the set of signals that a job ignores (SigIgn of proc_pid_status(5)) if a shell sets the given
// traps and executes the job under wrapper.
func ignoredInJob(t *testing.T, traps string, wrapper ...string) uint64 {
	t.Helper()
	args := append([]string{"-c", traps + `; exec "$@"`, "sh"}, wrapper...)
	o := mustExit(t, 0, clitest.Command(t, "sh", append(args, "grep", "SigIgn", "/proc/self/status")...))
	set, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(o.Out, "SigIgn:")), 16, 64)
	check.Must(t, err)
	return set
}

// The variables that the entry point sets for the Go runtime are not in the job's environment, but the user's variables
// are.
func TestRun_EntryPointDoesNotChangeEnvironmentOfJob(t *testing.T) {
	t.Parallel()
	for _, path := range []string{clitest.Binary(t), clitest.PlainBinary(t)} {
		for _, env := range [][]string{nil, {"A=1", "B=2"}, {"GOMAXPROCS=3", "A=1"}, {"GOMAXPRO=1", "GOMAXPROCSX=2", "G="}} {
			cmd := clitest.Command(t, path, "run", "--out", t.TempDir(), "--", "/usr/bin/env")
			cmd.Env = append([]string{}, env...)
			o := mustExit(t, 0, cmd)

			lines := strings.Split(strings.TrimSuffix(o.Out, "\n"), "\n")
			own := slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "PERFAGENT_") })
			if !slices.Equal(own, env) {
				t.Errorf("%s: environment of the job = %q, want %q", path, own, env)
			}
		}
	}
}

// If a shell ignores TERM and PIPE, a job under the release build survives both signals, as it would without perfagent.
// A job under a plain go build does not.
func TestRun_JobSurvivesIgnoredSignalsUnderReleaseBuildOnly(t *testing.T) {
	t.Parallel()
	needsEntry(t)
	for signal, died := range map[string]int{"TERM": 143, "PIPE": 141} {
		for path, code := range map[string]int{"": 7, clitest.Binary(t): 7, clitest.PlainBinary(t): died} {
			var wrapper []string
			if path != "" {
				wrapper = []string{path, "run", "--"}
			}
			cmd := clitest.Command(t, "sh", slices.Concat([]string{"-c", `trap '' TERM PIPE; exec "$@"`, "sh"}, wrapper,
				[]string{"sh", "-c", "kill -" + signal + " $$; exit 7"})...)
			if o := clitest.RunCommand(t, cmd); o.Code != code {
				t.Errorf("%q, %s: exit code %d, want %d", path, signal, o.Code, code)
			}
		}
	}
}

// An fcntl(2) lock of the process that becomes perfagent stays locked while the job runs.
func TestRun_KeepsFileLockOfLauncher(t *testing.T) {
	t.Parallel()
	const locks = `
import fcntl, os, sys
f = os.open("lock", os.O_RDWR | os.O_CREAT)
fcntl.lockf(f, fcntl.LOCK_EX)
os.set_inheritable(f, True)
os.execv(sys.argv[1], sys.argv[1:])`
	const job = `
import fcntl, os, time
while os.readlink("/proc/%d/fd/0" % os.getppid()) != "/dev/null": time.sleep(0.01) # until perfagent has given up its stdin
try:
    fcntl.lockf(os.open("lock", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("free")
except BlockingIOError:
    print("locked")`
	python := testenv.Python(t)
	cmd := clitest.Command(t, python, "-c", locks, clitest.Binary(t), "run", "--", python, "-c", job)
	cmd.Stdin = strings.NewReader("a pipe")
	o := mustExit(t, 0, cmd)
	if o.Out != "locked\n" {
		t.Errorf("the job printed %q, want \"locked\\n\"", o.Out)
	}
}
