package host

import (
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/timeout"
)

// FreeSpace is what this user can still write to a file system.
type FreeSpace struct {
	Path   string
	FreeMB float64 // MiB
	// ReserveMB is the part of FreeMB that others may not use, and that samples leave out.
	ReserveMB float64
	Inodes    series.Optional // files that can still be made; unknown if the file system has no such bound
}

// A CoreFile is a core file, which the kernel has written of a process that a signal ended.
type CoreFile struct {
	File  string
	MB    float64  // MiB that it takes
	Paths []string // of those asked for, the ones on its file system
}

// FreeSpaces asks file systems for their free space, all at once, and waits at most 200 ms for the
// answers: one whose server is gone never answers. It leaves out those that fail, that do not
// answer or that are read-only, and returns the others in the order of paths.
func FreeSpaces(paths []string) []FreeSpace {
	type answer struct {
		space FreeSpace
		err   error
	}
	asked := make([]*timeout.Caller[answer], len(paths))
	for i, path := range paths {
		asked[i] = timeout.NewCaller[answer]()
		asked[i].Start(func() (a answer) {
			a.space, a.err = freeSpace(path)
			return a
		})
	}

	deadline := time.Now().Add(statfsTimeout)
	var out []FreeSpace
	for _, asker := range asked {
		if a, ok := asker.Result(time.Until(deadline)); ok && a.err == nil {
			out = append(out, a.space)
		}
	}
	return out
}
