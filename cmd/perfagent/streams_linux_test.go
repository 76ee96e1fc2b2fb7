package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
)

func TestStreams_JobIsOnTerminal(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--summary", "never", "--", "sh", "-c",
		`for fd in 0 1 2; do test -t $fd && echo tty $fd; done; stty size; ps -o stat= -p $$ 2>/dev/null | tr -d '\n'`)
	screen, code := clitest.OnTerminal(t, cmd).End()
	if code != 0 || !strings.HasPrefix(screen, "tty 0\r\ntty 1\r\ntty 2\r\n24 80\r\n") {
		t.Errorf("exit code %d, screen %q; want 0, all three streams on a terminal of 24 rows and 80 columns", code, screen)
	}
}

func TestStreams_StdinIsPassedUnchanged(t *testing.T) {
	t.Parallel()
	data := make([]byte, 1<<20)
	_, _ = rand.Read(data)
	cmd := clitest.Script(t, "sh", `cat data | $P run -- cat >copy; $P run -- cat <data >copy2`)
	clitest.Write(t, filepath.Join(cmd.Dir, "data"), string(data), 0o644)
	mustExit(t, 0, cmd)
	for _, name := range []string{"copy", "copy2"} {
		if got := clitest.Read(t, filepath.Join(cmd.Dir, name)); got != string(data) {
			t.Errorf("%s: %d bytes of %d, want the same bytes", name, len(got), len(data))
		}
	}
}

// A command behaves the same in a shell with and without perfagent.
func TestStreams_CommandBehavesAsWithoutPerfagent(t *testing.T) {
	t.Parallel()
	bash := testenv.NeedsTool(t, "bash", "apt-get install bash")
	for _, c := range []struct{ name, text, want string }{
		{"a reader that ends early", `$W yes | head -1; echo "${PIPESTATUS[@]}"`, "y\n141 0\n"},
		{"an inherited descriptor", `echo nine >f; exec 9<f; $W sh -c 'cat <&9'`, "nine\n"},
		{"an inherited pipe to write to", `{ $W sh -c 'echo eight >&8' 8>&1 >/dev/null; } | cat`, "eight\n"},
		{"a here document", "$W cat <<E\nhere\nE", "here\n"},
		{"stdin shared with another command", `printf 'a\nb\n' | { $W sh -c 'read x; echo got $x'; cat; }`, "got a\nb\n"},
		{"the working directory", `mkdir d; cd d; $W sh -c 'basename $PWD'`, "d\n"},
		{"umask and limits", `umask 027; ulimit -S -n 77; $W sh -c 'umask; ulimit -S -n; ulimit -H -n' | head -2`, "0027\n77\n"},
		{"arguments", `$W printf '<%s>' '' 'a b' '*' $'\n' -- --help -x`, "<><a b><*><\n><--><--help><-x>"},
		{"the command's name", `exec -a x $W sh -c 'echo $0' own`, "own\n"},
		{"$?", `$W sh -c 'exit 42'; echo $?`, "42\n"},
		{"set -e", `set -e; $W false; echo no`, ""},
		{"a background job", `$W sh -c 'exit 3' & wait $!; echo $?`, "3\n"},
		{"a closed stdin", `$W sh -c 'cat || echo none' <&- 2>/dev/null; echo $?`, ""},
		{"a closed stdout", `$W sh -c 'exit 5' >&-; echo $?`, "5\n"},
		{"all streams closed", `$W sh -c 'exit 6' <&- >&- 2>&-; echo $?`, "6\n"},
		{"a full stderr", `$W sh -c 'echo x >&2; exit 8' 2>/dev/full; echo $?`, "8\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got [2]clitest.Outcome
			for i, wrapper := range []string{"", clitest.Binary(t) + " run --summary never --"} {
				cmd := clitest.Script(t, bash, c.text)
				cmd.Env = append(cmd.Env, "W="+wrapper)
				got[i] = clitest.RunCommand(t, cmd)
				if c.want != "" && got[i].Out != c.want {
					t.Errorf("%q: stdout %q, want %q; stderr %q", wrapper, got[i].Out, c.want, got[i].Err)
				}
			}
			if got[0].Code != got[1].Code || got[0].Err != got[1].Err {
				t.Errorf("without perfagent %+v, with perfagent %+v; want the same", got[0], got[1])
			}
		})
	}
}

