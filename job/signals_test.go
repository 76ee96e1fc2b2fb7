//go:build linux && (amd64 || arm64)

package job

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/testenv"
)

// Each signal sent to the agent's process ID reaches the job once.
func TestSignals_RelaysEachSignalOnce(t *testing.T) {
	t.Parallel()
	w := start(t, command(t, "agent", "counter", os.Args[0]))
	w.pid("ready")
	for _, sig := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
		syscall.SIGWINCH, syscall.SIGALRM, syscall.SIGABRT, syscall.SIGXCPU,
	} {
		w.signal(sig)
		w.expectOnly(unix.SignalName(sig))
		w.settle()
	}
	// Signals caused by our failing writes are not relayed.
	w.signal(syscall.SIGPIPE)
	w.signal(syscall.SIGXFSZ)
	w.settle()
	w.signal(syscall.SIGTERM)
	w.expectOnly("SIGTERM")
	if code, st := w.end(); code != 0 || st.Signal != "" {
		t.Errorf("exit code %d, status %+v; want 0 and no signal", code, st)
	}
}

// expectOnly expects line as the next line.
func (w *wrapped) expectOnly(line string) {
	w.t.Helper()
	if _, before := w.expect(line); before != 0 {
		w.t.Errorf("%d lines before %q, want none", before, line)
	}
}

// settle sends two otherwise unused signals and expects only these. When they arrive, all earlier signals have been
// relayed.
func (w *wrapped) settle() {
	w.t.Helper()
	for _, sig := range []syscall.Signal{syscall.SIGXCPU, syscall.SIGWINCH} {
		w.signal(sig)
		w.expectOnly(unix.SignalName(sig))
	}
}

// Signals ignored at our start are ignored in the job; a job that handles them gets them nevertheless.
func TestSignals_RelaysSignalsIgnoredAtStart(t *testing.T) {
	t.Parallel()
	cmd := command(t, "agent", "counter", "-c", `trap '' HUP INT; exec "$0" "$0"`, os.Args[0])
	cmd.Path, cmd.Args[0] = "/bin/sh", "sh"
	w := start(t, cmd)
	w.pid("ready")
	// The agent ignores the signals while it makes the job, and the job may be ready before the agent catches them
	// again.
	until(t, "the agent catches the signals again", func() bool {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
		ignored, err := strconv.ParseUint(procfile.StatusValue(status, "SigIgn"), 16, 64)
		return err == nil && ignored&(1<<(syscall.SIGHUP-1)|1<<(syscall.SIGINT-1)) == 0
	})
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		w.signal(sig)
		w.expectOnly(unix.SignalName(sig))
		w.settle()
	}
	w.signal(syscall.SIGTERM)
	w.end()
}

// An agent started with blocked signals receives them nevertheless, and notices the end of its job. The job starts with
// the same signals blocked.
func TestSignals_ReceivesSignalsBlockedAtStart(t *testing.T) {
	t.Parallel()
	cmd := command(t, "agent", "", "-c", `import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGCHLD])
os.execv(sys.argv[1], sys.argv[1:])`, os.Args[0], "sh", "-c", "echo ready $$; read x; exit 7")
	cmd.Path, cmd.Args[0] = testenv.NeedsTool(t, "python3", "apt-get install python3"), "python3"
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, cmd)
	pid := w.pid("ready")
	w.signal(syscall.SIGUSR1)
	until(t, "the signal is pending in the job", func() bool {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		return err == nil && procfile.HasSignal(status, "ShdPnd", uint(syscall.SIGUSR1))
	})

	stdin.Close()
	if code, _ := w.end(); code != 7 {
		t.Errorf("exit code %d, want the job's 7", code)
	}
}

// A SIGCHLD from a process may be the only one delivered at the job's end: the kernel merges its own SIGCHLD into one
// that is pending.
func TestSignals_SIGCHLDFromProcessDoesNotHideJobsEnd(t *testing.T) {
	t.Parallel()
	cmd := command(t, "agent", "", "sh", "-c", "echo ready $$; read x; exit 7")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, cmd)
	pid := w.pid("ready")
	w.signal(syscall.SIGSTOP)
	until(t, "the agent stops", func() bool { return state(w.cmd.Process.Pid) == "T" })

	w.signal(syscall.SIGCHLD)
	stdin.Close()
	until(t, "the job ends", func() bool { return state(pid) == "Z" })
	w.signal(syscall.SIGCONT)
	if code, _ := w.end(); code != 7 {
		t.Errorf("exit code %d, want the job's 7", code)
	}
}

