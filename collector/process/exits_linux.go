package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An exitListener receives messages about the ends of the host's processes from the kernel's process connector. No
// other source has the status and the parent of a short-lived process.
type exitListener struct {
	file *os.File
	conn syscall.RawConn
}

// A notice is a message about a process that does not exit with 0.
type notice struct {
	pid    int
	parent int // 0 if the parent had already waited for the process
	// core reports whether a signal that dumps core is about to end the process. Otherwise the process has ended, with
	// status as from wait(2).
	core   bool
	status int
	at     time.Duration // on the monotonic clock
}

// Constants of linux/connector.h and linux/cn_proc.h.
const (
	idxProc         = 1          // CN_IDX_PROC, and CN_VAL_PROC
	listenOp        = 1          // PROC_CN_MCAST_LISTEN
	ignoreOp        = 2          // PROC_CN_MCAST_IGNORE
	eventExit       = 0x80000000 // PROC_EVENT_EXIT
	eventCore       = 0x40000000 // PROC_EVENT_COREDUMP, also a filter
	eventFailedExit = 0x20000000 // PROC_EVENT_NONZERO_EXIT, a filter

	connectorHead = unix.SizeofNlMsghdr + 20 // with struct cn_msg
	coreMessage   = connectorHead + 16 + 16  // with struct proc_event
	exitMessage   = connectorHead + 16 + 24
)

// exitsBuffer is the size requested for the socket's buffer, in bytes. The kernel's default holds 256 messages, which
// is too few: each thread of a killed program causes one.
const exitsBuffer = 4 << 20

// The reasons for which the connector reports nothing. In other pid and user namespaces the kernel accepts the request,
// but does not apply the filter.
var (
	errOldKernel    = errors.New("the kernel reports them since Linux 6.6, and this is Linux before 6.6")
	errPIDNamespace = errors.New("perfagent is in another pid or user namespace than the first")
	errNetNamespace = errors.New("perfagent is in another network namespace than the first")
)

// openExitListener opens a listener. It needs the initial pid, user and network namespaces, and Linux 6.6 or newer. The
// error is the reason for which nothing is reported.
func openExitListener() (*exitListener, error) {
	for _, first := range []string{"pid:[4026531836]", "user:[4026531837]"} {
		name, err := os.Readlink("/proc/self/ns/" + first[:len(first)-len(":[4026531836]")])
		if err != nil || name != first {
			return nil, errPIDNamespace
		}
	}
	if !isLinux(6, 6) {
		return nil, errOldKernel
	}

	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_CONNECTOR)
	if err != nil {
		return nil, fmt.Errorf("open the process connector: %w", err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, exitsBuffer) != nil { // root only
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, exitsBuffer)
	}
	if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: idxProc}); err == nil {
		err = sendOp(fd, listenOp)
	}
	if err != nil {
		unix.Close(fd)
		if err == unix.ECONNREFUSED {
			return nil, errNetNamespace
		}
		return nil, fmt.Errorf("open the process connector: %w", err)
	}

	e := &exitListener{file: os.NewFile(uintptr(fd), "connector")}
	if e.conn, err = e.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, e.file.Close())
	}
	return e, nil
}

// isLinux reports whether the kernel's version is at least major.minor.
func isLinux(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var a, b int
	n, _ := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &a, &b)
	return n == 2 && (a > major || a == major && b >= minor)
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
	order.PutUint32(m[connectorHead+4:], eventFailedExit|eventCore)
	return unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// parseNotice parses the message m. ok is false if m is about anything else, such as the end of a thread.
func parseNotice(m []byte) (n notice, ok bool) {
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(m[connectorHead+4*i:]) }
	if len(m) < coreMessage {
		return notice{}, false
	}
	what, thread, pid := word(0), word(4), word(5)
	n = notice{pid: int(int32(pid)), at: time.Duration(binary.NativeEndian.Uint64(m[connectorHead+8:]))}
	parent := uint32(0)
	switch {
	case what == eventCore: // any thread may get the signal
		n.core, parent = true, word(7)
	case what == eventExit && len(m) >= exitMessage && thread == pid:
		n.status, parent = int(word(6)&0xffff), word(9)
	default:
		return notice{}, false
	}
	n.parent = int(int32(parent))
	return n, n.pid > 0 && n.parent >= 0 && n.at >= 0 && (n.core || n.status != 0)
}

// close stops listening.
func (e *exitListener) close() {
	_ = e.conn.Control(func(fd uintptr) { _ = sendOp(int(fd), ignoreOp) })
	e.file.Close()
}
