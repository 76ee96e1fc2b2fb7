//go:build linux && (amd64 || arm64)

package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/procfile"
)

// library starts a job in this process, as a library does.
func library(t *testing.T, c Command) *Job {
	t.Helper()
	return check.Value(Start(c, nil))(t)
}

// shellCommand runs a script with its output to out.
func shellCommand(out io.Writer, script string, args ...string) Command {
	return Command{Args: append([]string{"sh", "-c", script, "sh"}, args...), Stdout: out}
}

// A program that runs both jobs and other children gets every exit code right: neither package reaps the other's
// children.
func TestStart_DoesNotReapChildrenOfOsExec(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			code, text := i%7, fmt.Sprintf("child %d", i)
			cmd := exec.Command("sh", "-c", `echo "$1"; exit $2`, "sh", text, fmt.Sprint(code))
			var out bytes.Buffer
			cmd.Stdout = &out
			err := cmd.Run()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code || out.String() != text+"\n" {
				t.Errorf("%s: %v, output %q; want exit code %d and its name", text, err, &out, code)
			}
		})
	}

	for i := range 3 {
		all.Go(func() {
			for round := range 10 {
				code, text := 10*i+round, fmt.Sprintf("job %d.%d", i, round)
				var out bytes.Buffer
				st := library(t, shellCommand(&out, `(exit 1); echo "$1"; exit $2`, text, fmt.Sprint(code))).Wait()
				if st.ExitCode != code || st.Err != nil || st.CopyErr != nil || out.String() != text+"\n" {
					t.Errorf("%s: status %+v, output %q; want exit code %d and its name", text, st, &out, code)
				}
			}
		})
	}
	all.Wait()
}

// takeover is the state that taking a process over changes.
type takeover struct {
	caught, ignored string // SigCgt and SigIgn
	subreaper       int32
}

func takenOver(t *testing.T) takeover {
	t.Helper()
	status := check.Value(os.ReadFile("/proc/self/status"))(t)
	var on int32
	check.Must(t, unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0))
	return takeover{procfile.StatusValue(status, "SigCgt"), procfile.StatusValue(status, "SigIgn"), on}
}

// A job of a library changes nothing in the process: no signal handlers, no subreaper, and its orphans do not become
// this process's children.
func TestStart_LeavesProcessStateUnchanged(t *testing.T) {
	r, w := io.Pipe()
	before := takenOver(t)
	in, hold := clitest.Pipe(t)
	c := shellCommand(w, `sh -c 'sleep 600 >/dev/null & echo $!'; echo orphaned; read x; exit 3`)
	c.Stdin = in
	j := library(t, c)
	defer r.Close()

	var orphan int
	if _, err := fmt.Fscan(r, &orphan); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Kill(orphan, unix.SIGKILL) }()
	var word string
	if _, err := fmt.Fscan(r, &word); err != nil || word != "orphaned" {
		t.Fatalf("second word of the job: %q, error %v; want \"orphaned\"", word, err)
	}
	if during := takenOver(t); during != before || parentOf(orphan) == os.Getpid() {
		t.Errorf("process state before %+v, during the job %+v, want no change; parent of the orphan %d, want not %d",
			before, during, parentOf(orphan), os.Getpid())
	}
	if j.ReapedUsage() != (Usage{}) || j.AllEnded() || j.IsForeign(j.PID()) || !j.IsForeign(orphan) {
		t.Errorf("while the job runs: ReapedUsage %+v, AllEnded %v, IsForeign of job %v and orphan %v; want 0, false, false, true",
			j.ReapedUsage(), j.AllEnded(), j.IsForeign(j.PID()), j.IsForeign(orphan))
	}

	j.Release() // only for a process that was taken over
	if _, err := in.Stat(); err != nil {
		t.Error(err)
	}
	hold.Close()
	st := j.Wait()
	if after := takenOver(t); after != before {
		t.Errorf("process state before %+v, after the job %+v, want no change", before, after)
	}
	if st.ExitCode != 3 || st.Orphans != 0 || st.ReceivedSignals != nil || st.FromTerminal || st.Err != nil || st.Uncounted == nil {
		t.Errorf("status %+v, want exit code 3, Uncounted set, no orphans and no signals", st)
	}
	if u := j.ReapedUsage(); u.MaxRSS == 0 || u.MaxRSS != st.Usage.MaxRSS || st.Usage.MaxRSSFloor == 0 {
		t.Errorf("ReapedUsage %+v, want the MaxRSS of the status %+v, which must have a floor", u, st.Usage)
	}
}

