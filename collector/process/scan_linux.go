package process

import (
	"fmt"
	"sort"
	"time"

	"golang.org/x/sys/unix"
)

// A class is the relation of a process to the job.
type class uint8

const (
	unknown class = iota
	inJob
	ignored // selected by Ignore, or a descendant of such a process
	foreign // outside of the job, according to a complete chain of parents
	hidden  // we may not read its stat
	broken  // its stat is malformed
	lost    // a parent is missing from the list, or is younger than its child
	stray   // still lost after it was reread; it stays so for the rest of this scan
	ended   // it was gone when the scan tried to read it
)

// A proc is a process in the procfs.
type proc struct {
	stat
	pid            int32
	class          class
	prevClass      class // the class at the previous scan if that was inJob or ignored; otherwise unknown
	statFD         int32 // descriptor of the open stat file, plus 1; 0 = none
	stale          bool  // unreadable in this scan, so its values are from an earlier scan
	visiting       bool  // its parents are being followed
	inode          uint64
	tickRemainder  time.Duration // fraction of a tick, see addTickRemainders
	io             IO            // last known
	seq            int64         // order of reading: a process that was read later has a higher number
	measuredMemory               // last known
	measured       bool          // measuredMemory was read after this scan
	unchanged      bool          // the stat is from an earlier scan, because the process has not run since
	ioAt           time.Duration // value of clock when io was read; 0 = io was not read
}

// dead reports whether the process has ended and only its times are left. State Z alone does not prove that: a process
// is also in state Z if its first thread has ended while other threads run.
func (s *stat) dead() bool {
	return (s.state == 'Z' || s.state == 'X' || s.state == 'x') && s.threads <= 1
}

// recheck and reread are numbers of scans. At least one scan in recheck lists all processes, and such a scan rereads
// one in recheck of the processes outside the job. An idle process of the job is reread once in reread scans, because
// the kernel may reclaim the memory of idle processes, too.
const (
	recheck = 30
	reread  = 10
)

// maxRounds is the maximum number of times that a scan rereads processes that changed during the scan.
const maxRounds = 4

// scan finds the job's processes. A process is identified by its ID and start time. It is in the job if its chain of
// parents leads to the root, or if it was in the job at an earlier scan, whichever process has adopted it since.
//
// Each scan reads every process of the job, unless the process's clock shows that it has not run since the previous
// scan. A process outside the job is not read again while its procfs directory has the same inode number: the kernel
// assigns a new number when a new process takes the ID. (The number also changes if the kernel has dropped the
// directory from its cache, which costs no more than a read.) Such a process cannot join the job, because only its
// ancestors can adopt it (reparenting). A scan that lists all processes rereads a thirtieth of these processes
// nevertheless, because a file system with a copy of procfs may reuse inode numbers.
//
// Most scans neither list nor read processes outside the job; otherwise the cost of every perfagent would grow with the
// number of processes on the host. The kernel assigns process IDs in order and reports the newest ID, so findBegun can
// find new processes without a list. If there are none, only the job's processes are read.
func (t *Tree) scan() error {
	t.incremental = t.findBegun()
	if t.incremental && len(t.begun) == 0 && t.refresh() {
		t.scans++
		return nil
	}

	list, err := t.list()
	if err != nil {
		t.spare = list
		return fmt.Errorf("list the processes in %s: %w", t.o.Proc, err)
	}

	t.next = list
	for i := range t.next {
		t.fill(&t.next[i])
	}

	if err := t.findRoots(); err != nil {
		t.release(t.next)
		t.spare, t.next = t.next, nil
		return err
	}

	t.classify()
	for range maxRounds {
		if !t.retry() {
			break
		}
		t.classify()
	}

	t.collect()
	if t.o.Root == 0 {
		t.keepEnded()
	}
	t.release(t.all)
	t.all, t.spare, t.next = t.next, t.all, nil
	t.allReadable = t.unread.n == 0
	t.scans++
	return nil
}

