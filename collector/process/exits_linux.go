package process

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ExitListener are the processes of the host that SIGKILL ends, as the kernel says it (its process connector), with
// their parents: of a process that lived for a moment only, nothing else knows whose it was.
type ExitListener struct {
	file *os.File
	conn syscall.RawConn

	// Of the newest message. They are kept here because a host may end many processes a second, and nothing is to be
	// allocated for each.
	receive func(fd uintptr) bool
	message [256]byte
	length  int
	failed  error
}

// The numbers of linux/connector.h and linux/cn_proc.h.
const (
	idxProc         = 1          // CN_IDX_PROC, and CN_VAL_PROC
	listenOp        = 1          // PROC_CN_MCAST_LISTEN
	ignoreOp        = 2          // PROC_CN_MCAST_IGNORE
	eventExit       = 0x80000000 // PROC_EVENT_EXIT
	eventFailedExit = 0x20000000 // PROC_EVENT_NONZERO_EXIT, a filter

	connectorHead = unix.SizeofNlMsghdr + 20 // with struct cn_msg
	exitMessage   = connectorHead + 16 + 24  // with struct proc_event
)

// exitsBuffer is asked for: the kernel's default holds 256 messages, and a program of 500 threads that is
// killed makes as many.
const exitsBuffer = 4 << 20

var errNamespace = errors.New("the kernel says it to the first namespaces only")

// OpenExitListener asks the kernel for them. It needs Linux 6.6 (an older one sends nothing) and the first
// namespaces of processes, users and networks.
func OpenExitListener() (*ExitListener, error) {
	for _, first := range []string{"pid:[4026531836]", "user:[4026531837]"} {
		name, err := os.Readlink("/proc/self/ns/" + first[:len(first)-len(":[4026531836]")])
		if err != nil || name != first {
			return nil, errNamespace
		}
	}

	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_CONNECTOR)
	if err != nil {
		return nil, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, exitsBuffer) // root only
	if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: idxProc}); err == nil {
		err = sendOp(fd, listenOp)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}

	e := &ExitListener{file: os.NewFile(uintptr(fd), "connector")}
	e.receive = func(fd uintptr) bool {
		e.length, e.failed = unix.Read(int(fd), e.message[:])
		return e.failed != unix.EAGAIN
	}
	e.conn, err = e.file.SyscallConn()
	return e, err
}

// sendOp begins or ends to listen.
func sendOp(fd int, op uint32) error {
	m, order := make([]byte, connectorHead+8), binary.NativeEndian
	order.PutUint32(m, uint32(len(m)))
	order.PutUint16(m[4:], unix.NLMSG_DONE)
	order.PutUint32(m[16:], idxProc)
	order.PutUint32(m[20:], idxProc)
	order.PutUint16(m[32:], 8)
	order.PutUint32(m[connectorHead:], op)
	order.PutUint32(m[connectorHead+4:], eventFailedExit)
	return unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// Next waits for a process that SIGKILL ended. Its parent is 0 if it had been waited for already.
func (e *ExitListener) Next() (pid, parent int, err error) {
	for err == nil {
		err = e.conn.Read(e.receive)
		if e.failed != nil && e.failed != unix.EINTR && e.failed != unix.ENOBUFS { // some are lost
			return 0, 0, e.failed
		}
		if pid, parent = parseExit(e.message[:max(0, e.length)]); e.failed == nil && pid > 0 {
			return pid, parent, err
		}
	}
	return 0, 0, err
}

// parseExit reads a message; pid is 0 if it is not that of a process which SIGKILL ended.
func parseExit(m []byte) (pid, parent int) {
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(m[connectorHead+4*i:]) }
	if len(m) < exitMessage || word(0) != eventExit || word(4) != word(5) || word(6)&0x7f != uint32(unix.SIGKILL) {
		return 0, 0 // word 4 is a thread, 5 its process
	}
	return int(word(5)), int(word(9))
}

// Close ends to listen. A Next that waits returns.
func (e *ExitListener) Close() {
	_ = e.conn.Control(func(fd uintptr) { _ = sendOp(int(fd), ignoreOp) })
	e.file.Close()
}
