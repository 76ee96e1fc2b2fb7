package procfile

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestReadProcess(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()

	// The state is of the main thread, which sleeps while another thread runs this test.
	self, ok := ReadProcess(os.Getpid())
	running := strings.ContainsRune("RSD", rune(self.State))
	if !ok || self.PID != os.Getpid() || self.Parent != os.Getppid() || self.Name == "" || !running {
		t.Errorf("self: %+v, %v", self, ok)
	}
	child, ok := ReadProcess(cmd.Process.Pid)
	if !ok || child.Parent != self.PID || child.Start < self.Start {
		t.Errorf("child: %+v, %v; self: %+v", child, ok, self)
	}

	if p, ok := ReadProcess(1 << 30); ok || p != (Process{PID: 1 << 30}) {
		t.Errorf("nobody: %+v, %v", p, ok)
	}
}

func TestAncestors(t *testing.T) {
	var above []int
	for p := range Ancestors() {
		above = append(above, p.PID)
	}
	if len(above) == 0 || above[0] != os.Getppid() || slices.Contains(above, os.Getpid()) {
		t.Errorf("ancestors %v of %d", above, os.Getpid())
	}

	if !DescendsFrom(os.Getppid()) || !DescendsFrom(above[len(above)-1]) || DescendsFrom(os.Getpid()) || DescendsFrom(0) {
		t.Error("Descends departs from Ancestors")
	}
}
