package reporter

import (
	"time"

	"github.com/perfagent/perfagent/collector"
)

// Ending is what is known of the job's end beyond its exit status. The zero value knows
// nothing.
type Ending struct {
	// NotKnown says why the exit status is not known; "" = it is.
	NotKnown string
	// Signals were sent to perfagent, or to the whole group of processes that it is in,
	// and relayed to the job, oldest first.
	Signals []Sent
	// Rooms are the file systems that matter to a failed job, as they were at its end.
	Rooms []Room
	// RoomsBefore are the same before it began: one that was full then proves nothing. Where
	// there is none of a path that is not known.
	RoomsBefore []Room
	// DiskPaths are those that were watched and that the job's user can write to until
	// disk_free_mb, which is of the fullest of them, is 0.
	DiskPaths []string
	// Scheduler is in charge of the job ("Slurm"); "" = none is known. Limit is when it ends
	// the job; zero = not known.
	Scheduler string
	Limit     time.Time
	// Timeout is when the timeout(1) that runs perfagent ends the job; zero = there is none,
	// or it is not known.
	Timeout time.Time
}

// Sent is a signal and who sent it.
type Sent collector.Signal

// Room is what is left of a file system at one moment, for a user such as the job's.
type Room struct {
	Path string // as the job's user would name it: its directory, TMPDIR, --out
	// FreeMB is MiB. Inodes is how many files can still be made, -1 where the file system
	// has no such bound.
	FreeMB float64
	Inodes float64
}
