//go:build unix

package gpu

import (
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// shell is what executes nvidia-smi, in the process that becomes it.
const shell = "/bin/sh"

// fork makes the process: in a group of its own, where a terminal's Ctrl-C does
// not reach it, with no descriptor but the pipe that its output goes to. The
// pipe's end ends it also when we are killed: exec gives it back the default
// action of SIGPIPE.
//
// Until a child has executed its program the Go runtime cannot stop the world, and soon
// nothing of ours runs any more. So what is executed here is the shell, which is at hand, and
// nvidia-smi, which may be on a file server that is dead, by the shell.
func (c *child) fork(file string, args, env []string, null, out *os.File) (int, error) {
	w := out.Fd()
	if err := syscall.SetNonblock(int(w), false); err != nil { // a flag that both sides of a fork share
		return 0, err
	}
	argv := append([]string{file}, args...)
	if unix.Access(shell, unix.X_OK) == nil {
		file, argv = shell, append([]string{shell, "-c", `exec "$0" "$@"`}, argv...)
		env = slices.DeleteFunc(slices.Clone(env), forShells)
	}
	return syscall.ForkExec(file, argv, &syscall.ProcAttr{
		Dir:   "/", // so that it keeps no directory of the job busy
		Env:   env,
		Files: shut([]uintptr{null.Fd(), w, w}),
		Sys:   c.attributes(),
	})
}

// forShells reports whether a variable is one that a shell itself goes by.
func forShells(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains([]string{"OPTIND", "SHELLOPTS", "BASHOPTS", "BASH_ENV", "ENV"}, name)
}

// leave has a process that is ours, and that hangs in the driver, reaped when it ends: in a
// program that goes on it would remain a zombie.
func (c *child) leave() {
	if c.owned && !c.gone() {
		go func(pid int) {
			for {
				if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
					return
				}
			}
		}(c.pid)
	}
}

// signal sends TERM, or KILL, to the group that the child leads.
func (c *child) signal(kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	if !c.done {
		c.toGroup(c.pid, sig)
	}
}

// gone reports whether the child has ended, and reaps it if it is ours to reap. What
// a script has left of its group is killed before.
func (c *child) gone() bool {
	if c.done {
		return true
	}
	c.sweep(c.pid)
	if !c.owned {
		c.done = c.ended(c.pid)
		return c.done
	}
	pid, err := syscall.Wait4(c.pid, nil, syscall.WNOHANG, nil)
	c.done = pid == c.pid || err == syscall.ECHILD
	return c.done
}
