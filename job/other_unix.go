//go:build unix && !linux

package job

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Job is a command that was started. On this system orphans are not adopted,
// and a job that stops itself is not followed.
type Job struct {
	proc    *os.Process
	start   time.Time
	signals *Signals
}

// Start runs the command; see the package comment.
func Start(c Command, s *Signals) (*Job, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("start job: no command given")
	}
	j := &Job{signals: s}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	fork := func(file string, argv []string) (err error) {
		j.start = time.Now()
		j.proc, err = os.StartProcess(file, argv, &os.ProcAttr{Env: c.environ(), Files: files})
		return err
	}
	err := search(c.Args[0], func(file string) error { return attempt(file, c.Args, fork) })
	if err != nil {
		return nil, explain(c.Args[0], err)
	}
	s.attach(j.proc)
	return j, nil
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

// Wait blocks until the job has ended and returns its status.
func (j *Job) Wait() Status {
	state, err := j.proc.Wait()
	st := Status{Pid: j.proc.Pid, Start: j.start, End: time.Now()}
	if err != nil {
		st.ExitCode, st.Err = 255, err
		return st
	}
	ws := state.Sys().(syscall.WaitStatus)
	st.ExitCode = ws.ExitStatus()
	if ws.Signaled() {
		st.Signo = ws.Signal()
		st.Signal = unix.SignalName(st.Signo)
		st.ExitCode, st.CoreDumped = 128+int(st.Signo), ws.CoreDump()
		st.FromTerminal = j.signals.sentByTerminal(st.Signo)
	}
	st.Usage = usage(state)
	return st
}

// usage puts the system's account into our units. Darwin counts resident memory
// in bytes, the BSDs and Solaris in KiB.
func usage(state *os.ProcessState) Usage {
	u := Usage{UserSeconds: state.UserTime().Seconds(), SystemSeconds: state.SystemTime().Seconds()}
	ru, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return u
	}
	u.MaxRSS = int64(ru.Maxrss) * maxrssUnit()
	u.MinorFaults, u.MajorFaults = int64(ru.Minflt), int64(ru.Majflt)
	u.BlockInput, u.BlockOutput = int64(ru.Inblock), int64(ru.Oublock)
	u.VoluntarySwitches, u.InvoluntarySwitches = int64(ru.Nvcsw), int64(ru.Nivcsw)
	return u
}

// maxrssUnit is the bytes of one count of ru_maxrss.
func maxrssUnit() int64 {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return 1
	}
	return 1024
}

// PeakRSS is the high-water mark of this process's memory in bytes; 0 where it
// cannot be known.
func PeakRSS() int64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return int64(ru.Maxrss) * maxrssUnit()
}

// Exec replaces this process by the command; see Start for its errors.
func Exec(c Command, s *Signals) error {
	if len(c.Args) == 0 {
		return errors.New("execute job: no command given")
	}
	s.Stop()
	err := search(c.Args[0], func(file string) error {
		return attempt(file, c.Args, func(file string, argv []string) error {
			return syscall.Exec(file, argv, c.environ())
		})
	})
	return explain(c.Args[0], err)
}

// Headroom is nil on this system: limits are not looked at.
func Headroom() error { return nil }

// Signals catches what is sent to this process and relays it to the job. On this
// system it is a guess who sent a signal: INT, QUIT and WINCH count as the
// terminal's while we are in its foreground group, and are not relayed then.
type Signals struct {
	ch   chan os.Signal
	late chan syscall.Signal
	done chan struct{}

	mu       sync.Mutex
	proc     *os.Process
	started  bool
	early    []os.Signal
	terminal map[os.Signal]bool // seen from the terminal
}

// Catch begins to catch what is sent to this process.
func Catch() *Signals {
	s := &Signals{
		ch:       make(chan os.Signal, 256),
		late:     make(chan syscall.Signal, 1),
		done:     make(chan struct{}),
		terminal: map[os.Signal]bool{},
	}
	signal.Notify(s.ch, syscall.SIGPIPE, syscall.SIGXFSZ)
	for _, sig := range []os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGALRM, syscall.SIGABRT, syscall.SIGXCPU,
	} {
		if !signal.Ignored(sig) { // so that the job inherits it
			signal.Notify(s.ch, sig)
		}
	}
	go s.relay()
	return s
}

// Stop ends the catching.
func (s *Signals) Stop() {
	if s == nil || s.ch == nil {
		return
	}
	signal.Stop(s.ch)
	close(s.ch)
	<-s.done
	s.ch = nil
}

// Late delivers the first TERM, INT, HUP or QUIT that came after the job's end.
func (s *Signals) Late() <-chan syscall.Signal {
	if s == nil {
		return nil
	}
	return s.late
}

// Sent is not known on this system.
func (s *Signals) Sent() []Sent { return nil }

// Noted never delivers anything on this system.
func (s *Signals) Noted() <-chan Sent { return nil }

func (s *Signals) relay() {
	defer close(s.done)
	for sig := range s.ch {
		if sig != syscall.SIGPIPE && sig != syscall.SIGXFSZ {
			s.handle(sig)
		}
	}
}

// handle passes one signal on.
func (s *Signals) handle(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.early = append(s.early, sig)
		return
	}
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH:
		if foreground() {
			s.terminal[sig] = true
			return
		}
	}
	if s.proc.Signal(sig) == nil {
		return
	}
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		select {
		case s.late <- sig.(syscall.Signal):
		default:
		}
	}
}

// foreground tells whether our group is the terminal's foreground group.
func foreground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// attach names the process that signals go to, and delivers the early ones.
func (s *Signals) attach(proc *os.Process) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc, s.started = proc, true
	for _, sig := range s.early {
		_ = proc.Signal(sig)
	}
	s.early = nil
}

// sentByTerminal tells whether sig is believed to have come from the terminal.
func (s *Signals) sentByTerminal(sig syscall.Signal) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.terminal[sig]
}

// Reraise ends this process by sig, for its parent to see that the job died so.
func Reraise(sig syscall.Signal) {
	if sig != syscall.SIGQUIT { // for which the runtime prints its goroutines
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig)
		time.Sleep(time.Second) // it is delivered to some thread or other
	}
	os.Exit(128 + int(sig))
}

// Release does nothing here.
func (j *Job) Release() {}
