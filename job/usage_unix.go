//go:build unix

package job

import (
	"errors"
	"runtime"
	"syscall"
	"time"
)

// usage converts rusage into a Usage. Darwin counts resident memory in bytes, the other systems in KiB.
func usage(ru syscall.Rusage) Usage {
	seconds := func(tv syscall.Timeval) float64 { return time.Duration(tv.Nano()).Seconds() }
	unit := int64(1024)
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		unit = 1
	}
	return Usage{
		UserSeconds:         seconds(ru.Utime),
		SystemSeconds:       seconds(ru.Stime),
		MaxRSS:              int64(ru.Maxrss) * unit,
		MinorFaults:         int64(ru.Minflt),
		MajorFaults:         int64(ru.Majflt),
		BlockInput:          int64(ru.Inblock),
		BlockOutput:         int64(ru.Oublock),
		VoluntarySwitches:   int64(ru.Nvcsw),
		InvoluntarySwitches: int64(ru.Nivcsw),
	}
}

// OwnUsage returns the usage of this process since it began, and the usage of the children it has waited for. Both
// usages are zero if the kernel does not report them.
func OwnUsage() (own, children Usage) {
	var self, waited syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &self) != nil ||
		syscall.Getrusage(syscall.RUSAGE_CHILDREN, &waited) != nil {
		return Usage{}, Usage{}
	}
	return usage(self), usage(waited)
}

// brokenPipe reports whether err means that a pipe no longer has a reader.
func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
