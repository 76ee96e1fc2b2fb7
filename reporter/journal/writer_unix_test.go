//go:build unix

package journal

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/reportertest"
)

// writerJournal creates a journal that this process is writing.
func writerJournal(t *testing.T, dir string) *Journal {
	t.Helper()
	s := reportertest.NewStream(1)
	j, err := Create(dir, head(s, 10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.w.file.Close() })
	return j
}

func TestWriting_TellsWhoWrites(t *testing.T) {
	t.Parallel()
	j := writerJournal(t, t.TempDir())
	if got := ReadWriterState(j.Path()); got != WriterAlive || !IsLocked(j.Path()) {
		t.Errorf("a journal that is being written: %v", got)
	}
	if err := j.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := ReadWriterState(j.Path()); got != WriterAlive { // its report is not written yet
		t.Errorf("a journal that was stopped: %v", got)
	}
	j.w.file.Close()
	// A child of another test holds a copy of the file, and so the lock, until its exec.
	for begin := time.Now(); ReadWriterState(j.Path()) == WriterAlive && time.Since(begin) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	if got := ReadWriterState(j.Path()); got != WriterGone || IsLocked(j.Path()) {
		t.Errorf("a journal whose agent has ended: %v", got)
	}
	pushes, err := os.Open(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer pushes.Close()
	if err := unix.Flock(int(pushes.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if got := ReadWriterState(j.Path()); got != WriterGone {
		t.Errorf("a journal that somebody pushes: %v", got)
	}
	empty := filepath.Join(t.TempDir(), "node-0.jsonl")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, empty + "x", "", t.TempDir()} {
		if got := ReadWriterState(path); got == WriterAlive {
			t.Errorf("%q: %v", path, got)
		}
	}
}

// Frequent queries never keep an agent from locking its new journal.
func TestWriting_NeverKeepsTheLockFromItsAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "node-3.jsonl")
	done := make(chan struct{})
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = ReadWriterState(path)
				}
			}
		})
	}
	for i := range 300 {
		j := writerJournal(t, dir)
		if got := ReadWriterState(j.Path()); got != WriterAlive {
			t.Errorf("journal %d: %v", i, got)
		}
		if err := j.Stop(time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := j.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	asking.Wait()
}
