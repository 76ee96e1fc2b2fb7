package process

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// An ExitListener receives the IDs of processes of the host that SIGKILL ends, and of their parents, from the kernel's
// process connector. No other source has the parent of a short-lived process.
type ExitListener struct {
	file *os.File
	conn syscall.RawConn

	// The newest message. It is stored here to avoid allocations, because many processes may end each second.
	receive func(fd uintptr) bool
	message [256]byte
	length  int
	failed  error
}

// Constants of linux/connector.h and linux/cn_proc.h.
const (
	idxProc         = 1          // CN_IDX_PROC, and CN_VAL_PROC
	listenOp        = 1          // PROC_CN_MCAST_LISTEN
	ignoreOp        = 2          // PROC_CN_MCAST_IGNORE
	eventExit       = 0x80000000 // PROC_EVENT_EXIT
	eventFailedExit = 0x20000000 // PROC_EVENT_NONZERO_EXIT, a filter

	connectorHead = unix.SizeofNlMsghdr + 20 // with struct cn_msg
	exitMessage   = connectorHead + 16 + 24  // with struct proc_event
)

// exitsBuffer is the size requested for the socket's buffer, in bytes. The kernel's default holds 256 messages, which
// is too few: each thread of a killed program causes one.
const exitsBuffer = 4 << 20

var errNamespace = errors.New("the kernel reports it only in the first namespaces")

// OpenExitListener opens a listener. It needs the initial pid, user and network namespaces, and Linux 6.6 or newer; an
// older kernel sends nothing.
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
	if e.conn, err = e.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, e.file.Close())
	}
	return e, nil
}

// sendOp asks the kernel to start or stop sending messages to the socket fd.
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

// Next waits until SIGKILL has ended a process, and returns the IDs of the process and of its parent. parent is 0 if
// the process had already been waited for.
func (e *ExitListener) Next() (pid, parent int, err error) {
	for err == nil {
		err = e.conn.Read(e.receive)
		if e.failed != nil && e.failed != unix.EINTR && e.failed != unix.ENOBUFS { // ENOBUFS: messages were lost
			return 0, 0, e.failed
		}
		if pid, parent = parseExit(e.message[:max(0, e.length)]); e.failed == nil && pid > 0 {
			return pid, parent, err
		}
	}
	return 0, 0, err
}

// parseExit parses the message m; pid is 0 if m is not about a process that SIGKILL ended.
func parseExit(m []byte) (pid, parent int) {
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(m[connectorHead+4*i:]) }
	if len(m) < exitMessage || word(0) != eventExit || word(4) != word(5) || word(6)&0x7f != uint32(unix.SIGKILL) {
		return 0, 0 // word 4 is the thread, word 5 its process
	}
	return int(word(5)), int(word(9))
}

// Close stops listening. A blocked Next returns.
func (e *ExitListener) Close() {
	_ = e.conn.Control(func(fd uintptr) { _ = sendOp(int(fd), ignoreOp) })
	e.file.Close()
}
