package process

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// waiterShare is the part of a core below which a process with children is taken to wait for them.
const waiterShare = 0.05

// A worked is the CPU time that a process had used at some moment of the boot clock, in seconds.
type worked struct {
	start   uint64
	seconds float64
	at      time.Duration
}

// Workers returns the processes of the newest scan on which the job's work depends: all but those that have a
// child and have used less than a twentieth of a core since the call before, as a shell or a launcher that waits
// for its command.
func (t *Tree) Workers() []int {
	now, before := clock(unix.CLOCK_BOOTTIME), t.worked
	t.worked = make(map[int32]worked, len(t.ours))
	parents := make([]int32, 0, len(t.ours))
	for _, p := range t.ours {
		if !p.dead() {
			parents = append(parents, p.ppid)
		}
	}
	slices.Sort(parents)

	var out []int
	for _, p := range t.ours {
		if p.dead() {
			continue
		}
		t.worked[p.pid] = worked{p.start, p.ownSeconds(), now}
		since, known := before[p.pid]
		if !known || since.start != p.start {
			since = worked{at: sinceBoot(p.start)}
		}
		_, parent := slices.BinarySearch(parents, p.pid)
		if parent && p.ownSeconds()-since.seconds < waiterShare*(now-since.at).Seconds() {
			continue
		}
		out = append(out, int(p.pid))
	}
	return out
}
