//go:build amd64 || arm64

package job

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Reraise ends this process by sig without a core file, so that its parent sees
// that the job died so. It does not return. Where the signal cannot kill us
// (process 1), the exit code is 128+sig.
func Reraise(sig syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// A core_pattern that is a pipe ignores the limit.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)

	runtime.LockOSThread()
	if _, ok := setDefault(sig); ok || sig == syscall.SIGKILL { // which has no other action
		unblock(sig)
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
	}
	os.Exit(128 + int(sig))
}

// unblock lets sig be delivered to this thread.
func unblock(sig syscall.Signal) {
	var set unix.Sigset_t
	word, bit := place(sig)
	set.Val[word] |= 1 << bit
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
}

// place returns which bit of which word of a signal set stands for sig. A word has 32 or 64 bits.
func place(sig syscall.Signal) (word, bit int) {
	const bits = 8 * int(unsafe.Sizeof(unix.Sigset_t{}.Val[0]))
	return (int(sig) - 1) / bits, (int(sig) - 1) % bits
}
