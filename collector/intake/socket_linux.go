package intake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/intake/wire"
)

// openSockets opens the sockets for a: a Unix socket, or the UDP port and the next port. If the port is 0, it opens any
// two free ports. If it fails, it opens none.
func openSockets(a Address) ([]*socket, error) {
	if a.Path != "" {
		s, err := openUnix(a.Path)
		return []*socket{s}, err
	}

	first, err := listenUDP(a.Host, a.Port, "statsd", wire.StatsD)
	if err != nil {
		return nil, err
	}
	next := a.Port
	if next != 0 {
		next++
	}
	second, err := listenUDP(a.Host, next, "dogstatsd", wire.DogStatsD)
	if err != nil {
		return nil, errors.Join(err, unix.Close(first.fd))
	}

	return []*socket{first, second}, nil
}

// listenUDP opens one UDP port.
func listenUDP(host netip.Addr, port uint16, kind string, dialect wire.Dialect) (*socket, error) {
	network := "udp"
	if host.Is4() {
		network = "udp4" // "udp" turns 0.0.0.0 into [::] and the job's address into ::1, which some clients reject
	}
	at := netip.AddrPortFrom(host, port)
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, fmt.Errorf("open UDP port %s: %w (--ops on takes any free ports)", at, cause(err))
	}
	s := &socket{kind: kind, dialect: dialect, address: jobAddress(conn.LocalAddr().(*net.UDPAddr).AddrPort())}

	return s, s.take(conn)
}

// take closes conn, keeps a copy of its descriptor, and requests a receive buffer of 8 MiB. Only root may exceed
// net.core.rmem_max.
func (s *socket) take(conn interface {
	net.PacketConn
	syscall.Conn
}) error {
	const wantedBuffer = 8 << 20
	s.buffer = make([]byte, MaxDatagram+1)
	raw, err := conn.SyscallConn()
	if err == nil {
		errControl := raw.Control(func(fd uintptr) {
			if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, wantedBuffer) != nil {
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, wantedBuffer) // else it stays small
			}
			size, _ := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) // on error, the size 0 means small
			s.large = size >= wantedBuffer
			s.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		})
		err = errors.Join(errControl, err)
	}
	if err = errors.Join(err, conn.Close()); err != nil { // Close removes the socket from the poller
		return fmt.Errorf("prepare a socket: %w", err)
	}
	return nil
}

// openUnix opens a Unix socket to which only this user may send. It replaces a socket without a reader, such as a
// socket left behind by a killed perfagent.
func openUnix(path string) (*socket, error) {
	lc := net.ListenConfig{Control: restrictMode}
	conn, err := lc.ListenPacket(context.Background(), "unixgram", path)
	if errors.Is(err, syscall.EADDRINUSE) && isStaleSocket(path) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("replace the unused socket %s: %w", path, cause(err))
		}
		conn, err = lc.ListenPacket(context.Background(), "unixgram", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open socket %s: %w", path, cause(err))
	}

	s := &socket{kind: "unix", dialect: wire.DogStatsD, address: path, path: path}
	if err = s.take(conn.(*net.UnixConn)); err == nil {
		s.file, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return s, nil
}

// restrictMode sets the mode of a Unix socket to 0600 before it has a path, so that other users can never send to it.
func restrictMode(_, _ string, raw syscall.RawConn) error {
	var err error
	controlErr := raw.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) })
	return errors.Join(controlErr, err)
}

// isStaleSocket reports whether path is a socket without a reader.
func isStaleSocket(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	conn, err := net.Dial("unixgram", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// cause returns the system's error without the operation and the address that package net adds.
func cause(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

// close closes the socket, and removes its path unless the job has replaced it.
func (s *socket) close() error {
	err := unix.Close(s.fd)
	if s.path == "" {
		return err
	}

	file, errFile := os.Lstat(s.path)
	if errFile != nil || !os.SameFile(file, s.file) {
		return errors.Join(err, errFile)
	}
	return errors.Join(err, os.Remove(s.path))
}

// begin starts one goroutine that receives from all sockets. It sleeps in Go's network poller until a socket is
// readable. After that, it is not woken again until watch is called.
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
	context.AfterFunc(in.open, func() { file.Close() }) // ends the wait

	return nil
}

// watch arms the epoll instance, so that it becomes readable once when a socket becomes readable. operation is
// EPOLL_CTL_ADD or EPOLL_CTL_MOD.
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

// receive waits for datagrams and reads them until the Intake is closed.
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
		in.read(s)
		pause = min(pause, in.pause(s))
	}
	return pause
}

// sleep waits for the duration pause. It returns false if the Intake is closed meanwhile.
func (in *Intake) sleep(timer *time.Timer, pause time.Duration) bool {
	if pause == 0 {
		return true
	}

	timer.Reset(pause)
	select {
	case <-timer.C:
		return true
	case <-in.open.Done():
		return false
	}
}

// read reads and processes datagrams without waiting, until the socket is empty or the budget is due for a check. It
// reports whether there were any datagrams. It locks the thread to measure its CPU time. The caller holds the lock.
func (in *Intake) read(s *socket) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	at := in.options.Now()
	var datagrams, events, thrown int64
	if s.empty {
		s.empty, s.newest = false, 0
	}
	for bytes := 0; bytes < maxChunk && datagrams+thrown < maxReads; {
		n, err := unix.Read(s.fd, s.buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			s.empty = true
			break
		}
		bytes += n
		if s.discarding {
			thrown++
			continue
		}
		datagrams++
		events += in.addDatagram(s, s.buffer[:n], at)
	}
	if datagrams+thrown == 0 {
		return false
	}
	s.newest += datagrams + thrown

	in.aggregator.AddReceived(s.source, datagrams, events, at)
	in.aggregator.DropDatagrams(0, thrown)
	in.budget.spend(time.Since(in.began), threadTime()-start)

	return true
}

// dropped returns the number of datagrams that the kernel has dropped since the last call, because the buffer was full.
// The kernel's counter has 32 bits and may wrap.
func (s *socket) dropped() int64 {
	if s.path != "" {
		return 0 // senders wait or get an error
	}
	drops := kernelDrops(s.fd, s.counted)
	more := drops - s.counted
	s.counted = drops

	return int64(more)
}

// kernelDrops returns the number of dropped datagrams that SO_MEMINFO reports for the socket fd, or were, the previous
// number, if the kernel does not report it. SO_RXQ_OVFL is unsuitable: it reports drops only with the next received
// datagram, so it never reports the last drops.
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
