package procfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
)

// Files of sizes around the buffer's are read completely, and files above the limit are refused.
func TestBuffer_ReadsFilesOfEverySize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	const limit = 3 * firstSize
	var b Buffer
	for _, size := range []int{0, 1, firstSize - 1, firstSize, firstSize + 1, limit, 10, limit + 1, 4 * limit} {
		want := strings.Repeat("x", size)
		check.Must(t, os.WriteFile(path, []byte(want), 0o600))
		data, err := b.Read(path, limit)
		if size > limit {
			if err == nil || !strings.Contains(err.Error(), "read "+path+": more than") {
				t.Errorf("file of %d bytes: error %v, want one of more than %d bytes", size, err, limit)
			}
			continue
		}
		if err != nil || string(data) != want {
			t.Errorf("file of %d bytes: read %d bytes, error %v; want the file's content", size, len(data), err)
		}
	}
}

// A read failure is an error with the path, and nothing blocks.
func TestBuffer_ErrorContainsPath(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	check.Must(t, unix.Mkfifo(fifo, 0o600))
	var b Buffer
	for path, want := range map[string]error{fifo: unix.ESPIPE, dir: unix.EISDIR, filepath.Join(dir, "none"): unix.ENOENT} {
		var at *fs.PathError
		if _, err := b.Read(path, 100); !errors.Is(err, want) || !errors.As(err, &at) || at.Path != path {
			t.Errorf("Read(%q): error %v, want a PathError with %v", path, err, want)
		}
	}
}

// Each read of an open kernel file returns the current content, without allocating.
func TestBuffer_ReadFromReturnsCurrentContent(t *testing.T) {
	fd, err := Open("/proc/self/stat")
	check.Must(t, err)
	defer unix.Close(fd)
	var b Buffer
	state := func() string {
		data, err := b.ReadFrom(fd, "stat", 4096)
		check.Must(t, err)
		var f [StatRSS + 1][]byte
		if pid, _, n := SplitStat(data, f[:]); n != len(f) || string(pid) == "" {
			t.Fatalf("stat of this process %q, want %d fields", data, len(f))
		}
		return string(f[StatState])
	}

	if got := state(); got != "R" && got != "S" {
		t.Errorf("state %q, want R or S", got)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = b.ReadFrom(fd, "stat", 4096) }); n != 0 {
		t.Errorf("ReadFrom allocates %v times, want 0", n)
	}
}
