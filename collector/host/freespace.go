package host

import "time"

// Room is what can still be written to a file system by this user.
type FreeSpace struct {
	Path string
	Free float64 // bytes
	// Reserve is the part of Free that others may not use, and that samples leave out.
	Reserve float64
	Inodes  float64 // files that can still be made; -1 where there is no such bound, or none is told
}

// Rooms asks file systems what room they have, all at once, and waits at most 200 ms for
// their answers: one whose server is gone never answers. Those that fail, that do not
// answer or that nobody can write to are left out; the others are in the order asked.
func FreeSpaces(paths []string) []FreeSpace {
	type answer struct {
		at   int
		room FreeSpace
		err  error
	}
	answers := make(chan answer, len(paths)) // nobody may wait for them any more
	for i, path := range paths {
		go func() {
			r, err := freeSpace(path)
			answers <- answer{i, r, err}
		}()
	}
	timer := time.NewTimer(statfsPatience)
	defer timer.Stop()
	got := make([]*FreeSpace, len(paths))
	for range paths {
		select {
		case a := <-answers:
			if a.err == nil {
				got[a.at] = &a.room
			}
			continue
		case <-timer.C:
		}
		break
	}
	var out []FreeSpace
	for _, r := range got {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out
}
