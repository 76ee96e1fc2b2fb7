package job

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Resolve returns the file that Start would execute, as exec.LookPath does.
func Resolve(name string) (string, error) {
	file, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("run %q: %w: %w", name, ErrNotFound, err)
	}
	return file, nil
}

// search executes the command's file.
func (c Command) search(execute func(file string, argv []string) error) error {
	file := c.Path
	if file == "" {
		var err error
		if file, err = Resolve(c.Args[0]); err != nil {
			return err
		}
	}
	return execute(file, c.Args)
}

// explain turns an error of search into one of the package's errors.
func explain(name string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return err
	}
	return fmt.Errorf("run %q: %w: %w", name, ErrNotExecutable, err)
}

// brokenPipe reports whether err means that a pipe no longer has a reader.
func brokenPipe(err error) bool {
	const noData = syscall.Errno(232) // ERROR_NO_DATA
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, noData)
}

// conclude fills in how the job ended, and its CPU times. Other usage is unknown. An exit code above 255 is reduced to
// its low byte, or to 255 if that is 0.
func (j *Job) conclude(st *Status, state *os.ProcessState) {
	st.ExitCode = state.ExitCode() & 0xff
	if st.ExitCode == 0 && state.ExitCode() != 0 {
		st.ExitCode = 255
	}
	st.Usage = Usage{UserSeconds: state.UserTime().Seconds(), SystemSeconds: state.SystemTime().Seconds()}
}

// Signal kills the job's main process if sig is a signal that ends a process: Windows has no gentler way. The error is
// os.ErrProcessDone once Wait has waited for that process.
func (j *Job) Signal(sig syscall.Signal) error {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL:
		return j.proc.Kill()
	}
	return fmt.Errorf("send %v to job: %w", sig, errors.ErrUnsupported)
}

// Exec returns an error: Windows cannot replace a process.
func Exec(Command, *Signals) error {
	return fmt.Errorf("execute job in place: %w", errors.ErrUnsupported)
}

// notify makes ch receive Ctrl-C, so that it does not end this process before the job.
func notify(ch chan<- os.Signal) { signal.Notify(ch, os.Interrupt) }

// isRelayed returns false: the console sends Ctrl-C to the job directly.
func isRelayed(os.Signal, bool) bool { return false }

// Reraise exits with code 128+sig, because a process on Windows cannot die by a signal.
func Reraise(sig syscall.Signal) { os.Exit(128 + int(sig)) }

// OwnUsage returns zero: Windows has no rusage.
func OwnUsage() (own, children Usage) { return Usage{}, Usage{} }

// PeakRSS returns 0: it is unknown on Windows.
func PeakRSS() int64 { return 0 }
