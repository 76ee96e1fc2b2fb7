//go:build amd64 || arm64

package job

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
)

// A Job is a started command. Call Wait once; the other methods are safe for concurrent use.
type Job struct {
	pid                 int
	start               time.Time
	floor               int64
	outsideCgroup       bool // could not be started in its control group
	usesFallbackEnviron bool // its environment is the command's FallbackEnviron
	streams             *streams
	done                chan struct{} // closed once it is known how the job ended

	attached    chan struct{} // closed when the signals go to the job
	witnessDone chan struct{} // closed when startWitness has returned

	// Nil unless the process was taken over.
	signals *Signals
	family  *family

	// reaping is held while the main process is reaped and while it is sent a signal, because the ID of a reaped
	// process may be reused immediately. With Signals, reaping is the lock of signals.
	reaping sync.Locker
	ended   bool // guarded by reaping

	mu          sync.Mutex // guards the fields below
	allEnded    bool       // the job and all its processes have ended
	reapedUsage Usage      // of its processes reaped so far

	last         lastStat                // of the main process; used only by Wait
	endings      []process.ReapedProcess // for TakeEnded; guarded by mu
	otherEndings process.ReapedProcess   // stands for the reaped processes beyond maxEnded; guarded by mu
}

// Start runs the command and returns once the kernel has executed its program. Earlier failures wrap ErrNotFound,
// ErrNotExecutable or ErrNoProcess.
//
// With s, which Catch returns, the process serves only the job: signals are relayed to the job from its start, and
// orphans of the job become children of this process until Wait returns. Only one job at a time can use s. If s is nil,
// Start leaves the state of the process unchanged; see the package comment.
func Start(c Command, s *Signals) (*Job, error) {
	if len(c.Args) == 0 {
		return nil, fmt.Errorf("start job: %w", errNoCommand)
	}
	if s.hasJob() {
		return nil, errors.New("start job: another job already receives the signals of this process")
	}
	pipes, err := c.openStreams()
	if err != nil {
		return nil, fmt.Errorf("run %q: %w", c.Args[0], err)
	}
	j := &Job{signals: s, streams: pipes, done: make(chan struct{}), reaping: &sync.Mutex{},
		attached: make(chan struct{}), witnessDone: make(chan struct{})}
	if s != nil {
		j.family, j.reaping = newFamily(), &s.mu
	}

	s.yieldIgnored()
	children := usedByChildren()
	if err := j.executeApart(c); err != nil {
		s.resumeIgnored()
		j.family.restoreSubreaper()
		pipes.close()
		return nil, explainStart(c.Args[0], err, usedByChildren() != children)
	}

	s.attach(j.pid, j.family)
	close(j.attached)
	j.floor = PeakRSS()
	pipes.start()
	return j, nil
}

// usedByChildren returns the usage of all reaped children. The result changes with each reaped child.
func usedByChildren() (ru syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ru)
	return ru
}

// explainStart is explain for a failed start. made reports whether a child was made. That child may have been the job,
// if only reading its result failed. After ErrNoProcess the caller may become the job, which must not run twice, so the
// result is ErrNoProcess only if no child was made or the kernel lacked resources (EAGAIN, ENOMEM).
func explainStart(name string, err error, made bool) error {
	explained := explain(name, err)
	known := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
	if !made || known || !errors.Is(explained, ErrNoProcess) {
		return explained
	}
	return fmt.Errorf("run %q: %w: its new process failed: %w", name, ErrNotExecutable, err)
}

// executeApart calls execute. With Signals, the call runs on a thread that does nothing else until the job has ended:
// the kernel offers SIGCHLD first to the thread that made the process, and to no other thread while that thread waits
// for a disk.
func (j *Job) executeApart(c Command) error {
	if j.signals == nil {
		return j.execute(c)
	}

	made := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread() // if the thread ended, the job would get its parent death signal
		err := j.execute(c)
		made <- err
		if err == nil {
			<-j.attached
			j.startWitness() // on this thread: the witness ends with it
			close(j.witnessDone)
			<-j.done
		}
	}()
	return <-made
}

// execute makes the job's process. Its errors are errnos.
func (j *Job) execute(c Command) (err error) {
	files := j.streams.descriptors()
	j.usesFallbackEnviron, err = c.withEnviron(func(env []string) error {
		return c.search(func(file string, argv []string) error {
			j.start = time.Now()
			return j.fork(c, file, argv, &syscall.ProcAttr{Env: env, Files: files})
		})
	})
	return err
}

