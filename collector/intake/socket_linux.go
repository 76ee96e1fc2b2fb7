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

// A handle is a descriptor outside Go's network poller. The poller would wake a thread for each datagram that arrives
// while no goroutine waits for one, which costs twice as much as reading it.
type handle struct {
	fd      int
	large   bool   // the receive buffer is large: datagrams may wait
	counted uint32 // drops counted so far
}

// newHandle takes over a connection and requests a large receive buffer. Only root gets more than net.core.rmem_max.
func newHandle(conn datagramConn) (h handle, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return h, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, wantedBuffer) != nil {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, wantedBuffer) // else more drops
		}
		size, _ := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) // on error 0: small
		h.large = size >= wantedBuffer
		h.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(controlErr, err); err != nil {
		return h, err
	}
	return h, conn.Close() // removes it from the poller
}

func (h *handle) close() error { return unix.Close(h.fd) }

// restrictMode sets the mode of a Unix socket to 0600 before it has a path, so that other users can never send to it.
func restrictMode(_, _ string, raw syscall.RawConn) error {
	var err error
	controlErr := raw.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) })
	return errors.Join(controlErr, err)
}

// begin begins to receive, in one goroutine for all sockets. The goroutine sleeps in Go's network poller until a socket
// is readable, and then does not wake up again until watch is called.
func (in *Intake) begin() error {
	if len(in.sockets) == 0 {
		return nil
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(poll, true); err != nil { // required by Go's poller
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

// watch arms the epoll instance to become readable once, when a socket does.
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

// readAll reads pending datagrams of each socket. It returns the pause before the next call.
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

// catchUp reads datagrams that arrived during a pause, so that a sample includes them. The caller holds the lock.
func (in *Intake) catchUp() {
	for _, s := range in.sockets {
		if !in.closed && in.budget.pause(time.Since(in.began)) == 0 {
			s.readMore()
		}
	}
}

// readMore reads pending datagrams without waiting, and reports whether there were any. It locks the thread to measure
// its CPU time. The caller holds the lock.
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

// dropped returns the number of datagrams that the kernel has dropped since the last call, because the buffer was full.
// The kernel's counter has 32 bits, and may wrap.
func (s *socket) dropped() int64 {
	if s.path != "" {
		return 0 // senders wait or get an error
	}
	drops := kernelDrops(s.fd, s.counted)
	more := drops - s.counted
	s.counted = drops

	return int64(more)
}

// kernelDrops returns the number of dropped datagrams that SO_MEMINFO reports for the socket fd, or were if the kernel
// does not report it. (SO_RXQ_OVFL reports drops only with the next received datagram, so never the last drops.)
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
