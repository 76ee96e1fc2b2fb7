//go:build amd64 || arm64

package job

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Package os/signal does not say who sent a signal. The kernel says it to the handler
// only. So a few instructions of assembly run before the runtime's handler: they
// note siginfo's si_code and si_pid, count the delivery in one of two tables, and
// jump to the runtime's handler with everything as it was. The tables are package
// variables because a signal handler has nothing but fixed addresses to work with.
// Each is indexed by signal number.
var (
	fromUser   [lastSignal + 1]uint32  // si_code <= 0: kill, tgkill, sigqueue
	fromKernel [lastSignal + 1]uint32  // si_code > 0: the terminal, a timer, a limit
	handlers   [lastSignal + 1]uintptr // where the runtime's handlers are
	senders    [lastSignal + 1]sender  // of the newest delivery
)

// A sender is the kernel's description of a signal's origin, laid out as the assembly
// writes it.
type sender struct{ code, pid int32 }

// hookAddress returns the address of the assembly handler.
func hookAddress() uintptr

// sigaction is the kernel's struct for amd64 and arm64 (not the C library's).
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// The two dispositions that are not addresses.
const (
	sigDefault = 0
	sigIgnore  = 1
)

// action reads, or with next not nil replaces, the disposition of sig.
func action(sig syscall.Signal, next *sigaction) (old sigaction, ok bool) {
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(next)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	return old, errno == 0
}

// hook puts our handler before the runtime's, and reports whether it could: the
// runtime may have none yet. Flags and mask stay, so the handler still runs on its
// own stack.
func hook(sig syscall.Signal) bool {
	act, ok := action(sig, nil)
	if !ok || act.handler == sigDefault || act.handler == sigIgnore {
		return false
	}
	if act.handler == hookAddress() {
		return true
	}
	atomic.StoreUintptr(&handlers[sig], act.handler)
	act.handler = hookAddress()
	_, ok = action(sig, &act)
	return ok
}

// unhook gives the signal back to the runtime's handler.
func unhook(sig syscall.Signal) {
	act, ok := action(sig, nil)
	if ok && act.handler == hookAddress() {
		act.handler = atomic.LoadUintptr(&handlers[sig])
		action(sig, &act)
	}
}

// counted returns how often sig was delivered through the hook.
func counted(sig syscall.Signal) origins {
	return origins{atomic.LoadUint32(&fromUser[sig]), atomic.LoadUint32(&fromKernel[sig])}
}

// sentBy returns the ID of the process that sent sig last by kill, tgkill or
// sigqueue: 0 for one in another process namespace, -1 if a timer or the kernel
// sent the signal.
func sentBy(sig syscall.Signal) int {
	switch atomic.LoadInt32(&senders[sig].code) {
	case 0, -1, -6: // SI_USER, SI_QUEUE, SI_TKILL
		return int(atomic.LoadInt32(&senders[sig].pid))
	}
	return -1
}

// ignored reports whether sig is ignored now.
func ignored(sig syscall.Signal) bool {
	act, ok := action(sig, nil)
	return ok && act.handler == sigIgnore
}

// setDefault gives sig the kernel's default action and returns its previous one.
func setDefault(sig syscall.Signal) (was sigaction, ok bool) {
	return action(sig, &sigaction{handler: sigDefault})
}

// restore undoes setDefault.
func (a sigaction) restore(sig syscall.Signal) { action(sig, &a) }
