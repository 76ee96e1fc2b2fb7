package procfile

import (
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls in this file return from memory, immediately, so they bypass the runtime's scheduler, as RawSyscall
// does. The first call after a pause that informs the scheduler wakes sysmon, a thread of the runtime, which then polls
// every 20 µs for as long as anything runs: that would make a sample a tenth more expensive. The price is that no other
// goroutine can use the CPU meanwhile, so they must be short.

// ClockGettime returns the time of a kernel clock (clock_gettime(2)). It reports false if there is no clock with that
// ID.
func ClockGettime(id int32) (time.Duration, bool) {
	var ts unix.Timespec
	_, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
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
