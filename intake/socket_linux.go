package intake

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// enlarge asks for a large receive buffer. Only root gets more than net.core.rmem_max.
func enlarge(raw syscall.RawConn) {
	_ = raw.Control(func(fd uintptr) { // a smaller buffer drops more, which is counted
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, wantedBuffer) != nil {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, wantedBuffer)
		}
	})
}

// private makes a Unix socket that only this user may send to, from its first moment on.
func private(_, _ string, raw syscall.RawConn) error {
	var err error
	controlErr := raw.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) })
	if controlErr != nil {
		return controlErr
	}
	return err
}

// drops is what the kernel has dropped of a socket since it was opened. Its counter has 32 bits, and may wrap.
type drops struct {
	counted uint32
	now     uint32
	read    func(fd uintptr) // made once, so that a sample allocates nothing
}

// dropped returns how many datagrams the kernel has dropped since the last call, because the buffer was full.
func (s *socket) dropped() int64 {
	if s.path != "" {
		return 0 // who sends there waits or is told
	}
	d := &s.drops
	if d.read == nil {
		d.read = func(fd uintptr) { d.now = kernelDrops(fd, d.now) }
	}
	_ = s.raw.Control(d.read) // of a closed socket nothing more is counted
	more := d.now - d.counted
	d.counted = d.now

	return int64(more)
}

// kernelDrops returns the drops of a socket by SO_MEMINFO, or what they were if the kernel does not say.
// (SO_RXQ_OVFL says it too, but with the next datagram that is received, so never of the last ones.)
func kernelDrops(fd uintptr, were uint32) uint32 {
	const dropsIndex = 8 // SK_MEMINFO_DROPS
	var info [dropsIndex + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
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
