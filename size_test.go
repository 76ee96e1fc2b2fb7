package perfagent_test

import (
	"os"
	"os/exec"
	"testing"
)

// scripts/sizes.md has the size of each capability, and no line or function of the product is too long.
func TestSize_IsWithinBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the counter")
	}
	sources(t) // go test then reruns the test if a source file changes
	if _, err := os.ReadFile("scripts/sizes.md"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "run", "scripts/loc.go", "-check").CombinedOutput(); err != nil {
		t.Errorf("scripts/loc.go -check: %v:\n%s", err, out)
	}
}
