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
	"github.com/perfagent/perfagent/internal/procfile"
)

// maxVictims is the largest number of victims that are kept.
const maxVictims = 20

// A kernelLog reads the records that the kernel adds to its log (/dev/kmsg) after the kernelLog was opened. nil means
// that the log cannot be read.
type kernelLog struct {
	file     *os.File
	conn     syscall.RawConn
	exits    bool // the kernel reports exits: see addExit
	watching atomic.Bool

	mu      sync.Mutex
	tracked []trackedVictim // at most maxVictims
	table   taskTable       // of the report being read
	ended   []exit          // the newest exits by SIGKILL, at most maxEnded
	record  [8 << 10]byte
	// pids reports whether perfagent's process IDs are the same as in the log, which uses the initial PID namespace.
	pids bool
	// overflowed reports whether tracked lacks victims.
	overflowed bool
}

// An exit is the end of a process by SIGKILL, from any sender.
type exit struct {
	pid, parent int
	relation    process.Relation
}

// maxEnded is greater than the number of processes that end by SIGKILL before an OOM kill is read from the log.
const maxEnded = 256

// A trackedVictim is a Victim with the largest processes of the kernel's report on the kill. relationChecked reports
// whether their relations to the job were looked up.
type trackedVictim struct {
	Victim
	tasks           []relatedTask
	relationChecked bool
}

// openKernelLog opens the log at its end, because earlier records are from before the job. Timestamps cannot identify
// such records: within months, the log's clock drifts from the other clocks by seconds. The job does not inherit the
// descriptor.
func openKernelLog() *kernelLog {
	if procfile.FilesAreScarce() {
		return nil
	}
	// In a container, the path may be another file that must not be read, such as a terminal. Seek then fails.
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	if _, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil {
		unix.Close(fd)
		return nil
	}
	l := &kernelLog{file: os.NewFile(uintptr(fd), "/dev/kmsg")}
	l.conn, _ = l.file.SyscallConn() // fails only for a nil file
	return l
}

func (l *kernelLog) close() {
	if l == nil {
		return
	}
	l.file.Close()
}

// watchPart is the longest time per second that is spent on the log if it is flooded. One read takes about 10 µs.
const watchPart = 20 * time.Millisecond

// memoryFreeDelay is longer than the time that a process killed by the OOM killer needs to release its memory. During
// that time, the kernel kills any process of the same group that needs a page, including perfagent.
const memoryFreeDelay = 50 * time.Millisecond

// watch starts a goroutine that follows the log until close is called.
func (l *kernelLog) watch(start Instant, tree *process.Tree) {
	l.watching.Store(true)
	go l.follow(start, tree.CurrentRelation)
}

// follow reads the log and looks up the relation of each victim to the job. The kernel logs a victim before it kills
// the process, so the process often still exists. If exits are followed as well, the look-up is not urgent, and follow
// pauses until the memory is released.
func (l *kernelLog) follow(start Instant, relationOf func(pid int) process.Relation) {
	defer l.watching.Store(false)
	spent, since := time.Duration(0), time.Now()
	var waited, overBudget bool
	more := func(uintptr) bool {
		if waited {
			return true
		}
		begin := time.Now()
		if begin.Sub(since) > time.Second {
			spent, since = 0, begin
		}
		l.read(start, Now())
		l.checkRelations(relationOf)
		spent += time.Since(begin)
		waited, overBudget = true, spent > watchPart
		return overBudget // otherwise, wait for more records
	}
	for l.conn.Read(more) == nil {
		waited = false
		switch {
		case overBudget:
			time.Sleep(time.Second)
		case l.exits:
			time.Sleep(memoryFreeDelay)
		}
	}
}

// addExit adds a process that ended by SIGKILL, with its relation to the job.
func (l *kernelLog) addExit(pid, parent int, relation process.Relation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ended) == maxEnded {
		l.ended = slices.Delete(l.ended, 0, maxEnded/2)
	}
	l.ended = append(l.ended, exit{pid, parent, relation})
}

