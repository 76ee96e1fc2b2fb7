//go:build unix

package agent

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/job"
)

// ownCPU returns the CPU time of this process in seconds, or 0 if it is not known.
func ownCPU() float64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return seconds(ru.Utime) + seconds(ru.Stime)
}

// peakRSS returns the peak resident size of this process in bytes, or 0 if it is not known.
func peakRSS() int64 { return job.PeakRSS() }

// programUsage returns what this process, and the children that it waited for, have used since the
// process began.
func programUsage() job.Usage {
	var self, children unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &self) != nil || unix.Getrusage(unix.RUSAGE_CHILDREN, &children) != nil {
		return job.Usage{}
	}

	unit := int64(1024) // of ru_maxrss, getrusage(2)
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		unit = 1
	}

	return job.Usage{
		UserSeconds:         seconds(self.Utime) + seconds(children.Utime),
		SystemSeconds:       seconds(self.Stime) + seconds(children.Stime),
		MaxRSS:              max(int64(self.Maxrss), int64(children.Maxrss)) * unit,
		MinorFaults:         int64(self.Minflt) + int64(children.Minflt),
		MajorFaults:         int64(self.Majflt) + int64(children.Majflt),
		BlockInput:          int64(self.Inblock) + int64(children.Inblock),
		BlockOutput:         int64(self.Oublock) + int64(children.Oublock),
		VoluntarySwitches:   int64(self.Nvcsw) + int64(children.Nvcsw),
		InvoluntarySwitches: int64(self.Nivcsw) + int64(children.Nivcsw),
	}
}

func seconds(tv unix.Timeval) float64 { return float64(tv.Nano()) / 1e9 }