// Usage covers only the job, whatever other children use.
func TestStart_CountsOnlyItsJob(t *testing.T) {
	t.Parallel()
	const burn = "i=0; while [ $i -lt %d ]; do i=$((i+1)); done"
	busy := exec.Command("sh", "-c", fmt.Sprintf(burn, 200000))
	check.Must(t, busy.Start())
	j := library(t, shellCommand(nil, `sh -c '`+fmt.Sprintf(burn, 20000)+`'; exit 0`))
	st := j.Wait()
	check.Must(t, busy.Wait())
	other := busy.ProcessState.UserTime().Seconds() + busy.ProcessState.SystemTime().Seconds()
	if used := st.Usage.UserSeconds + st.Usage.SystemSeconds; used <= 0 || used > other/2 {
		t.Errorf("the job used %v s, want more than 0 and at most half of the other child's %v s", used, other)
	}
}

// A signal sent while the job ends reaches the job or no process; -race checks the lock.
func TestJob_SignalDuringEndReachesNoOtherProcess(t *testing.T) {
	t.Parallel()
	for range 50 {
		j := library(t, shellCommand(nil, "trap '' TERM; exit 6"))
		over := make(chan error)
		go func() {
			var err error
			for err == nil {
				err = j.Signal(syscall.SIGTERM)
			}
			over <- err
		}()
		st := j.Wait()
		if err := <-over; !errors.Is(err, os.ErrProcessDone) || st.ExitCode != 6 && st.Signal != "SIGTERM" {
			t.Errorf("Signal: %v, want %v; status %+v, want exit code 6 or SIGTERM", err, os.ErrProcessDone, st)
		}
	}
}

// Wait waits for a stopped job, and this process does not stop.
func TestJob_WaitWaitsForStoppedJob(t *testing.T) {
	t.Parallel()
	j := library(t, shellCommand(nil, "kill -STOP $$; exit 4"))
	clitest.WaitUntil(t, "the job stops", func() bool { return clitest.ProcessState(j.PID()) == "T" })
	ended := make(chan Status, 1)
	go func() { ended <- j.Wait() }()
	select {
	case st := <-ended:
		t.Fatalf("Wait returned %+v for a stopped job, want it to wait", st)
	case <-time.After(50 * time.Millisecond):
	}
	if err := j.Signal(syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	if st := <-ended; st.ExitCode != 4 {
		t.Errorf("status %+v, want exit code 4", st)
	}
}

// If other code in the process reaps the job, Err is set, and no process is signalled.
func TestJob_WaitReportsJobReapedByOtherCode(t *testing.T) {
	t.Parallel()
	j := library(t, shellCommand(nil, "exit 3"))
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(j.PID(), &ws, 0, nil); err != nil || ws.ExitStatus() != 3 {
		t.Fatalf("wait4: status %v, error %v; want exit code 3", ws, err)
	}
	if st := j.Wait(); !errors.Is(st.Err, syscall.ECHILD) || st.ExitCode != 255 {
		t.Errorf("status %+v, want Err %v and exit code 255", st, syscall.ECHILD)
	}
	if err := j.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Signal: %v, want %v", err, os.ErrProcessDone)
	}
}

// A library waits for its helpers itself.
func TestJob_WithoutSignalsCallerWaitsForHelper(t *testing.T) {
	t.Parallel()
	j := library(t, shellCommand(nil, "exec sleep 600"))
	helper := exec.Command("sh", "-c", "exit 5")
	err := j.StartHelper(func() (int, error) {
		err := helper.Start()
		return helper.Process.Pid, err
	})
	if err != nil || !j.IsForeign(helper.Process.Pid) {
		t.Errorf("StartHelper: error %v, IsForeign(helper) %v; want nil, true", err, j.IsForeign(helper.Process.Pid))
	}
	j.ReapHelpers()
	if _ = helper.Wait(); helper.ProcessState.ExitCode() != 5 {
		t.Errorf("the helper ended with %v, want exit code 5", helper.ProcessState)
	}
	_ = j.Signal(syscall.SIGKILL)
	j.Wait()
}

func TestCommand_CopiesStreams(t *testing.T) {
	t.Parallel()
	var out, stderr bytes.Buffer
	in := strings.Repeat("0123456789abcdef", 1<<14)
	c := shellCommand(&out, "cat; echo trouble >&2; exit 2")
	c.Stdin, c.Stderr = strings.NewReader(in), &stderr
	st := library(t, c).Wait()
	if st.ExitCode != 2 || st.CopyErr != nil || out.String() != in || stderr.String() != "trouble\n" {
		t.Errorf("status %+v, %d bytes on stdout, stderr %q; want exit code 2, the input of %d bytes, \"trouble\"",
			st, out.Len(), &stderr, len(in))
	}
}

