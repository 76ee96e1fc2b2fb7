package procfile

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

func TestReadProcess_ReadsParentAndState(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	check.Must(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()

	// The state is the main thread's, which may sleep while another thread runs this test.
	self, ok := ReadProcess(os.Getpid())
	running := strings.ContainsRune("RSD", rune(self.State))
	if !ok || self.PID != os.Getpid() || self.Parent != os.Getppid() || self.Name == "" || !running {
		t.Errorf("this process: %+v, %v; want it running, with its parent and name", self, ok)
	}
	child, ok := ReadProcess(cmd.Process.Pid)
	if !ok || child.Parent != self.PID || child.Start < self.Start {
		t.Errorf("child: %+v, %v; want one whose parent is %+v", child, ok, self)
	}
	if args, none := CommandLine(child.PID), CommandLine(1<<30); !slices.Equal(args, cmd.Args) || none != nil {
		t.Errorf("command lines: child %q, no process %q; want %q, nil", args, none, cmd.Args)
	}

	if p, ok := ReadProcess(1 << 30); ok || p != (Process{PID: 1 << 30}) {
		t.Errorf("process that does not exist: %+v, %v; want only its ID, false", p, ok)
	}
}

func TestAncestors_BeginWithParent(t *testing.T) {
	var above []int
	for p := range Ancestors() {
		above = append(above, p.PID)
	}
	if len(above) == 0 || above[0] != os.Getppid() || slices.Contains(above, os.Getpid()) {
		t.Errorf("ancestors %v, want %d first, without %d", above, os.Getppid(), os.Getpid())
	}

	if !IsAncestor(os.Getppid()) || !IsAncestor(above[len(above)-1]) || IsAncestor(os.Getpid()) || IsAncestor(0) {
		t.Error("IsAncestor = false for an ancestor, or true for this process or 0")
	}
}
