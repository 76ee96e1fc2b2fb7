package procfile

import (
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel answers the system calls in this file from memory, without waiting, so they bypass the runtime's
// scheduler, as RawSyscall does. An ordinary system call after a pause wakes sysmon, the runtime's monitor thread,
// which then polls every 20 µs while any goroutine runs. That would make a sample 10 % more expensive. On the other
// hand, no other goroutine can use the CPU during the call, so the call must be short.

// ClockGettime returns the time of the kernel clock with the given ID (clock_gettime(2)). It reports false if there is
// no such clock.
func ClockGettime(id int32) (time.Duration, bool) {
	var ts unix.Timespec
	_, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}

// Clock returns the time of the kernel clock with the given ID, which must exist.
func Clock(id int32) time.Duration {
	t, _ := ClockGettime(id)
	return t
}

// RawPread is pread(2) for a procfs file that the kernel writes from counters. Do not use it for files of other
// processes, not even stat: the read may wait for a lock that the process holds for as long as a disk does not respond.
func RawPread(fd int, p []byte, offset int64) (int, error) {
	if strconv.IntSize < 64 || len(p) == 0 { // on 32-bit systems the offset has two parts
		return unix.Pread(fd, p, offset)
	}

	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64,
		uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), uintptr(offset), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
