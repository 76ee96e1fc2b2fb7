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

// LogThreads logs what each thread of a process does, if the test has failed: its state, the function of the kernel in
// which it waits, and its system call. Call it in a cleanup.
func LogThreads(t testing.TB, pid int) {
	if !t.Failed() {
		return
	}
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*")
	for _, task := range tasks {
		for _, name := range []string{"stat", "wchan", "syscall"} {
			data, _ := os.ReadFile(filepath.Join(task, name))
			t.Logf("%s/%s: %s", task, name, bytes.TrimSpace(data))
		}
	}
}

// Command prepares a process in a new directory and process group. The group is killed when the test ends.
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

// killGroup kills the remaining processes of cmd's process group. If cmd has been waited for and its group has no
// members left, another process may have the same ID, because these tests use up all process IDs within a minute.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process == nil {
		return
	}
	pid := cmd.Process.Pid
	if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil && cmd.ProcessState != nil {
		return // the kernel does not reuse the ID of a group that has members
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
}

// Perfagent prepares perfagent with the given arguments.
func Perfagent(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return Command(t, Binary(t), args...)
}

// Script prepares shell to run text as a script, with the path of perfagent in $P.
func Script(t testing.TB, shell, text string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := Command(t, shell, append([]string{"-c", text, shell}, args...)...)
	cmd.Env = append(cmd.Env, "P="+Binary(t))
	return cmd
}

// RunCommand runs a prepared process and returns its outcome.
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

// Wait waits for a started process. It kills the process if it runs longer than Longest.
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

// Run runs perfagent and returns its outcome.
func Run(t testing.TB, args ...string) Outcome {
	t.Helper()
	return RunCommand(t, Perfagent(t, args...))
}

// Report reads the report below the process's directory, which must have exactly one.
func (o Outcome) Report(t testing.TB) *reporter.Report {
	t.Helper()
	r, _ := reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
	return r
}

// Pipe returns a pipe. Tests close its write end to let a job continue.
func Pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// ProcessState returns the state of a process in /proc, such as "S", or "" if the process no longer exists.
func ProcessState(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

// ParentOf returns the ID of the parent of the process pid.
func ParentOf(t testing.TB, pid int) int {
	t.Helper()
	_, after, _ := strings.Cut(Read(t, "/proc/"+strconv.Itoa(pid)+"/stat"), ") ")
	n, _ := strconv.Atoi(strings.Fields(after)[1])
	return n
}
