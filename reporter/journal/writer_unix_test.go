//go:build unix

package journal

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// writerJournal creates a journal that this process is writing.
func writerJournal(t *testing.T, dir string) *Journal {
	t.Helper()
	j := check.Value(Create(dir, head(reportertest.NewStream(1), 10)))(t)
	t.Cleanup(func() { j.w.file.Close() })
	return j
}

func TestReadWriterState_FollowsLockOfJournal(t *testing.T) {
	t.Parallel()
	j := writerJournal(t, t.TempDir())
	if got := ReadWriterState(j.Path()); got != WriterAlive || !IsLocked(j.Path()) {
		t.Errorf("a journal that is being written: state %v, locked %v, want alive, true", got, IsLocked(j.Path()))
	}
	check.Must(t, j.Stop(5*time.Minute))
	if got := ReadWriterState(j.Path()); got != WriterAlive { // its report is not written yet
		t.Errorf("a stopped journal without a report: state %v, want %v", got, WriterAlive)
	}
	j.w.file.Close()
	// A child that another test is starting may hold a copy of the descriptor, and thus the lock, until its exec.
	for begin := time.Now(); ReadWriterState(j.Path()) == WriterAlive && time.Since(begin) < 5*time.Minute; {
		time.Sleep(time.Millisecond)
	}
	if got := ReadWriterState(j.Path()); got != WriterGone || IsLocked(j.Path()) {
		t.Errorf("a journal without an agent: state %v, locked %v, want %v, false", got, IsLocked(j.Path()), WriterGone)
	}
	pushes := check.Value(os.Open(j.Path()))(t)
	defer pushes.Close()
	check.Must(t, unix.Flock(int(pushes.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	if got := ReadWriterState(j.Path()); got != WriterGone {
		t.Errorf("a journal that another process pushes: state %v, want %v", got, WriterGone)
	}
	empty := filepath.Join(t.TempDir(), "node-0.jsonl")
	check.Must(t, os.WriteFile(empty, nil, 0o644))
	for _, path := range []string{empty, empty + "x", "", t.TempDir()} {
		if got := ReadWriterState(path); got == WriterAlive {
			t.Errorf("%q: state %v, want any state except alive", path, got)
		}
	}
}

// Frequent queries never keep an agent from locking its new journal.
func TestReadWriterState_NeverBlocksLockOfAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "node-3.jsonl")
	var done atomic.Bool
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			for !done.Load() {
				_ = ReadWriterState(path)
			}
		})
	}
	for i := range 300 {
		j := writerJournal(t, dir)
		if got := ReadWriterState(j.Path()); got != WriterAlive {
			t.Errorf("journal %d: state %v, want %v", i, got, WriterAlive)
		}
		check.Must(t, j.Stop(time.Minute))
		check.Must(t, j.Remove())
	}
	done.Store(true)
	asking.Wait()
}
