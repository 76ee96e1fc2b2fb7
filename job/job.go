// Package job runs the wrapped command of "perfagent run -- CMD" as if
// perfagent were not there, and says exactly what it used.
//
// The story of a job:
//
//	if job.Headroom() != nil { job.Exec(cmd, nil) } // no room for two: be the job
//	signals := job.Catch()                          // from here on nothing sent to us is lost
//	defer signals.Stop()
//	j, err := job.Start(cmd, signals)               // ErrNotFound 127, ErrNotExecutable 126, ErrNoProcess: Exec
//	status := j.Wait()                              // exit code, signal, rusage
//
// # Streams and surroundings
//
// The job gets the very same open files 0, 1 and 2 (no pipe, no pty), every
// other inherited descriptor that is not close-on-exec, and stays in our
// process group, session and control group, on our terminal. It outlives us
// when we are killed: nothing ties its life to ours.
//
// # Signals
//
// What kill(2) sends to perfagent's process id reaches the job's process id
// once: TERM, INT, HUP, QUIT, USR1, USR2, CONT, WINCH, TSTP, ALRM, ABRT and
// XCPU. What the terminal sends (Ctrl-C, Ctrl-\, Ctrl-Z, a new window size)
// goes from the kernel to the whole foreground group, job included, and is not
// sent a second time. The two are told apart by the si_code that the kernel
// hands to signal handlers; see hook_linux.go. A hang-up reaches only the
// leader of the session, so it is passed on when that is us.
//
// A signal sent by a process to the whole group, as kill(-pgid) and timeout(1)
// do, or to each process of a container, as a scheduler may, reaches the job
// directly and again through us. The kernel does not tell us how a signal was
// addressed, and one too many is better than none at all.
//
// SIGPIPE, SIGXFSZ (our own writes failing) are swallowed: they must not end
// us. Nothing is ever set to be ignored while the job could inherit it, but for
// what was ignored when perfagent started (nohup, trap "" TERM, a background job
// of a script): that is ignored in the job too. The Go runtime overwrites all
// dispositions but those of SIGHUP, SIGINT, SIGTSTP and SIGCONT, and opens
// /dev/null for standard descriptors that are closed, before any Go code runs; so
// a binary that is linked to begin at entry (entry_linux.go; make build does)
// notes both before. In one that is not, the job starts with the default actions
// and with /dev/null.
//
// # Stops
//
// Ctrl-Z stops the job, and a job that stops stops us with the same signal, if
// a shell with job control is there to notice; otherwise we wait for it to be
// continued. So an editor that tidies the screen before it stops keeps the
// terminal until it has, and a job that ignores Ctrl-Z goes on. Known limit: a
// job continued by its own process id while we are stopped leaves us stopped.
//
// # Accounts
//
// Wait reaps every child of the calling process, so nothing else in the process
// may start children of its own while a job runs. Orphans of the job become our
// children (PR_SET_CHILD_SUBREAPER; those of process 1 do anyway) and their
// usage is added to the job's. Therefore a daemon's parent is perfagent, not
// process 1, until the job's main process ends and, for those adopted by then,
// until perfagent does. Daemons that outlive the main process are not waited for.
//
// On Linux all of this holds. Elsewhere the command is started and waited for
// in the plain way of package os: see the comments in other_unix.go and
// other_windows.go.
package job

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"time"
)

// Errors of Start, Exec and Resolve, for errors.Is. Each comes wrapped with the
// command's name and the kernel's reason.
var (
	// ErrNotFound: there is no such command, or the interpreter that its
	// first line names is missing. By convention exit code 127.
	ErrNotFound = errors.New("command not found")

	// ErrNotExecutable: the command exists and cannot be executed: no
	// permission, a directory, an unknown binary format, arguments too
	// long. By convention exit code 126.
	ErrNotExecutable = errors.New("command cannot be executed")

	// ErrNoProcess: the system has no process, memory or descriptor left
	// to make a child with. The caller may still become the job with Exec.
	ErrNoProcess = errors.New("cannot make a process")
)

// Command says what to run.
type Command struct {
	// Args is the command's name, looked up as execvp(3) does, and its
	// arguments. The job sees them unchanged, the name as its argv[0].
	Args []string

	// Env is added to the inherited environment, as "KEY=value". A key
	// that is there already is replaced where it stands.
	Env []string

	// Enter, if not nil, has the job begin inside a control group: it calls start, in which
	// the child is made, with a descriptor of the group for clone3(2), or -1 where the
	// calling thread has been moved instead. See cgroup.Made.
	Enter func(start func(fd int) error) error
}