// A command in a pipeline that dies of SIGPIPE is not reported as a failure, except in the log of a batch job. Outside
// a pipeline, SIGPIPE is reported.
func TestSummary_SIGPIPEInPipelineIsNotAFailure(t *testing.T) {
	t.Parallel()
	bash := testenv.NeedsTool(t, "bash", "apt-get install bash")
	for _, c := range []struct {
		script string
		spoken bool
	}{
		{`$P run -- yes | head -1; exit ${PIPESTATUS[0]}`, false},
		{`CI=true $P run -- yes | head -1; exit ${PIPESTATUS[0]}`, true},
		{`$P run -- sh -c 'kill -PIPE $$' >file`, true},
		{`$P run -- sh -c 'kill -TERM $$' | cat; exit 141`, true},
	} {
		o := mustExit(t, 141, clitest.Script(t, bash, c.script))
		if spoken := strings.Contains(o.Err, " by SIG"); spoken != c.spoken {
			t.Errorf("%s: stderr %q, want the kill by a signal reported: %v", c.script, o.Err, c.spoken)
		}
	}
}

// A redirected stderr has no output of perfagent unless it is requested. Only terminals get colors.
func TestSummary_IsNotPrintedToRedirectedStderrUnlessRequested(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		terminal        bool
		flags, env      string
		wanted, colours bool
	}{
		{false, "", "", false, false},
		{false, "--summary=never", "", false, false},
		{false, "--summary=always", "", true, false},
		{false, "", "PERFAGENT_SUMMARY=always", true, false},
		{true, "", "", true, true},
		{true, "--summary=never", "", false, false},
		{true, "", "NO_COLOR=1", true, false},
		{true, "", "TERM=dumb", true, false},
	} {
		t.Run(fmt.Sprintf("terminal %v/%s%s", c.terminal, c.flags, c.env), func(t *testing.T) {
			t.Parallel()
			job := []string{"--", "sh", "-c", "printf out; printf err >&2"}
			cmd := clitest.Perfagent(t, slices.Concat([]string{"run"}, strings.Fields(c.flags), job)...)
			cmd.Env = append(cmd.Env, c.env)
			var text string
			if c.terminal {
				screen, code := clitest.OnTerminal(t, cmd).End()
				text = fmt.Sprint(code, " ", screen)
			} else {
				o := clitest.RunCommand(t, cmd)
				text = fmt.Sprint(o.Code, " ", o.Out, o.Err)
				clitest.WantPrintable(t, o.Err)
			}
			rest, found := strings.CutPrefix(text, "0 outerr")
			if !found || (rest != "") != c.wanted || strings.Contains(rest, "\x1b[") != c.colours {
				t.Errorf("exit code and output %q; want 0, outerr, a summary: %v, colours: %v", text, c.wanted, c.colours)
			}
			_, path := reportertest.ReadSingle(t, filepath.Join(cmd.Dir, "perfagent-out"))
			if c.wanted && !c.terminal {
				wantContains(t, rest, strings.TrimPrefix(path, cmd.Dir+"/"))
			}
		})
	}
}

// The summary fits a narrow terminal.
func TestSummary_FitsTerminal(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--out", "o", "--run-id", "r", "--", "sh", "-c", "exit 3", strings.Repeat("long ", 50))
	cmd.Env = append(cmd.Env, "NO_COLOR=1")
	m := clitest.OnTerminal(t, cmd)
	clitest.Resize(t, m.TTY, 24, 60)
	screen, _ := m.End()
	for line := range strings.Lines(screen) {
		if n := len([]rune(strings.TrimRight(line, "\r\n"))); n > 80 {
			t.Errorf("a line of %d cells, want at most 80: %q", n, line)
		}
	}
}

// If stderr has no reader, the exit code of the job does not change.
func TestStreams_StderrWithoutReaderKeepsExitCode(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"--summary", "always"}, {"--summary", "always", "--log-level", "debug", "--out", "/proc/nowhere"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			r, w := clitest.Pipe(t)
			cmd := clitest.Perfagent(t, append(append([]string{"run"}, flags...), "--", "sh", "-c", "exit 7")...)
			cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
			cmd.Stderr = w
			r.Close()
			clitest.RunCommand(t, cmd).Want(t, 7)
		})
	}
}