// Done is closed at the job's end, while Wait waits for a descendant that holds the output.
func TestJob_DoneClosesBeforeOutputIsCopied(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	in, hold := clitest.Pipe(t)
	c := shellCommand(w, "exec 3<&0; cat <&3 & exit 3") // the shell would give cat & /dev/null as its stdin
	c.Stdin = in
	j := library(t, c)
	ended := make(chan Status, 1)
	go func() { ended <- j.Wait() }()

	<-j.Done()
	select {
	case st := <-ended:
		t.Errorf("Wait returned %+v, want it to wait until the output is copied", st)
	default:
	}

	go func() { _, _ = io.Copy(io.Discard, r) }()
	hold.Close()
	if st := <-ended; st.ExitCode != 3 || st.CopyErr != nil {
		t.Errorf("status %+v, want exit code 3 and no CopyErr", st)
	}
}

// One writer for both streams gets both in order, through one pipe.
func TestCommand_OneWriterGetsBothStreamsInOrder(t *testing.T) {
	t.Parallel()
	var both bytes.Buffer
	c := shellCommand(&both, "for i in 1 2 3; do echo out$i; echo err$i >&2; done")
	c.Stderr = &both
	if st := library(t, c).Wait(); st.ExitCode != 0 || both.String() != "out1\nerr1\nout2\nerr2\nout3\nerr3\n" {
		t.Errorf("status %+v, output %q; want exit code 0, and three pairs of out and err in order", st, &both)
	}
}

// uncomparable is a writer of a type that cannot be compared.
type uncomparable []func([]byte)

func (u uncomparable) Write(p []byte) (int, error) {
	u[0](p)
	return len(p), nil
}

func TestCommand_AcceptsUncomparableWriters(t *testing.T) {
	t.Parallel()
	var out, stderr bytes.Buffer
	c := shellCommand(uncomparable{func(p []byte) { out.Write(p) }}, "echo out; echo err >&2")
	c.Stderr = uncomparable{func(p []byte) { stderr.Write(p) }}
	if st := library(t, c).Wait(); st.ExitCode != 0 || out.String() != "out\n" || stderr.String() != "err\n" {
		t.Errorf("status %+v, stdout %q, stderr %q; want exit code 0, out, err", st, &out, &stderr)
	}
}

// The job gets a file's own descriptor, not a pipe.
func TestCommand_PassesOnFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	out, null := check.Value(os.Create(path))(t), check.Value(os.Open(os.DevNull))(t)
	defer out.Close()
	defer null.Close()
	c := shellCommand(out, "readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2")
	c.Stdin, c.Stderr = null, out
	st := library(t, c).Wait()
	text, want := clitest.Read(t, path), "/dev/null\n"+path+"\n"+path+"\n"
	if st.ExitCode != 0 || text != want {
		t.Errorf("status %+v, files of the job %q; want exit code 0 and %q", st, text, want)
	}
}

// A job does not inherit this process's private descriptors, nor the pipe ends of other jobs, so a job that reads its
// input to the end is not kept waiting.
func TestCommand_JobInheritsNoPrivateDescriptors(t *testing.T) {
	t.Parallel()
	file := check.Value(os.Open("/proc/self/maps"))(t)
	defer file.Close()
	r, w := io.Pipe()
	cat := library(t, Command{Args: []string{"cat"}, Stdin: r, Stdout: io.Discard})
	var out bytes.Buffer
	second := library(t, shellCommand(&out, "ls -l /proc/$$/fd; exec sleep 600"))
	defer func() {
		_ = second.Signal(syscall.SIGKILL)
		second.Wait()
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "/maps") {
				t.Errorf("the job inherited a private descriptor: %s", line)
			}
		}
	}()

	w.Close()
	if st := cat.Wait(); st.ExitCode != 0 || st.CopyErr != nil {
		t.Errorf("status of cat %+v, want exit code 0 and no CopyErr", st)
	}
}

// failing is a stream that fails.
type failing struct{ err error }

func (f failing) Read(p []byte) (int, error)  { return 0, f.err }
func (f failing) Write(p []byte) (int, error) { return 0, f.err }

