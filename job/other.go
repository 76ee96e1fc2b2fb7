//go:build !linux || (!amd64 && !arm64)

package job

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
)

// A Job is a started command. On this system package os runs it: orphans are not adopted, and stops of the job are not
// mirrored.
type Job struct {
	proc                *os.Process
	start               time.Time
	streams             *streams
	done                chan struct{} // closed once it is known how the job ended
	signals             *Signals
	usesFallbackEnviron bool // its environment is the command's FallbackEnviron
}

// Start runs the command. If s is not nil, signals sent to this process are relayed to the command. See the package
// comment.
func Start(c Command, s *Signals) (*Job, error) {
	if len(c.Args) == 0 {
		return nil, fmt.Errorf("start job: %w", errNoCommand)
	}
	pipes, err := c.openStreams()
	if err != nil {
		return nil, fmt.Errorf("run %q: %w", c.Args[0], err)
	}

	j := &Job{signals: s, streams: pipes, done: make(chan struct{})}
	j.usesFallbackEnviron, err = c.withEnviron(func(env []string) error {
		attr := &os.ProcAttr{Env: env, Files: pipes.jobFiles()}
		return c.search(func(file string, argv []string) (err error) {
			j.start = time.Now()
			j.proc, err = os.StartProcess(file, argv, attr)
			return err
		})
	})
	if err != nil {
		pipes.close()
		return nil, explain(c.Args[0], err)
	}

	s.attach(j.proc)
	pipes.start()
	return j, nil
}

// jobFiles returns the job's files 0, 1 and 2.
func (s *streams) jobFiles() []*os.File {
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for i, file := range s.files {
		if file != nil {
			files[i] = file
		}
	}
	return files
}

// Wait waits for the job's main process to end and returns its status.
func (j *Job) Wait() Status {
	state, err := j.proc.Wait()
	st := Status{PID: j.proc.Pid, Start: j.start, End: time.Now(), Uncounted: errUncounted}
	if err != nil {
		st.ExitCode, st.Err = 255, err
	} else {
		j.conclude(&st, state)
	}
	close(j.done)
	st.CopyErr = j.streams.wait()
	return st
}

// errUncounted is the reason for Status.Uncounted.
var errUncounted = errors.New("usage of the job's orphans is not counted: this system cannot adopt them")

// PID returns the process ID of the job's main process.
func (j *Job) PID() int { return j.proc.Pid }

// Started returns the moment just before the process was made.
func (j *Job) Started() time.Time { return j.start }

// Done returns a channel that Wait closes once the job's main process has ended. Wait returns later if Stdout, for
// example, is still being copied.
func (j *Job) Done() <-chan struct{} { return j.done }

// StartHelper calls fork, which makes a child of this process that does not belong to the job.
func (j *Job) StartHelper(fork func() (pid int, err error)) error {
	_, err := fork()
	return err
}

// ReapHelpers does nothing on this system.
func (j *Job) ReapHelpers() {}

// Witness returns 0: there is no witness on this system.
func (j *Job) Witness() int { return 0 }

// IsForeign reports whether a child of this process is not the job's main process.
func (j *Job) IsForeign(pid int) bool { return pid != j.proc.Pid }

// ReapedUsage returns zero: the usage so far is unknown on this system.
func (j *Job) ReapedUsage() Usage { return Usage{} }

// TakeEnded returns nil on this system.
func (j *Job) TakeEnded() []process.ReapedProcess { return nil }

// AllEnded returns false: the state of the job's other processes is unknown on this system.
func (j *Job) AllEnded() bool { return false }

// CanEnterCgroup is false: no job can be started in a control group.
const CanEnterCgroup = false

// OutsideCgroup returns true: there are no control groups on this system.
func (j *Job) OutsideCgroup() bool { return true }

// UsesFallbackEnviron reports whether the job runs with the command's FallbackEnviron, because Environ and Env were too
// large.
func (j *Job) UsesFallbackEnviron() bool { return j.usesFallbackEnviron }

// Release does nothing on this system.
func (j *Job) Release() {}

// Headroom returns nil: limits are not checked on this system.
func Headroom([]cgroup.TaskLimit) error { return nil }

// RemoveAddedGOMAXPROCS returns false: nothing was added to the environment.
func RemoveAddedGOMAXPROCS() bool { return false }

// LacksEntryPoint returns false: no build for this system has the entry point.
func LacksEntryPoint() bool { return false }

// Signals catches the signals sent to this process and relays them to the job.
type Signals struct {
	ch   chan os.Signal
	late chan syscall.Signal
}

// Catch takes this process over for one job and begins to catch signals.
func Catch() *Signals {
	s := &Signals{make(chan os.Signal, 256), make(chan syscall.Signal, 1)}
	notify(s.ch)
	return s
}

// Stop stops catching signals.
func (s *Signals) Stop() {
	if s != nil {
		signal.Stop(s.ch)
	}
}

// Late delivers the first TERM, INT, HUP or QUIT that arrived after the job's end.
func (s *Signals) Late() <-chan syscall.Signal {
	if s == nil {
		return nil
	}
	return s.late
}

// attach makes proc the receiver of the signals, and delivers those that have already arrived.
func (s *Signals) attach(proc *os.Process) {
	if s == nil {
		return
	}
	early := len(s.ch)
	go func() {
		for sig := range s.ch {
			early--
			if isRelayed(sig, early >= 0) && proc.Signal(sig) != nil {
				s.passLate(sig)
			}
		}
	}()
}

// passLate passes sig, which arrived after the job's end, to Late.
func (s *Signals) passLate(sig os.Signal) {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		select {
		case s.late <- sig.(syscall.Signal):
		default:
		}
	}
}

// Received returns nil on this system.
func (s *Signals) Received() []process.Signal { return nil }

// Incoming returns nil on this system, a channel that never delivers.
func (s *Signals) Incoming() <-chan process.Signal { return nil }
