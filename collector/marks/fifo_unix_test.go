//go:build unix

package marks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A FIFO that no other program has opened blocks neither Poll nor Append.
func TestFollower_RefusesFIFOWithoutBlocking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	must(t, unix.Mkfifo(path, 0o644))
	f := Follow(path)
	if news := f.Poll(); !strings.Contains(news.Why, "not a regular file: p") {
		t.Errorf("Poll of a FIFO returned the reason %q, want one with \"not a regular file: p\"", news.Why)
	}
	if err := Append(path, Line{Text: "one"}); err == nil {
		t.Error("Append to a FIFO without a reader returned nil, want an error")
	}

	reader, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer reader.Close()
	if err := Append(path, Line{Text: "one"}); err == nil || !strings.Contains(err.Error(), "is not a regular file: p") {
		t.Errorf("Append to a FIFO with a reader: error %v, want one with \"is not a regular file: p\"", err)
	}
}
