package envfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, size := range map[string]int{"good": MaxSize, "large": MaxSize + 1} {
		if err := os.WriteFile(path(name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}

	if data, err := Read(path("good")); err != nil || len(data) != MaxSize {
		t.Errorf("got %d bytes, %v", len(data), err)
	}
	if _, err := Read(path("absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a file that is not there", err)
	}
	for name, want := range map[string]string{
		dir: "not a regular file", path("fifo"): "not a regular file", "/dev/zero": "not a regular file",
		path("large"): "larger than 64 kB",
	} {
		if _, err := Read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
