package collector

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A tickFile is a timerfd(2). When it expires, the runtime's poller wakes the waiting thread and nothing else. With a
// runtime timer, sysmon also wakes up and polls every 20 µs while the sample is taken, which costs as much as reading
// the kernel's files.
type tickFile struct {
	file *os.File
	raw  syscall.RawConn
	read func(fd uintptr) bool
	buf  [8]byte // number of ticks since the last read
	tick bool    // the last read returned a tick
}

// openTicks returns a tickFile that first expires at the monotonic time first, and then every interval. It returns nil
// if the kernel does not provide timerfds.
func openTicks(first, interval time.Duration) *tickFile {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil
	}
	f := &tickFile{file: os.NewFile(uintptr(fd), "timerfd")}
	f.read = f.take

	grid := unix.ItimerSpec{Value: timespec(first), Interval: timespec(interval)}
	err = unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &grid, nil)
	if err == nil {
		err = f.file.SetReadDeadline(time.Time{}) // fails without a poller: a read would not wait
	}
	if err == nil {
		f.raw, err = f.file.SyscallConn()
	}
	if err != nil {
		f.file.Close()
		return nil
	}
	return f
}

func timespec(d time.Duration) unix.Timespec { return unix.NsecToTimespec(int64(d)) }

// wait waits for a tick. It returns false as soon as the file is closed.
func (f *tickFile) wait() bool {
	f.tick = false
	return f.raw.Read(f.read) == nil && f.tick
}

// take reads the ticks that have passed, and reports whether the wait is over. It never blocks, so it does not announce
// the system call to the runtime.
func (f *tickFile) take(fd uintptr) bool {
	_, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&f.buf)), uintptr(len(f.buf)))
	f.tick = errno == 0
	return errno != unix.EAGAIN && errno != unix.EINTR
}

func (f *tickFile) close() { f.file.Close() }
