package perfagent_test

import (
	"os"
	"os/exec"
	"testing"
)

// No capability has more lines than docs/architecture.md says, and no line or function of the product is too long.
func TestSize_IsInTheDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the counter")
	}
	sources(t) // go test sees which files the test has read, and runs it again if one has changed
	if _, err := os.ReadFile("docs/architecture.md"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "run", "scripts/loc.go", "-check").CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
