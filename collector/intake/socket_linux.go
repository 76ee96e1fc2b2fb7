package intake

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A handle is a descriptor that Go's network poller does not know. The poller would wake a thread for each datagram
// that comes while nobody waits for one, which costs twice as much as reading it.
type handle struct {
	fd      int
	large   bool   // the receive buffer is large: what comes may wait
	counted uint32 // drops that were counted
}

// newHandle takes a connection over and asks for a large receive buffer. Only root gets more than net.core.rmem_max.
func newHandle(conn datagramConn) (h handle, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return h, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, wantedBuffer) != nil {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, wantedBuffer) // less drops more, which is counted
		}
		size, _ := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) // 0 is small
		h.large = size >= wantedBuffer
		h.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(controlErr, err); err != nil {
		return h, err
	}
	return h, conn.Close() // which takes it from the poller
}

func (h *handle) close() error { return unix.Close(h.fd) }

// restrictMode gives a Unix socket the mode 0600 before it has its path, so that no other user can send to it at any
// time.
func restrictMode(_, _ string, raw syscall.RawConn) error {
	var err error
	controlErr := raw.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) })
	return errors.Join(controlErr, err)
}

// begin begins to receive, in one goroutine for all sockets. It sleeps in Go's network poller until a socket is
// readable, and does not wake up again until watch has been called.
func (in *Intake) begin() error {
	if len(in.sockets) == 0 {
		return nil
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(poll, true); err != nil { // else Go's poller does not take it
		return errors.Join(os.NewSyscallError("fcntl", err), unix.Close(poll))
	}
	file := os.NewFile(uintptr(poll), "sockets")
	raw, err := file.SyscallConn()
	if err == nil {
		err = in.watch(raw, unix.EPOLL_CTL_ADD)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}

	in.receivers.Go(func() { in.receive(raw) })
	in.wake = func() { file.Close() }

	return nil
}

// watch arms the epoll instance, which then becomes readable once when a socket does.
func (in *Intake) watch(raw syscall.RawConn, operation int) error {
	var err error
	errControl := raw.Control(func(poll uintptr) {
		for _, s := range in.sockets {
			event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(s.fd)}
			err = errors.Join(err, os.NewSyscallError("epoll_ctl", unix.EpollCtl(int(poll), operation, s.fd, &event)))
		}
	})
	return errors.Join(errControl, err)
}

// receive waits for datagrams and reads them, until the Intake is closed.
func (in *Intake) receive(raw syscall.RawConn) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	events := make([]unix.EpollEvent, len(in.sockets))
	something := func(poll uintptr) bool {
		n, err := unix.EpollWait(int(poll), events, 0)
		return n > 0 || err != nil && err != unix.EINTR
	}
	for {
		if raw.Read(something) != nil || !in.sleep(timer, in.readAll()) || in.watch(raw, unix.EPOLL_CTL_MOD) != nil {
			return
		}
	}
}

// readAll reads some of what there is in each socket. It returns how long to wait before the next time.
func (in *Intake) readAll() (pause time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return coalesceDelay
	}

	pause = time.Hour
	for _, s := range in.sockets {
		s.readMore()
		pause = min(pause, s.pause())
	}
	return pause
}

// catchUp reads some of what waits while the sockets are not looked at, so that a sample has it. The caller holds the
// lock.
func (in *Intake) catchUp() {
	for _, s := range in.sockets {
		if !in.closed && in.budget.pause(time.Since(in.began)) == 0 {
			s.readMore()
		}
	}
}

// readMore reads some of what there is, without waiting. It reports whether there was anything. The thread stays the
// same, so that its CPU time can be measured. The caller holds the lock.
func (s *socket) readMore() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	return s.chunk(func(buffer []byte) (int, bool) {
		for {
			n, err := unix.Read(s.fd, buffer)
			if err != unix.EINTR {
				return n, err == nil
			}
		}
	})
}

// dropped returns how many datagrams the kernel has dropped since the last call, because the buffer was full. Its
// counter has 32 bits, and may wrap.
func (s *socket) dropped() int64 {
	if s.path != "" {
		return 0 // who sends there waits or is told
	}
	drops := kernelDrops(s.fd, s.counted)
	more := drops - s.counted
	s.counted = drops

	return int64(more)
}

// kernelDrops returns the drops of a socket by SO_MEMINFO, or what they were if the kernel does not say.
// (SO_RXQ_OVFL says it too, but with the next datagram that is received, so never of the last ones.)
func kernelDrops(fd int, were uint32) uint32 {
	const dropsIndex = 8 // SK_MEMINFO_DROPS
	var info [dropsIndex + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 || size < uint32(unsafe.Sizeof(info)) {
		return were
	}
	return info[dropsIndex]
}

// threadTime returns the CPU time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
