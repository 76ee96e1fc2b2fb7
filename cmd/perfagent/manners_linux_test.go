package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
)

// What the job gives up is given up: we hold on to nothing of its.
func TestPipeThatTheJobClosesIsClosed(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--", "sh", "-c", "exec >&-; read line")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out); err != nil { // returns while the job still waits for its line
		t.Error(err)
	}
	if _, err := io.WriteString(in, "go\n"); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A stderr that is full and read by nobody keeps neither the job from starting nor
// its exit code from being returned.
func TestNobodyReadsStderr(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run", "--out", "/proc/nowhere", "--", "sh", "-c", "echo ran >mark; exit 3"},
		{"run", "--summary", "always", "--", "sh", "-c", "echo ran >mark; exit 3"},
	} {
		cmd := clitest.Perfagent(t, args...)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		stuff(t, w)
		cmd.Stderr = w
		start := time.Now()
		err = cmd.Run()
		w.Close()
		if code := cmd.ProcessState.ExitCode(); code != 3 || time.Since(start) > 20*time.Second {
			t.Errorf("%v: exit code %d (%v) after %v", args, code, err, time.Since(start))
		}
		if _, err := os.Stat(filepath.Join(cmd.Dir, "mark")); err != nil {
			t.Errorf("%v: the job did not run", args)
		}
	}
}

// stuff writes to a pipe until it takes no more.
func stuff(t *testing.T, w *os.File) {
	t.Helper()
	conn, err := w.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Control(func(fd uintptr) {
		for err == nil {
			_, err = syscall.Write(int(fd), make([]byte, 4096))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	// For the child it is an ordinary pipe, on which writes block.
	_ = conn.Control(func(fd uintptr) { err = syscall.SetNonblock(int(fd), false) })
	if err != nil {
		t.Fatal(err)
	}
}

// A shell that started a daemon and then executed us left us its child, whose CPU
// time is not the job's.
func TestChildFromBeforeIsNotTheJobs(t *testing.T) {
	t.Parallel()
	const burn = `import time
while time.process_time() < 0.5: pass`
	cmd := exec.Command("sh", "-c", `python3 -c "$1" & exec "$2" run -- sh -c 'while kill -0 '$!' 2>/dev/null; do sleep 0.05; done'`, "sh", burn, clitest.Binary(t))
	cmd.Dir = t.TempDir()
	o := clitest.Perform(t, cmd)
	o.Want(t, 0)
	if job := o.Report(t).Nodes["0"].Job; job.UserSeconds > 0.4 || job.Orphans != 0 {
		t.Errorf("user_seconds %v, orphans %d: that was the child from before", job.UserSeconds, job.Orphans)
	}
}

// A job that uses up all processes that its control group may have gets EAGAIN, as
// without us, and we are still there for its exit code.
func TestJobThatUsesUpItsProcesses(t *testing.T) {
	group := "/sys/fs/cgroup/pids/perfagent-test-" + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("no pids controller of cgroup v1 to write to (%v): run as root on such a host", err)
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
		cmd := exec.Command("sh", "-c", fmt.Sprintf(`echo $$ >%s/cgroup.procs; exec "$@"`, group), "sh",
			clitest.Binary(t), "run", "--interval", "10ms", "--", "python3", "-c", job)
		cmd.Dir = t.TempDir()
		o := clitest.Perform(t, cmd)
		o.Want(t, 6)
		if o.Err != "" {
			t.Errorf("stderr %q", o.Err)
		}
		clitest.Until(t, "the control group is empty", func() bool {
			n, err := os.ReadFile(group + "/pids.current")
			return err != nil || strings.TrimSpace(string(n)) == "0"
		})
	}
}

// A FIFO that nobody writes to is an empty report, not a reason to wait.
func TestShowOfAFIFO(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	o := insideCommand(t, "show", fifo).perform(t)
	o.Want(t, 1)
	if !strings.Contains(o.Err, fifo+": is empty") {
		t.Errorf("stderr %q", o.Err)
	}
}
