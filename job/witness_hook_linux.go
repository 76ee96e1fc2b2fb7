//go:build amd64 || arm64

package job

import (
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A witnessPage is the memory page that a witness shares with this process. The assembly depends on its layout.
type witnessPage struct {
	all           uint64                 // 0: the set of all signals
	notifierValue uint64                 // 8: what the child writes to notifierFD
	name          [16]byte               // 16: of the process, for ps(1)
	parent        int64                  // 32: process ID of this process
	notifierFD    int64                  // 40: descriptor of the eventfd, shared by both processes
	unmap         [maxUnmapped]span      // 48: memory to unmap; ends with a span of length 0
	info          [128]byte              // 192: siginfo of the newest signal
	counts        [lastSignal + 1]uint32 // 320: signals from processes, by signal number
}

// A span is a range of addresses.
type span struct{ start, size uintptr }

const maxUnmapped = 9

// cloneWitness makes a child that uses only the assembly code and the page. The child shares our descriptors and our
// working directory, so that it keeps nothing open that we close.
func cloneWitness(page *witnessPage, flags uintptr) (pid int)

// witnessAddress returns an address in the child's code.
func witnessAddress() uintptr

// forkWitness makes the witness process and the page that it shares with us.
func forkWitness() (pid int, t *witnessPage, err error) {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0, nil, err
	}
	t = (*witnessPage)(unsafe.Pointer(&page[0]))
	t.all, t.notifierValue, t.parent, t.notifierFD = math.MaxUint64, 1, int64(os.Getpid()),
		int64(atomic.LoadInt32(&notifierFD))
	copy(t.name[:15], "signal-witness")
	t.setUnmapped()

	// The child starts with all signals blocked.
	var all, mask unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = math.MaxUint64
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &mask); err != nil {
		t.end()
		return 0, nil, err
	}
	pid = cloneWitness(t, unix.CLONE_FILES|unix.CLONE_FS|uintptr(unix.SIGCHLD))
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil)
	if pid < 0 {
		t.end()
		return 0, nil, syscall.Errno(-pid)
	}
	return pid, t, nil
}

// count returns how often processes have sent sig to the witness.
func (t *witnessPage) count(sig syscall.Signal) uint32 { return atomic.LoadUint32(&t.counts[sig]) }

// end unmaps the page.
func (t *witnessPage) end() {
	_ = unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(t)), os.Getpagesize()))
}

// setUnmapped lists the memory that the child unmaps first: everything except its code and the page. The child then
// holds no copy of memory that this process changes later, and a sum of resident sizes does not count our memory twice.
// With cgo, nothing is unmapped, because the kernel may write to the C library's memory (rseq(2)).
func (t *witnessPage) setUnmapped() {
	if withCgo {
		return
	}
	size := uintptr(os.Getpagesize())
	code := span{witnessAddress() &^ (size - 1), 2 * size} // the code may begin at the end of a page
	low, high := code, span{uintptr(unsafe.Pointer(t)), size}
	if high.start < low.start {
		low, high = high, low
	}
	above := high.start + high.size
	spans := []span{{0, low.start}, {low.start + low.size, high.start - low.start - low.size}}
	for _, bits := range []int{48, 47, 42, 39} { // of addresses: the kernel refuses a span that is too long
		if top := uintptr(1)<<bits - size; top > above {
			spans = append(spans, span{above, top - above})
		}
	}
	copy(t.unmap[:maxUnmapped-1], spans)
}
