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
	bits := 8 * int(unsafe.Sizeof(set.Val[0])) // a word has 32 or 64
	set.Val[(int(sig)-1)/bits] |= 1 << ((int(sig) - 1) % bits)
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
}
