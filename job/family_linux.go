//go:build amd64 || arm64

package job

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// A family is all the children of a process that was taken over. It distinguishes the
// job's children (its main process and its orphans) from the others.
type family struct {
	reaper bool // whether orphans came to us before, too

	// naming is held while a helper is made that is not among others yet: whoever
	// meets a child and asks whose it is waits for it. It is taken before mu,
	// which is never held for long.
	naming         sync.Mutex
	mu             sync.Mutex
	startingHelper bool  // a helper is being made; set while nothing is reaped
	helpers        []int // their process IDs
	foreign        []int // children that are not the job's: those from before, and helpers
}

// newFamily makes this process the parent of descendants whose parents die, so
// that their usage can be counted. If the kernel refuses, less is counted.
func newFamily() *family {
	f := &family{}
	if !childless() {
		f.foreign, _ = children()
	}
	f.reaper, _ = subreaper()
	if !f.reaper {
		setSubreaper(true)
	}
	return f
}

// restoreSubreaper leaves orphans to the process that had them before: nothing would reap them here.
func (f *family) restoreSubreaper() {
	if f != nil {
		setSubreaper(f.reaper)
	}
}

// StartHelper calls fork, which makes a child of this process that is not the
// job's: its end is not reported, and what it uses is not counted. Wait reaps the
// child, and until fork returns it reaps nothing but the job itself: a fork that
// takes long delays no signal and no exit code.
//
// Without Signals StartHelper only calls fork, and the caller waits for its child.
func (j *Job) StartHelper(fork func() (pid int, err error)) error {
	if j.family == nil {
		_, err := fork()
		return err
	}
	f := j.family
	f.naming.Lock()
	defer f.naming.Unlock()
	j.setStartingHelper(true)
	defer j.setStartingHelper(false)

	pid, err := fork()
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.foreign, f.helpers = append(f.foreign, pid), append(f.helpers, pid)
	}
	return err
}

// setStartingHelper sets whether a child may exist that is not known yet.
func (j *Job) setStartingHelper(yes bool) {
	j.reaping.Lock() // nothing is being reaped
	defer j.reaping.Unlock()
	j.family.mu.Lock()
	defer j.family.mu.Unlock()
	j.family.startingHelper = yes
}

// isStartingHelper reports whether only the job itself may be reaped.
func (f *family) isStartingHelper() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.startingHelper
}

// ReapHelpers ends the witness, and reaps the helpers that have ended, or are about to, after Wait.
// Left to process 1 they would remain zombies in a container where that reaps nothing.
func (j *Job) ReapHelpers() {
	if j.family == nil {
		return
	}
	<-j.settled
	j.signals.stopWitness()
	j.family.mu.Lock()
	helpers := slices.Clone(j.family.helpers)
	j.family.mu.Unlock()

	for _, pid := range helpers {
		for range 20 {
			got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			if got != 0 || err != nil && err != syscall.EINTR {
				break
			}
			time.Sleep(time.Millisecond / 2)
		}
	}
}

// IsForeign reports whether a child of this process is not the job's: it existed
// before, or it is a helper. Without Signals every child but the job's main
// process is another.
func (j *Job) IsForeign(pid int) bool {
	if j.family == nil {
		return pid != j.pid
	}
	f := j.family
	f.naming.Lock()
	defer f.naming.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.foreign, pid)
}

// isJobs reports whether a child is the job's. It waits for no helper that is just being made.
func (f *family) isJobs(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.Contains(f.foreign, pid)
}

// forget is Other for a child that has been reaped, which therefore is not just
// being made. The next one with its process ID is the job's.
func (f *family) forget(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := func(other int) bool { return other == pid }
	before := len(f.foreign)
	f.foreign, f.helpers = slices.DeleteFunc(f.foreign, is), slices.DeleteFunc(f.helpers, is)
	return len(f.foreign) < before
}

// gone reports whether no process of the job is left: this process has no children
// except ones that are not the job's.
func (f *family) gone() bool {
	if childless() {
		return true
	}
	left, ok := children()
	f.mu.Lock()
	defer f.mu.Unlock()
	foreign := func(pid int) bool { return slices.Contains(f.foreign, pid) }
	return ok && !f.startingHelper && !slices.ContainsFunc(left, func(pid int) bool { return !foreign(pid) })
}

// childless reports whether this process has no children at all.
func childless() bool {
	const look = unix.WEXITED | unix.WNOHANG | unix.WNOWAIT
	return unix.Waitid(unix.P_ALL, 0, &unix.Siginfo{}, look, nil) == unix.ECHILD
}

// children lists the child processes of all threads of this process. It is not ok where the kernel
// does not list them (CONFIG_PROC_CHILDREN).
func children() (pids []int, ok bool) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, false
	}

	for _, task := range tasks {
		data, err := procfile.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil && task.Name() != strconv.Itoa(os.Getpid()) {
			continue // a thread that has ended gave its children to another
		}
		if err != nil {
			return nil, false
		}
		pids = procfile.AppendPIDs(pids, data)
	}

	return pids, true
}

// subreaper reports whether orphans below this process become its children.
func subreaper() (bool, error) {
	var on int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0)
	return on != 0, err
}

// setSubreaper asks for orphans, or no longer does.
func setSubreaper(on bool) {
	var arg uintptr
	if on {
		arg = 1
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, arg, 0, 0, 0)
}

// threadsReserved is more than this program ever has in system calls at once.
const threadsReserved = 8

// reserveThreads makes the runtime create threads in advance, which it keeps when
// they are idle. It dies when it cannot create one, and a job that uses up the
// limit of processes must not do that to us.
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
