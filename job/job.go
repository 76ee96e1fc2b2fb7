package job

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/collector/process"
)

// Errors of Start, Exec and Resolve, for errors.Is. Each is wrapped with the command's name and the kernel's reason.
var (
	// ErrNotFound means that there is no such command, or that the interpreter named in its first line is missing. By
	// convention the exit code is 127.
	ErrNotFound = errors.New("command not found")

	// ErrNotExecutable means that the command exists but cannot be executed: no permission, a directory, an unknown
	// binary format, too many arguments. By convention the exit code is 126.
	ErrNotExecutable = errors.New("command cannot be executed")

	// ErrNoProcess means that the system has no process, memory or descriptor left for a child, or failed for a reason
	// that does not imply a missing or unusable command. The caller may still become the job with Exec.
	ErrNoProcess = errors.New("cannot create a process")
)

var errNoCommand = errors.New("no command given")

// A Command describes a program to run.
type Command struct {
	// Args holds the command's name, which is looked up as execvp(3) does, and its arguments. The job gets them
	// unchanged, with the name as its argv[0].
	Args []string

	// Path is the file that Resolve found for Args[0]. Start searches PATH only if Path is empty or can no longer be
	// executed.
	Path string

	// Environ is the environment that the job inherits; nil means the calling process's environment.
	Environ []string

	// Env holds additions to the inherited environment, as "KEY=value". An existing key is replaced in place.
	Env []string

	// FallbackEnviron, if not nil, is the environment for a second attempt after E2BIG, which means that the arguments,
	// Environ and Env together are too large.
	FallbackEnviron []string

	// Stdin, Stdout and Stderr are the job's standard streams. For a nil stream the job gets the calling process's
	// descriptor 0, 1 or 2; for an *os.File it gets that file's descriptor. For any other reader or writer Start makes
	// a pipe and a goroutine that copies, and Wait returns only when the copying is done, as in os/exec. The goroutine
	// of Stdin ends at the end of Stdin or when the job no longer reads. The goroutines of Stdout and Stderr end when
	// every process that holds the pipe has closed it. If Stdout and Stderr are equal, at most one goroutine at a time
	// calls Write.
	//
	// Exec does not use them.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// EnterCgroup, if not nil, starts the job inside a control group. It calls start, which makes the child. The
	// argument of start is a descriptor of the group for clone3(2), or -1 if EnterCgroup has moved the calling thread
	// into the group instead. See cgroup.JobGroup.
	EnterCgroup func(start func(fd int) error) error
}

// A Status describes how a job ended and what it used.
type Status struct {
	// PID is the process ID of the job's main process.
	PID int

	// Start is the time just before the process was made, End the time when its end was noticed. Start and End have
	// monotonic clock readings.
	Start, End time.Time

	// ExitCode is the job's exit code, 0 to 255, or 128+n after signal n.
	ExitCode int

	// Signal is the name of the signal that killed the job ("SIGKILL") and Signo its number; "" and 0 if the job exited
	// by itself.
	Signal string
	Signo  syscall.Signal

	// CoreDumped reports whether the kernel wrote a core file of the job.
	CoreDumped bool

	// FromTerminal reports whether SIGINT or SIGQUIT killed the job and the terminal (Ctrl-C, Ctrl-\) sent that signal
	// while the job ran. A wrapper with a shell as parent then dies by the same signal (Reraise), so that the shell
	// stops its loop or script as it would without the wrapper.
	FromTerminal bool

	// ReceivedSignals lists the newest signals that this process received for relaying, oldest first. Signals that end
	// no process (WINCH, CONT, TSTP) and signals sent only to the job are not listed. Linux only.
	ReceivedSignals []process.Signal

	// Usage is the usage of the job: its main process, every descendant that was waited for, and the orphans reaped
	// before the main process ended. Daemons that are still running are not included.
	Usage Usage

	// Orphans is the number of descendants that outlived their parents and were reaped by this process.
	Orphans int

	// Uncounted is nil, or the reason why Usage lacks the usage of orphans.
	Uncounted error

	// CopyErr is nil, or the first error from copying Stdin, Stdout or Stderr.
	CopyErr error

	// Err is nil, or the reason why the status is unknown: other code in this process waited for the job. ExitCode is
	// then 255.
	Err error
}

// Usage holds the resources that a job used, from the rusage of wait4(2).
type Usage struct {
	// UserSeconds and SystemSeconds are CPU times, summed over all processes.
	UserSeconds, SystemSeconds float64

	// MaxRSS is the largest resident size in bytes of a single process, not the sum over the tree.
	MaxRSS int64

	// MaxRSSFloor is the smallest resident size in bytes that the kernel reports for any job of this process. Until a
	// child executes its program, it shares its parent's memory, which the kernel counts as the child's. If MaxRSS <=
	// MaxRSSFloor, the job's own peak is only known to be at most MaxRSS. MaxRSSFloor is 0 if there is no such effect.
	MaxRSSFloor int64

	// MinorFaults counts page faults without disk access, MajorFaults those with disk access.
	MinorFaults, MajorFaults int64

	// BlockInput and BlockOutput count reads from and writes to block devices in units of 512 bytes. A write is counted
	// when it dirties its page. A read from the page cache is not counted.
	BlockInput, BlockOutput int64

	// VoluntarySwitches counts how often the job waited, InvoluntarySwitches how often the scheduler took a CPU from
	// it.
	VoluntarySwitches, InvoluntarySwitches int64
}

// Plus returns the sum of u and v, except that MaxRSS and MaxRSSFloor are the larger of the two values.
func (u Usage) Plus(v Usage) Usage {
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

// withEnviron calls execute with the command's environment and, after E2BIG, with FallbackEnviron. fallback reports
// whether err is from the second call. The errors of execute are errnos.
func (c Command) withEnviron(execute func(env []string) error) (fallback bool, err error) {
	err = execute(c.environ())
	if c.FallbackEnviron == nil || !errors.Is(err, syscall.E2BIG) {
		return false, err
	}
	return true, execute(c.FallbackEnviron)
}

// environ returns the inherited environment with the command's additions.
func (c Command) environ() []string {
	env := slices.Clone(c.Environ)
	if c.Environ == nil {
		env = os.Environ()
	}

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
