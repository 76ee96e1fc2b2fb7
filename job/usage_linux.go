package job

import (
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// usage converts the kernel's account into our units.
func usage(ru syscall.Rusage) Usage {
	seconds := func(tv syscall.Timeval) float64 { return time.Duration(tv.Nano()).Seconds() }
	return Usage{
		UserSeconds:         seconds(ru.Utime),
		SystemSeconds:       seconds(ru.Stime),
		MaxRSS:              int64(ru.Maxrss) * 1024,
		MinorFaults:         int64(ru.Minflt),
		MajorFaults:         int64(ru.Majflt),
		BlockInput:          int64(ru.Inblock),
		BlockOutput:         int64(ru.Oublock),
		VoluntarySwitches:   int64(ru.Nvcsw),
		InvoluntarySwitches: int64(ru.Nivcsw),
	}
}

// PeakRSS returns the high-water mark of this process's memory in bytes (VmHWM of
// proc(5)), or 0 if it is unknown. A child made now is charged with at least this much.
// ru_maxrss of getrusage(2) is only the last resort, because it includes what our
// own parent used when it made us.
func PeakRSS() int64 {
	if status, err := procfile.ReadFile("/proc/self/status"); err == nil {
		text := strings.TrimSuffix(procfile.StatusValue(status, "VmHWM"), " kB")
		if kib, err := strconv.ParseInt(text, 10, 64); err == nil {
			return kib * 1024
		}
	}

	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return int64(ru.Maxrss) * 1024
}
