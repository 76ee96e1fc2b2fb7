package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// An insideLine is a command line that runs in the test's process. It changes the working directory and the
// environment, so its test cannot be parallel.
type insideLine struct {
	Args   []string
	Dir    string   // working directory
	Env    []string // added to the environment
	Stdout io.Writer
}

// insideCommand prepares a command line that runs in a new directory.
func insideCommand(t *testing.T, args ...string) *insideLine {
	t.Helper()
	return &insideLine{Args: args, Dir: t.TempDir()}
}

// perform runs the command line to its end, and then restores the working directory and the environment.
func (l *insideLine) perform(t *testing.T) clitest.Outcome {
	t.Helper()
	t.Setenv("TERM", "xterm")  // fails in parallel tests
	testenv.Repository(t, ".") // needs the original working directory

	before, err := os.Getwd()
	check.Must(t, err)
	check.Must(t, os.Chdir(l.Dir))
	defer func() { check.Must(t, os.Chdir(before)) }()

	for _, entry := range append([]string{"TMPDIR=" + t.TempDir()}, l.Env...) {
		name, value, _ := strings.Cut(entry, "=")
		if name == "" {
			continue
		}
		old, had := os.LookupEnv(name)
		check.Must(t, os.Setenv(name, value))
		defer func() {
			if had {
				os.Setenv(name, old)
			} else {
				os.Unsetenv(name)
			}
		}()
	}

	o := callTo(l.Stdout, l.Args...)
	o.Dir = l.Dir

	return o
}

// inside runs a command line to its end in a new directory.
func inside(t *testing.T, args ...string) clitest.Outcome {
	t.Helper()
	return insideCommand(t, args...).perform(t)
}

// insideWith runs a command line to its end in a new directory, with entries added to the environment.
func insideWith(t *testing.T, env []string, args ...string) clitest.Outcome {
	t.Helper()
	l := insideCommand(t, args...)
	l.Env = env
	return l.perform(t)
}

// insideIn runs a command line to its end in dir.
func insideIn(t *testing.T, dir string, args ...string) clitest.Outcome {
	t.Helper()
	l := insideCommand(t, args...)
	l.Dir = dir
	return l.perform(t)
}

// call runs a command line in the test's process, directory and environment. Parallel tests may call it with absolute
// paths.
func call(args ...string) clitest.Outcome { return callTo(nil, args...) }

// callTo is like call, but writes stdout to the given writer. If stdout is nil, it is returned in Outcome.Out.
func callTo(stdout io.Writer, args ...string) clitest.Outcome {
	var out, stderr sharedBuffer
	if stdout == nil {
		stdout = &out
	}
	code := execute(args, streams{out: stdout, err: &stderr, embedded: true})

	return clitest.Outcome{Out: out.String(), Err: stderr.String(), Code: code}
}

// A sharedBuffer may be written by the job and by perfagent concurrently.
type sharedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *sharedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *sharedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// with adds entries to the environment of cmd.
func with(cmd *exec.Cmd, env ...string) *exec.Cmd {
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// fileHas reports whether the file at path exists and contains text.
func fileHas(path, text string) bool {
	data, err := os.ReadFile(path)
	return err == nil && bytes.Contains(data, []byte(text))
}
