package clitest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// Command prepares a process in a new directory and a process group of its own, which is killed when the test ends.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = Env("TMPDIR=" + t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = Longest
	t.Cleanup(func() { killGroup(cmd) })
	return cmd
}

// killGroup kills what is left of a command's process group. If the command was waited for and nothing is left, another
// process may have its ID by now: IDs come round within a minute of such tests.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process == nil {
		return
	}
	pid := cmd.Process.Pid
	if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil && cmd.ProcessState != nil {
		return // as long as the group has members, no other process gets its ID
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
}

// Perfagent prepares perfagent.
func Perfagent(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return Command(t, Binary(t), args...)
}

// Script prepares a shell script in which $P is perfagent.
func Script(t testing.TB, shell, text string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := Command(t, shell, append([]string{"-c", text, shell}, args...)...)
	cmd.Env = append(cmd.Env, "P="+Binary(t))
	return cmd
}

// RunCommand runs a prepared process to its end.
func RunCommand(t testing.TB, cmd *exec.Cmd) Outcome {
	t.Helper()
	var out, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	Wait(t, cmd)
	return Outcome{out.String(), stderr.String(), cmd.ProcessState.ExitCode(), cmd.Dir}
}

// Wait waits for a started process, and kills one that takes too long.
func Wait(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	timer := time.AfterFunc(Longest, func() {
		t.Errorf("%v: still running after %v", cmd.Args, Longest)
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	})
	defer timer.Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
}

// Run runs perfagent to its end.
func Run(t testing.TB, args ...string) Outcome {
	t.Helper()
	return RunCommand(t, Perfagent(t, args...))
}

// Report reads the one report under the working directory.
func (o Outcome) Report(t testing.TB) *reporter.Report {
	t.Helper()
	r, _ := reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
	return r
}

// Pipe returns a pipe, whose write end a test closes to let a job go on.
func Pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// ProcessState returns the letter of a process's state in /proc; "" if it is gone.
func ProcessState(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

// ParentOf returns the parent of a process.
func ParentOf(t testing.TB, pid int) int {
	t.Helper()
	_, after, _ := strings.Cut(Read(t, "/proc/"+strconv.Itoa(pid)+"/stat"), ") ")
	n, _ := strconv.Atoi(strings.Fields(after)[1])
	return n
}
