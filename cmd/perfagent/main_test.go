package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/mlflowtest"
)

// update rewrites the golden files: go test ./cmd/perfagent -run Help -update.
var update = flag.Bool("update", false, "rewrite the golden files")

// partVariable makes the test binary play a part: a job that the tests wrap.
const partVariable = "E2E_PART"

// mlflowServers are the real MLflow servers that the tests share.
var mlflowServers mlflowtest.Pool

// parts are the jobs by name.
var parts = make(map[string]func())

func TestMain(m *testing.M) {
	if name := os.Getenv(partVariable); name != "" {
		play, ok := parts[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "no part %q\n", name)
			os.Exit(98)
		}
		play()
		os.Exit(0)
	}
	// Under nohup, or in the background of a script, these are ignored, and would be so in
	// every job. A signal that is caught here has its default there.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	code := m.Run()
	mlflowServers.Close()
	if builds.dir != "" {
		os.RemoveAll(builds.dir)
	}
	os.Exit(code)
}

// builds are the binaries under test, each built once.
var builds struct {
	mu    sync.Mutex
	dir   string
	paths map[string]string // by the name of the file
}

// binary builds perfagent as it is released and returns its path.
func binary(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" { // where there is no shell, and the same program comes out
		return plainBinary(t)
	}
	return built(t, "perfagent", func(path string) *exec.Cmd {
		return exec.Command("sh", "../../scripts/build.sh", path)
	})
}

// plainBinary builds perfagent by go build alone and returns its path.
func plainBinary(t testing.TB) string {
	t.Helper()
	return built(t, "perfagent-plain.exe", func(path string) *exec.Cmd {
		return exec.Command("go", "build", "-o", path, ".")
	})
}

// built returns the path of a binary, which it makes if this has not been done yet.
func built(t testing.TB, name string, command func(path string) *exec.Cmd) string {
	t.Helper()
	builds.mu.Lock()
	defer builds.mu.Unlock()
	if path := builds.paths[name]; path != "" {
		return path
	}

	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "perfagent-e2e-")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil { // other users run it, too
			t.Fatal(err)
		}
		builds.dir, builds.paths = dir, make(map[string]string)
	}

	path := filepath.Join(builds.dir, name)
	cmd := command(path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "VCS=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	builds.paths[name] = path
	return path
}
