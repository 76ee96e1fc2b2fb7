package scheduler

import (
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// hydraLaunch returns the control port and the start date of the nearest hydra_pmi_proxy above this process. The port
// is HOST:PORT of mpiexec, and thus the same on all hosts. The date is needed because ports are reused.
func hydraLaunch() string {
	proxy, ok := nearestProxy()
	if !ok {
		return ""
	}

	args := procfile.CommandLine(proxy.PID)
	i := slices.Index(args, "--control-port")
	if i < 0 || i == len(args)-1 || args[i+1] == "" {
		return ""
	}
	return args[i+1] + " " + startDay(proxy.Start)
}

// UnderHydra reports whether a hydra_pmi_proxy is above this process.
func UnderHydra() bool {
	_, ok := nearestProxy()
	return ok
}

// nearestProxy returns the nearest hydra_pmi_proxy above this process.
func nearestProxy() (procfile.Process, bool) {
	for p := range procfile.Ancestors() {
		if p.Name == hydraProxy {
			return p, true
		}
	}

	return procfile.Process{}, false
}

// parent returns a string that identifies the parent process among all processes of this host, and the parent's start
// date; "" if the parent cannot be read.
func parent() (process, day string) {
	p, ok := procfile.ReadProcess(os.Getppid())
	if !ok {
		return "", ""
	}
	return strconv.Itoa(p.PID) + " " + strconv.FormatUint(p.Start, 10), startDay(p.Start)
}

// startDay returns the date on which a process started. ticks is its start time in clock ticks since boot.
func startDay(ticks uint64) string {
	boot, ok := procfile.ClockGettime(unix.CLOCK_BOOTTIME)
	if !ok {
		return ""
	}
	age := boot - time.Duration(ticks)*(time.Second/procfile.UserHZ)

	return time.Now().Add(-age).UTC().Format(time.DateOnly)
}
