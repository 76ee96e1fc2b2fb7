package process

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// pidfds wait for the ends of processes that a scan has found. They need neither privileges nor certain namespaces.
type pidfds struct {
	epoll int
	file  *os.File // of epoll
	conn  syscall.RawConn
	most  int // number of processes
	open  map[int32]*pidfd
	buf   procfile.Buffer
}

// A pidfd is a process that is waited for.
type pidfd struct {
	fd, stat int // stat is the open /proc/PID/stat
	start    uint64
	hidden   bool          // this process may not see the status in stat
	ended    time.Duration // on the boot clock; 0 = it runs
}

// maxPidfds is the maximum number of processes that are waited for.
const maxPidfds = 256

// openPidfds returns nil if pidfds or descriptors are not to be had.
func openPidfds() *pidfds {
	p := &pidfds{most: min(maxPidfds, descriptors()/2), open: make(map[int32]*pidfd)} // each process needs two
	own, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil || p.most == 0 {
		return nil
	}
	unix.Close(own)
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil
	}
	_ = unix.SetNonblock(p.epoll, true) // for the runtime's poller
	p.file = os.NewFile(uintptr(p.epoll), "pidfds")
	p.conn, _ = p.file.SyscallConn() // fails only for a nil file
	return p
}

// follow begins to wait for the processes of the newest scan, except for the children of root, which root waits for. It
// gives up on ended processes that are gone, and reports whether the status of one of them was hidden.
func (p *pidfds) follow(living []*entry, root int) (hidden bool) {
	if p == nil {
		return false
	}
	for pid, one := range p.open {
		if e := findEntry(living, int(pid)); one.ended > 0 && (e == nil || e.start != one.start) {
			hidden = hidden || one.hidden
			p.drop(pid)
		}
	}
	for _, e := range living {
		if !e.followed && len(p.open) < p.most && (root == 0 || e.row.PPID != root) {
			e.followed = true
			p.add(int32(e.row.PID), e.start)
		}
	}
	return hidden
}

// add begins to wait for process pid, unless it is not the one that started at start.
func (p *pidfds) add(pid int32, start uint64) {
	one := &pidfd{start: start}
	var err error
	if one.fd, err = unix.PidfdOpen(int(pid), 0); err != nil {
		return
	}
	if one.stat, err = procfile.Open("/proc/" + strconv.Itoa(int(pid)) + "/stat"); err != nil {
		unix.Close(one.fd)
		return
	}
	p.open[pid] = one
	var st unix.Stat_t
	euid := os.Geteuid()
	one.hidden = euid != 0 && unix.Fstat(one.stat, &st) == nil && euid != int(st.Uid)
	s, _, ok := p.read(one, pid)
	event := &unix.EpollEvent{Events: unix.EPOLLIN, Fd: pid}
	if !ok || s.start != start || unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, one.fd, event) != nil {
		p.drop(pid)
	}
}

// collect calls take for the processes that have ended since the last call.
func (p *pidfds) collect(take func(deathEvent)) {
	var events [64]unix.EpollEvent
	for n := len(events); n == len(events); {
		n, _ = unix.EpollWait(p.epoll, events[:], 0) // does not block, so nothing interrupts it
		for _, event := range events[:max(0, n)] {
			one := p.open[event.Fd]
			one.ended = procfile.Clock(unix.CLOCK_BOOTTIME)
			_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, one.fd, nil)
		}
	}
	for pid, one := range p.open {
		if e, ok := p.end(one, pid); ok {
			take(e)
			p.drop(pid)
		}
	}
}

// read returns the stat of process pid, and its wait status if it has ended.
func (p *pidfds) read(one *pidfd, pid int32) (s stat, status int, ok bool) {
	data, err := p.buf.ReadFrom(one.stat, "stat", maxFile)
	if err == nil {
		s, err = parseStat(data, pid)
	}
	var f [procfile.StatExitCode + 1][]byte
	_, _, fields := procfile.SplitStat(data, f[:])
	code, ok := procfile.ParseCount(f[procfile.StatExitCode])
	return s, int(code & 0xffff), ok && err == nil && fields == len(f)
}

// end returns the end of process pid. ok is false if it has not ended, or if its status is not known yet.
func (p *pidfds) end(one *pidfd, pid int32) (e deathEvent, ok bool) {
	if one.ended == 0 {
		return e, false
	}
	e = deathEvent{relation: InJob}
	e.PID, e.Start, e.End, e.How = int(pid), sinceBoot(one.start), one.ended, DeathZombie
	if s, status, ok := p.read(one, pid); ok && s.dead() && !one.hidden {
		e.fromStat(&s)
		e.setStatus(status)
		return e, true
	}
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	err := unix.IoctlPidfdInfo(one.fd, &info)
	e.How = DeathPidfd
	e.setStatus(int(info.Exit_code))
	return e, err == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0
}

// drop ends the wait for process pid.
func (p *pidfds) drop(pid int32) {
	unix.Close(p.open[pid].fd)
	unix.Close(p.open[pid].stat)
	delete(p.open, pid)
}

// close ends all waits. The file must be closed.
func (p *pidfds) close() {
	for pid := range p.open {
		p.drop(pid)
	}
}
