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
	owned     bool // the Monitor has to reap it
	done      bool
	pidfd     int    // -1 = the kernel has no pidfds (before 5.4)
	startTime string // from /proc/PID/stat, if there is no pidfd
}

// attributes returns the attributes of the fork. If perfagent is killed while nvidia-smi hangs in the driver and writes
// nothing, a closed pipe does not end nvidia-smi. So it gets a signal when the forking thread dies. Run keeps that
// thread.
func (c *child) attributes() *syscall.SysProcAttr {
	c.pidfd = -1
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, PidFD: &c.pidfd}
}

// identify records the properties that distinguish the child from a later process with the same ID, and whether the
// Monitor has to reap it.
func (c *child) identify(owned bool) {
	c.owned = owned
	if c.pidfd < 0 {
		_, c.startTime = readStat(c.pid)
	}
}

// alive reports whether pid still belongs to the child, rather than to a later process.
func (c *child) alive() bool {
	if c.pidfd >= 0 {
		return unix.PidfdSendSignal(c.pidfd, 0, nil, 0) == nil
	}
	_, since := readStat(c.pid)
	return c.startTime != "" && since == c.startTime
}

// signalGroup sends sig to the process group of the child. Since Linux 6.9, the kernel finds the group through the
// pidfd. Older kernels need the ID, which no other process can have until the child is reaped.
func (c *child) signalGroup(sig syscall.Signal) {
	const processGroup = 1 << 2 // PIDFD_SIGNAL_PROCESS_GROUP
	if c.pidfd >= 0 {
		if err := unix.PidfdSendSignal(c.pidfd, sig, nil, processGroup); err == nil || err == unix.ESRCH {
			return
		}
	}
	if c.alive() {
		_ = syscall.Kill(-c.pid, sig)
	}
}

// ended reports whether the child has ended, reaped or not.
func (c *child) ended() bool {
	if c.pidfd >= 0 {
		fds := []unix.PollFd{{Fd: int32(c.pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n == 1
	}
	state, since := readStat(c.pid)
	return state == "Z" || state == "X" || since != c.startTime || since == ""
}

// shell is the program that the child executes first, see fork.
const shell = "/bin/sh"

// fork starts nvidia-smi in a new process group, which Ctrl-C in a terminal does not reach. Except for the null device,
// its only descriptor is the pipe for its output. If perfagent is killed, nvidia-smi ends with its next write to the
// pipe, because exec restores the default action of SIGPIPE.
//
// Until the child has called exec, the Go runtime cannot stop the world, so all goroutines of perfagent would soon
// wait. Because nvidia-smi may be on a dead file server, the child executes the shell, which is local, and the shell
// executes nvidia-smi.
func (c *child) fork(file string, args, env []string, null, out *os.File) (int, error) {
	w := out.Fd()
	if err := syscall.SetNonblock(int(w), false); err != nil { // both sides of a fork share this flag
		return 0, err
	}
	argv := append([]string{file}, args...)
	if unix.Access(shell, unix.X_OK) == nil {
		file, argv = shell, append([]string{shell, "-c", `exec "$0" "$@"`}, argv...)
		env = slices.DeleteFunc(slices.Clone(env), isShellVariable)
	}
	return syscall.ForkExec(file, argv, &syscall.ProcAttr{
		Dir:   "/", // do not keep a directory of the job busy
		Env:   env,
		Files: closeInherited([]uintptr{null.Fd(), w, w}),
		Sys:   c.attributes(),
	})
}

// isShellVariable reports whether variable, in the form NAME=VALUE, affects the shell itself.
func isShellVariable(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains([]string{"OPTIND", "SHELLOPTS", "BASHOPTS", "BASH_ENV", "ENV"}, name)
}

// release closes the pidfd. If the Monitor has to reap the child, release reaps it, in the background if the child
// hangs in the driver. Otherwise, the child would remain a zombie in a long-running program.
func (c *child) release() {
	if c.owned && !c.reap() {
		go func(pid int) {
			for {
				if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
					return
				}
			}
		}(c.pid)
	}
	if c.pid > 0 && c.pidfd >= 0 { // otherwise, no process was started
		unix.Close(c.pidfd)
		c.pidfd = -1
	}
}

// signal sends SIGTERM or, if kill is set, SIGKILL to the process group of the child.
func (c *child) signal(kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	if !c.done {
		c.signalGroup(sig)
	}
}

// reap reports whether the child has ended. If so, it kills the rest of the child's process group, and then reaps the
// child if the Monitor has to.
func (c *child) reap() bool {
	if c.done {
		return true
	}
	ended := c.ended()
	if ended {
		c.signalGroup(syscall.SIGKILL)
	}
	if !c.owned {
		c.done = ended
		return ended
	}
	pid, err := syscall.Wait4(c.pid, nil, syscall.WNOHANG, nil)
	c.done = pid == c.pid || err == syscall.ECHILD
	return c.done
}

// readStat returns the state of process pid, and its start time in ticks since boot. Both are "" if there is no such
// process.
func readStat(pid int) (state, since string) {
	p, ok := procfile.ReadProcess(pid)
	if !ok {
		return "", ""
	}
	return string(p.State), strconv.FormatUint(p.Start, 10)
}

// closeInherited extends files so that the child closes all other inherited descriptors, such as descriptors passed to
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
