package host

import (
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
)

// openFiles returns the targets of this process's file descriptors, by path in procfs.
func openFiles(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)

	files := map[string]string{}
	for _, e := range entries {
		path := "/proc/self/fd/" + e.Name()
		if to, err := os.Readlink(path); err == nil { // fails for the descriptor that ReadDir used
			files[path] = to
		}
	}

	return files
}

// A closed Reader has no open files and may be used again.
func TestReader_CloseClosesOpenFiles(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()

	before := openFiles(t)
	job := JobOptions{Source: JobFromTree, Tree: process.NewTree(process.Options{Root: os.Getpid()})}
	job.Group, job.GroupErr = cgroup.Find(cgroup.Options{})
	r := NewReader(Options{Job: job})

	for range 2 {
		r.Baseline()
		r.Final()
		time.Sleep(10 * time.Millisecond)
		if use := r.Final().Job; math.IsNaN(use.CPUSeconds) || use.Processes < 1 {
			t.Errorf("usage of the job = %+v, want known CPU seconds and at least 1 process", use)
		}
		r.Close()

		for path, to := range openFiles(t) {
			if before[path] != to {
				t.Errorf("%s is still open after Close", to)
			}
		}
	}
}
