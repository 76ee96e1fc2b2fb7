package host

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Core files are found through the kernel's pattern, and recognized by content and time.
func TestFindCoreFiles_FollowsCorePattern(t *testing.T) {
	core := make([]byte, 8192)
	copy(core, "\x7fELF")
	binary.NativeEndian.PutUint16(core[16:], 4)
	program := append([]byte{}, core...)
	binary.NativeEndian.PutUint16(program[16:], 2)
	for name, c := range map[string]struct {
		pattern, file string
		content       []byte
		old, want     bool
		mb            float64
	}{
		"default pattern":      {"core", "core", core, false, true, 8.0 / 1024},
		"with process ID":      {"core", "core.4711", core, false, true, 8.0 / 1024},
		"with name and time":   {"c[%e]-%t%%", "c[py]-99%", core, false, true, 8.0 / 1024},
		"other directory":      {"/DIR/%p.core", "17.core", core, false, true, 8.0 / 1024},
		"other file name":      {"core", "score", core, false, false, 0},
		"empty, disk full":     {"core", "core", nil, false, true, 0},
		"truncated, disk full": {"core", "core", core[:17], false, true, 0},
		"older than since":     {"core", "core", core, true, false, 0},
		"program":              {"core", "core", program, false, false, 0},
		"text file":            {"core", "core", []byte("the core of the matter"), false, false, 0},
		"piped to a program":   {"|/usr/lib/systemd-coredump %P", "core", core, false, false, 0},
		"sent to a socket":     {"@@/run/cores", "core", core, false, false, 0},
		"empty pattern":        {"", "core.1", core, false, true, 8.0 / 1024},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, c.file)
		must(t, os.WriteFile(path, c.content, 0o600))
		since := time.Now().Add(-time.Minute)
		if c.old {
			since = time.Now().Add(time.Minute)
		}
		if c.pattern == "/DIR/%p.core" {
			c.pattern = dir + "/%p.core"
		}
		found, written := findCoreFiles(c.pattern, []string{dir, "/proc"}, since)
		if toFile := c.pattern == "" || c.pattern[0] != '|' && c.pattern[0] != '@'; written != toFile {
			t.Errorf("%s: written = %v, want %v", name, written, toFile)
		}
		if len(found) > 1 || len(found) == 1 != c.want {
			t.Errorf("%s: found %+v, want exactly one core file if %v, otherwise none", name, found, c.want)
			continue
		}
		if c.want && (found[0].File != path || c.mb > 0 && found[0].MB < c.mb || len(found[0].Paths) != 1 || found[0].Paths[0] != dir) {
			t.Errorf("%s: found %+v, want %s with at least %v MiB and only the path %s", name, found[0], path, c.mb, dir)
		}
	}
}
