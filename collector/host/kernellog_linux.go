package host

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
)

// scarceFiles is the limit of descriptors below which none is held for the log.
const scarceFiles = 64

// maxVictims bounds how many killed processes are named.
const maxVictims = 20

// A kernelLog is the kernel's log (/dev/kmsg) from a moment on. A nil one cannot be read.
type kernelLog struct {
	file     *os.File
	conn     syscall.RawConn
	exits    *process.ExitListener // nil = the kernel does not say them
	watching atomic.Bool

	mu      sync.Mutex
	tracked []trackedVictim // so far; the newest few
	ended   []exit          // of SIGKILL; the newest few
	record  [8 << 10]byte
	// pids reports that our process IDs are the log's, which are of the first pid namespace.
	pids bool
	// lost reports that not all victims are among those found.
	lost bool
}

// An exit is that of a process that SIGKILL ended, whoever sent it.
type exit struct {
	pid, parent int
	whose       process.Relation
}

// maxEnded is more than end of SIGKILL between the kernel's decision and our reading of it.
const maxEnded = 256

// A trackedVictim is a Victim, and whether its parents were looked at.
type trackedVictim struct {
	Victim
	looked bool
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
	l := &kernelLog{file: os.NewFile(uintptr(fd), "/dev/kmsg")}
	l.conn, _ = l.file.SyscallConn() // it fails for a nil file only
	return l
}

func (l *kernelLog) close() {
	if l == nil {
		return
	}
	l.file.Close()
	if l.exits != nil {
		l.exits.Close()
	}
}

// watchPart is how much of each second may be spent on following the log, which may be flooded. A
// reading takes some 10 µs.
const watchPart = 20 * time.Millisecond

// givesBack is more than a process that was killed for memory needs to give it back. Until then the
// kernel kills whoever needs a page in the same group, too: that may be us.
const givesBack = 50 * time.Millisecond

// watch begins to follow the log, and the kernel's word on processes that SIGKILL ends, until it is
// closed.
func (l *kernelLog) watch(start Instant, tree *process.Tree) {
	l.watching.Store(true)
	if exits, err := process.OpenExitListener(); err == nil {
		l.exits = exits
		go l.followExits(exits, tree.RelationByParent)
	}
	go l.follow(start, tree.CurrentRelation)
}

// follow follows the log, and looks at the parents of each process that was killed. The kernel says
// which one it will be before it kills, so that it is often still there. Where the kernel says the
// exits, too, there is no hurry, and it waits until the memory was given back.
func (l *kernelLog) follow(start Instant, look func(pid int) process.Relation) {
	defer l.watching.Store(false)
	spent, since := time.Duration(0), time.Now()
	var waited, tired bool
	more := func(uintptr) bool {
		if waited {
			return true
		}
		begin := time.Now()
		if begin.Sub(since) > time.Second {
			spent, since = 0, begin
		}
		l.read(start, Now())
		l.checkRelations(look)
		spent += time.Since(begin)
		waited, tired = true, spent > watchPart
		return tired // else wait for more
	}
	for l.conn.Read(more) == nil {
		waited = false
		switch {
		case tired:
			time.Sleep(time.Second)
		case l.exits != nil:
			time.Sleep(givesBack)
		}
	}
}

// followExits looks at the parents of each process that SIGKILL ended.
func (l *kernelLog) followExits(exits *process.ExitListener, look func(pid, parent int) process.Relation) {
	for {
		pid, parent, err := exits.Next()
		if err != nil {
			return
		}
		if parent == 0 {
			continue
		}
		e := exit{pid, parent, look(pid, parent)}
		l.mu.Lock()
		if len(l.ended) == maxEnded {
			l.ended = slices.Delete(l.ended, 0, maxEnded/2)
		}
		l.ended = append(l.ended, e)
		l.mu.Unlock()
	}
}

// checkRelations looks at the parents of those that were found since the last call.
func (l *kernelLog) checkRelations(look func(pid int) process.Relation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; i < len(l.tracked); i++ {
		if l.tracked[i].looked {
			continue
		}
		pid := l.tracked[i].PID
		l.mu.Unlock()
		whose := look(pid) // may take long
		l.mu.Lock()
		if i = slices.IndexFunc(l.tracked, func(f trackedVictim) bool { return f.PID == pid }); i >= 0 {
			l.tracked[i].set(whose)
			l.tracked[i].looked = true
		}
	}
}

// set sets whose process it was, if that is known.
func (f *trackedVictim) set(whose process.Relation) {
	if whose != process.UnknownRelation {
		f.InJob, f.Foreign = whose == process.InJob, whose == process.Foreign
	}
}

