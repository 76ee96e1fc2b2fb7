//go:build unix && (!linux || (!amd64 && !arm64))

package job

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// conclude fills in how the job ended and what it used.
func (j *Job) conclude(st *Status, state *os.ProcessState) {
	ws := state.Sys().(syscall.WaitStatus)
	st.ExitCode = ws.ExitStatus()
	if ws.Signaled() {
		st.Signo = ws.Signal()
		st.Signal = unix.SignalName(st.Signo)
		st.ExitCode, st.CoreDumped = 128+int(st.Signo), ws.CoreDump()
		st.FromTerminal = j.signals != nil && fromTerminal(st.Signo)
	}
	if ru, ok := state.SysUsage().(*syscall.Rusage); ok {
		st.Usage = usage(*ru)
	}
}

// Signal sends sig to the job's main process. The error is os.ErrProcessDone once Wait has waited for that process.
func (j *Job) Signal(sig syscall.Signal) error { return j.proc.Signal(sig) }

// PeakRSS returns the high-water mark of this process's memory in bytes, or 0 if it is unknown.
func PeakRSS() int64 {
	own, _ := OwnUsage()
	return own.MaxRSS
}

// Exec replaces this process with the command. It returns the same errors as Start.
func Exec(c Command, s *Signals) error {
	if len(c.Args) == 0 {
		return fmt.Errorf("execute job: %w", errNoCommand)
	}
	s.Stop()
	_, err := c.withEnviron(func(env []string) error {
		return c.search(func(file string, argv []string) error { return syscall.Exec(file, argv, env) })
	})
	return explain(c.Args[0], err)
}

// notify makes ch receive the signals to catch. Signals that are ignored stay ignored, so that the job ignores them
// too.
func notify(ch chan<- os.Signal) {
	signal.Notify(ch, syscall.SIGPIPE, syscall.SIGXFSZ)
	for _, sig := range []os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGALRM, syscall.SIGABRT, syscall.SIGXCPU,
	} {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
}

// isRelayed reports whether sig is sent on to the job. A signal from the terminal reaches the job directly, unless it
// arrived before the job existed (early). SIGPIPE and SIGXFSZ may come from failed writes of this process.
func isRelayed(sig os.Signal, early bool) bool {
	return sig != syscall.SIGPIPE && sig != syscall.SIGXFSZ && (early || !fromTerminal(sig))
}

// fromTerminal guesses whether sig comes from the terminal: INT, QUIT and WINCH do if our group is in its foreground.
func fromTerminal(sig os.Signal) bool {
	if sig != syscall.SIGINT && sig != syscall.SIGQUIT && sig != syscall.SIGWINCH {
		return false
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// Reraise ends this process by sig, so that its parent sees how the job died.
func Reraise(sig syscall.Signal) {
	if sig != syscall.SIGQUIT { // on SIGQUIT the runtime would print all goroutines
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig)
		time.Sleep(time.Second) // until some thread has received it
	}
	os.Exit(128 + int(sig))
}
