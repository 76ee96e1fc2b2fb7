//go:build amd64 || arm64

package job

import (
	"encoding/binary"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// Package os/signal does not expose a signal's sender, which the kernel reports to the handler only. It is also slow:
// for each signal that a program asks for, the runtime switches to another thread and back, which takes 0.3 ms for all
// relayed signals. So caught signals are handled by a few instructions of assembly: they store siginfo's si_code and
// si_pid, count the delivery in one of two tables, and write to the eventfd that relay waits on. The tables are indexed
// by signal number, and are package variables because a signal handler needs fixed addresses.
var (
	fromUser   [lastSignal + 1]uint32 // si_code <= 0: kill, tgkill, sigqueue
	fromKernel [lastSignal + 1]uint32 // si_code > 0: the terminal, a timer, a limit
	senders    [lastSignal + 1]sender // of the newest delivery

	notifierFD    int32  = -1 // descriptor of signalNotifier; -1 without one
	notifierValue uint64 = 1  // written to notifierFD
)

// A notifier is an eventfd(2) that signal handlers write to. It is never closed, because a handler may run at any
// moment.
type notifier struct {
	once sync.Once
	file atomic.Pointer[os.File] // nil if there is none
}

var signalNotifier notifier

// open creates the eventfd on the first call. There is none if descriptors are scarce, or if the kernel refuses.
func (b *notifier) open() {
	b.once.Do(func() {
		if procfile.FilesAreScarce() {
			return
		}
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			return
		}
		b.file.Store(os.NewFile(uintptr(fd), "eventfd"))
		atomic.StoreInt32(&notifierFD, int32(fd))
	})
}

// notifierPollInterval is how often relay polls for signals without an eventfd.
const notifierPollInterval = 10 * time.Millisecond

// wait returns after a notification, or after notifierPollInterval without an eventfd.
func (b *notifier) wait() {
	var count [8]byte
	if file := b.file.Load(); file == nil {
		time.Sleep(notifierPollInterval)
	} else if _, err := file.Read(count[:]); err != nil {
		time.Sleep(notifierPollInterval)
	}
}

// notify ends a wait.
func (b *notifier) notify() {
	if file := b.file.Load(); file != nil {
		_, _ = file.Write(binary.NativeEndian.AppendUint64(nil, notifierValue))
	}
}

// caughtSignals returns all signals with our handler.
func caughtSignals() []syscall.Signal {
	return append(append(relayedSignals(), swallowedSignals()...), syscall.SIGCHLD)
}

// catch installs our handler for the caught signals.
func (s *Signals) catch() {
	signalNotifier.open()
	for _, sig := range relayedSignals() {
		s.first[sig] = readDeliveries(sig)
		s.seen[sig] = s.first[sig]
	}
	for _, sig := range caughtSignals() {
		s.oldActions[sig], _ = rtSigaction(sig, nil)
	}

	// After a failed write to stderr the runtime would end the process by SIGPIPE, unless it considers SIGPIPE ignored.
	for _, sig := range swallowedSignals() {
		signal.Ignore(sig)
	}
	for _, sig := range caughtSignals() {
		hook(sig)
	}
	hearBlocked()
}

// hearBlocked makes a separate thread take the signals that were blocked when this process started. Children inherit
// the mask of the other threads.
func hearBlocked() {
	var mask unix.Sigset_t
	if unix.PthreadSigmask(unix.SIG_BLOCK, nil, &mask) != nil {
		return
	}
	blocked := slices.DeleteFunc(caughtSignals(), func(sig syscall.Signal) bool {
		word, bit := place(sig)
		return mask.Val[word]&(1<<bit) == 0
	})
	if len(blocked) == 0 {
		return
	}

	heard := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		for _, sig := range blocked {
			unblock(sig)
		}
		close(heard)
		select {}
	}()
	<-heard
}

