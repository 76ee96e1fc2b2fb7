package host

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
)

// A network file system without its server is missing, delays only one Reading, and reappears when the server responds.
func TestReader_HungFileSystemDelaysOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := openFixture(t, "healthy")
		release := make(chan struct{})
		var asked atomic.Int64
		r.disks = newDiskSpace([]string{"/hung", "/fine", "/also-hung"}, func(path string) func() (DiskUsage, error) {
			return usageOf(func(path string) (DiskUsage, error) {
				if path != "/fine" {
					asked.Add(1)
					<-release
				}
				return DiskUsage{path, uint64(len(path)), 10}, nil
			}, path)
		})
		var took []time.Duration
		read := func() *Reading {
			begin := time.Now()
			got := r.Read()
			took = append(took, time.Since(begin))
			return got
		}
		for range 3 {
			r := read()
			same(t, "disk", r.Disk, []DiskUsage{{"/fine", 5, 10}})
			wantError(t, "disk", r.Failed[SourceDisk], "/hung: no response within 200ms", "/also-hung: no response")
			check.True(t, len(r.Failed) == 1 && r.Memory != nil && r.Devices[NICs] != nil,
				"failures = %v, memory = %v, NICs = %v; want only the disks missing", r.Failed, r.Memory, r.Devices[NICs])
		}
		same(t, "durations of the Readings", took, []time.Duration{statfsTimeout, 0, 0})
		same(t, "statfs calls for the hung file systems", asked.Load(), int64(2))
		close(release)
		synctest.Wait()
		for range 2 {
			r := read()
			same(t, "disk", r.Disk, []DiskUsage{{"/hung", 5, 10}, {"/fine", 5, 10}, {"/also-hung", 10, 10}})
			same(t, "failures", r.Failed, map[string]error(nil))
		}
	})
}

// A block of virtiofs and other FUSE file systems has f_frsize bytes, often a 256th of f_bsize.
func TestBlockSize_PrefersFragmentSize(t *testing.T) {
	for want, st := range map[uint64]unix.Statfs_t{4096: {Bsize: 1 << 20, Frsize: 4096}, 512: {Bsize: 512}} {
		same(t, "block size", blockSize(&st), want)
	}
}

// Only root may use the reserved blocks.
func TestNewFreeSpace_IncludesReserveOnlyForRoot(t *testing.T) {
	st := unix.Statfs_t{Frsize: 1 << 20, Bfree: 7, Bavail: 5, Files: 9, Ffree: 3}
	same(t, "free space for root", newFreeSpace("/", &st, true), FreeSpace{Path: "/", FreeMB: 7, ReserveMB: 2, Inodes: 3})
	st.Files = 0
	if got := newFreeSpace("/", &st, false); got.FreeMB != 5 || got.ReserveMB != 0 || got.Inodes.Known() {
		t.Errorf("free space for other users = %+v, want 5 MiB, no reserve and unknown inodes", got)
	}
}

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
		toFile := c.pattern == "" || c.pattern[0] != '|' && c.pattern[0] != '@'
		check.True(t, written == toFile, "%s: written = %v, want %v", name, written, toFile)
		if len(found) > 1 || len(found) == 1 != c.want {
			t.Errorf("%s: found %+v, want exactly one core file if %v, otherwise none", name, found, c.want)
			continue
		}
		if c.want && (found[0].File != path || c.mb > 0 && found[0].MB < c.mb || len(found[0].Paths) != 1 || found[0].Paths[0] != dir) {
			t.Errorf("%s: found %+v, want %s with at least %v MiB and only the path %s", name, found[0], path, c.mb, dir)
		}
	}
}
