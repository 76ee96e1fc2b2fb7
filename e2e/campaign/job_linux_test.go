//go:build e2e

package campaign

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// A job is a job of the campaign: its behavior, and the directory with its story.
type job struct {
	dir                  string
	cpu, kib, sleep, end int // milliseconds, KiB, milliseconds, exit code
}

// program returns the path of the job's program.
func program(t testing.TB) string {
	t.Helper()
	source := testenv.Repository(t, "e2e/campaign/testdata/job")
	return clitest.BuildOnce(t, "campaign-job", func(path string) *exec.Cmd {
		cmd := exec.Command("go", "build", "-o", path, ".")
		cmd.Dir = source
		return cmd
	})
}

// words returns the command line of the job.
func (j job) words(t testing.TB) []string {
	t.Helper()
	return []string{program(t), j.dir, strconv.Itoa(j.cpu), strconv.Itoa(j.kib), strconv.Itoa(j.sleep), strconv.Itoa(j.end)}
}

// A story is a job's own record of its run. The zero value means that the job never began.
type story struct {
	begun, ended int // number of lines at the beginning and at the end
	signals      int
	pid          int
	begin, end   time.Time
	cpu          time.Duration
	blocks       int64 // number of blocks of 512 bytes that it wrote
	code         int   // the exit code, recorded just before the exit
}

// story returns the job's record so far.
func (j job) story(t testing.TB) (s story) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(j.dir, "log"))
	if errors.Is(err, os.ErrNotExist) {
		return s
	} else if err != nil {
		t.Fatal(err)
	}

	for line := range strings.Lines(string(data)) {
		var at int64
		var err error
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "begin":
			s.begun++
			_, err = fmt.Sscan(rest, &at, &s.pid)
			s.begin = time.Unix(0, at)
		case "end":
			s.ended++
			_, err = fmt.Sscan(rest, &at, &s.cpu, &s.blocks, &s.code)
			s.end = time.Unix(0, at)
		default:
			s.signals++
		}
		if err != nil {
			t.Errorf("parsing the job's line %q: %v", line, err)
		}
	}
	return s
}

// A process is a process of a trial in a new process group, with all output from it and its descendants.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer

	// statuses holds the wait statuses, by process ID, of processes in the group that became orphans when their parent
	// was killed.
	statuses map[int]unix.WaitStatus
}

// adopt makes this process the reaper of orphans among its descendants, so that it gets their exit codes.
var adopt = sync.OnceValue(func() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })

// patience is the time limit of a trial. The job takes less than a second.
const patience = 2 * time.Minute

// launch starts a prepared command.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: cmd, statuses: make(map[int]unix.WaitStatus)}
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// wait waits until the process, and all processes that share its output, have ended. It returns the exit code.
func (p *process) wait(t testing.TB) int {
	t.Helper()
	return p.waitFor(t, patience)
}

// waitFor is like wait, with a time limit.
func (p *process) waitFor(t testing.TB, longest time.Duration) int {
	t.Helper()
	slow := time.AfterFunc(longest, func() {
		t.Errorf("%v: still running after %v", p.Args, longest)
		p.killGroup(t)
	})
	defer slow.Stop()
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
	for deadline := time.Now().Add(clitest.Longest); ; time.Sleep(time.Millisecond) {
		var status unix.WaitStatus
		switch pid, err := unix.Wait4(-p.Process.Pid, &status, unix.WNOHANG, nil); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return p.ProcessState.ExitCode()
		case pid > 0:
			p.statuses[pid] = status
		case time.Now().After(deadline):
			t.Errorf("a process of %v is still running", p.Args)
			return p.ProcessState.ExitCode()
		}
	}
}

// kill kills the process. The process must not have been waited for.
func (p *process) kill(t testing.TB) {
	t.Helper()
	if err := unix.Kill(p.Process.Pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// killGroup kills the process and its group.
func (p *process) killGroup(t testing.TB) {
	t.Helper()
	if err := unix.Kill(-p.Process.Pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// killJob kills a process of the group. It reports whether the process existed.
func (p *process) killJob(pid int) bool {
	if pid <= 0 {
		return false
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// The ID may have been reused, but the descriptor always refers to the same process.
	if group, err := unix.Getpgid(pid); err != nil || group != p.Process.Pid {
		return false
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}
