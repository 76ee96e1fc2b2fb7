package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The program of docs/go-api.md, in a separate module, builds with a replace directive and prints the documented
// output.
func TestAgent_DocumentedProgramRunsOutsideTheModule(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped by -short: it builds a program, which takes half a minute with a cold cache")
	}
	t.Parallel()

	page, err := os.ReadFile("../docs/go-api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(page), "```go program\n")
	program, _, foundEnd := strings.Cut(program, "```\n")
	if !found || !foundEnd {
		t.Fatal("docs/go-api.md has no program")
	}

	dir := t.TempDir()
	outsideModule(t, dir)
	write(t, filepath.Join(dir, "main.go"), program)
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
		`wall_seconds 0\.[2-9]\d*\njob_cpu_seconds 0\.\d+\njob_peak_memory_mb \d+\.\d+\n$`)
	if !want.Match(out) || stderr.String() != "" {
		t.Errorf("the program printed %q, want %s; stderr %q, want none", out, want, stderr.String())
	}
}

// outsideModule makes a module that requires this one by its path, with the versions of its go.mod.
func outsideModule(t *testing.T, dir string) {
	t.Helper()

	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}

	const module = "github.com/perfagent/perfagent"
	text := strings.Replace(string(mod), "module "+module, "module example.com/outside", 1)
	text += "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	write(t, filepath.Join(dir, "go.mod"), text)
	write(t, filepath.Join(dir, "go.sum"), string(sum))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