// findBegun sets t.begun to the processes that have started since the scan before the previous one and are not known
// yet. It goes back two scans because a process that is being forked has an ID for a moment before it has a clock. Most
// new IDs belong to threads or to ended processes, which have no process clock. It reports false if the scan must list
// all processes.
func (t *Tree) findBegun() bool {
	since, newest := t.prevNewestPID, t.Next.NewestPID
	if newest == 0 || !t.dir.own {
		newest = t.dir.newestPID()
	}
	t.prevNewestPID, t.newestPID, t.begun = t.newestPID, newest, t.begun[:0]
	few := int64(len(t.all)) // checking more IDs than this costs more than a list
	if t.scans%recheck == 0 || since == 0 || newest < since || newest-since > few || newest > since && !t.clocks {
		return false
	}

	for id := int32(since) + 1; id <= int32(newest); id++ {
		if known := findProc(t.all, id); known != nil && known.class != ended {
			continue
		}
		if _, running := processClock(id); running {
			t.begun = append(t.begun, id)
		}
	}
	return true
}

// refresh rereads the job's processes when no process has started. It reports false, and changes nothing, if a process
// has ended, has a new parent or cannot be read; a full scan is then needed.
func (t *Tree) refresh() bool {
	if !t.allReadable {
		return false
	}

	t.refreshed = t.refreshed[:0]
	for _, p := range t.jobProcs {
		if p.stale {
			return false
		}
		now, _, err := t.statOf(p, p, false)
		if err != nil || now.start != p.start || now.ppid != p.ppid || now.dead() && !p.dead() {
			return false
		}
		t.refreshed = append(t.refreshed, now)
	}

	for i, p := range t.jobProcs {
		p.stat, p.measured = t.refreshed[i], false
	}
	return true
}

// statOf returns the stat of p. old is the process's entry in the previous scan, or nil. unchanged reports whether the
// result is old's stat, because the clock of the process has not advanced; again forces a read of the file. Reading the
// clock costs a twentieth of reading the file. The clock is read first, so that the next scan notices if the process
// runs before its file is read.
func (t *Tree) statOf(p, old *proc, again bool) (s stat, unchanged bool, err error) {
	if p.statFD == 0 && old != nil && old.inode == p.inode {
		p.statFD, old.statFD = old.statFD, 0
	}

	var clock time.Duration
	if t.dir.own { // in another procfs, the ID may belong to a different process
		clock, _ = processClock(p.pid)
	}
	if !again && clock > 0 && old != nil && clock == old.clock && old.class == inJob && old.inode == p.inode &&
		!old.stale && (int(p.pid)+t.scans)%reread != 0 {
		return old.stat, true, nil
	}

	data, err := t.readStat(p, old)
	if err == nil {
		s, err = parseStat(data, p.pid)
	}
	s.clock = clock
	return s, false, err
}

// list returns the processes, sorted by ID, with only their IDs and inodes set. Some may have ended. An incremental
// scan returns only the known processes and t.begun.
func (t *Tree) list() ([]proc, error) {
	if !t.incremental {
		t.lists++
		return t.dir.pids(t.spare[:0])
	}

	list := t.spare[:0]
	for i := range t.all {
		if p := &t.all[i]; p.class != ended {
			list = append(list, proc{pid: p.pid, inode: p.inode})
		}
	}
	known := len(list)
	for _, id := range t.begun {
		list = append(list, proc{pid: id, seq: 1}) // with seq 1, sorted prefers it to an old entry
	}
	if len(list) == known {
		return list, nil
	}
	return sorted(list), nil
}

// fill copies the entry of p from the previous scan if that is still valid; otherwise it reads p.
func (t *Tree) fill(p *proc) {
	old := findProc(t.all, p.pid)
	if old == nil || old.inode != p.inode || old.class != foreign && old.class != hidden ||
		!t.incremental && (int(p.pid)+t.lists)%recheck == 0 {
		t.load(p, false)
		return
	}
	*p = *old
	if p.class == hidden {
		t.note(&t.unread, p.pid, "stat", t.hiddenBy)
	}
}

