//go:build unix

package reportfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// lockVariable is an environment variable that makes the test binary a second process. This process locks the named
// file, reports the lock, and keeps it until its standard input ends.
const lockVariable = "REPORTER_TEST_LOCK"

func init() {
	path := os.Getenv(lockVariable)
	if path == "" {
		return
	}
	if _, err := Lock(context.Background(), path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(0)
}

// holder is a process that waits for a lock or holds one.
type holder struct {
	cmd    *exec.Cmd
	locked chan string
	end    func() // ends the process
}

func hold(t *testing.T, path string) *holder {
	t.Helper()
	h := &holder{cmd: exec.Command(os.Args[0]), locked: make(chan string, 1)}
	h.cmd.Env = append(os.Environ(), lockVariable+"="+path)
	in, out := check.Value(h.cmd.StdinPipe())(t), check.Value(h.cmd.StdoutPipe())(t)
	check.Must(t, h.cmd.Start())
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		h.locked <- strings.TrimSpace(line)
	}()
	h.end = func() { in.Close(); _ = h.cmd.Wait() }
	t.Cleanup(func() { _ = h.cmd.Process.Kill(); _ = h.cmd.Wait() })
	return h
}

// has waits until the other process holds the lock.
func (h *holder) has(t *testing.T) {
	t.Helper()
	select {
	case line := <-h.locked:
		if line != "locked" {
			t.Fatalf("the other process printed %q, want locked", line)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the other process did not get the lock within 2 minutes")
	}
}

// opens waits until the other process has opened the file, on systems where the kernel shows open files.
func (h *holder) opens(t *testing.T, path string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", h.cmd.Process.Pid)
	if _, err := os.Stat(dir); err != nil {
		return
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		links, _ := filepath.Glob(dir + "/*")
		for _, link := range links {
			if to, _ := os.Readlink(link); to == path {
				return
			}
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatal("the other process did not open the file within 2 minutes")
		}
	}
}

func lockable(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node-0.json")
	check.Must(t, os.WriteFile(path, []byte("{}"), 0o444))
	return path
}

func TestLock_BlocksSecondProcess(t *testing.T) {
	t.Parallel()
	path := lockable(t)
	h := hold(t, path)
	h.has(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("report locked by another process: error %v, want one with the path and that reason", err)
	}
	h.end()
	release := check.Value(Lock(t.Context(), path))(t)
	second := hold(t, path)
	select {
	case line := <-second.locked:
		t.Errorf("the other process printed %q, want it to wait for the lock silently", line)
	case <-time.After(200 * time.Millisecond): // a time limit is the only way to observe that nothing happens
	}
	release()
	second.has(t)
}

// The lock of a killed process is released.
func TestLock_IsReleasedWhenProcessDies(t *testing.T) {
	t.Parallel()
	path := lockable(t)
	h := hold(t, path)
	h.has(t)
	check.Must(t, h.cmd.Process.Kill())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	release := check.Value(Lock(ctx, path))(t)
	release()
}

// If the file is replaced while a process waits for the lock, the process locks the new file.
func TestLock_WaitingProcessLocksReplacedFile(t *testing.T) {
	t.Parallel()
	path := lockable(t)
	release := check.Value(Lock(t.Context(), path))(t)
	waiting := hold(t, path)
	waiting.opens(t, path)
	check.Must(t, Rewrite(path, []byte("{}"), []byte(`{"a":1}`)))
	release()
	waiting.has(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path); err == nil {
		t.Error("the new file was locked twice, want an error")
	}
}

func TestLock_RejectsMissingFile(t *testing.T) {
	t.Parallel()
	for _, path := range []string{filepath.Join(t.TempDir(), "x"), ""} {
		if _, err := Lock(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Lock(%q): error %v, want fs.ErrNotExist", path, err)
		}
	}
}
