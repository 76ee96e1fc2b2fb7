package diagnosis

import (
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
)

// An ExitContext holds what is known about a job's end beyond its exit status. The zero value knows
// nothing.
type ExitContext struct {
	// NotKnown says why the exit status is not known; "" if it is known.
	NotKnown string
	// Signals were sent to perfagent or to its process group and relayed to the job, oldest first.
	Signals []collector.Signal
	// Space is the free space of the file systems that matter to a failed job, measured at its end.
	// SpaceBefore was measured before the job started: a file system that was full then proves
	// nothing. A path missing from it was not measured.
	Space, SpaceBefore []host.FreeSpace
	// DiskPaths are the watched paths that the job's user can write to until disk_free_mb, that of
	// the fullest of them, is 0.
	DiskPaths []string
	// CoreDumped reports whether the kernel wrote a core of the main process. Cores are the core
	// files of the job that were found on the file systems of Space, if one of these is full or
	// CoreDumped is set; CoresWritten reports whether the kernel writes cores to files.
	CoreDumped, CoresWritten bool
	Cores                    []host.Core
	// Scheduler is the scheduler of the job ("Slurm"); "" if none is known. Limit is when it ends
	// the job; zero if that is not known.
	Scheduler string
	Limit     time.Time
	// Timeout is when the timeout(1) that runs perfagent ends the job; zero if there is none, or
	// if that is not known.
	Timeout time.Time
}
