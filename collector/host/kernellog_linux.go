package host

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// scarceFiles is the limit of descriptors below which none is held for the log.
const scarceFiles = 64

// maxVictims bounds how many killed processes are named.
const maxVictims = 20

// A kernelLog is the kernel's log (/dev/kmsg) from a moment on. A nil one cannot be read.
type kernelLog struct {
	fd     int
	found  []Victim // so far; the newest few
	record [8 << 10]byte
	// pids reports that our process IDs are the log's, which are of the first pid namespace.
	pids bool
	// lost reports that not all victims are among those found.
	lost bool
}

// openKernelLog opens the log at its end: the entries in it were written before the job. Their times
// do not show that, because the log's clock drifts from the others by seconds in months. The job
// does not inherit the descriptor.
func openKernelLog() *kernelLog {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && limit.Cur < scarceFiles {
		return nil // the job needs them
	}
	// A container may have something else there: a terminal, from which nothing may be taken, has
	// no end to seek to.
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	if _, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil {
		unix.Close(fd)
		return nil
	}
	return &kernelLog{fd: fd}
}

func (l *kernelLog) close() {
	if l != nil {
		unix.Close(l.fd)
	}
}

// read reads on in the log, at most limit bytes of it, for out-of-memory kills. It asks foreign at
// once whose the processes were.
func (l *kernelLog) read(start, now Instant, foreign func(pid int) bool, limit int) {
	for read := 0; read < limit; {
		n, err := unix.Read(l.fd, l.record[:]) // one record
		switch {
		case err == unix.EINTR || err == unix.EPIPE: // EPIPE: overwritten before we read it; the next one is there
			l.lost = l.lost || err == unix.EPIPE
			read++
			continue
		case err != nil || n <= 0: // EAGAIN: there are no more
			return
		}

		read += n
		v, at, ok := parseVictim(l.record[:n])
		if !ok || slices.ContainsFunc(l.found, func(w Victim) bool { return w.PID == v.PID }) {
			continue // the second line about the same kill has no group
		}

		v.At = start.Wall.Add(min(max(at, start.Mono), now.Mono) - start.Mono)
		v.Foreign = l.samePIDs() && foreign(v.PID)
		if len(l.found) == maxVictims {
			// Keep those with the most detail.
			i := max(0, slices.IndexFunc(l.found, func(w Victim) bool { return w.LimitGroup == "" && !w.Host }))
			l.found = slices.Delete(l.found, i, i+1)
			l.lost = true
		}

		l.found = append(l.found, v)
	}
}

// victims returns the processes that were found, the newest few.
func (l *kernelLog) victims() []Victim { return slices.Clone(l.found) }

// whole reports whether all victims were found, with process IDs that are ours.
func (l *kernelLog) whole() bool { return !l.lost && l.samePIDs() }

// samePIDs reports whether we are in the first pid namespace, whose inode number is the same on
// every machine (PROC_PID_INIT_INO).
func (l *kernelLog) samePIDs() bool {
	if !l.pids {
		name, err := os.Readlink("/proc/self/ns/pid")
		l.pids = err == nil && name == "pid:[4026531836]"
	}
	return l.pids
}

// parseVictim reads a record of /dev/kmsg: "4,1234,5678901,-;message", the third number
// microseconds of the kernel's clock, which stops while the machine sleeps. Of an OOM
// kill the kernel says (mm/oom_kill.c, dump_oom_summary):
//
//	oom-kill:constraint=CONSTRAINT_MEMCG,…,oom_memcg=/a,task_memcg=/a/b,task=python,pid=42,uid=0
//	Memory cgroup out of memory: Killed process 42 (python) total-vm:…
//
// The first has been there since Linux 5.0, and is left out after ten kills within 5 s.
// The second is always there; a victim known only from it has no Group.
func parseVictim(record []byte) (v Victim, at time.Duration, ok bool) {
	head, message, found := bytes.Cut(record, []byte{';'})
	fields := strings.SplitN(string(head), ",", 4)
	line, _, _ := strings.Cut(string(message), "\n")
	if !found || len(fields) < 3 {
		return v, 0, false
	}
	// The kernel's own records have facility 0: a priority below 8. Others are a program's.
	if priority, err := strconv.Atoi(fields[0]); err != nil || priority < 0 || priority > 7 {
		return v, 0, false
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || micros < 0 {
		return v, 0, false
	}

	at = time.Duration(micros) * time.Microsecond
	text, isKill := strings.CutPrefix(line, "oom-kill:")
	if !isKill {
		v, ok = parseKilled(line)
		return v, at, ok
	}

	// A name may contain anything but has at most 15 bytes: look for what follows it.
	before, name, found := strings.Cut(text, ",task=")
	if end := strings.LastIndex(name, ",pid="); found && end >= 0 {
		number, _, _ := strings.Cut(name[end+len(",pid="):], ",")
		v.PID, err = strconv.Atoi(number)
		v.Process = name[:end]
	}

	if !found || err != nil || v.PID <= 0 {
		return v, 0, false
	}
	before, v.Group, _ = strings.Cut(before, ",task_memcg=")
	if v.Host = !strings.Contains(before, "constraint=CONSTRAINT_MEMCG"); !v.Host {
		_, v.LimitGroup, _ = strings.Cut(before, ",oom_memcg=")
	}
	return v, at, true
}

// parseKilled parses the second of these lines.
func parseKilled(line string) (v Victim, ok bool) {
	before, text, found := strings.Cut(line, "Killed process ")
	if !found || !strings.HasSuffix(before, "ut of memory: ") && before != "" { // alone in its line before Linux 5.0
		return v, false
	}

	number, name, _ := strings.Cut(text, " (")
	end := strings.LastIndex(name, ") total-vm:")
	if end < 0 {
		if end = strings.LastIndex(name, "), UID "); end < 0 { // Linux 4.20 and 5.0: "(python), UID 0, total-vm:"
			return v, false
		}
	}

	pid, err := strconv.Atoi(strings.TrimSuffix(number, ","))
	if err != nil || pid <= 0 {
		return v, false
	}
	return Victim{Process: name[:end], PID: pid, Host: strings.HasPrefix(before, "Out of memory")}, true
}
