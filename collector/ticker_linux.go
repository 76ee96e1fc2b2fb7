package collector

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tickFile returns a timerfd(2) that expires at first on the monotonic clock, and then at each interval, or nil if the
// kernel gives none. A goroutine that waits for one has the runtime's poller wake its thread, and nothing else: for a
// timer of the runtime's, sysmon wakes up beside it and looks on every 20 µs for as long as the sample is taken, which
// costs as much as reading the kernel's files.
func tickFile(first, interval time.Duration) *os.File {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil
	}
	grid := unix.ItimerSpec{Value: timespec(first), Interval: timespec(interval)}
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &grid, nil); err != nil {
		unix.Close(fd)
		return nil
	}

	f := os.NewFile(uintptr(fd), "timerfd")
	if f.SetReadDeadline(time.Time{}) != nil { // there is no poller: a read would not wait
		f.Close()
		return nil
	}
	return f
}

func timespec(d time.Duration) unix.Timespec { return unix.NsecToTimespec(int64(d)) }
