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
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// library starts a job in this process, as a library does.
func library(t *testing.T, c Command) *Job {
	t.Helper()
	j, err := Start(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// shellCommand runs a script with its output to out.
func shellCommand(out io.Writer, script string, args ...string) Command {
	return Command{Args: append([]string{"sh", "-c", script, "sh"}, args...), Stdout: out}
}

// A program that runs both jobs and other children gets every exit code right: neither side reaps the other's.
func TestStart_BesideOsExec(t *testing.T) {
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
				t.Errorf("%s: %v, output %q, want code %d", text, err, &out, code)
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
					t.Errorf("%s: %+v, output %q, want code %d", text, st, &out, code)
				}
			}
		})
	}
	all.Wait()
}

// takeover is the state that taking a process over changes.
type takeover struct {
	caught, ignored string // SigCgt and SigIgn
	subreaper       bool
}

func takenOver(t *testing.T) takeover {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	on, err := subreaper()
	if err != nil {
		t.Fatal(err)
	}
	return takeover{procfile.StatusValue(status, "SigCgt"), procfile.StatusValue(status, "SigIgn"), on}
}

// A job of a library changes nothing of the process: no signal handlers, no subreaper, and its orphans do not become
// this process's children.
func TestStart_TakesNothingOver(t *testing.T) {
	r, w := io.Pipe()
	before := takenOver(t)
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	c := shellCommand(w, `sh -c 'sleep 60 >/dev/null & echo $!'; echo orphaned; read x; exit 3`)
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
		t.Fatalf("%q, %v", word, err)
	}
	if during := takenOver(t); during != before || parentOf(orphan) == os.Getpid() {
		t.Errorf("before %+v, during the job %+v; the orphan's parent is %d", before, during, parentOf(orphan))
	}
	if j.ReapedUsage() != (Usage{}) || j.AllEnded() || j.IsForeign(j.PID()) || !j.IsForeign(orphan) {
		t.Errorf("before its end: reaped %+v, over %v", j.ReapedUsage(), j.AllEnded())
	}

	j.Release() // only for a process that was taken over
	if _, err := in.Stat(); err != nil {
		t.Error(err)
	}
	hold.Close()
	st := j.Wait()
	if after := takenOver(t); after != before {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if st.ExitCode != 3 || st.Orphans != 0 || st.ReceivedSignals != nil || st.FromTerminal || st.Err != nil || st.Uncounted == nil {
		t.Errorf("status %+v", st)
	}
	if u := j.ReapedUsage(); u.MaxRSS == 0 || u.MaxRSS != st.Usage.MaxRSS || st.Usage.MaxRSSFloor == 0 {
		t.Errorf("reaped %+v, status %+v", u, st.Usage)
	}
}

// The account contains only the job, regardless of other children.
func TestStart_CountsItsJobAlone(t *testing.T) {
	t.Parallel()
	const burn = "i=0; while [ $i -lt %d ]; do i=$((i+1)); done"
	busy := exec.Command("sh", "-c", fmt.Sprintf(burn, 200000))
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	j := library(t, shellCommand(nil, `sh -c '`+fmt.Sprintf(burn, 20000)+`'; exit 0`))
	st := j.Wait()
	if err := busy.Wait(); err != nil {
		t.Fatal(err)
	}
	other := busy.ProcessState.UserTime().Seconds() + busy.ProcessState.SystemTime().Seconds()
	if used := st.Usage.UserSeconds + st.Usage.SystemSeconds; used <= 0 || used > other/2 {
		t.Errorf("the job used %v s, the other child %v s", used, other)
	}
}

func TestJob_Signal(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		j := library(t, shellCommand(nil, "exec sleep 60"))
		if err := j.Signal(sig); err != nil {
			t.Error(err)
		}
		if st := j.Wait(); st.Signal != name || st.ExitCode != 128+int(sig) {
			t.Errorf("%s: status %+v", name, st)
		}
		if err := j.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
}

// A signal sent while the job ends reaches it or no process; -race checks the lock.
func TestJob_SignalWhileItEnds(t *testing.T) {
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
			t.Errorf("%v, status %+v", err, st)
		}
	}
}

