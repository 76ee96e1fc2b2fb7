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
)

// Package os/signal does not say who sent a signal. The kernel says it to the handler
// only. Nor is it cheap: for each signal that a program asks it for, the runtime switches
// to another thread and back, which takes a third of a millisecond for all that are
// relayed. So a few instructions of assembly are the handler of the signals that are
// caught: they note siginfo's si_code and si_pid, count the delivery in one of two tables,
// and ring the bell, on which relay waits. The tables are package variables because a
// signal handler has nothing but fixed addresses to work with. Each is indexed by signal
// number.
var (
	fromUser   [lastSignal + 1]uint32 // si_code <= 0: kill, tgkill, sigqueue
	fromKernel [lastSignal + 1]uint32 // si_code > 0: the terminal, a timer, a limit
	senders    [lastSignal + 1]sender // of the newest delivery

	notifierFD    int32  = -1 // the descriptor of the bell; -1 = there is none
	notifierValue uint64 = 1  // what is written to it
)

// A notifier is an eventfd(2) that signal handlers write to. It is never closed: a handler may
// be running at any moment.
type notifier struct {
	once sync.Once
	file *os.File // nil if there is none
}

var signalNotifier notifier

// scarceFiles is the number of descriptors below which the job may need each of them.
const scarceFiles = 64

// open makes the bell if there is none yet.
func (b *notifier) open() {
	b.once.Do(func() {
		var limit unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && limit.Cur < scarceFiles {
			return
		}
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			return
		}
		b.file = os.NewFile(uintptr(fd), "eventfd")
		atomic.StoreInt32(&notifierFD, int32(fd))
	})
}

// notifierPollInterval is how often relay looks for signals where there is no bell.
const notifierPollInterval = 10 * time.Millisecond

// wait returns after a stroke, or when there may have been one.
func (b *notifier) wait() {
	var count [8]byte
	if b.file == nil {
		time.Sleep(notifierPollInterval)
	} else if _, err := b.file.Read(count[:]); err != nil {
		time.Sleep(notifierPollInterval)
	}
}

// notify ends a wait.
func (b *notifier) notify() {
	if b.file != nil {
		_, _ = b.file.Write(binary.NativeEndian.AppendUint64(nil, notifierValue))
	}
}

// caughtSignals returns all signals that are caught.
func caughtSignals() []syscall.Signal {
	return append(append(relayedSignals(), swallowedSignals()...), syscall.SIGCHLD)
}

// catch makes ours the handler of the signals that are caught. The handler of a signal that
// was ignored has the flags of another one.
func (s *Signals) catch() {
	signalNotifier.open()
	for _, sig := range relayedSignals() {
		s.first[sig] = readDeliveries(sig)
		s.seen[sig] = s.first[sig]
	}
	for _, sig := range caughtSignals() {
		s.oldActions[sig], _ = rtSigaction(sig, nil)
	}

	// For a failing write to stderr the runtime would end the process by SIGPIPE, unless it
	// takes that to be ignored.
	for _, sig := range swallowedSignals() {
		signal.Ignore(sig)
	}
	for _, sig := range caughtSignals() {
		hook(sig)
	}
	hearBlocked()
}

// hearBlocked lets a thread of its own take those signals that this process was started with
// a mask against. Children inherit the mask of other threads.
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

// relay runs until release.
func (s *Signals) relay() {
	defer close(s.done)
	for !s.closed.Load() {
		signalNotifier.wait()
		s.collect()
	}
}

// collect takes what has been delivered since the last time.
func (s *Signals) collect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collectLocked()
}

// collectLocked is hear for a caller that holds the lock.
func (s *Signals) collectLocked() {
	for _, sig := range relayedSignals() {
		if readDeliveries(sig) != s.seen[sig] {
			s.deliver(sig)
		}
	}
	s.resolveHeldBack()

	// One that a process sent counts too: while it is pending, the kernel's own is merged into it.
	if n := readDeliveries(syscall.SIGCHLD); n != s.died {
		s.died = n
		select {
		case s.children <- struct{}{}:
		default: // Wait looks anyway
		}
	}
}

// release gives the signals back to the runtime's handlers, and ends relay.
func (s *Signals) release() {
	for _, sig := range swallowedSignals() { // the runtime does not take them to be ignored any more
		signal.Notify(make(chan os.Signal, 1), sig)
		signal.Reset(sig)
	}
	for _, sig := range caughtSignals() {
		rtSigaction(sig, &s.oldActions[sig])
	}
	s.closed.Store(true)
	signalNotifier.notify()
}

// childPollInterval is how often awaitChild looks although nothing was heard, in case a stroke of the bell failed.
const childPollInterval = 5 * time.Second

// awaitChild returns when a child may have changed as the options of waitid(2) say.
func (s *Signals) awaitChild(options int) {
	again := time.NewTicker(childPollInterval)
	defer again.Stop()
	for {
		changed, err := peekChild(unix.P_ALL, 0, options|unix.WNOHANG)
		if changed || err != nil { // the error is met again
			return
		}
		select {
		case <-s.children:
		case <-again.C:
			s.collect()
		}
	}
}

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

// rtSigaction reads, or with next not nil replaces, the disposition of sig.
func rtSigaction(sig syscall.Signal, next *sigaction) (old sigaction, ok bool) {
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(next)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	return old, errno == 0
}

// hook makes ours the handler of sig. It has the flags and the mask of the runtime's
// handlers, so that it runs on a stack of its own.
func hook(sig syscall.Signal) {
	act, ok := rtSigaction(syscall.SIGURG, nil) // which the runtime always handles
	if ok {
		act.handler = hookAddress()
		rtSigaction(sig, &act)
	}
}

// readDeliveries returns how often sig was delivered through the hook.
func readDeliveries(sig syscall.Signal) deliveryCounts {
	return deliveryCounts{atomic.LoadUint32(&fromUser[sig]), atomic.LoadUint32(&fromKernel[sig])}
}

// lastSender returns the ID of the process that sent sig last by kill, tgkill or
// sigqueue: 0 for one in another process namespace, -1 if a timer or the kernel
// sent the signal.
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
