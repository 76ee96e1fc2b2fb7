package collector

import (
	"math"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/process"
)

// The job's processes are waited for once; what comes late is not told as of now.
func TestJobTreeThatHangs(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var scans atomic.Int32
		tree := newJobTree(process.NewTree(process.Options{Root: os.Getpid(), Ignore: func(int) bool {
			scans.Add(1)
			<-release
			return false
		}}))
		var took []time.Duration
		read := func() (process.Use, error) {
			begin := time.Now()
			use, _, err := tree.read(false)
			took = append(took, time.Since(begin))
			return use, err
		}
		for n := range 4 {
			tree.closing = n == 3
			if _, err := read(); err == nil || !strings.Contains(err.Error(), "no answer within 2s") {
				t.Errorf("reading %d: %v", n, err)
			}
			if tree.foreign(1) {
				t.Error("it is known of a process whose it is")
			}
		}
		same(t, "time spent", took, []time.Duration{treePatience, 0, 0, treePatience})
		same(t, "scans", scans.Load(), int32(1))
		close(release)
		synctest.Wait()
		use, err := read()
		if err != nil || !use.Fresh || use.Processes < 1 || !math.IsNaN(use.Memory) {
			t.Errorf("once it answers: %+v, %v", use, err)
		}
		if scans.Load() < 2 {
			t.Error("the late answer was taken for a new one")
		}
		if !tree.foreign(1) {
			t.Error("process 1 is the job's")
		}
	})
}

func TestJobTreeThatPanics(t *testing.T) {
	tree := newJobTree(nil) // its methods do
	for range 2 {
		if _, _, err := tree.read(true); err == nil || !strings.Contains(err.Error(), "damaged kernel file") {
			t.Error(err)
		}
	}
}
