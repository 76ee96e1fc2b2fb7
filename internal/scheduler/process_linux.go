package scheduler

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// hydraLaunch returns the control port of the nearest hydra_pmi_proxy above this process, HOST:PORT of
// mpiexec and thus the same on all hosts, and the day on which the proxy began, since a port is used again.
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

// parent returns what distinguishes the parent process from all others of this host, and the day on which
// it began; "" if it cannot be looked at.
func parent() (process, day string) {
	p, ok := procfile.ReadProcess(os.Getppid())
	if !ok {
		return "", ""
	}
	return strconv.Itoa(p.PID) + " " + strconv.FormatUint(p.Start, 10), startDay(p.Start)
}

// argumentAfter returns the argument that follows a flag in a command line of procfs.
func argumentAfter(cmdline []byte, flag string) string {
	args := bytes.Split(cmdline, []byte{0})
	for i, arg := range args[:len(args)-1] {
		if string(arg) == flag {
			return string(args[i+1])
		}
	}
	return ""
}

// startDay returns the day on which a process began, from clock ticks since the boot.
func startDay(ticks uint64) string {
	boot, ok := procfile.ClockGettime(unix.CLOCK_BOOTTIME)
	if !ok {
		return ""
	}
	age := boot - time.Duration(ticks)*(time.Second/procfile.UserHZ)

	return time.Now().Add(-age).UTC().Format(time.DateOnly)
}
