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
	if build.dir != "" {
		os.RemoveAll(build.dir)
	}
	os.Exit(code)
}

// build is the binary under test, built once.
var build struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// binary builds perfagent as it is released and returns its path.
func binary(t testing.TB) string {
	t.Helper()
	build.once.Do(func() {
		if build.dir, build.err = os.MkdirTemp("", "perfagent-e2e-"); build.err != nil {
			return
		}
		build.err = os.Chmod(build.dir, 0o755) // other users run it, too
		build.path = filepath.Join(build.dir, "perfagent")
		if runtime.GOOS == "windows" {
			build.path += ".exe"
		}
		args := []string{"build", "-trimpath", "-buildvcs=false", "-o", build.path}
		if runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
			args = append(args, "-ldflags", "-E github.com/perfagent/perfagent/job.entry") // as make build does
		}
		cmd := exec.Command("go", append(args, ".")...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			build.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.path
}
