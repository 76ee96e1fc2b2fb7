package clitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/perfagent/perfagent/internal/testenv"
)

// builds holds the programs that this process has built.
var builds struct {
	mu    sync.Mutex
	dir   string
	paths map[string]string // paths by file name
}

// Binary returns the path of perfagent in its release build. It skips the test under -short.
func Binary(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" { // Windows has no shell, and the plain build is the same
		return PlainBinary(t)
	}
	script := testenv.Repository(t, "scripts/build.sh")

	return BuildOnce(t, "perfagent", func(path string) *exec.Cmd { return exec.Command("sh", script, path) })
}

// PlainBinary returns the path of perfagent, built by plain go build. It skips the test under -short.
func PlainBinary(t testing.TB) string {
	t.Helper()
	dir := testenv.Repository(t, "cmd/perfagent")

	return BuildOnce(t, "perfagent-plain.exe", func(path string) *exec.Cmd {
		cmd := exec.Command("go", "build", "-o", path, ".")
		cmd.Dir = dir
		return cmd
	})
}

// BuildOnce returns the path of the program with the given name. On the first call with that name, it builds the
// program with command. It skips the test under -short.
func BuildOnce(t testing.TB, name string, command func(path string) *exec.Cmd) string {
	t.Helper()
	testenv.SkipIfShort(t, "the program itself, to be built and run")

	builds.mu.Lock()
	defer builds.mu.Unlock()

	if path := builds.paths[name]; path != "" {
		return path
	}
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "perfagent-clitest-")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil { // for tests that run the program as another user
			t.Fatal(err)
		}
		builds.dir, builds.paths = dir, make(map[string]string)
	}

	path := filepath.Join(builds.dir, name)
	cmd := command(path)
	cmd.Env = append(
		os.Environ(),
		"CGO_ENABLED=0",
		"GOFLAGS=-buildvcs=false "+os.Getenv("PERFAGENT_TEST_BUILDFLAGS"),
		"VCS=false",
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	builds.paths[name] = path

	return path
}

// removeBuilds removes the programs that BuildOnce built.
func removeBuilds() {
	builds.mu.Lock()
	defer builds.mu.Unlock()

	if builds.dir != "" {
		os.RemoveAll(builds.dir)
	}
}
