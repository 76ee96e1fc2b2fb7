package job

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lowerFloor makes our resident size small for the moment in which the child
// shares our memory, because the kernel counts that as the child's own peak. It
// gives back the pages of our executable that nobody can have written to; they
// come back from the page cache when they are touched. Then it resets the
// high-water mark. Whatever fails here only leaves the floor higher.
func lowerFloor() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	constants := !relocated()
	for line := range strings.Lines(string(maps)) {
		lo, hi, ok := imagePages(line, exe, constants)
		if ok {
			// By the raw call: these addresses are no Go slice.
			_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, lo, hi-lo, unix.MADV_DONTNEED)
		}
	}
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// imagePages parses a line of /proc/self/maps, and is ok for code of exe, and
// for its constants if they are asked for. Nothing anonymous, nothing writable.
func imagePages(line, exe string, constants bool) (lo, hi uintptr, ok bool) {
	f := strings.Fields(line)
	if len(f) != 6 || f[5] != exe {
		return 0, 0, false
	}
	if f[1] != "r-xp" && (f[1] != "r--p" || !constants) {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(f[0], "-")
	a, errA := strconv.ParseUint(from, 16, 64)
	b, errB := strconv.ParseUint(to, 16, 64)
	return uintptr(a), uintptr(b), errA == nil && errB == nil && a < b
}

// relocated tells whether constants of our executable may have been written to
// by a dynamic linker, so that the file does not have them. A static binary of
// fixed address, 64 bits, without PT_GNU_RELRO is sure to be free of that.
func relocated() bool {
	const (
		fixedAddress = 2          // ET_EXEC
		relro        = 0x6474e552 // PT_GNU_RELRO
		interpreter  = 3          // PT_INTERP
	)
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return true
	}
	defer f.Close()
	head := make([]byte, 4096)
	if n, _ := f.ReadAt(head, 0); n < len(head) || !bytes.HasPrefix(head, []byte("\x7fELF\x02")) {
		return true
	}
	order := binary.NativeEndian
	start, count := order.Uint64(head[32:]), uint64(order.Uint16(head[56:]))
	size := uint64(order.Uint16(head[54:]))
	if order.Uint16(head[16:]) != fixedAddress || start > 4096 || start+count*size > 4096 {
		return true
	}
	for i := range count {
		kind := order.Uint32(head[start+i*size:])
		if kind == relro || kind == interpreter {
			return true
		}
	}
	return false
}

// peakRSS is our own high-water mark in bytes: at least what a child made just
// now is charged with. 0 where it cannot be known.
func peakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		for line := range strings.Lines(string(status)) {
			f := strings.Fields(line)
			if len(f) == 3 && f[0] == "VmHWM:" {
				kb, _ := strconv.ParseInt(f[1], 10, 64)
				return kb * 1024
			}
		}
	}
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return int64(ru.Maxrss) * 1024
}
