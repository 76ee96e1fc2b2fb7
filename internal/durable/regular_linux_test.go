package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadRegular(t *testing.T) {
	const limit = 64 << 10
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, size := range map[string]int{"good": limit, "large": limit + 1} {
		if err := os.WriteFile(path(name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}

	if data, err := ReadRegular(path("good"), limit); err != nil || len(data) != limit {
		t.Errorf("ReadRegular = %d bytes, %v; want %d, nil", len(data), err, limit)
	}
	if _, err := ReadRegular(path("absent"), limit); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: error %v, want %v", err, fs.ErrNotExist)
	}
	for name, want := range map[string]string{
		dir: "not a regular file", path("fifo"): "not a regular file", "/dev/zero": "not a regular file",
		path("large"): "larger than 64 kB",
	} {
		if _, err := ReadRegular(name, limit); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one containing %q", name, err, want)
		}
	}
}
