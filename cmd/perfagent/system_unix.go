//go:build unix

package main

import (
	"io"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/perfagent/perfagent/job"

	"golang.org/x/sys/unix"
)

// reraiseForShell ends this process with the signal that killed its job if the parent process is in the same session.
// The parent is then a shell or a script, and not a program that opened a new terminal.
func reraiseForShell(signal string) {
	own, err := unix.Getsid(0)
	parent, errParent := unix.Getsid(unix.Getppid())
	if err == nil && errParent == nil && own == parent {
		reraise(signal)
	}
}

// reraise ends this process with the named signal, without a core file. It returns if no signal has that name.
func reraise(signal string) {
	if n := unix.SignalNum(signal); n != 0 {
		job.Reraise(n)
	}
}

// inForeground reports whether w is a terminal and this process is in its foreground. Writing from the background
// disturbs the user, or even stops the writer ("stty tostop").
func inForeground(w io.Writer) bool {
	group, err := unix.IoctlGetInt(descriptor(w), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// ignoreBackground allows writing to the terminal from the background despite "stty tostop". The job has ended, so no
// child inherits the ignored signal.
func ignoreBackground() { signal.Ignore(unix.SIGTTOU) }

// setProcessGroup makes cmd start in a new process group, which is killed as a whole when the context of cmd ends.
func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