func TestStatus_CopyErrHoldsStreamError(t *testing.T) {
	t.Parallel()
	trouble := errors.New("trouble")
	c := shellCommand(nil, "cat; exit 3")
	c.Stdin = failing{trouble}
	if st := library(t, c).Wait(); st.ExitCode != 3 || !errors.Is(st.CopyErr, trouble) || st.Err != nil {
		t.Errorf("failing reader: status %+v, want exit code 3 and CopyErr %v", st, trouble)
	}
	// A job gets SIGPIPE if its output cannot be delivered, as without us.
	st := library(t, shellCommand(failing{trouble}, "exec yes")).Wait()
	if st.Signal != "SIGPIPE" || !errors.Is(st.CopyErr, trouble) {
		t.Errorf("failing writer: status %+v, want SIGPIPE and CopyErr %v", st, trouble)
	}
	// A job need not read all of its input.
	c = shellCommand(nil, "exit 3")
	c.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
	if st := library(t, c).Wait(); st.ExitCode != 3 || st.CopyErr != nil {
		t.Errorf("unread input: status %+v, want exit code 3 and no CopyErr", st)
	}
}

// If our variables make the environment too large for the kernel, the command starts without them.
func TestCommand_FallbackEnvironIsUsedAfterE2BIG(t *testing.T) {
	large := "LARGE=" + strings.Repeat("x", 128<<10) // more than the kernel's limit for one string
	var out strings.Builder
	c := shellCommand(&out, `echo "$OWN ${LARGE:-none}"`)
	c.Env = []string{large}
	if _, err := Start(c, nil); !errors.Is(err, ErrNotExecutable) || !errors.Is(err, syscall.E2BIG) {
		t.Errorf("without FallbackEnviron: %v, want ErrNotExecutable and E2BIG", err)
	}

	c.FallbackEnviron = []string{"OWN=kept", "PATH=" + os.Getenv("PATH")}
	j := library(t, c)
	if st := j.Wait(); st.ExitCode != 0 || out.String() != "kept none\n" || !j.UsesFallbackEnviron() {
		t.Errorf("exit code %d, output %q, UsesFallbackEnviron %t; want 0, \"kept none\", true",
			st.ExitCode, &out, j.UsesFallbackEnviron())
	}

	c.Env = nil
	if j := library(t, c); j.Wait().ExitCode != 0 || j.UsesFallbackEnviron() {
		t.Errorf("an environment that fits: UsesFallbackEnviron %t, want false and exit code 0", j.UsesFallbackEnviron())
	}
}

// A command that cannot be started leaves no pipe and no goroutine behind.
func TestStart_FailureLeavesNoDescriptor(t *testing.T) {
	open := func() int { return len(check.Value(os.ReadDir("/proc/self/fd"))(t)) }
	before := open()
	for range 20 {
		c := Command{Args: []string{"/no/such/command"}}
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader("x"), io.Discard, &bytes.Buffer{}
		if _, err := Start(c, nil); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors after 20 failed starts, want at most %d as before", after, before)
	}
}

// Only one job at a time can use the signals of a process.
func TestStart_RefusesSecondJobWithSameSignals(t *testing.T) {
	s := &Signals{jobState: jobRunning}
	if _, err := Start(Command{Args: []string{"true"}}, s); err == nil {
		t.Error("Start started a second job with the same Signals, want an error")
	}
}

// Path is executed without a search. If it cannot be executed, Args[0] is searched for.
func TestCommand_PathAvoidsSearch(t *testing.T) {
	dir := t.TempDir()
	clitest.Write(t, dir+"/here", "#!/bin/sh\nexit 8", 0o755)
	clitest.Write(t, dir+"/data", "#!/bin/sh\nexit 9", 0o644)
	clitest.Write(t, dir+"/script", "exit $1", 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, c := range []struct {
		path string
		args []string
		code int
	}{
		{dir + "/here", []string{"no-such-name"}, 8}, {dir + "/gone", []string{"here"}, 8}, {dir + "/data", []string{"here"}, 8},
		{dir, []string{"here"}, 8}, {dir + "/script", []string{"script", "6"}, 6},
	} {
		if st := library(t, Command{Path: c.path, Args: c.args}).Wait(); st.ExitCode != c.code {
			t.Errorf("%s: exit code %d, want %d", c.path, st.ExitCode, c.code)
		}
	}
	_, err := Start(Command{Path: dir + "/gone", Args: []string{"no-such-name"}}, nil)
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("Path and name do not exist: error %v, want %v", err, ErrNotFound)
	}
}
