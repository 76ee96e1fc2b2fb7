package host

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
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
			err := r.Failed[SourceDisk]
			if err == nil || !strings.Contains(err.Error(), "/hung: no response within 200ms") || !strings.Contains(err.Error(), "/also-hung: no response") {
				t.Errorf("failure = %v, want no response from /hung and /also-hung", err)
			}
			if len(r.Failed) != 1 || r.Memory == nil || r.Devices[NICs] == nil {
				t.Errorf("failures = %v, memory = %v, NICs = %v; want only the disks missing", r.Failed, r.Memory, r.Devices[NICs])
			}
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
