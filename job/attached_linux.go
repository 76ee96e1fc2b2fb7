package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/procfile"
)

// An AttachedProcess is a running process that this program did not start. It is never confused with a later process
// that reuses its ID.
type AttachedProcess struct {
	pid   int
	start uint64   // in ticks since boot, from /proc/PID/stat
	file  *os.File // its pidfd; nil without kernel support
	fd    int      // the descriptor of file; file.Fd() would make it blocking
}

// Attach finds the process with the given ID. It needs no privilege and does not disturb the process. The caller must
// Close the result.
func Attach(pid int) (*AttachedProcess, error) {
	a := &AttachedProcess{pid: pid}
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
		err = unix.SetNonblock(fd, true) // for the runtime's poller
		a.file, a.fd = os.NewFile(uintptr(fd), "pidfd"), fd
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM): // before Linux 5.3, or forbidden to containers
		err = nil
	}
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // EINVAL, ENOENT: perhaps a thread
		if errStat := a.identify(); errStat != nil {
			err = errStat
		}
	}
	if err == nil && a.hasEnded() { // the values read may be from a later process with this ID
		err = unix.ESRCH
	}
	if err != nil {
		a.Close()
		return nil, fmt.Errorf("process %d: %w", pid, normalizeNotFound(err))
	}

	return a, nil
}

// normalizeNotFound maps the errors for a missing process to errNotThere.
func normalizeNotFound(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrNotExist) {
		return errNotThere
	}
	return err
}

var errNotThere = errors.New("it is not there")

// identify reads the start time of the process. It fails for a thread and for a dead process.
func (a *AttachedProcess) identify() error {
	status, err := os.ReadFile(a.path("status"))
	if err != nil {
		return err
	}
	if of := procfile.StatusValue(status, "Tgid"); of != "" && of != strconv.Itoa(a.pid) {
		return fmt.Errorf("it is a thread of process %s", of)
	}

	start, dead, err := a.stat()
	if err == nil && dead {
		err = unix.ESRCH
	}
	a.start = start

	return err
}

// path returns the path of the file name in /proc/PID.
func (a *AttachedProcess) path(name string) string {
	return "/proc/" + strconv.Itoa(a.pid) + "/" + name
}

// stat reads the start time of the process (ticks since boot), and whether it is dead, with no running threads. The
// state alone is not enough: it is also Z if the first thread has ended while other threads run.
func (a *AttachedProcess) stat() (start uint64, dead bool, err error) {
	data, err := os.ReadFile(a.path("stat"))
	if err != nil {
		return 0, false, err
	}

	var f [procfile.StatStart + 1][]byte
	_, _, n := procfile.SplitStat(data, f[:])
	start, ok := procfile.ParseCount(f[procfile.StatStart])
	threads, ok2 := procfile.ParseCount(f[procfile.StatThreads])
	if n < len(f) || !ok || !ok2 {
		return 0, false, fmt.Errorf("%s is not understood: %.40q", a.path("stat"), bytes.TrimSpace(data))
	}
	state := string(f[procfile.StatState])

	return start, threads <= 1 && (state == "Z" || state == "X"), nil
}

// Close closes the pidfd.
func (a *AttachedProcess) Close() {
	if a.file != nil {
		a.file.Close()
	}
}

// Wait waits until the process has ended or ctx is done, and reports whether the process has ended. Without a pidfd,
// Wait polls every interval.
func (a *AttachedProcess) Wait(ctx context.Context, interval time.Duration) bool {
	if a.file == nil || !a.wait(ctx) {
		a.look(ctx, interval)
	}

	return a.hasEnded()
}

// wait waits on the pidfd, which becomes readable when the process has ended. It reports false if Go's runtime cannot
// wait on it.
func (a *AttachedProcess) wait(ctx context.Context) bool {
	raw, err := a.file.SyscallConn()
	if err != nil || a.file.SetReadDeadline(time.Time{}) != nil {
		return false
	}
	release := context.AfterFunc(ctx, func() { _ = a.file.SetReadDeadline(time.Unix(1, 0)) })
	defer release()

	err = raw.Read(func(uintptr) bool { return a.hasEnded() })

	return err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

// look polls until the process has ended or ctx is done.
func (a *AttachedProcess) look(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !a.hasEnded() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// hasEnded reports whether all threads of the process have ended.
func (a *AttachedProcess) hasEnded() bool {
	if a.file == nil {
		start, dead, err := a.stat()
		return normalizeNotFound(err) == errNotThere || err == nil && (start != a.start || dead)
	}

	fds := []unix.PollFd{{Fd: int32(a.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)

	return err == nil && n > 0
}

const (
	// reapTimeout is how long Status waits for the parent to reap the process. Only then does the kernel give the exit
	// status to other processes.
	reapTimeout = 250 * time.Millisecond
	reapStep    = 2 * time.Millisecond
)

// Status returns the exit code (128+n after signal n) and the signal ("" if none) of a process that has ended. The
// error states why exit code and signal are unknown.
func (a *AttachedProcess) Status() (exitCode int, signal string, err error) {
	if a.file == nil {
		return 0, "", errors.New(
			"the kernel has no pidfd, which reports a process's exit code (pidfd_open, Linux 5.3)")
	}

	info := unix.PidfdInfo{}
	for end := time.Now().Add(reapTimeout); ; time.Sleep(reapStep) {
		info = unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
		err = unix.IoctlPidfdInfo(a.fd, &info)
		if err == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0 || time.Now().After(end) {
			break
		}
	}
	switch {
	case errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL):
		return 0, "", errors.New("before Linux 6.15 the kernel reports an exit code only to the parent")
	case info.Mask&unix.PIDFD_INFO_EXIT == 0:
		return 0, "", errors.New("the parent of the process has not waited for it yet; only then is the exit code known")
	}

	exitCode, signal = exitOf(syscall.WaitStatus(info.Exit_code))

	return exitCode, signal, nil
}

// exitOf returns the exit code in ws, 128+n after signal n, and the name of that signal.
func exitOf(ws syscall.WaitStatus) (code int, signal string) {
	if ws.Signaled() {
		return 128 + int(ws.Signal()), signalName(ws.Signal())
	}
	return ws.ExitStatus(), ""
}

// signalName returns the name of sig.
func signalName(sig syscall.Signal) string { return process.SignalName(sig) }
