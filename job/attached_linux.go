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

	"github.com/perfagent/perfagent/internal/procfile"
)

// An AttachedProcess is a process that this one did not start. When it has ended and another process gets its
// ID, it is not taken for that one.
type AttachedProcess struct {
	pid   int
	start uint64   // of its stat, in ticks since boot
	file  *os.File // its pidfd; nil where the kernel gives none
	fd    int      // of file, whose own method would make it block
}

// Attach finds the process with an ID. It needs no privilege and does nothing to the process. Close it
// when done.
func Attach(pid int) (*AttachedProcess, error) {
	a := &AttachedProcess{pid: pid}
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
		err = unix.SetNonblock(fd, true) // so that Go's runtime waits for it
		a.file, a.fd = os.NewFile(uintptr(fd), "pidfd"), fd
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM): // before Linux 5.3, or forbidden to containers
		err = nil
	}
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // the last two: perhaps a thread
		if errStat := a.identify(); errStat != nil {
			err = errStat
		}
	}
	if err == nil && a.hasEnded() { // what has been read may be of the next process with the ID
		err = unix.ESRCH
	}
	if err != nil {
		a.Close()
		return nil, fmt.Errorf("process %d: %w", pid, normalizeNotFound(err))
	}

	return a, nil
}

// normalizeNotFound replaces the errors of a process that is not there by one.
func normalizeNotFound(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrNotExist) {
		return errNotThere
	}
	return err
}

var errNotThere = errors.New("it is not there")

// identify reads when the process began.
func (a *AttachedProcess) identify() error {
	status, err := os.ReadFile(a.path("status"))
	if err != nil {
		return err
	}
	if of := procfile.StatusValue(status, "Tgid"); of != "" && of != strconv.Itoa(a.pid) {
		return fmt.Errorf("it is a thread; its process is %s", of)
	}

	start, dead, err := a.stat()
	if err == nil && dead {
		err = unix.ESRCH
	}
	a.start = start

	return err
}

// path returns the path of a file of the process in /proc.
func (a *AttachedProcess) path(name string) string {
	return "/proc/" + strconv.Itoa(a.pid) + "/" + name
}

// stat reads when the process with the ID began, and whether it is dead: none of its threads runs. One
// whose first thread has ended while others run is in state Z, too.
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

// Close closes what is held of the process.
func (a *AttachedProcess) Close() {
	if a.file != nil {
		a.file.Close()
	}
}

// Wait returns when the process has ended, or when ctx is done. It reports whether the process has
// ended. Where the kernel does not tell the end of a process, Wait looks for it at the interval often.
func (a *AttachedProcess) Wait(ctx context.Context, often time.Duration) bool {
	if a.file == nil || !a.wait(ctx) {
		a.look(ctx, often)
	}

	return a.hasEnded()
}

// wait waits by the pidfd, which is readable when the process has ended. It reports false if Go's
// runtime cannot wait for it.
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

// look looks for the process now and then.
func (a *AttachedProcess) look(ctx context.Context, often time.Duration) {
	tick := time.NewTicker(often)
	defer tick.Stop()
	for !a.hasEnded() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// hasEnded reports whether the process has ended: nothing of it runs any more.
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
	// reapTimeout is how long Status waits until the parent of the process has waited for it: the
	// kernel keeps the exit status for others from then on.
	reapTimeout = 250 * time.Millisecond
	reapStep    = 2 * time.Millisecond
)

// Status returns how a process ended that has. The error says why that is not known.
func (a *AttachedProcess) Status() (exitCode int, signal string, err error) {
	if a.file == nil {
		return 0, "", errors.New(
			"the kernel has no pidfd, by which it tells the exit code of a process (pidfd_open, Linux 5.3)")
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
		return 0, "", errors.New("before Linux 6.15 the kernel tells the exit code of a process to its parent only")
	case info.Mask&unix.PIDFD_INFO_EXIT == 0:
		return 0, "", errors.New("the parent of the process has not waited for it yet; the kernel tells the exit code then")
	}

	exitCode, signal = exitOf(syscall.WaitStatus(info.Exit_code))

	return exitCode, signal, nil
}

// exitOf returns the exit code of a process, 128+n after signal n, and the name of that signal.
func exitOf(ws syscall.WaitStatus) (code int, signal string) {
	if ws.Signaled() {
		return 128 + int(ws.Signal()), signalName(ws.Signal())
	}
	return ws.ExitStatus(), ""
}

// signalName returns the name of a signal, also of a real-time one.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return "SIGRTMIN+" + strconv.Itoa(int(sig)-34)
}
