package collector

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxKernelLog bounds what is read of the kernel's log.
const maxKernelLog = 8 << 20

// maxVictims bounds how many killed processes are named.
const maxVictims = 20

// oomVictims lists the processes that the kernel says in its log (/dev/kmsg) to have
// killed for want of memory since a moment; nil where the log may not be read.
func oomVictims(since Instant) []Victim {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var out []Victim
	record := make([]byte, 8<<10) // one read gives one record
	for read := 0; read < maxKernelLog && len(out) < maxVictims; {
		n, err := unix.Read(fd, record)
		switch {
		case err == unix.EINTR || err == unix.EPIPE: // EPIPE: overwritten while we read, the next one is there
			read++
			continue
		case err != nil || n <= 0:
			return out
		}
		read += n
		v, at, ok := parseVictim(record[:n])
		if !ok || at < since.Mono || slices.ContainsFunc(out, func(w Victim) bool { return w.PID == v.PID }) {
			continue // the second line of the same kill has no group
		}
		v.At = since.Wall.Add(at - since.Mono)
		out = append(out, v)
	}
	return out
}

// parseVictim reads a record of /dev/kmsg: "4,1234,5678901,-;message", the third number
// microseconds of the kernel's clock, which stops while the machine sleeps. Of an OOM
// kill the kernel says (mm/oom_kill.c, dump_oom_summary):
//
//	oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=python,pid=42,uid=0
//	Memory cgroup out of memory: Killed process 42 (python) total-vm:…
//
// The first has been there since Linux 5.0, and is left out after ten kills within 5 s.
// The second is always there; a victim of which only that is known has no Group.
func parseVictim(record []byte) (v Victim, at time.Duration, ok bool) {
	head, message, found := bytes.Cut(record, []byte{';'})
	fields := strings.SplitN(string(head), ",", 4)
	line, _, _ := strings.Cut(string(message), "\n")
	if !found || len(fields) < 3 {
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
	// A name may hold anything but is at most 15 bytes long: look for what follows it.
	before, name, found := strings.Cut(text, ",task=")
	if end := strings.LastIndex(name, ",pid="); found && end >= 0 {
		number, _, _ := strings.Cut(name[end+len(",pid="):], ",")
		v.PID, err = strconv.Atoi(number)
		v.Process = name[:end]
	}
	if !found || err != nil || v.PID <= 0 {
		return v, 0, false
	}
	_, v.Group, _ = strings.Cut(before, ",task_memcg=")
	v.Host = !strings.Contains(before, "constraint=CONSTRAINT_MEMCG")
	return v, at, true
}

// parseKilled reads the second of these lines.
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
