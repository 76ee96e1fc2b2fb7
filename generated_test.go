package perfagent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What was generated is what the generator makes of the types as they are.
func TestGenerated_IsCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the generator")
	}
	const generator = "scripts/jsongen.go"
	found := 0
	for _, f := range sources(t) {
		text, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			command, ok := strings.CutPrefix(line, "//go:generate ")
			before, types, ours := strings.Cut(command, generator)
			if !ok || !ours {
				continue
			}
			found++
			check := exec.Command("go", strings.Fields(strings.TrimPrefix(before+generator+" -check"+types, "go "))...)
			check.Dir = filepath.Dir(f.path)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", f.path, err, out)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d packages have generated code", found)
	}
}
