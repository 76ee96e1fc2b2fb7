package scheduler

import (
	"bytes"
	"os"
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

	var line procfile.Buffer
	args, err := line.Read("/proc/"+strconv.Itoa(proxy.PID)+"/cmdline", 1<<16)
	port := argumentAfter(args, "--control-port")
	if err != nil || port == "" {
		return ""
	}

	return port + " " + startDay(proxy.Start)
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

// argumentAfter returns the argument that follows flag in cmdline, which has the format of /proc/PID/cmdline.
func argumentAfter(cmdline []byte, flag string) string {
	args := bytes.Split(cmdline, []byte{0})
	for i, arg := range args[:len(args)-1] {
		if string(arg) == flag {
			return string(args[i+1])
		}
	}
	return ""
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
