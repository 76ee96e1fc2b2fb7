package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// The program of docs/go-api.md, in a separate module, builds with a replace directive and prints the documented
// output.
func TestAgent_DocumentedProgramRunsOutsideTheModule(t *testing.T) {
	testenv.SkipIfShort(t, "half a minute to build a program with a cold cache")
	t.Parallel()

	_, program, found := strings.Cut(string(check.Value(os.ReadFile("../docs/go-api.md"))(t)), "```go program\n")
	program, _, foundEnd := strings.Cut(program, "```\n")
	if !found || !foundEnd {
		t.Fatal("docs/go-api.md has no program")
	}

	dir := t.TempDir()
	outsideModule(t, dir)
	check.Must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o666))
	cmd := exec.Command("go", "run", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off", "MLFLOW_TRACKING_URI=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}

	want := regexp.MustCompile(`^exit code 3 /\S+/perfagent-out/\S+/node-0\.json\n` +
		`wall_seconds (0\.[2-9]|[1-9])[\d.]*\njob_cpu_seconds 0\.\d+\njob_peak_memory_mb \d+\.\d+\n$`)
	if !want.Match(out) || stderr.String() != "" {
		t.Errorf("the program printed %q, want %s; stderr %q, want none", out, want, stderr.String())
	}
}

// outsideModule makes a module that requires this one by its path, with the versions of its go.mod.
func outsideModule(t *testing.T, dir string) {
	t.Helper()

	root := check.Value(filepath.Abs(".."))(t)
	mod := check.Value(os.ReadFile("../go.mod"))(t)
	sum := check.Value(os.ReadFile("../go.sum"))(t)

	const module = "github.com/perfagent/perfagent"
	text := strings.Replace(string(mod), "module "+module, "module example.com/outside", 1)
	text += "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	check.Must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o666))
	check.Must(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o666))
}