// relay collects signals until release is called.
func (s *Signals) relay() {
	defer close(s.done)
	for !s.closed.Load() {
		signalNotifier.wait()
		s.collect()
	}
}

// collect processes the deliveries since the last call.
func (s *Signals) collect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collectLocked()
}

// collectLocked is collect for callers that hold the lock.
func (s *Signals) collectLocked() {
	for _, sig := range relayedSignals() {
		if readDeliveries(sig) != s.seen[sig] {
			s.deliver(sig)
		}
	}
	s.resolveHeldBack()

	// Count SIGCHLD from processes as well: while one is pending, the kernel merges its own SIGCHLD into it.
	if n := readDeliveries(syscall.SIGCHLD); n != s.died {
		s.died = n
		select {
		case s.children <- struct{}{}:
		default: // a notification is already pending
		}
	}
}

// release restores the previous signal actions and ends relay.
func (s *Signals) release() {
	for _, sig := range swallowedSignals() { // the runtime no longer considers them ignored
		signal.Notify(make(chan os.Signal, 1), sig)
		signal.Reset(sig)
	}
	for _, sig := range caughtSignals() {
		rtSigaction(sig, &s.oldActions[sig])
	}
	s.closed.Store(true)
	signalNotifier.notify()
}

// childPollInterval is how often awaitChild checks the children without a notification, in case one was lost.
const childPollInterval = 5 * time.Second

// awaitChild returns when a child may have changed according to the options of waitid(2).
func (s *Signals) awaitChild(options int) {
	again := time.NewTicker(childPollInterval)
	defer again.Stop()
	for {
		changed, err := peekChild(unix.P_ALL, 0, options|unix.WNOHANG)
		if changed || err != nil { // reap will get the same error
			return
		}
		select {
		case <-s.children:
		case <-again.C:
			s.collect()
		}
	}
}

// A sender is the origin of a signal as the kernel describes it. The assembly depends on this layout.
type sender struct{ code, pid int32 }

// hookAddress returns the address of the assembly handler.
func hookAddress() uintptr

// sigaction is the kernel's struct for amd64 and arm64, not the C library's.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// Dispositions that are not addresses.
const (
	sigDefault = 0
	sigIgnore  = 1
)

// rtSigaction returns the disposition of sig and, if next is not nil, replaces it with *next.
func rtSigaction(sig syscall.Signal, next *sigaction) (old sigaction, ok bool) {
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(next)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	return old, errno == 0
}

// hook installs our handler for sig, with the flags and the mask of the runtime's handlers, so that it runs on the
// signal stack.
func hook(sig syscall.Signal) {
	act, ok := rtSigaction(syscall.SIGURG, nil) // the runtime always handles it
	if ok {
		act.handler = hookAddress()
		rtSigaction(sig, &act)
	}
}

// readDeliveries returns how often sig was delivered through the hook.
func readDeliveries(sig syscall.Signal) deliveryCounts {
	return deliveryCounts{atomic.LoadUint32(&fromUser[sig]), atomic.LoadUint32(&fromKernel[sig])}
}

// lastSender returns the ID of the process that last sent sig by kill, tgkill or sigqueue: 0 for a sender in another
// process namespace, -1 if a timer or the kernel sent the signal.
func lastSender(sig syscall.Signal) int {
	switch atomic.LoadInt32(&senders[sig].code) {
	case 0, -1, -6: // SI_USER, SI_QUEUE, SI_TKILL
		return int(atomic.LoadInt32(&senders[sig].pid))
	}
	return -1
}

// ignored reports whether sig is ignored now.
func ignored(sig syscall.Signal) bool {
	act, ok := rtSigaction(sig, nil)
	return ok && act.handler == sigIgnore
}

// setDefault gives sig the kernel's default action and returns its previous one.
func setDefault(sig syscall.Signal) (was sigaction, ok bool) {
	return rtSigaction(sig, &sigaction{handler: sigDefault})
}
