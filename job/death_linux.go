//go:build amd64 || arm64

package job

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// launcherDeath is the signal that the launcher had the kernel send to this process when the launcher ends
// (PR_SET_PDEATHSIG), or 0. The setting outlives exec, but belongs to a thread: this is read as the program is
// initialized, which the main thread does.
var launcherDeath = parentDeathSignal()

// parentDeathSignal returns the setting of this thread.
func parentDeathSignal() syscall.Signal {
	var sig int32
	if unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&sig)), 0, 0, 0) != nil {
		return 0
	}
	return syscall.Signal(sig)
}

// deathSignal returns what the kernel sends to the job when this process ends. A launcher that wants its child to end
// with it wants the job to; without such a launcher nothing ties the job's life to ours. What runs in a program that
// was not taken over is the program's affair.
func (j *Job) deathSignal() syscall.Signal {
	if j.signals == nil {
		return 0
	}
	return launcherDeath
}

// dieWithLauncher gives this thread, which is about to become the job, the setting that the main thread has.
func dieWithLauncher() {
	if launcherDeath != 0 {
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(launcherDeath), 0, 0, 0)
	}
}