// Status says how the job ended and what it used.
type Status struct {
	// Pid was the process id of the job's main process.
	Pid int

	// Start is the moment just before the process was made, End the moment
	// its end was seen. Both carry the monotonic clock.
	Start, End time.Time

	// ExitCode is the job's own code, 0 to 255, or 128+n after signal n.
	ExitCode int

	// Signal names the signal that killed the job ("SIGKILL"), Signo is its
	// number; "" and 0 when the job exited by itself.
	Signal string
	Signo  syscall.Signal

	// CoreDumped is true when the kernel wrote a core file of the job.
	CoreDumped bool

	// FromTerminal is true when the job was killed by SIGINT or SIGQUIT and
	// the terminal (Ctrl-C, Ctrl-\) sent that signal while the job ran. A
	// caller whose parent is a shell dies by the same signal (Reraise), so
	// that the shell stops its loop or script as it would without us.
	FromTerminal bool

	// Sent lists the signals that were sent to us to be relayed, oldest first: the
	// newest few of those that ask a process to end or to take note. What was sent to
	// the job alone is not in it. On Linux only.
	Sent []Sent

	// Usage is what the job used: its main process, every descendant that
	// was waited for, and the orphans that we reaped until the main
	// process ended. Daemons that go on running are not in it.
	Usage Usage

	// Orphans counts the descendants that outlived their parents and were
	// reaped by us.
	Orphans int

	// Err is nil, or says why the status is not known: somebody else in
	// this process waited for our child. ExitCode is then 255.
	Err error
}

// Sent is a signal that was sent to this process, and by whom (si_code and si_pid of
// sigaction(2)'s siginfo).
type Sent struct {
	Signal syscall.Signal
	Name   string    // "SIGTERM"
	At     time.Time // when it was noticed, about a millisecond after it was sent

	// Kernel is true when no process sent it, but the terminal (Ctrl-C), a timer or a
	// limit.
	Kernel bool

	// PID is the sender's process id, Process its name (/proc/PID/comm), "" when it had
	// ended by then. A sender outside of our process namespace has the id 0; where the
	// kernel does not tell, PID is -1.
	PID     int
	Process string
}

// Usage is the kernel's account, from the rusage of wait4(2).
type Usage struct {
	// UserSeconds and SystemSeconds of CPU, summed over all processes.
	UserSeconds, SystemSeconds float64

	// MaxRSS is the largest resident size in bytes that a single process
	// reached, not the sum over the tree.
	MaxRSS int64

	// MaxRSSFloor is the resident size in bytes that any job of ours is
	// charged at least: until it executes its program the child shares our
	// memory, and the kernel counts that. When MaxRSS <= MaxRSSFloor the
	// truth is "at most MaxRSS". 0 when there is no such effect.
	MaxRSSFloor int64

	// MinorFaults needed no disk, MajorFaults did.
	MinorFaults, MajorFaults int64

	// BlockInput and BlockOutput count what was read from and written to
	// block devices, in units of 512 bytes. Writes count when the page is
	// made dirty; reads that the page cache answered count nothing.
	BlockInput, BlockOutput int64

	// VoluntarySwitches: the job waited for something;
	// InvoluntarySwitches: the scheduler took the CPU away.
	VoluntarySwitches, InvoluntarySwitches int64
}

// plus adds the account of another process: sums, and the larger peak.
func (u Usage) plus(v Usage) Usage {
	u.UserSeconds += v.UserSeconds
	u.SystemSeconds += v.SystemSeconds
	u.MaxRSS = max(u.MaxRSS, v.MaxRSS)
	u.MaxRSSFloor = max(u.MaxRSSFloor, v.MaxRSSFloor)
	u.MinorFaults += v.MinorFaults
	u.MajorFaults += v.MajorFaults
	u.BlockInput += v.BlockInput
	u.BlockOutput += v.BlockOutput
	u.VoluntarySwitches += v.VoluntarySwitches
	u.InvoluntarySwitches += v.InvoluntarySwitches
	return u
}

// environ is the inherited environment with the command's own entries.
func (c Command) environ() []string {
	env := os.Environ()
next:
	for _, entry := range c.Env {
		key, _, _ := strings.Cut(entry, "=")
		for i, have := range env {
			if strings.HasPrefix(have, key+"=") {
				env[i] = entry
				continue next
			}
		}
		env = append(env, entry)
	}
	return env
}
