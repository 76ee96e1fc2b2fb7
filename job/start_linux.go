package job

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Job is a command that was started. Its methods are for one goroutine.
type Job struct {
	pid     int
	start   time.Time
	floor   int64
	reaper  bool // whether orphans were ours before
	outside bool // of the control group that it was to enter
	signals *Signals

	// naming is held while a helper is made that is not among others yet: who meets a child and
	// asks whose it is waits for it. It is taken before mu, which nobody holds for long.
	naming   sync.Mutex
	mu       sync.Mutex
	nameless bool // a helper is being made; set under the signals' lock
	helpers  []int
	others   []int // children that are not the job's: those that we had before, and helpers
	// childless tells that the job has ended with all its processes.
	childless bool
	reaped    Usage // of the job's processes that were waited for so far
}

// Start runs the command and, from the moment it exists, has s (which may be
// nil) deliver to it what was sent to us. It returns when the program has been
// executed; what can go wrong before that is ErrNotFound, ErrNotExecutable or
// ErrNoProcess. Until Wait returns, orphans of the job are our children.
func Start(c Command, s *Signals) (*Job, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("start job: no command given")
	}
	before, _ := children()
	j := &Job{signals: s, reaper: adoptOrphans(), others: before}
	env, files := c.environ(), streams()
	fork := func(file string, argv []string) error {
		j.start = time.Now()
		return j.fork(c, file, argv, &syscall.ProcAttr{Env: env, Files: files})
	}
	s.wait()
	s.yieldIgnored()
	err := search(c.Args[0], func(file string) error { return attempt(file, c.Args, fork) })
	if err != nil {
		s.resumeIgnored()
		setSubreaper(j.reaper)
		return nil, explain(c.Args[0], err)
	}
	j.floor = PeakRSS()
	s.attach(j.pid)
	return j, nil
}

// fork makes the job's process, inside its control group if it has one. A kernel that
// refuses to make it there makes it where we are.
func (j *Job) fork(c Command, file string, argv []string, attr *syscall.ProcAttr) (err error) {
	in := func(fd int) error {
		attr.Sys = &syscall.SysProcAttr{UseCgroupFD: fd >= 0, CgroupFD: fd}
		j.pid, err = syscall.ForkExec(file, argv, attr)
		return err
	}
	if c.Enter == nil {
		return in(-1)
	}
	if entered := c.Enter(in); entered == nil {
		j.outside = false // an earlier try may have been
		return nil
	}
	if err == nil && j.pid > 0 { // it runs: what failed came after
		return nil
	}
	j.outside = true
	return in(-1)
}

// Outside tells that the job could not be started inside the control group that it was
// to enter.
func (j *Job) Outside() bool { return j.outside }

// StartHelper has fork make a child of ours that is not the job's: its end is not
// reported, and what it uses is not counted. Wait reaps it, and until fork returns, nobody
// but the job itself: a fork that takes long holds up no signal and no exit code. Without
// Signals it may be taken for an orphan.
func (j *Job) StartHelper(fork func() (pid int, err error)) error {
	j.naming.Lock()
	defer j.naming.Unlock()
	j.expectHelper(true)
	defer j.expectHelper(false)
	pid, err := fork()
	if err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.others, j.helpers = append(j.others, pid), append(j.helpers, pid)
	}
	return err
}

// expectHelper says whether a child may be there that is nobody's yet.
func (j *Job) expectHelper(yes bool) {
	unlock := j.signals.hold() // nobody is reaping
	defer unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.nameless = yes
}

// expectsHelper tells whether only the job itself may be reaped.
func (j *Job) expectsHelper() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.nameless
}

// ReapHelpers reaps those that have ended, or are about to, after Wait: left to process 1,
// they would stay as zombies in a container where that one reaps nobody.
func (j *Job) ReapHelpers() {
	j.mu.Lock()
	helpers := slices.Clone(j.helpers)
	j.mu.Unlock()
	for _, pid := range helpers {
		for range 20 {
			if got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); got != 0 || err != nil && err != syscall.EINTR {
				break
			}
			time.Sleep(time.Millisecond / 2)
		}
	}
}

// Other tells whether a child of this process is not the job's: we had it before, or it
// is a helper. It may be called from any goroutine.
func (j *Job) Other(pid int) bool {
	j.naming.Lock()
	defer j.naming.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Contains(j.others, pid)
}

// forget is Other for a child that was reaped, which therefore is not just being made. The
// next one with its id is the job's.
func (j *Job) forget(pid int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	is := func(other int) bool { return other == pid }
	before := len(j.others)
	j.others, j.helpers = slices.DeleteFunc(j.others, is), slices.DeleteFunc(j.helpers, is)
	return len(j.others) < before
}

// Reaped is what the job's dead processes have used that were waited for so far. It may
// be called from any goroutine.
func (j *Job) Reaped() Usage {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.reaped
}

// Over tells that the job has ended, and all its processes with it. False may also mean
// that it is not known. It may be called from any goroutine.
func (j *Job) Over() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.childless
}

// threadsReserved is more than this program ever has in system calls at once.
const threadsReserved = 8

// reserveThreads makes the runtime have threads to spare. It keeps those that are
// idle and dies when it cannot make one; a job that uses up the limit of processes
// must not do that to us.
func reserveThreads() {
	var all, gone sync.WaitGroup
	all.Add(threadsReserved)
	for range threadsReserved {
		gone.Go(func() {
			runtime.LockOSThread() // while all wait for the last, each holds a thread
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		})
	}
	gone.Wait()
}

// Release gives up this process's own stdin and stdout and every other descriptor
// that it inherited, now that the job has them: a pipe that the job closes is then
// closed, and a lock that it drops is dropped. stderr is kept for what we have to
// say at the end. Only a program that needs none of them may call it.
func (j *Job) Release() {
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
		// The runtime's and our own are all close-on-exec.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

// Pid is the process id of the job's main process.
func (j *Job) Pid() int { return j.pid }

// Started is the moment just before the process was made.
func (j *Job) Started() time.Time { return j.start }

// Exec replaces this process by the command, for when no child can be made: the
// job runs, unmeasured. It returns only when that fails, with the errors of
// Start. s may be nil; what it caught and the job cannot get any more ends this
// process as it would most likely have ended the job.
func Exec(c Command, s *Signals) error {
	if len(c.Args) == 0 {
		return errors.New("execute job: no command given")
	}
	for _, sig := range s.stop() {
		if sig != syscall.SIGCONT && sig != syscall.SIGTSTP {
			Reraise(sig)
		}
	}
	env := c.environ()
	yieldStart()
	err := search(c.Args[0], func(file string) error {
		return attempt(file, c.Args, func(file string, argv []string) error {
			return syscall.Exec(file, argv, env)
		})
	})
	return explain(c.Args[0], err)
}

// streams are our descriptors 0, 1 and 2, for the job to have as they are. One
// that we don't have, the job has not either.
func streams() []uintptr {
	files := []uintptr{0, 1, 2}
	for fd := range files {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || closedAtStart(fd) {
			files[fd] = ^uintptr(0)
		}
	}
	return files
}

// adoptOrphans makes us the parent of descendants whose parents died, so that
// their usage can be counted. Where the kernel refuses, only less is counted.
// It returns whether we were that already.
func adoptOrphans() bool {
	before, err := subreaper()
	if err != nil || before {
		return before
	}
	setSubreaper(true)
	return false
}
