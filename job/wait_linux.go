//go:build amd64 || arm64

package job

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// maxOrphansAtEnd bounds how many orphans are reaped after the main process has ended. Without a bound, a job that
	// leaves an endless number of dying processes would delay its exit code forever.
	maxOrphansAtEnd = 100_000

	// helperStarts is how many milliseconds Wait waits, after the job's end, for a helper that is being forked.
	helperStarts = 1000
)

// errUncounted is the reason for Status.Uncounted.
var errUncounted = errors.New("usage of the job's orphans is not counted: " +
	"only a process that perfagent takes over can adopt them")

// Wait waits for the job's main process to end and returns its status. Descendants that are still running are left
// alone.
//
// With Signals it also reaps every other child of this process, adds the usage of orphans, and stops when the job
// stops.
func (j *Job) Wait() Status {
	st := Status{PID: j.pid, Start: j.start}
	ws, err := j.waitFor(&st)
	if err != nil {
		st.End, st.ExitCode = time.Now(), 255
		st.Err = fmt.Errorf("wait for process %d: %w", j.pid, err)
	} else {
		j.conclude(&st, ws)
	}

	if j.family == nil {
		st.Uncounted = errUncounted
	}
	j.family.restoreSubreaper()
	close(j.done)
	st.CopyErr = j.streams.wait()
	return st
}

// waitFor waits for the end of the main process and returns its wait status. It adds the usage of all processes reaped
// until then to st.
func (j *Job) waitFor(st *Status) (syscall.WaitStatus, error) {
	for {
		j.block()
		j.readLastStat()
		pid, ws, ru, err := j.reap()
		switch {
		case err != nil:
			return 0, err
		case pid == 0:
		case pid != j.pid && !ws.Stopped():
			j.countOrphan(st, pid, ws, ru)
		case pid == j.pid && ws.Stopped():
			j.mirrorStop(ws.StopSignal())
		case pid == j.pid:
			st.End = time.Now()
			j.count(st, pid, ws, ru)
			return ws, nil
		}
	}
}

// block waits until a child may have changed, and reap may find it. It reaps nothing itself.
func (j *Job) block() {
	if j.family == nil {
		waitable(unix.P_PID, j.pid, unix.WEXITED)
		return
	}

	const changed = unix.WEXITED | unix.WSTOPPED
	for pause := time.Millisecond; j.family.isStartingHelper(); pause = min(2*pause, 20*time.Millisecond) {
		if waitable(unix.P_PID, j.pid, changed|unix.WNOHANG) {
			return
		}
		time.Sleep(pause)
	}
	j.signals.awaitChild(changed)
}

// waitable waits until the child that kind and id select has changed as options specify; with WNOHANG it only checks.
// It does not reap the child. It returns false on an error, because reap will get the same error.
func waitable(kind, id, options int) bool {
	changed, err := peekChild(kind, id, options)
	return err == nil && changed
}

// peekChild is waitid(2) with WNOWAIT, which does not reap the child.
func peekChild(kind, id, options int) (changed bool, err error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(kind, id, &info, options|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return info.Signo != 0, err
		}
	}
}

// reap reaps one child that has ended or stopped; pid is 0 if there is none. Without Signals it reaps only the job's
// main process. It does the same while a helper is being forked, because any other child might be that helper.
func (j *Job) reap() (pid int, ws syscall.WaitStatus, ru syscall.Rusage, err error) {
	j.reaping.Lock()
	defer j.reaping.Unlock()
	if j.signals != nil {
		j.signals.collectLocked() // signals sent by the process that is about to be reaped
	}

	child, options, expecting := -1, syscall.WUNTRACED|syscall.WNOHANG, false
	if j.family == nil {
		child, options = j.pid, syscall.WNOHANG
	} else if expecting = j.family.isStartingHelper(); expecting {
		child = j.pid
	}

	for {
		pid, err = syscall.Wait4(child, &ws, options, &ru)
		if err != syscall.EINTR {
			break
		}
	}
	if expecting && err == syscall.ECHILD { // there may be other children
		return 0, ws, ru, nil
	}
	if err != nil || pid == j.pid && !ws.Stopped() {
		j.ended = true
		if j.signals != nil {
			j.signals.jobState, j.signals.pid = jobEnded, 0
		}
	}
	return pid, ws, ru, err
}

// conclude fills in how the job ended, and reaps and counts the dead orphans.
func (j *Job) conclude(st *Status, ws syscall.WaitStatus) {
	st.ExitCode, st.Signal = exitOf(ws)
	if ws.Signaled() {
		st.Signo, st.CoreDumped = ws.Signal(), ws.CoreDump()
	}
	st.ReceivedSignals = j.signals.awaitReceived(st.Signo)
	st.FromTerminal = j.signals.sentByTerminal(st.Signo)

	if j.family != nil {
		j.reapOrphans(st)
	}
	st.Usage.MaxRSSFloor = j.floor
}

// reapOrphans reaps and counts the orphans that are dead at the job's end.
func (j *Job) reapOrphans(st *Status) {
	for range helperStarts { // while a helper is being forked, reap skips the orphans
		if !j.family.isStartingHelper() {
			break
		}
		time.Sleep(time.Millisecond)
	}

	for range maxOrphansAtEnd {
		pid, ws, ru, err := j.reap()
		if pid <= 0 || err != nil {
			allEnded := j.family.gone()
			j.mu.Lock()
			defer j.mu.Unlock()
			j.allEnded = allEnded
			return
		}
		if !ws.Stopped() {
			j.countOrphan(st, pid, ws, ru)
		}
	}
}

