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

// A family is the set of all children of a process that was taken over. It distinguishes the job's children (its main
// process and its orphans) from foreign ones.
type family struct {
	reaper int32 // the previous setting of PR_SET_CHILD_SUBREAPER: 1 if this process was a subreaper

	// naming is held from the fork of a helper until its ID is in foreign. IsForeign acquires it too, so it never misses
	// a helper that is not listed yet. Lock naming before mu, which is only held briefly.
	naming         sync.Mutex
	mu             sync.Mutex
	startingHelper bool  // a helper is being forked; changes only while nothing is being reaped
	helpers        []int // process IDs of the helpers
	foreign        []int // children that do not belong to the job: helpers, and children older than the job
}

// newFamily makes this process a subreaper, so that the usage of orphans can be counted. If the kernel refuses, the
// orphans' usage is not counted.
func newFamily() *family {
	f := &family{}
	if !childless() {
		f.foreign, _ = children()
	}
	_ = unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&f.reaper)), 0, 0, 0)
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	return f
}

// restoreSubreaper restores the previous subreaper setting, once this process no longer reaps orphans.
func (f *family) restoreSubreaper() {
	if f != nil {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(f.reaper), 0, 0, 0)
	}
}

// StartHelper calls fork, which makes a child of this process that does not belong to the job: its end is not reported,
// and its usage is not counted. Wait reaps the child. Until fork returns, Wait reaps only the job's main process, so a
// slow fork delays neither signals nor the exit code.
//
// Without Signals, StartHelper only calls fork, and the caller waits for its child.
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

// setStartingHelper records whether there may be a child that is not listed in foreign yet.
func (j *Job) setStartingHelper(yes bool) {
	j.reaping.Lock() // nothing is being reaped
	defer j.reaping.Unlock()
	j.family.mu.Lock()
	defer j.family.mu.Unlock()
	j.family.startingHelper = yes
}

// isStartingHelper reports whether a helper is being forked. Until it is listed, only the job's main process may be
// reaped.
func (f *family) isStartingHelper() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.startingHelper
}

// ReapHelpers kills the witness and, after Wait, reaps helpers that have ended or end within about 10 ms. Otherwise
// they would remain zombies in a container where process 1 reaps nothing.
func (j *Job) ReapHelpers() {
	if j.family == nil {
		return
	}
	<-j.witnessDone
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

// IsForeign reports whether the child pid of this process does not belong to the job: it is older than the job, or it
// is a helper. Without Signals, every child except the job's main process is foreign.
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

// isJobs reports whether the child pid belongs to the job. Unlike IsForeign, it does not wait for a helper that is
// being forked.
func (f *family) isJobs(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.Contains(f.foreign, pid)
}

// forget removes pid, a child that has been reaped, and reports whether it was foreign. Unlike IsForeign, it does not
// wait for a helper that is being forked. A later child with the same process ID is no longer foreign.
func (f *family) forget(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := func(other int) bool { return other == pid }
	before := len(f.foreign)
	f.foreign, f.helpers = slices.DeleteFunc(f.foreign, is), slices.DeleteFunc(f.helpers, is)
	return len(f.foreign) < before
}

// gone reports whether no process of the job is left: all children of this process are foreign.
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

// childless reports whether this process has no children.
func childless() bool {
	const look = unix.WEXITED | unix.WNOHANG | unix.WNOWAIT
	return unix.Waitid(unix.P_ALL, 0, &unix.Siginfo{}, look, nil) == unix.ECHILD
}

// children lists the child processes of all threads of this process. ok is false if the kernel does not list them
// (CONFIG_PROC_CHILDREN).
func children() (pids []int, ok bool) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, false
	}

	for _, task := range tasks {
		data, err := procfile.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil && task.Name() != strconv.Itoa(os.Getpid()) {
			continue // the thread has ended; another thread has its children now
		}
		if err != nil {
			return nil, false
		}
		pids = procfile.AppendPIDs(pids, data)
	}

	return pids, true
}

// threadsReserved exceeds the number of concurrent system calls of this program.
const threadsReserved = 8

// reserveThreads makes the runtime create threads in advance. The runtime keeps idle threads. A Go program dies if it
// cannot create a thread, and a job may use up the limit of processes.
func reserveThreads() {
	var all, gone sync.WaitGroup
	all.Add(threadsReserved)
	for range threadsReserved {
		gone.Go(func() {
			runtime.LockOSThread() // until all have started, each occupies a thread
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		})
	}
	gone.Wait()
}