// checkRelations looks up the relations of the victims that were added since the last call.
func (l *kernelLog) checkRelations(relationOf func(pid int) process.Relation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; i < len(l.tracked); i++ {
		if l.tracked[i].relationChecked {
			continue
		}
		pid, tasks := l.tracked[i].PID, slices.Clone(l.tracked[i].tasks)
		l.mu.Unlock()
		relation := relationOf(pid) // may take a long time
		relate(tasks, relationOf)
		l.mu.Lock()
		if i = slices.IndexFunc(l.tracked, func(f trackedVictim) bool { return f.PID == pid }); i >= 0 {
			l.tracked[i].setRelation(relation)
			l.tracked[i].relationChecked, l.tracked[i].tasks = true, tasks
		}
	}
}

// setRelation sets the relation of the victim to the job, unless it is unknown.
func (f *trackedVictim) setRelation(relation process.Relation) {
	if relation != process.UnknownRelation {
		f.InJob, f.Foreign = relation == process.InJob, relation == process.Foreign
	}
}

// awaitRelations waits until the relations of all victims are known, for at most 20 ms, and only while watch runs.
func (l *kernelLog) awaitRelations() {
	for range 20 {
		l.mu.Lock()
		left := slices.ContainsFunc(l.tracked, func(f trackedVictim) bool { return !l.isResolved(f) })
		l.mu.Unlock()
		if !left || !l.watching.Load() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// isResolved reports whether another look-up would not add to the knowledge of the victim's relation.
func (l *kernelLog) isResolved(f trackedVictim) bool {
	return f.InJob || f.Foreign || f.relationChecked && !l.exits ||
		slices.ContainsFunc(l.ended, func(e exit) bool { return e.pid == f.PID })
}

// resolveRelations sets the relations of victims that had already ended, or had a new parent, when they were looked up.
func (l *kernelLog) resolveRelations(relationOf func(pid int) process.Relation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.tracked {
		f := &l.tracked[i]
		if !l.samePIDs() {
			continue
		}
		relate(f.tasks, relationOf)
		if f.InJob {
			continue
		}
		for _, e := range l.ended {
			if e.pid == f.PID {
				f.Parent = e.parent
				f.setRelation(e.relation)
			}
		}
		if !f.Foreign && f.Parent > 0 {
			f.setRelation(relationOf(f.Parent))
		}
		f.setRelation(relationOf(f.PID))
	}
}

// read reads the new records of the log and adds their victims.
func (l *kernelLog) read(start, now Instant) {
	_ = l.conn.Control(func(fd uintptr) { l.readFrom(int(fd), start, now) })
}

func (l *kernelLog) readFrom(fd int, start, now Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for read := 0; read < maxKernelLog; {
		n, err := unix.Read(fd, l.record[:]) // one record
		switch {
		case err == unix.EINTR || err == unix.EPIPE: // EPIPE: the record was overwritten
			l.overflowed = l.overflowed || err == unix.EPIPE
			read++
			continue
		case err != nil || n <= 0: // EAGAIN: no more records
			return
		}

		read += n
		if v, at, ok := parseVictim(l.record[:n]); ok {
			v.At = start.Wall.Add(min(max(at, start.Mono), now.Mono) - start.Mono)
			l.add(v)
		} else {
			l.table.add(l.record[:n])
		}
	}
}

// add adds v to tracked. It ignores the second record of a kill, which has no group.
func (l *kernelLog) add(v Victim) {
	if slices.ContainsFunc(l.tracked, func(f trackedVictim) bool { return f.PID == v.PID }) {
		return
	}
	if len(l.tracked) == maxVictims {
		// Keep the victims with the most detail.
		i := max(0, slices.IndexFunc(l.tracked, func(f trackedVictim) bool { return f.LimitGroup == "" && !f.Host }))
		l.tracked = slices.Delete(l.tracked, i, i+1)
		l.overflowed = true
	}
	l.tracked = append(l.tracked, trackedVictim{Victim: v, tasks: l.table.tasks})
	l.table = taskTable{}
}

// victims returns the tracked victims, oldest first.
func (l *kernelLog) victims() (list []Victim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.tracked {
		list = append(list, f.Victim)
	}
	return list
}

// isComplete reports whether tracked has all victims, with process IDs of perfagent's PID namespace.
func (l *kernelLog) isComplete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.overflowed && l.samePIDs()
}

// samePIDs reports whether perfagent is in the initial PID namespace, which has the same inode number on every machine
// (PROC_PID_INIT_INO).
func (l *kernelLog) samePIDs() bool {
	if !l.pids {
		name, err := os.Readlink("/proc/self/ns/pid")
		l.pids = err == nil && name == "pid:[4026531836]"
	}
	return l.pids
}

// WatchDeaths starts to follow the ends of the job's processes and the kernel's OOM kills, so that the relation of an
// ended process to the job is looked up before its parent waits for it. Call it as soon as the job runs.
func (r *Reader) WatchDeaths() {
	log := r.log
	if log != nil && (r.job.tree.tree == nil || !r.realTime || !log.samePIDs()) {
		log = nil
	}
	if r.deaths != nil {
		var onKill func(pid, parent int, relation process.Relation)
		if log != nil {
			onKill = log.addExit
		}
		if exits := r.deaths.Start(onKill); log != nil {
			log.exits = exits
		}
	}
	if log != nil {
		log.watch(r.start, r.job.tree.tree)
	}
}

// Victims returns the processes that the OOM killer is known to have killed since the baseline, or nil if the log
// cannot be read. whole reports whether the list is complete, with process IDs of perfagent's PID namespace.
func (r *Reader) Victims(now Instant) (victims []Victim, whole bool) {
	log := r.log
	if log == nil {
		return nil, false
	}
	log.read(r.start, now)
	log.awaitRelations()
	log.resolveRelations(r.job.tree.scannedRelation)
	return log.victims(), log.isComplete()
}

// resolveVictims updates the relations of victims from the newest scan, because later scans no longer contain the
// victims.
func (r *Reader) resolveVictims() {
	if log := r.log; log != nil {
		log.resolveRelations(r.job.tree.scannedRelation)
	}
}

// kernelMessage returns the message of a record of /dev/kmsg, "4,1234,5678901,-;message", and its time on the kernel's
// clock, which stops during suspend: the third number, in microseconds. It reports false if the kernel did not write
// the record.
func kernelMessage(record []byte) (line string, at time.Duration, ok bool) {
	head, message, found := bytes.Cut(record, []byte{';'})
	fields := strings.SplitN(string(head), ",", 4)
	if !found || len(fields) < 3 {
		return "", 0, false
	}
	// Records of the kernel have facility 0, so their priority is below 8. All other records come from programs.
	if priority, err := strconv.Atoi(fields[0]); err != nil || priority < 0 || priority > 7 {
		return "", 0, false
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || micros < 0 {
		return "", 0, false
	}
	line, _, _ = strings.Cut(string(message), "\n")
	return line, time.Duration(micros) * time.Microsecond, true
}

// parseVictim parses a record of /dev/kmsg. For an OOM kill the kernel writes (mm/oom_kill.c, dump_oom_summary):
//
//	oom-kill:constraint=CONSTRAINT_MEMCG,…,oom_memcg=/a,task_memcg=/a/b,task=python,pid=42,uid=0
//	oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=(null),cpuset=/c,mems_allowed=0-1,global_oom,task_memcg=…
//	Memory cgroup out of memory: Killed process 42 (python) total-vm:…
//
// The oom-kill record exists since Linux 5.0, and is suppressed after ten kills within 5 s. The "Killed process" record
// is always written; a victim known only from that record has no Group.
func parseVictim(record []byte) (v Victim, at time.Duration, ok bool) {
	line, at, ok := kernelMessage(record)
	text, isKill := strings.CutPrefix(line, "oom-kill:")
	if !ok || !isKill {
		v, ok = parseKilled(line)
		return v, at, ok
	}

	// A name may contain any text but has at most 15 bytes, so search for the text after it.
	var err error
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

// setConstraint sets the constraint and its group or nodes from text, the part of the record before the victim's group.
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
	case OOMOfCPUSet: // the cpuset's name may contain any text
		if at := strings.LastIndex(rest, ",mems_allowed="); at >= 0 {
			v.Nodes = strings.TrimSuffix(rest[at+len(",mems_allowed="):], ",global_oom")
		}
	case OOMOfHost:
	default: // added by a newer kernel
		v.Constraint = ""
	}
}

// parseKilled parses line, the message of a "Killed process" record.
func parseKilled(line string) (v Victim, ok bool) {
	before, text, found := strings.Cut(line, "Killed process ")
	if !found || !strings.HasSuffix(before, "ut of memory: ") && before != "" { // before is "" before Linux 5.0
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