// fork makes the job's process inside the command's control group, if it has one. If the kernel refuses that, the
// process is made in our control group.
func (j *Job) fork(c Command, file string, argv []string, attr *syscall.ProcAttr) (err error) {
	// If our launcher set a parent death signal for us, the job gets the same one; otherwise the job may outlive us.
	// Without Signals, the job never gets a parent death signal.
	var death syscall.Signal
	if j.signals != nil {
		death = launcherDeath
	}
	in := func(fd int) error {
		attr.Sys = &syscall.SysProcAttr{UseCgroupFD: fd >= 0, CgroupFD: fd, Pdeathsig: death}
		j.pid, err = syscall.ForkExec(file, argv, attr)
		return err
	}
	if c.EnterCgroup == nil {
		return in(-1)
	}

	if entered := c.EnterCgroup(in); entered == nil {
		j.outsideCgroup = false // an earlier attempt may have set it
		return nil
	}
	if err == nil && j.pid > 0 { // the job runs; a later step failed
		return nil
	}
	j.outsideCgroup = true
	return in(-1)
}

// PID returns the process ID of the job's main process.
func (j *Job) PID() int { return j.pid }

// Started returns the moment just before the process was made.
func (j *Job) Started() time.Time { return j.start }

// Done returns a channel that Wait closes once the job's main process has ended. Wait returns later if Stdout, for
// example, is still being copied because a descendant holds the pipe.
func (j *Job) Done() <-chan struct{} { return j.done }

// CanEnterCgroup reports whether a job can be started in a control group.
const CanEnterCgroup = true

// OutsideCgroup reports whether the job could not be started inside its control group.
func (j *Job) OutsideCgroup() bool { return j.outsideCgroup }

// UsesFallbackEnviron reports whether the job runs with the command's FallbackEnviron, because Environ and Env were too
// large.
func (j *Job) UsesFallbackEnviron() bool { return j.usesFallbackEnviron }

// ReapedUsage returns the usage of the job's processes reaped so far. Without Signals it is zero before the job's end.
func (j *Job) ReapedUsage() Usage {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.reapedUsage
}

// AllEnded reports whether the job and all its processes have ended. It returns false if this is unknown, as it always
// is without Signals.
func (j *Job) AllEnded() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.allEnded
}

// Signal sends sig to the job's main process. The error is os.ErrProcessDone once the process has ended. A later
// process with the same ID is never signalled.
func (j *Job) Signal(sig syscall.Signal) error {
	j.reaping.Lock()
	defer j.reaping.Unlock()
	if j.ended || waitable(unix.P_PID, j.pid, unix.WEXITED|unix.WNOHANG) {
		return os.ErrProcessDone
	}
	if err := unix.Kill(j.pid, sig); err != nil {
		return fmt.Errorf("send %s to job: %w", signalName(sig), err)
	}
	return nil
}

// Release closes stdin, stdout and every other inherited descriptor of this process once the job has them. A pipe is
// then closed, and a lock released, as soon as the job does so. Descriptors with a lock of fcntl(2) stay open, because
// such a lock belongs to this process, even if it was set before exec. stderr stays open for final messages. Only a
// program that needs none of these descriptors may call Release. Without Signals it does nothing.
func (j *Job) Release() {
	if j.signals == nil {
		return
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(null)
	_ = unix.Dup3(null, 0, 0)
	_ = unix.Dup3(null, 1, 0)

	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		// The descriptors of the runtime and of this program are all close-on-exec.
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 && !holdsLock(fd) {
			unix.Close(fd)
		}
	}
}

// holdsLock reports whether this process holds a lock of fcntl(2) on the descriptor fd. Locks of flock(2) belong to the
// open file, which the job has inherited.
func holdsLock(fd int) bool {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	return err == nil && bytes.Contains(info, []byte(": POSIX "))
}

// Exec replaces this process with the command. It is the fallback if no child can be made; the job then runs
// unmeasured. Exec returns only on failure, with the errors of Start. s may be nil. A signal that s caught can no
// longer be passed to the job; it ends this process, as it would most likely have ended the job.
func Exec(c Command, s *Signals) error {
	if len(c.Args) == 0 {
		return fmt.Errorf("execute job: %w", errNoCommand)
	}
	for _, sig := range s.stop() {
		if sig != syscall.SIGCONT && sig != syscall.SIGTSTP {
			Reraise(sig)
		}
	}

	ignoreAgain(slices.Concat(relayedSignals(), swallowedSignals(), uncaughtSignals()))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if launcherDeath != 0 { // the setting applies to one thread
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(launcherDeath), 0, 0, 0)
	}
	_, err := c.withEnviron(func(env []string) error {
		return c.search(func(file string, argv []string) error { return syscall.Exec(file, argv, env) })
	})
	return explain(c.Args[0], err)
}

// descriptors returns the job's descriptors 0, 1 and 2. A descriptor that is closed here is closed in the job.
func (s *streams) descriptors() []uintptr {
	fds := []uintptr{0, 1, 2}
	for i, file := range s.files {
		if file != nil {
			fds[i] = file.Fd()
			continue
		}
		if _, err := unix.FcntlInt(fds[i], unix.F_GETFD, 0); err == unix.EBADF || closedAtStart(i) {
			fds[i] = ^uintptr(0)
		}
	}
	return fds
}
