package scheduler

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// maxAncestors bounds the way up to the first process.
const maxAncestors = 64

// hydraLaunch returns the control port of the nearest hydra_pmi_proxy above this process, HOST:PORT of
// mpiexec and thus the same on all hosts, and the day on which the proxy began, since a port is used again.
func hydraLaunch() string {
	pid, p, ok := nearestProxy()
	if !ok {
		return ""
	}

	var line procfile.Buffer
	args, err := line.Read("/proc/"+strconv.Itoa(pid)+"/cmdline", 1<<16)
	port := argumentAfter(args, "--control-port")
	if err != nil || port == "" {
		return ""
	}

	return port + " " + startDay(p.start)
}

// UnderHydra reports whether a hydra_pmi_proxy is above this process.
func UnderHydra() bool {
	_, _, ok := nearestProxy()
	return ok
}

// nearestProxy returns the nearest hydra_pmi_proxy above this process.
func nearestProxy() (pid int, p process, ok bool) {
	pid = os.Getppid()
	for range maxAncestors {
		p, ok = lookAt(pid)
		if !ok || p.name == hydraProxy {
			return pid, p, ok
		}
		pid = p.parent
	}

	return 0, process{}, false
}

// parent returns what distinguishes the parent process from all others of this host, and the day on which
// it began; "" if it cannot be looked at.
func parent() (process, day string) {
	pid := os.Getppid()
	p, ok := lookAt(pid)
	if !ok {
		return "", ""
	}
	return strconv.Itoa(pid) + " " + strconv.FormatUint(p.start, 10), startDay(p.start)
}

// A process is what /proc/PID/stat says of one (proc(5)).
type process struct {
	name   string
	parent int
	start  uint64 // clock ticks since the boot
}

// lookAt reads the stat of a process.
func lookAt(pid int) (p process, ok bool) {
	var stat procfile.Buffer
	data, err := stat.Read("/proc/"+strconv.Itoa(pid)+"/stat", 4096)
	if err != nil {
		return process{}, false
	}

	var f [procfile.StatStart + 1][]byte
	_, name, n := procfile.SplitStat(data, f[:])
	if n < len(f) {
		return process{}, false
	}
	p.name = string(name)
	p.start, ok = procfile.ParseCount(f[procfile.StatStart])
	p.parent, err = strconv.Atoi(string(f[procfile.StatParent]))

	return p, ok && err == nil
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
	var boot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return ""
	}
	age := time.Duration(boot.Nano()) - time.Duration(ticks)*(time.Second/procfile.UserHZ)

	return time.Now().Add(-age).UTC().Format(time.DateOnly)
}