// load sets the stat of p with statOf, and copies the other values from the entry of p in the previous scan. It sets
// the class to unknown or, if the process cannot be read, to the class for the reason.
func (t *Tree) load(p *proc, again bool) {
	old := findProc(t.all, p.pid)
	t.seq++
	p.seq, p.stale, p.measured = t.seq, false, false
	var err error
	p.stat, p.unchanged, err = t.statOf(p, old, again)

	switch {
	case err == nil:
		p.class, p.prevClass, p.measuredMemory = unknown, unknown, measuredMemory{}
		p.io, p.ioAt = IO{}, 0
		if old != nil && old.start == p.start {
			p.prevClass, p.measuredMemory = old.remembered(), old.measuredMemory
			p.io, p.ioAt = old.io, old.ioAt
		}
		return
	case isGone(err):
		p.class = ended
		return
	}

	t.note(&t.unread, p.pid, "stat", err)
	switch {
	case old != nil && old.inode == p.inode && old.remembered() != unknown:
		p.stat, p.measuredMemory = old.stat, old.measuredMemory
		p.prevClass, p.class, p.stale = old.remembered(), unknown, true
	case isDenied(err):
		p.class, t.hiddenBy = hidden, err
	default:
		p.class = broken
	}
}

// readStat reads the stat of p. If p was in the job at the last scan, it keeps the file open, which halves the cost of
// reading. An open file never refers to a new process with the same ID.
func (t *Tree) readStat(p, old *proc) ([]byte, error) {
	if p.statFD > 0 {
		if data, err := t.dir.readOpen(int(p.statFD) - 1); !isGone(err) {
			return data, err
		}
		p.closeStat(&t.held) // a new process may have the ID
	}

	fd, err := t.dir.openFile(p.pid, "stat")
	if err != nil {
		return nil, err
	}

	if old != nil && old.class == inJob && t.held < t.maxHeld {
		t.held++
		p.statFD = int32(fd) + 1
	} else {
		defer unix.Close(fd)
	}
	return t.dir.readOpen(fd)
}

// release closes the open files of the processes in list.
func (t *Tree) release(list []proc) {
	for i := range list {
		if list[i].statFD > 0 {
			list[i].closeStat(&t.held)
		}
	}
}

// closeStat closes the stat file of p and decrements count, the number of open files.
func (p *proc) closeStat(count *int) {
	unix.Close(int(p.statFD) - 1)
	p.statFD = 0
	*count--
}

// remembered returns the class that p keeps when another process adopts it, or unknown.
func (p *proc) remembered() class {
	if p.class == inJob || p.class == ignored {
		return p.class
	}
	return unknown
}

// findProc returns the process with the given ID from list, which is sorted by ID, or nil. Unlike
// slices.BinarySearchFunc, it does not copy the processes.
func findProc(list []proc, pid int32) *proc {
	i := sort.Search(len(list), func(i int) bool { return list[i].pid >= pid })
	if i == len(list) || list[i].pid != pid {
		return nil
	}
	return &list[i]
}

// findRoots finds Root or Members. It returns an error if Root is gone, or if a new process has its ID. At the first
// scan all Members must exist; later they may end.
func (t *Tree) findRoots() error {
	if t.o.Root != 0 {
		return t.findRoot(t.o.Root, foreign)
	}
	for _, pid := range t.o.Members {
		if err := t.findRoot(pid, inJob); err != nil && t.scans == 0 {
			return err
		}
	}
	return nil
}

// findRoot finds process pid and sets its class to as.
func (t *Tree) findRoot(pid int, as class) error {
	root := findProc(t.next, int32(pid))
	start, known := t.starts[pid]
	switch {
	case root == nil || root.class == ended:
		return fmt.Errorf("read process %d, the root of the job, in %s: no such process", pid, t.o.Proc)
	case root.class == hidden || root.class == broken:
		return fmt.Errorf("read process %d, the root of the job: %w", pid, t.unread.first)
	case known && root.start != start:
		return fmt.Errorf("read process %d, the root of the job: it ended, and another process has its ID", pid)
	}

	if t.starts == nil {
		t.starts = make(map[int]uint64, 1)
	}
	t.starts[pid] = root.start
	root.class, root.prevClass = as, unknown
	return nil
}

// classify sets the class of each process that was read.
func (t *Tree) classify() {
	for i := range t.next {
		if t.next[i].class == unknown {
			t.follow(&t.next[i])
		}
	}
}