func TestStreams_JobMayCloseItsStreams(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--interval", "50ms", "--", "sh", "-c", "exec 0<&- 1>&- 2>&-; sleep 0.2; exit 6")
	r := mustExit(t, 6, cmd).Report(t)
	if s := r.Nodes["0"].Sampling; *r.Run.ExitCode != 6 || s.Samples+s.MissedTicks < 2 || r.Run.WallSeconds < 0.2 {
		t.Errorf("run %+v, sampling %+v; want exit code 6 after 0.2 s or more, 2 ticks or more", r.Run, s)
	}
}

// The job's three streams are the same open files that perfagent was given, neither copies nor pipes.
func TestStreams_JobGetsSameOpenFiles(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--", "sh", "-c",
		`for fd in 0 1 2; do at=$(stat -L -c %d:%i /proc/$$/fd/$fd); echo $at >&3; done; dd bs=1 count=4 status=none >&3; printf 123456; printf 1234567 >&2`)
	var want strings.Builder
	files := make([]*os.File, 3)
	for fd := range files {
		path := clitest.Write(t, filepath.Join(cmd.Dir, fmt.Sprint(fd)), "0123456789", 0o644)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		check.Must(t, err)
		defer f.Close()
		st, err := f.Stat()
		check.Must(t, err)
		sys := st.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&want, "%d:%d\n", sys.Dev, sys.Ino)
		files[fd] = f
	}
	fmt.Fprint(&want, "0123")
	r, w := clitest.Pipe(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = files[0], files[1], files[2], []*os.File{w}
	clitest.RunCommand(t, cmd).Want(t, 0)
	w.Close()
	got, err := io.ReadAll(r)
	check.Must(t, err)
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("open files of the job without perfagent (-) and with it (+):\n%s", diff)
	}
	for fd, offset := range []int64{4, 6, 7} {
		if at, err := files[fd].Seek(0, io.SeekCurrent); err != nil || at != offset {
			t.Errorf("the offset of descriptor %d is %d, want %d: the open file is not shared", fd, at, offset)
		}
	}
}

// If the job closes its stdout, the reader reaches EOF, because perfagent does not keep stdout open.
func TestStreams_ReaderGetsEOFWhenJobClosesStdout(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--", "sh", "-c", "exec >&-; read line")
	in, err := cmd.StdinPipe()
	check.Must(t, err)
	out, err := cmd.StdoutPipe()
	check.Must(t, err)
	check.Must(t, cmd.Start())
	_, err = io.ReadAll(out) // returns while the job still waits for its line
	check.Must(t, err)
	_, err = io.WriteString(in, "go\n")
	check.Must(t, errors.Join(err, cmd.Wait()))
}

// A full stderr without a reader delays neither the start of the job nor the return of its exit code.
func TestStreams_FullStderrDelaysNothing(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--out=/proc/nowhere", "--summary=always"} {
		cmd := clitest.Perfagent(t, "run", flag, "--", "sh", "-c", "echo ran >mark; exit 3")
		_, w := clitest.Pipe(t)
		stuff(t, w)
		cmd.Stderr = w
		start := time.Now()
		err := cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 3 || time.Since(start) > 2*noise {
			t.Errorf("%s: exit code %d (%v) after %v, want 3 within %v", flag, code, err, time.Since(start), 2*noise)
		}
		wantText(t, filepath.Join(cmd.Dir, "mark"), "ran\n")
	}
}

// stuff fills a pipe.
func stuff(t *testing.T, w *os.File) {
	t.Helper()
	conn, err := w.SyscallConn()
	check.Must(t, err)
	err = conn.Control(func(fd uintptr) {
		for err == nil {
			_, err = syscall.Write(int(fd), make([]byte, 4096))
		}
	})
	check.Must(t, err)
	// The child gets an ordinary pipe with blocking writes.
	_ = conn.Control(func(fd uintptr) { err = syscall.SetNonblock(int(fd), false) })
	check.Must(t, err)
}