// countOrphan adds pid, a dead child other than the job's main process, to st. It skips helpers and children from
// before the job, such as a daemon that a shell started before it executed us.
func (j *Job) countOrphan(st *Status, pid int, ws syscall.WaitStatus, ru syscall.Rusage) {
	if j.family.forget(pid) {
		return
	}
	j.count(st, pid, ws, ru)
	st.Orphans++
}

// count adds ru, the usage of the dead process pid of the job, to st.
func (j *Job) count(st *Status, pid int, ws syscall.WaitStatus, ru syscall.Rusage) {
	st.Usage = st.Usage.Plus(usage(ru))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reapedUsage = st.Usage
	j.keepEnded(pid, ws, ru)
}

// maxEnded bounds how many reaped processes are kept individually between calls of TakeEnded. Those that a signal ended
// and those with the most CPU time are kept, because a job may leave thousands of orphans.
const maxEnded = 256

// lastStat holds values from /proc/PID/stat of the main process, read after its end and before it is reaped. rusage
// does not separate a process's own usage from its children's.
type lastStat struct {
	known    bool
	start    time.Duration // since boot
	children float64       // CPU seconds of the children that the process reaped
	alone    bool          // the process reaped no children
}

// readLastStat reads the stat of the main process if it has ended.
func (j *Job) readLastStat() {
	if j.last.known || !waitable(unix.P_PID, j.pid, unix.WEXITED|unix.WNOHANG) {
		return
	}
	data, err := procfile.ReadFile("/proc/" + strconv.Itoa(j.pid) + "/stat")
	if err != nil {
		return
	}

	var f [procfile.StatStart + 1][]byte
	pid, _, n := procfile.SplitStat(data, f[:])
	if n < len(f) || string(pid) != strconv.Itoa(j.pid) || string(f[procfile.StatParent]) != strconv.Itoa(os.Getpid()) {
		return // /proc shows another pid namespace
	}
	number := func(field int) uint64 {
		v, _ := procfile.ParseCount(f[field])
		return v
	}
	j.last = lastStat{
		known:    true,
		start:    time.Duration(number(procfile.StatStart)) * time.Second / procfile.UserHZ,
		children: float64(number(procfile.StatCUTime)+number(procfile.StatCSTime)) / procfile.UserHZ,
		alone:    number(procfile.StatCMinFlt) == 0, // each child has faulted in some pages
	}
}

// keepEnded adds a reaped process to the result of TakeEnded. The caller holds j.mu.
func (j *Job) keepEnded(pid int, ws syscall.WaitStatus, ru syscall.Rusage) {
	u := usage(ru)
	now, _ := procfile.ClockGettime(unix.CLOCK_BOOTTIME)
	e := process.ReapedProcess{PID: pid, CPUSeconds: u.UserSeconds + u.SystemSeconds, At: now, Status: int(ws)}
	if pid == j.pid {
		e.Main, e.Start, e.ChildrenSeconds = true, j.last.start, j.last.children
		if j.last.alone && u.MaxRSS > j.floor {
			e.MaxRSS = float64(u.MaxRSS)
		}
	}

	if len(j.endings) < maxEnded {
		j.endings = append(j.endings, e)
		return
	}
	least := &e
	for i := range j.endings {
		if other := &j.endings[i]; importance(other) < importance(least) {
			least = other
		}
	}
	e, *least = *least, e
	rest := &j.otherEndings
	rest.CPUSeconds += e.CPUSeconds
	if syscall.WaitStatus(e.Status).Signaled() {
		rest.Killed++
	} else if e.Status != 0 {
		rest.Failed++
	}
}

// importance ranks reaped processes.
func importance(e *process.ReapedProcess) float64 {
	rank := e.CPUSeconds
	if e.Main || syscall.WaitStatus(e.Status).Signaled() {
		rank += 1e9
	}
	return rank
}

// TakeEnded returns the processes of the job that were reaped since the last call. If there were more than maxEnded,
// the last element has no PID and stands for all processes that are not in the list.
func (j *Job) TakeEnded() []process.ReapedProcess {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.endings
	if j.otherEndings != (process.ReapedProcess{}) {
		out = append(out, j.otherEndings)
	}
	j.endings, j.otherEndings = nil, process.ReapedProcess{}
	return out
}

// PeakRSS returns the high-water mark of this process's memory in bytes (VmHWM of proc(5)), or 0 if it is unknown. The
// kernel reports at least this much as ru_maxrss of a child that is forked now. ru_maxrss of getrusage(2) is only the
// fallback, because it includes our parent's memory at the time of the fork.
func PeakRSS() int64 {
	if status, err := procfile.ReadFile("/proc/self/status"); err == nil {
		text := strings.TrimSuffix(procfile.StatusValue(status, "VmHWM"), " kB")
		if kib, err := strconv.ParseInt(text, 10, 64); err == nil {
			return kib * 1024
		}
	}

	own, _ := OwnUsage()
	return own.MaxRSS
}