// follow walks up the ancestors of p to the first one with a class, and passes that class down to all processes on the
// way.
func (t *Tree) follow(p *proc) {
	t.chain = t.chain[:0]
	up := lost
	for {
		p.visiting = true
		t.chain = append(t.chain, p)
		if t.belowRoot(p) {
			up = inJob
			break
		}
		if p.ppid == 0 {
			up = foreign
			break
		}
		parent := t.parent(p)
		if parent == nil || parent.visiting {
			break
		}
		if parent.class != unknown {
			up = parent.class
			break
		}
		p = parent
	}

	for i := len(t.chain) - 1; i >= 0; i-- {
		p := t.chain[i]
		up = t.inherit(p, up)
		p.class, p.visiting = up, false
	}
}

// parent returns the parent of p. It returns nil if the parent could not be read, or if the process with the parent's
// ID is younger than p and so cannot be the parent.
func (t *Tree) parent(p *proc) *proc {
	parent := findProc(t.next, p.ppid)
	if parent == nil || parent.start > p.start {
		return nil
	}
	if parent.class == ended || parent.class == hidden || parent.class == broken {
		return nil
	}
	return parent
}

// belowRoot reports whether p is a child of Root.
func (t *Tree) belowRoot(p *proc) bool { return t.o.Root != 0 && p.ppid == int32(t.o.Root) }

// inherit returns the class of p, given up, the class of its parent. A descendant of an ignored process stays ignored
// after its adoption, because only its ancestors can have adopted it.
func (t *Tree) inherit(p *proc, up class) class {
	if t.belowRoot(p) || t.o.Root == 0 && up == inJob {
		if p.prevClass == ignored || t.o.Ignore != nil && t.o.Ignore(int(p.pid)) {
			return ignored
		}
		return inJob
	}
	if (up == foreign || up == lost || up == stray) && p.prevClass != unknown {
		return p.prevClass
	}
	return up
}

// retry rereads processes that changed during the scan: a parent that was not listed, a child that has a new parent
// because the old one vanished, and a process of the job that was read before its parent. It reports whether the
// processes must be classified again.
func (t *Tree) retry() (changed bool) {
	t.unlisted = t.unlisted[:0]
	for i := range t.next {
		p := &t.next[i]
		if p.class != lost && p.class != inJob {
			continue
		}
		parent := findProc(t.next, p.ppid)
		switch {
		case p.class == inJob:
			adopted := p.unchanged && !t.belowRoot(p) && (parent == nil || parent.class == ended || parent.dead())
			if !adopted && (parent == nil || parent.class != inJob || parent.seq <= p.seq || p.stale) {
				continue
			}
			t.reload(p)
		case parent == nil && !t.missing(p.ppid):
			t.reload(p)
		case parent != nil && t.parent(p) == nil:
			t.reload(p)
		default:
			p.class = unknown // so that it inherits the new class of its parent
		}
		changed = true
	}

	if len(t.unlisted) > 0 {
		t.next = sorted(append(t.next, t.unlisted...))
	}
	return changed
}

// missing loads process pid, which was not listed, into t.unlisted. It reports whether the process exists.
func (t *Tree) missing(pid int32) bool {
	for i := range t.unlisted {
		if t.unlisted[i].pid == pid {
			return true
		}
	}
	p := proc{pid: pid}
	if t.load(&p, true); p.class == ended {
		return false
	}
	t.unlisted = append(t.unlisted, p)
	return true
}

// reload reads p again. If its parent is still missing, p becomes a stray. That happens to all processes of our user if
// procfs hides other users' processes (hidepid).
func (t *Tree) reload(p *proc) {
	before, class := p.stat, p.class
	t.load(p, true)
	switch {
	case p.class != unknown:
	case class == inJob && p.start != before.start:
		p.class = ended // a new process took the ID; the next scan classifies it
	case class == lost && p.start == before.start && p.ppid == before.ppid:
		p.class = stray
	}
}

// collect sets jobProcs and closes the files of all other processes.
func (t *Tree) collect() {
	t.jobProcs = t.jobProcs[:0]
	for i := range t.next {
		if t.next[i].class == inJob {
			t.jobProcs = append(t.jobProcs, &t.next[i])
		} else {
			t.release(t.next[i : i+1])
		}
	}
}
