package host

import (
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/timeout"
)

// FreeSpace is the space on a file system that this user may still use.
type FreeSpace struct {
	Path   string
	FreeMB float64 // MiB
	// ReserveMB is the part of FreeMB that is reserved for root, and that samples exclude.
	ReserveMB float64
	Inodes    series.Optional // files that can still be created; unknown if the file system has no such limit
}

// A CoreFile is a core dump that the kernel wrote.
type CoreFile struct {
	File  string
	MB    float64  // allocated MiB
	Paths []string // the requested directories on its file system
}

// FreeSpaces reads the free space of the file systems at paths in parallel, for at most statfsTimeout (200 ms): if the
// server of a network file system is gone, statfs never returns. It omits file systems that fail, time out or are
// read-only, and keeps the order of paths.
func FreeSpaces(paths []string) []FreeSpace {
	type answer struct {
		space FreeSpace
		err   error
	}
	callers := make([]*timeout.Caller[answer], len(paths))
	for i, path := range paths {
		callers[i] = timeout.NewCaller[answer]()
		callers[i].Start(func() (a answer) {
			a.space, a.err = freeSpace(path)
			return a
		})
	}

	deadline := time.Now().Add(statfsTimeout)
	var out []FreeSpace
	for _, caller := range callers {
		if a, ok := caller.Result(time.Until(deadline)); ok && a.err == nil {
			out = append(out, a.space)
		}
	}
	return out
}
