package perfagent_test

import (
	"os"
	"os/exec"
	"testing"
)

// scripts/sizes.md is up to date, and no line or function of the product is too long.
func TestSize_IsWithinBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("needs seconds to run scripts/loc.go: run it without -short, or make test")
	}
	sources(t) // reads the source files, so that go test reruns the test if one of them changes
	if _, err := os.ReadFile("scripts/sizes.md"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "run", "scripts/loc.go", "-check").CombinedOutput(); err != nil {
		t.Errorf("scripts/loc.go -check: %v:\n%s", err, out)
	}
}