// Wait waits for a stopped job, and this process does not stop.
func TestJob_StoppedOneIsWaitedFor(t *testing.T) {
	t.Parallel()
	j := library(t, shellCommand(nil, "kill -STOP $$; exit 4"))
	until(t, "the job stops", func() bool { return state(j.PID()) == "T" })
	ended := make(chan Status, 1)
	go func() { ended <- j.Wait() }()
	select {
	case st := <-ended:
		t.Fatalf("a stopped job has ended: %+v", st)
	case <-time.After(50 * time.Millisecond):
	}
	if err := j.Signal(syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	if st := <-ended; st.ExitCode != 4 {
		t.Errorf("status %+v", st)
	}
}

// If other code in the process reaps the job, Err is set, and no process is signalled.
func TestJob_ReapedBySomebodyElse(t *testing.T) {
	t.Parallel()
	j := library(t, shellCommand(nil, "exit 3"))
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(j.PID(), &ws, 0, nil); err != nil || ws.ExitStatus() != 3 {
		t.Fatalf("%v, %v", ws, err)
	}
	if st := j.Wait(); !errors.Is(st.Err, syscall.ECHILD) || st.ExitCode != 255 {
		t.Errorf("status %+v", st)
	}
	if err := j.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

// A library waits for its helpers itself.
func TestJob_HelperOfALibrary(t *testing.T) {
	t.Parallel()
	j := library(t, shellCommand(nil, "exec sleep 60"))
	helper := exec.Command("sh", "-c", "exit 5")
	err := j.StartHelper(func() (int, error) {
		err := helper.Start()
		return helper.Process.Pid, err
	})
	if err != nil || !j.IsForeign(helper.Process.Pid) {
		t.Errorf("%v", err)
	}
	j.ReapHelpers()
	if _ = helper.Wait(); helper.ProcessState.ExitCode() != 5 {
		t.Errorf("the helper ended with %v", helper.ProcessState)
	}
	_ = j.Signal(syscall.SIGKILL)
	j.Wait()
}

func TestCommand_Streams(t *testing.T) {
	t.Parallel()
	var out, stderr bytes.Buffer
	in := strings.Repeat("0123456789abcdef", 1<<14)
	c := shellCommand(&out, "cat; echo trouble >&2; exit 2")
	c.Stdin, c.Stderr = strings.NewReader(in), &stderr
	st := library(t, c).Wait()
	if st.ExitCode != 2 || st.CopyErr != nil || out.String() != in || stderr.String() != "trouble\n" {
		t.Errorf("status %+v, %d bytes, stderr %q", st, out.Len(), &stderr)
	}
}

// Done is closed at the job's end, while Wait waits for a descendant that holds the output.
func TestJob_DoneBeforeTheOutputIsClosed(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	c := shellCommand(w, "exec 3<&0; cat <&3 & exit 3") // the shell would give cat & /dev/null as its stdin
	c.Stdin = in
	j := library(t, c)
	ended := make(chan Status, 1)
	go func() { ended <- j.Wait() }()

	<-j.Done()
	select {
	case st := <-ended:
		t.Errorf("Wait has returned: %+v", st)
	default:
	}

	go func() { _, _ = io.Copy(io.Discard, r) }()
	hold.Close()
	if st := <-ended; st.ExitCode != 3 || st.CopyErr != nil {
		t.Errorf("status %+v", st)
	}
}

// One writer for both streams gets both in order, through one pipe.
func TestCommand_OneWriterForBoth(t *testing.T) {
	t.Parallel()
	var both bytes.Buffer
	c := shellCommand(&both, "for i in 1 2 3; do echo out$i; echo err$i >&2; done")
	c.Stderr = &both
	if st := library(t, c).Wait(); st.ExitCode != 0 || both.String() != "out1\nerr1\nout2\nerr2\nout3\nerr3\n" {
		t.Errorf("status %+v, output %q", st, &both)
	}
}

// uncomparable is a writer of a type that cannot be compared.
type uncomparable []func([]byte)

func (u uncomparable) Write(p []byte) (int, error) {
	u[0](p)
	return len(p), nil
}

func TestCommand_UncomparableWriters(t *testing.T) {
	t.Parallel()
	var out, stderr bytes.Buffer
	c := shellCommand(uncomparable{func(p []byte) { out.Write(p) }}, "echo out; echo err >&2")
	c.Stderr = uncomparable{func(p []byte) { stderr.Write(p) }}
	if st := library(t, c).Wait(); st.ExitCode != 0 || out.String() != "out\n" || stderr.String() != "err\n" {
		t.Errorf("status %+v, %q, %q", st, &out, &stderr)
	}
}

// The descriptor of a file is passed on, without a pipe.
func TestCommand_FilesArePassedOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c := shellCommand(out, "readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2")
	c.Stdin, c.Stderr = null, out
	st := library(t, c).Wait()
	text, err := os.ReadFile(path)
	if want := "/dev/null\n" + path + "\n" + path + "\n"; err != nil || st.ExitCode != 0 || string(text) != want {
		t.Errorf("status %+v, %q, %v", st, text, err)
	}
}

// A job does not inherit this process's private descriptors, nor the pipe ends of other jobs: a job that reads to the
// end of its input sees that end.
func TestCommand_NothingElseIsInherited(t *testing.T) {
	t.Parallel()
	file, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, w := io.Pipe()
	first := Command{Args: []string{"cat"}, Stdin: r, Stdout: io.Discard}
	cat := library(t, first)
	var out bytes.Buffer
	second := library(t, shellCommand(&out, "ls -l /proc/$$/fd; exec sleep 60"))
	defer func() {
		_ = second.Signal(syscall.SIGKILL)
		second.Wait()
		for line := range strings.Lines(out.String()) {
			if f := strings.Fields(line); slices.Contains(f, "/proc/self/maps") || strings.Contains(line, "/maps") {
				t.Errorf("inherited: %s", line)
			}
		}
	}()

	w.Close()
	if st := cat.Wait(); st.ExitCode != 0 || st.CopyErr != nil {
		t.Errorf("status %+v", st)
	}
}

// failing is a stream that fails.
type failing struct{ err error }

func (f failing) Read(p []byte) (int, error)  { return 0, f.err }
func (f failing) Write(p []byte) (int, error) { return 0, f.err }

func TestStatus_CopyErr(t *testing.T) {
	t.Parallel()
	trouble := errors.New("trouble")
	c := shellCommand(nil, "cat; exit 3")
	c.Stdin = failing{trouble}
	if st := library(t, c).Wait(); st.ExitCode != 3 || !errors.Is(st.CopyErr, trouble) || st.Err != nil {
		t.Errorf("reader: %+v", st)
	}
	// A job gets SIGPIPE if its output cannot be delivered, as without us.
	st := library(t, shellCommand(failing{trouble}, "exec yes")).Wait()
	if st.Signal != "SIGPIPE" || !errors.Is(st.CopyErr, trouble) {
		t.Errorf("writer: %+v", st)
	}
	// A job need not read all of its input.
	c = shellCommand(nil, "exit 3")
	c.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
	if st := library(t, c).Wait(); st.ExitCode != 3 || st.CopyErr != nil {
		t.Errorf("unread: %+v", st)
	}
}

// If our variables make the environment too large for the kernel, the command starts without them.
func TestCommand_FallbackEnviron(t *testing.T) {
	large := "LARGE=" + strings.Repeat("x", 128<<10) // more than the kernel's limit for one string
	var out strings.Builder
	c := shellCommand(&out, `echo "$OWN ${LARGE:-none}"`)
	c.Env = []string{large}
	if _, err := Start(c, nil); !errors.Is(err, ErrNotExecutable) || !errors.Is(err, syscall.E2BIG) {
		t.Errorf("without a plain environment: %v", err)
	}

	c.FallbackEnviron = []string{"OWN=kept", "PATH=" + os.Getenv("PATH")}
	j := library(t, c)
	if st := j.Wait(); st.ExitCode != 0 || out.String() != "kept none\n" || !j.UsesFallbackEnviron() {
		t.Errorf("exit code %d, output %q, plain %t", st.ExitCode, &out, j.UsesFallbackEnviron())
	}

	c.Env = nil
	if j := library(t, c); j.Wait().ExitCode != 0 || j.UsesFallbackEnviron() {
		t.Error("an environment that fits was not taken")
	}
}

// A command that cannot be started leaves no pipe and no goroutine behind.
func TestStart_FailureLeavesNothing(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := open()
	for range 20 {
		c := Command{Args: []string{"/no/such/command"}}
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader("x"), io.Discard, &bytes.Buffer{}
		if _, err := Start(c, nil); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// Only one job at a time can use the signals of a process.
func TestStart_SecondJobWithTheSameSignals(t *testing.T) {
	s := &Signals{jobState: jobRunning}
	if _, err := Start(Command{Args: []string{"true"}}, s); err == nil {
		t.Error("a second job was started")
	}
}

// A resolved file is executed without a second search; if it is gone, there is one.
func TestCommand_Path(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/here", "#!/bin/sh\nexit 8", 0o755)
	write(t, dir+"/data", "#!/bin/sh\nexit 9", 0o644)
	write(t, dir+"/script", "exit $1", 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, c := range []struct {
		path string
		args []string
		code int
	}{
		{dir + "/here", []string{"no-such-name"}, 8},
		{dir + "/gone", []string{"here"}, 8},
		{dir + "/data", []string{"here"}, 8},
		{dir, []string{"here"}, 8},
		{dir + "/script", []string{"script", "6"}, 6},
	} {
		j := library(t, Command{Path: c.path, Args: c.args})
		if st := j.Wait(); st.ExitCode != c.code {
			t.Errorf("%s: exit code %d, want %d", c.path, st.ExitCode, c.code)
		}
	}
	_, err := Start(Command{Path: dir + "/gone", Args: []string{"no-such-name"}}, nil)
	if !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}
