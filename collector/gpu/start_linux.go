package gpu

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// A process identifies a child.
type process struct {
	owned     bool // we reap it
	done      bool
	pidfd     int    // -1 = the kernel has none (before 5.4)
	startTime string // start time in /proc/PID/stat, if there is no pidfd
}

// attributes returns the attributes of the fork. If perfagent is killed while nvidia-smi hangs in the driver and writes
// nothing, the end of the pipe would not end it; the death signal of the forking thread does. That thread belongs to
// Run, which keeps it.
func (p *process) attributes() *syscall.SysProcAttr {
	p.pidfd = -1
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, PidFD: &p.pidfd}
}

// identify records what distinguishes the child from a later process with the same ID.
func (p *process) identify(pid int, owned bool) {
	p.owned = owned
	if p.pidfd < 0 {
		_, p.startTime = readStat(pid)
	}
}

// alive reports whether pid is the child and not yet reaped.
func (p *process) alive(pid int) bool {
	if p.pidfd >= 0 {
		return unix.PidfdSendSignal(p.pidfd, 0, nil, 0) == nil
	}
	_, since := readStat(pid)
	return p.startTime != "" && since == p.startTime
}

// signalGroup sends a signal to the process group of the child. Since Linux 6.9 the kernel finds the group by the
// pidfd, so that the ID does not matter. Before, it needs the ID, which no other process has until the child is reaped.
func (p *process) signalGroup(pid int, sig syscall.Signal) {
	const processGroup = 1 << 2 // PIDFD_SIGNAL_PROCESS_GROUP
	if p.pidfd >= 0 {
		if err := unix.PidfdSendSignal(p.pidfd, sig, nil, processGroup); err == nil || err == unix.ESRCH {
			return
		}
	}
	if p.alive(pid) {
		_ = syscall.Kill(-pid, sig)
	}
}

// killOrphans kills the rest of the group after the child has ended.
func (p *process) killOrphans(pid int) {
	if p.ended(pid) {
		p.signalGroup(pid, syscall.SIGKILL)
	}
}

// ended reports whether the child has ended, reaped or not.
func (p *process) ended(pid int) bool {
	if p.pidfd >= 0 {
		fds := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n == 1
	}
	state, since := readStat(pid)
	return state == "Z" || state == "X" || since != p.startTime || since == ""
}

// release closes the pidfd.
func (p *process) release() {
	if p.pidfd >= 0 {
		unix.Close(p.pidfd)
		p.pidfd = -1
	}
}

// shell executes nvidia-smi, in the process that becomes it.
const shell = "/bin/sh"

// fork starts the process in a new process group, where a terminal's Ctrl-C does not reach it, with no descriptor but
// the pipe for its output. The end of the pipe also ends it when perfagent is killed: exec restores the default action
// of SIGPIPE.
//
// Until a child has called exec the Go runtime cannot stop the world, and soon no goroutine runs any more. So it
// executes the shell, which is local, and the shell executes nvidia-smi, which may be on a dead file server.
func (c *child) fork(file string, args, env []string, null, out *os.File) (int, error) {
	w := out.Fd()
	if err := syscall.SetNonblock(int(w), false); err != nil { // a flag that both sides of a fork share
		return 0, err
	}
	argv := append([]string{file}, args...)
	if unix.Access(shell, unix.X_OK) == nil {
		file, argv = shell, append([]string{shell, "-c", `exec "$0" "$@"`}, argv...)
		env = slices.DeleteFunc(slices.Clone(env), isShellVariable)
	}
	return syscall.ForkExec(file, argv, &syscall.ProcAttr{
		Dir:   "/", // so that no directory of the job is busy
		Env:   env,
		Files: closeInherited([]uintptr{null.Fd(), w, w}),
		Sys:   c.attributes(),
	})
}

// isShellVariable reports whether a variable affects a shell itself.
func isShellVariable(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains([]string{"OPTIND", "SHELLOPTS", "BASHOPTS", "BASH_ENV", "ENV"}, name)
}

// reapInBackground waits in the background for a child to reap that hangs in the driver, so that it does not become a
// zombie of a long-running program.
func (c *child) reapInBackground() {
	if c.owned && !c.reap() {
		go func(pid int) {
			for {
				if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
					return
				}
			}
		}(c.pid)
	}
}

// signal sends SIGTERM, or SIGKILL, to the process group of the child.
func (c *child) signal(kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	if !c.done {
		c.signalGroup(c.pid, sig)
	}
}

// reap reports whether the child has ended, and reaps it if that is up to us. Before, it kills the rest of its process
// group.
func (c *child) reap() bool {
	if c.done {
		return true
	}
	c.killOrphans(c.pid)
	if !c.owned {
		c.done = c.ended(c.pid)
		return c.done
	}
	pid, err := syscall.Wait4(c.pid, nil, syscall.WNOHANG, nil)
	c.done = pid == c.pid || err == syscall.ECHILD
	return c.done
}

// readStat returns a process's state and start time, in ticks since boot.
func readStat(pid int) (state, since string) {
	p, ok := procfile.ReadProcess(pid)
	if !ok {
		return "", ""
	}
	return string(p.State), strconv.FormatUint(p.Start, 10)
}

// closeInherited extends files so that the child closes all descriptors that it would inherit: those passed to
// perfagent for the job.
func closeInherited(files []uintptr) []uintptr {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return files
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(4096)
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd < len(files) || fd > 1<<16 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			for len(files) <= fd {
				files = append(files, ^uintptr(0)) // ForkExec closes these
			}
		}
	}
	return files
}
