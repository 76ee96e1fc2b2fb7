package host

import (
	"time"

	"github.com/perfagent/perfagent/internal/patience"
)

// FreeSpace is what this user can still write to a file system.
type FreeSpace struct {
	Path string
	Free float64 // bytes
	// Reserve is the part of Free that others may not use, and that samples leave out.
	Reserve float64
	Inodes  float64 // files that can still be made; -1 where there is no such limit, or it is not known
}

// FreeSpaces asks file systems for their free space, all at once, and waits at most 200 ms for the
// answers: one whose server is gone never answers. It leaves out those that fail, that do not
// answer or that nobody can write to, and returns the others in the order of paths.
func FreeSpaces(paths []string) []FreeSpace {
	type answer struct {
		space FreeSpace
		err   error
	}
	asked := make([]*patience.Asker[answer], len(paths))
	for i, path := range paths {
		asked[i] = patience.New[answer]()
		asked[i].Start(func() (a answer) {
			a.space, a.err = freeSpace(path)
			return a
		})
	}

	deadline := time.Now().Add(statfsPatience)
	var out []FreeSpace
	for _, asker := range asked {
		if a, ok := asker.Answer(time.Until(deadline)); ok && a.err == nil {
			out = append(out, a.space)
		}
	}
	return out
}