func TestSignals_DeliversEarlySignal(t *testing.T) {
	t.Parallel()
	code, st := start(t, command(t, "early", "", "sleep", "60")).end()
	if code != 143 || st.Signal != "SIGTERM" {
		t.Errorf("exit code %d, status %+v; want 143 and SIGTERM", code, st)
	}
}

func TestSignals_JobMayHandleOrIgnoreTERM(t *testing.T) {
	t.Parallel()
	// Wait waits while the job's handler takes its time.
	w := start(t, command(t, "agent", "", "sh", "-c",
		`trap 'sleep 0.5; echo saved; exit 3' TERM; echo pid $$; while :; do sleep 0.01; done`))
	w.pid("pid")
	w.signal(syscall.SIGTERM)
	w.expect("saved")
	if code, st := w.end(); code != 3 || st.Signal != "" || st.End.Sub(st.Start) < 500*time.Millisecond {
		t.Errorf("job that handles TERM: exit code %d, status %+v; want 3, no signal, and an end after 500 ms",
			code, st)
	}
	// A job that ignores TERM is left alone.
	cmd := command(t, "agent", "", "sh", "-c", `trap '' TERM; echo pid $$; read x; exit 4`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	w = start(t, cmd)
	w.pid("pid")
	w.signal(syscall.SIGTERM)
	w.signal(syscall.SIGTERM)
	in.Close()
	if code, _ := w.end(); code != 4 {
		t.Errorf("job that ignores TERM: exit code %d, want 4", code)
	}
}

// state returns the state letter of a process in /proc, "" if it is gone.
func state(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

// If no shell would notice, a job that stops itself does not stop us, and a CONT sent to us continues the job.
func TestJob_SelfStopWithoutJobControlStopsOnlyJob(t *testing.T) {
	t.Parallel()
	w := start(t, command(t, "agent", "selfstop", os.Args[0]))
	pid := w.pid("stopping")
	until(t, "the job stops", func() bool { return state(pid) == "T" })
	w.signal(syscall.SIGCONT)
	w.expect("continued")
	if state := state(w.cmd.Process.Pid); state == "T" {
		t.Error("the agent stopped as well, want it running: no shell would continue it")
	}
	if code, _ := w.end(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestSignals_LateDeliversSignalAfterEnd(t *testing.T) {
	s := Catch()
	defer s.Stop()
	j, err := Start(Command{Args: []string{"true"}}, s)
	if err != nil {
		t.Fatal(err)
	}
	j.Wait()
	if err := unix.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case sig := <-s.Late():
		if sig != syscall.SIGINT {
			t.Errorf("Late delivered %v, want INT", sig)
		}
	case <-time.After(waitTimeout):
		t.Errorf("Late delivered nothing within %v, want INT", waitTimeout)
	}
}

// terminal is a pty with a command in the foreground.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	more chan string
	text string // output that expect has not consumed
}

// onTerminal starts cmd as the leader of a session on a new pty.
func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	// A second, non-blocking descriptor, so that Close ends a read.
	fd, err := unix.Dup(int(tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	tty = os.NewFile(uintptr(fd), "terminal")
	term := &terminal{t: t, cmd: cmd, tty: tty, more: make(chan string, 1000)}
	go func() {
		defer close(term.more)
		for buf := make([]byte, 4096); ; {
			n, err := tty.Read(buf)
			if n > 0 {
				term.more <- string(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = tty.Close()
		_ = cmd.Wait()
	})
	return term
}

// expect reads up to and including text, and returns the text before it.
func (m *terminal) expect(text string) (before string) {
	m.t.Helper()
	timeout := time.After(waitTimeout)
	for {
		if before, after, ok := strings.Cut(m.text, text); ok {
			m.text = after
			return before
		}
		select {
		case more, ok := <-m.more:
			if !ok {
				m.t.Fatalf("the terminal closed before %q: %q", text, m.text)
			}
			m.text += more
		case <-timeout:
			m.t.Fatalf("no %q within %v: %q", text, waitTimeout, m.text)
		}
	}
}

// pid reads "word PID".
func (m *terminal) pid(word string) int {
	m.t.Helper()
	m.expect(word + " ")
	n, err := strconv.Atoi(strings.TrimSpace(m.expect("\n")))
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

// send types text.
func (m *terminal) send(text string) {
	m.t.Helper()
	if _, err := m.tty.WriteString(text); err != nil {
		m.t.Fatal(err)
	}
}

// once expects exactly one delivery of sig. It also sends the agent two other signals: when they arrive, so has every
// copy of sig.
func (m *terminal) once(agent int, sig syscall.Signal) {
	m.t.Helper()
	seen := m.expect(unix.SignalName(sig))
	for _, sig := range []syscall.Signal{syscall.SIGXCPU, syscall.SIGABRT} {
		if err := unix.Kill(agent, sig); err != nil {
			m.t.Fatal(err)
		}
		seen += m.expect(unix.SignalName(sig))
	}
	if strings.Contains(seen, "SIG") {
		m.t.Errorf("%v: the job received further signals, want none: %q", sig, seen)
	}
}

func TestSignals_TerminalSignalReachesJobOnce(t *testing.T) {
	t.Parallel()
	m := onTerminal(t, command(t, "agent", "counter", os.Args[0]))
	m.pid("ready")
	agent := m.cmd.Process.Pid
	if err := unix.Kill(agent, syscall.SIGXCPU); err != nil {
		t.Fatal(err)
	}
	m.expect("SIGXCPU") // before the agent relays this, it may not have noticed that the job runs
	for range 5 {
		m.send("\x03")
		m.once(agent, syscall.SIGINT)
		m.send("\x1c")
		m.once(agent, syscall.SIGQUIT)
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
			if err := unix.Kill(agent, sig); err != nil {
				t.Fatal(err)
			}
			m.once(agent, sig)
		}
	}
	for rows := range 5 {
		if err := pty.Setsize(m.tty, &pty.Winsize{Rows: uint16(30 + rows), Cols: 99}); err != nil {
			t.Fatal(err)
		}
		m.once(agent, syscall.SIGWINCH)
	}
	if err := unix.Kill(agent, syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	m.once(agent, syscall.SIGWINCH)
	if err := unix.Kill(agent, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.expect("SIGTERM")
}

// Only the leader of a session receives a hang-up.
func TestSignals_HangupReachesJobOnce(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := command(t, "agent", "counter", os.Args[0])
	cmd.Env = append(cmd.Env, "TO3=1")
	cmd.ExtraFiles = []*os.File{w}
	m := onTerminal(t, cmd)
	w.Close()
	lines := readLines(r)
	if line := <-lines; !strings.HasPrefix(line, "ready") {
		t.Fatalf("first line %q, want \"ready\"", line)
	}
	m.tty.Close()
	var got []string
	for line := range lines {
		if got = append(got, line); line == "SIGHUP" {
			_ = unix.Kill(cmd.Process.Pid, syscall.SIGTERM)
		}
	}
	hups := strings.Count(strings.Join(got, " "), "SIGHUP")
	if hups != 1 {
		t.Errorf("the job received %v with %d SIGHUP, want 1", got, hups)
	}
}

// readLines returns a channel that delivers the lines of f and is closed at the end of the file.
func readLines(f *os.File) <-chan string {
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		var text string
		for buf := make([]byte, 1000); ; {
			n, err := f.Read(buf)
			text += string(buf[:n])
			for line, rest, ok := strings.Cut(text, "\n"); ok; line, rest, ok = strings.Cut(text, "\n") {
				lines <- line
				text = rest
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// A job killed by Ctrl-C or Ctrl-\ is distinguished from one killed by kill(1), and the agent dies by the same signal.
func TestStatus_DistinguishesDeathByTerminalSignal(t *testing.T) {
	t.Parallel()
	for key, sig := range map[string]syscall.Signal{"\x03": syscall.SIGINT, "\x1c": syscall.SIGQUIT} {
		cmd := command(t, "agent", "", "sh", "-c", "echo ready $$; exec sleep 60")
		m := onTerminal(t, cmd)
		pid := m.pid("ready")
		until(t, "sleep runs", func() bool {
			name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
			return string(name) == "sleep\n"
		})
		m.send(key)
		_ = cmd.Wait()
		ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ws.Signaled() || ws.Signal() != sig || ws.CoreDump() {
			t.Errorf("%v from the terminal: the agent ended with %v, want that signal without a core",
				sig, cmd.ProcessState)
		}
	}
	cmd := command(t, "agent", "", "sh", "-c", "echo ready $$; exec sleep 60")
	m := onTerminal(t, cmd)
	m.pid("ready")
	_ = unix.Kill(cmd.Process.Pid, syscall.SIGINT)
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("INT from kill(2): the agent ended with %v, want exit code 130", cmd.ProcessState)
	}
}

// shell is an interactive bash on a terminal.
func shell(t *testing.T, next string) *terminal {
	t.Helper()
	bash := testenv.NeedsTool(t, "bash", "apt-get install bash")
	cmd := command(t, "agent", next, "--norc", "--noprofile", "-i")
	cmd.Path, cmd.Args[0] = bash, bash
	cmd.Env = append(cmd.Env, "PS1=prompt-$ ", "HISTFILE=", "TERM=dumb", "AGENT="+os.Args[0])
	m := onTerminal(t, cmd)
	m.expect("prompt-$ ")
	return m
}

// parent returns the parent of a process.
func parent(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	n, _ := strconv.Atoi(strings.Fields(after)[1])
	return n
}

// Ctrl-Z stops job and agent, and the shell gets its terminal back; fg continues both, and the job gets one SIGCONT.
func TestJob_CtrlZStopsJobAndAgent(t *testing.T) {
	t.Parallel()
	m := shell(t, "counter")
	m.send("$AGENT $AGENT\n")
	pid := m.pid("ready")
	agent := parent(t, pid)
	for range 3 {
		m.send("\x1a")
		m.expect("Stopped")
		m.expect("prompt-$ ")
		// The shell reports the agent, its child; the job may stop a moment later.
		until(t, "agent and job are stopped", func() bool { return state(agent) == "T" && state(pid) == "T" })
		m.send("fg\n")
		m.once(agent, syscall.SIGCONT)
	}
	m.send("\x03")
	m.once(agent, syscall.SIGINT)
	m.send("\x1a")
	m.expect("prompt-$ ")
	m.send("bg\n")
	m.once(agent, syscall.SIGCONT)
	m.send("\n")
	m.expect("prompt-$ ")
	_ = unix.Kill(agent, syscall.SIGTERM)
	m.expect("SIGTERM")
	until(t, "the agent ends", func() bool { return state(agent) == "" || state(agent) == "Z" })
}

// A job that stops itself, immediately or after tidying up, gives the shell its terminal back when it has stopped, and
// goes on after fg.
func TestJob_SelfStopReturnsTerminalToShell(t *testing.T) {
	t.Parallel()
	m := shell(t, "selfstop")
	m.send("$AGENT $AGENT\n")
	pid := m.pid("stopping")
	agent := parent(t, pid)
	m.expect("Stopped")
	m.expect("prompt-$ ")
	if a, b := state(agent), state(pid); a != "T" || b != "T" {
		t.Fatalf("agent in state %s, job in state %s; want T for both", a, b)
	}
	m.send("fg\n")
	m.expect("continued")
	m.expect("prompt-$ ")

	m = shell(t, "editor")
	m.send("$AGENT $AGENT\n")
	m.pid("ready")
	m.send("\x1a")
	if before := m.expect("tidy"); strings.Contains(before, "prompt") {
		t.Errorf("the shell prompted before the editor had tidied up: %q", before)
	}
	m.expect("Stopped")
	m.expect("prompt-$ ")
	m.send("fg\n")
	m.expect("back")
	m.expect("prompt-$ ")
}

// A job that ignores Ctrl-Z keeps running, and keeps the terminal.
func TestJob_KeepsTerminalIfItIgnoresCtrlZ(t *testing.T) {
	t.Parallel()
	m := shell(t, "")
	m.send("$AGENT sh -c 'trap \"\" TSTP; trap \"echo in\"t INT; echo ready; while :; do sleep 0.05; done'\n")
	m.expect("ready\r\n")
	m.send("\x1a")
	m.expect("^Z")
	m.send("\x03")
	if before := m.expect("int\r\n"); strings.Contains(before, "Stopped") {
		t.Errorf("the shell stopped a job that ignores Ctrl-Z: %q", before)
	}
	m.send("\x1c")
	m.expect("prompt-$ ")
}

// Ctrl-C ends a shell's loop, as it would without us.
func TestReraise_CtrlCEndsLoop(t *testing.T) {
	t.Parallel()
	m := shell(t, "")
	m.send("for i in 1 2 3; do $AGENT sh -c 'echo ready; exec sleep 60'; done; echo the-$((40+2))\n")
	m.expect("ready\r\n")
	m.send("\x03")
	before := m.expect("prompt-$ ")
	if strings.Contains(before, "ready") || strings.Contains(before, "the-42") {
		t.Errorf("the shell's script went on after Ctrl-C, want it ended: %q", before)
	}
}

// wantReceived checks that exactly one signal was received.
func wantReceived(t *testing.T, sent []process.Signal, sig syscall.Signal, kernel bool, pid int) {
	t.Helper()
	if len(sent) != 1 {
		t.Fatalf("received %+v, want one %v", sent, sig)
	}
	s := sent[0]
	name := ""
	if pid > 0 {
		name = nameOf(pid)
	}
	if s.Number != int(sig) || s.Signal != unix.SignalName(sig) || s.Kernel != kernel ||
		s.PID != pid || s.Process != name || s.At.IsZero() {
		t.Errorf("received %+v, want %v from %d %q, Kernel %v, with a time", s, sig, pid, name, kernel)
	}
}

// The sender of a signal is recorded with its process ID and name, and an immediate repetition is merged.
func TestReceived_NamesSendingProcess(t *testing.T) {
	t.Parallel()
	w := start(t, command(t, "agent", "counter", os.Args[0]))
	w.pid("ready")
	w.signal(syscall.SIGTERM)
	w.expectOnly("SIGTERM")
	_, st := w.end()
	wantReceived(t, st.ReceivedSignals, syscall.SIGTERM, false, os.Getpid())
	if at := st.ReceivedSignals[0].At; at.Before(st.Start) || at.After(st.End) {
		t.Errorf("signal at %v, want it while the job ran, from %v to %v", at, st.Start, st.End)
	}
}

// A signal to the whole group may end the job before our copy arrives.
func TestReceived_RecordsSignalSentToGroup(t *testing.T) {
	t.Parallel()
	for range 10 {
		cmd := command(t, "agent", "", "sh", "-c", "echo pid $$; exec sleep 60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		w := start(t, cmd)
		w.pid("pid")
		if err := unix.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		code, st := w.end()
		if code != 143 {
			t.Errorf("exit code %d, want 143", code)
		}
		wantReceived(t, st.ReceivedSignals, syscall.SIGTERM, false, os.Getpid())
	}
}

// Signals of the terminal have no sender.
func TestReceived_TerminalHasNoSender(t *testing.T) {
	t.Parallel()
	cmd := command(t, "agent", "", "sh", "-c", "trap 'exit 5' INT; echo ready $$; while :; do sleep 0.01; done")
	file := filepath.Join(t.TempDir(), "status.json")
	cmd.Env = append(cmd.Env, result+"="+file)
	m := onTerminal(t, cmd)
	m.pid("ready")
	m.send("\x03")
	_ = cmd.Wait()
	var st Status
	if text, err := os.ReadFile(file); err != nil {
		t.Fatal(err)
	} else if err := json.Unmarshal(text, &st); err != nil {
		t.Fatal(err)
	}
	if st.ExitCode != 5 {
		t.Errorf("exit code %d, want 5 from the job's handler", st.ExitCode)
	}
	wantReceived(t, st.ReceivedSignals, syscall.SIGINT, true, -1)
}

// caughtByUs catches signals until the test ends, and sends sig to this process.
func caughtByUs(t *testing.T, sig syscall.Signal) *Signals {
	t.Helper()
	s := Catch()
	t.Cleanup(s.Stop)
	_ = unix.Kill(os.Getpid(), sig)
	until(t, "the signal is recorded", func() bool { return len(s.Received()) > 0 })
	return s
}

// This test of the handler also runs in an emulator, where the test binary cannot start itself.
func TestReceived_RecordsSignalSentToSelf(t *testing.T) {
	s := caughtByUs(t, syscall.SIGUSR1)
	wantReceived(t, s.Received(), syscall.SIGUSR1, false, os.Getpid())
	wantReceived(t, []process.Signal{<-s.Incoming()}, syscall.SIGUSR1, false, os.Getpid())
}

// Signals are recorded without delay even if no goroutine reads Incoming.
func TestSignals_UnreadIncomingDelaysNothing(t *testing.T) {
	s := &Signals{incoming: make(chan process.Signal, 1)}
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM} {
		s.recordReceived(sig, 1, 0)
	}
	if first := <-s.Incoming(); len(s.Received()) != 3 || first.Signal != "SIGUSR1" || len(s.incoming) != 0 {
		t.Errorf("received %+v, want 3; Incoming gave %+v first and holds %d more, want USR1 and 0",
			s.Received(), first, len(s.incoming))
	}
}

// A signal that the handler has counted but relay has not collected is on the way.
func TestSignals_OnTheWayFindsUncollectedSignal(t *testing.T) {
	s := caughtByUs(t, syscall.SIGUSR2)
	if s.onTheWay(relayedSignals()...) {
		t.Error("onTheWay is true after all signals were collected, want false")
	}
	behind := &Signals{}
	if !behind.onTheWay(syscall.SIGTERM, syscall.SIGUSR2) || behind.onTheWay(syscall.SIGTERM) {
		t.Errorf("onTheWay(TERM, USR2) %v, onTheWay(TERM) %v; want true, false",
			behind.onTheWay(syscall.SIGTERM, syscall.SIGUSR2), behind.onTheWay(syscall.SIGTERM))
	}
}