// await waits until it is known of those that were found whose they were, if somebody looks. It does
// not wait for long.
func (l *kernelLog) await() {
	for range 20 {
		l.mu.Lock()
		left := slices.ContainsFunc(l.tracked, func(f trackedVictim) bool { return !l.knows(f) })
		l.mu.Unlock()
		if !left || !l.watching.Load() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// knows reports whether all that can be known of a victim is known.
func (l *kernelLog) knows(f trackedVictim) bool {
	return f.InJob || f.Foreign || f.looked && l.exits == nil ||
		slices.ContainsFunc(l.ended, func(e exit) bool { return e.pid == f.PID })
}

// recognize sets whose those were that were gone when they were looked at, or were adopted by then.
func (l *kernelLog) recognize(seen func(pid int) process.Relation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.tracked {
		f := &l.tracked[i]
		if f.InJob || !l.samePIDs() {
			continue
		}
		for _, e := range l.ended {
			if e.pid == f.PID {
				f.Parent = e.parent
				f.set(e.whose)
			}
		}
		if !f.Foreign && f.Parent > 0 {
			f.set(seen(f.Parent))
		}
		f.set(seen(f.PID))
	}
}

// read reads on in the log for out-of-memory kills.
func (l *kernelLog) read(start, now Instant) {
	_ = l.conn.Control(func(fd uintptr) { l.readFrom(int(fd), start, now) })
}

func (l *kernelLog) readFrom(fd int, start, now Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for read := 0; read < maxKernelLog; {
		n, err := unix.Read(fd, l.record[:]) // one record
		switch {
		case err == unix.EINTR || err == unix.EPIPE: // EPIPE: overwritten before we read it; the next one is there
			l.lost = l.lost || err == unix.EPIPE
			read++
			continue
		case err != nil || n <= 0: // EAGAIN: there are no more
			return
		}

		read += n
		if v, at, ok := parseVictim(l.record[:n]); ok {
			v.At = start.Wall.Add(min(max(at, start.Mono), now.Mono) - start.Mono)
			l.add(v)
		}
	}
}

// add adds a victim. The second line about the same kill has no group.
func (l *kernelLog) add(v Victim) {
	if slices.ContainsFunc(l.tracked, func(f trackedVictim) bool { return f.PID == v.PID }) {
		return
	}
	if len(l.tracked) == maxVictims {
		// Keep those with the most detail.
		i := max(0, slices.IndexFunc(l.tracked, func(f trackedVictim) bool { return f.LimitGroup == "" && !f.Host }))
		l.tracked = slices.Delete(l.tracked, i, i+1)
		l.lost = true
	}
	l.tracked = append(l.tracked, trackedVictim{Victim: v})
}

// victims returns the processes that were found, the newest few.
func (l *kernelLog) victims() (list []Victim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.tracked {
		list = append(list, f.Victim)
	}
	return list
}

// whole reports whether all victims were found, with process IDs that are ours.
func (l *kernelLog) whole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.lost && l.samePIDs()
}

// samePIDs reports whether we are in the first pid namespace, whose inode number is the same on
// every machine (PROC_PID_INIT_INO).
func (l *kernelLog) samePIDs() bool {
	if !l.pids {
		name, err := os.Readlink("/proc/self/ns/pid")
		l.pids = err == nil && name == "pid:[4026531836]"
	}
	return l.pids
}

// WatchOOMKills begins to follow which processes the kernel kills: whose one was can be seen of its parents,
// until one of them has waited for it. It is called once the job runs.
func (r *Reader) WatchOOMKills() {
	if log := r.log; log != nil && r.job.tree.tree != nil && r.realTime && log.samePIDs() {
		log.watch(r.start, r.job.tree.tree)
	}
}

// Victims returns the processes that the OOM killer is known to have killed since
// the baseline, or nil where its log cannot be read. It reports whether they are all that the log
// has, with process IDs that are ours.
func (r *Reader) Victims(now Instant) (victims []Victim, whole bool) {
	log := r.log
	if log == nil {
		return nil, false
	}
	log.read(r.start, now)
	log.await()
	log.recognize(r.job.tree.seen)
	return log.victims(), log.whole()
}

// recognize asks the scans for killed processes that were gone when they were looked at: only the
// newest ones know whose a process was.
func (r *Reader) recognize() {
	if log := r.log; log != nil {
		log.recognize(r.job.tree.seen)
	}
}

// parseVictim reads a record of /dev/kmsg: "4,1234,5678901,-;message", the third number
// microseconds of the kernel's clock, which stops while the machine sleeps. Of an OOM
// kill the kernel says (mm/oom_kill.c, dump_oom_summary):
//
//	oom-kill:constraint=CONSTRAINT_MEMCG,…,oom_memcg=/a,task_memcg=/a/b,task=python,pid=42,uid=0
//	oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=(null),cpuset=/c,mems_allowed=0-1,global_oom,task_memcg=…
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
	v.setConstraint(before)
	return v, at, true
}

// setConstraint reads the part of the line before the victim's group.
func (v *Victim) setConstraint(text string) {
	constraint, rest, _ := strings.Cut(strings.TrimPrefix(text, "constraint=CONSTRAINT_"), ",nodemask=")
	v.Constraint = strings.ToLower(constraint)
	v.Host = v.Constraint != OOMOfGroup
	mask, rest, _ := strings.Cut(rest, ",cpuset=")
	switch v.Constraint {
	case OOMOfGroup:
		_, v.LimitGroup, _ = strings.Cut(rest, ",oom_memcg=")
	case OOMOfPolicy:
		v.Nodes = mask
	case OOMOfCPUSet: // its name may contain anything
		if at := strings.LastIndex(rest, ",mems_allowed="); at >= 0 {
			v.Nodes = strings.TrimSuffix(rest[at+len(",mems_allowed="):], ",global_oom")
		}
	case OOMOfHost:
	default: // of a later kernel
		v.Constraint = ""
	}
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
	v = Victim{Process: name[:end], PID: pid, Host: strings.HasPrefix(before, "Out of memory")}
	if strings.HasPrefix(before, "Memory cgroup") {
		v.Constraint = OOMOfGroup
	}
	return v, true
}
