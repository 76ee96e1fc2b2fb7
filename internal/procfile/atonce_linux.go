package procfile

import (
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of this file answer from memory, at once. They are made without a word to the runtime's scheduler, as
// RawSyscall makes them. The first call after a pause that does tell it wakes sysmon, a thread of the runtime's, which
// then looks on every 20 µs for as long as anything runs: that would cost a sample a tenth more. The price is that no
// other goroutine can have the CPU meanwhile, so they must be short.

// ClockGettime returns the time of a clock of the kernel's (clock_gettime(2)). It reports false if there is none of
// that ID.
func ClockGettime(id int32) (time.Duration, bool) {
	var ts unix.Timespec
	_, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}

// RawPread is pread(2) for a file of procfs that the kernel writes from counters. A file of another process is none,
// not even its stat: it may wait for a lock that the process holds for as long as a disk does not answer.
func RawPread(fd int, p []byte, offset int64) (int, error) {
	if strconv.IntSize < 64 || len(p) == 0 { // with 32 bits the offset has two parts
		return unix.Pread(fd, p, offset)
	}

	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64,
		uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), uintptr(offset), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
