package job

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Job is a command that was started. On Windows it is what package os/exec makes
// of it: the console sends Ctrl-C to the job itself, no orphans are counted, and
// of its usage only CPU times are known.
type Job struct {
	proc  *os.Process
	start time.Time
}

// Start runs the command; the signals are not needed on Windows.
func Start(c Command, _ *Signals) (*Job, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("start job: no command given")
	}
	file, err := Resolve(c.Args[0])
	if err != nil {
		return nil, err
	}
	start := time.Now()
	proc, err := os.StartProcess(file, c.Args, &os.ProcAttr{
		Env:   c.environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return nil, fmt.Errorf("run %q: %w: %w", c.Args[0], ErrNotExecutable, err)
	}
	return &Job{proc, start}, nil
}

// Resolve finds the file that Start would execute, as exec.LookPath does.
func Resolve(name string) (string, error) {
	file, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("run %q: %w: %w", name, ErrNotFound, err)
	}
	return file, nil
}

// Pid is the process id of the job's main process.
func (j *Job) Pid() int { return j.proc.Pid }

// Started is the moment just before the process was made.
func (j *Job) Started() time.Time { return j.start }

// StartHelper has fork make a child of ours that is not the job's.
func (j *Job) StartHelper(fork func() (pid int, err error)) error {
	_, err := fork()
	return err
}

// ReapHelpers has nothing to do on this system.
func (j *Job) ReapHelpers() {}

// Other tells whether a child of this process is not the job's; here nobody asks.
func (j *Job) Other(int) bool { return false }

// Reaped is what the job's dead processes have used so far: not known on this system.
func (j *Job) Reaped() Usage { return Usage{} }

// Over tells that all processes of the job have ended: not known on this system.
func (j *Job) Over() bool { return false }

// Outside tells that the job is outside its control group; here there are none.
func (j *Job) Outside() bool { return true }

// Wait blocks until the job has ended and returns its status. Exit codes above
// 255 have their low byte.
func (j *Job) Wait() Status {
	state, err := j.proc.Wait()
	st := Status{Pid: j.proc.Pid, Start: j.start, End: time.Now()}
	if err != nil {
		st.ExitCode, st.Err = 255, err
		return st
	}
	st.ExitCode = state.ExitCode() & 0xff
	if st.ExitCode == 0 && state.ExitCode() != 0 {
		st.ExitCode = 255
	}
	st.Usage = Usage{UserSeconds: state.UserTime().Seconds(), SystemSeconds: state.SystemTime().Seconds()}
	return st
}

// Exec cannot be done on Windows.
func Exec(Command, *Signals) error {
	return fmt.Errorf("execute job in place: %w", errors.ErrUnsupported)
}

// Headroom is nil on Windows: limits are not looked at.
func Headroom() error { return nil }

// Signals keeps Ctrl-C, which the console sends to every process of its own,
// from ending us before the job.
type Signals struct{ ch chan os.Signal }

// Catch begins to catch Ctrl-C.
func Catch() *Signals {
	s := &Signals{make(chan os.Signal, 1)}
	signal.Notify(s.ch, os.Interrupt)
	return s
}

// Stop ends the catching.
func (s *Signals) Stop() {
	if s != nil {
		signal.Stop(s.ch)
	}
}

// Late never delivers anything on Windows.
func (s *Signals) Late() <-chan syscall.Signal { return nil }

// Sent is not known on this system.
func (s *Signals) Sent() []Sent { return nil }

// Noted never delivers anything on this system.
func (s *Signals) Noted() <-chan Sent { return nil }

// Reraise exits with 128+sig: there are no signals to die by.
func Reraise(sig syscall.Signal) { os.Exit(128 + int(sig)) }

// Release does nothing here.
func (j *Job) Release() {}
