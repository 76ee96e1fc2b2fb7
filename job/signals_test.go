//go:build linux && (amd64 || arm64)

package job

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/testenv"
)

// Each signal sent to the agent's process ID reaches the job once.
func TestSignals_RelaysEachSignalOnce(t *testing.T) {
	t.Parallel()
	w := start(t, command(t, "agent", "counter", os.Args[0]))
	w.PID("ready")
	for _, sig := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
		syscall.SIGWINCH, syscall.SIGALRM, syscall.SIGABRT, syscall.SIGXCPU,
	} {
		w.relays(sig)
		w.settle()
	}
	// Signals caused by our failing writes are not relayed.
	w.Signal(syscall.SIGPIPE)
	w.Signal(syscall.SIGXFSZ)
	w.settle()
	w.relays(syscall.SIGTERM)
	w.wantEnd(0, "")
}

// relays sends sig to the agent, and expects its name as the next line.
func (w *wrapped) relays(sig syscall.Signal) {
	w.T.Helper()
	w.Signal(sig)
	w.Expect(unix.SignalName(sig))
}

// settle sends two otherwise unused signals and expects only these. When they arrive, all earlier signals have been
// relayed.
func (w *wrapped) settle() {
	w.T.Helper()
	w.relays(syscall.SIGXCPU)
	w.relays(syscall.SIGWINCH)
}

// Signals ignored at our start are ignored in the job; a job that handles them gets them nevertheless.
func TestSignals_RelaysSignalsIgnoredAtStart(t *testing.T) {
	t.Parallel()
	cmd := command(t, "agent", "counter", "-c", `trap '' HUP INT; exec "$0" "$0"`, os.Args[0])
	cmd.Path, cmd.Args[0] = "/bin/sh", "sh"
	w := start(t, cmd)
	w.PID("ready")
	// The agent ignores the signals while it makes the job, and the job may be ready before the agent catches them
	// again.
	clitest.WaitUntil(t, "the agent catches the signals again", func() bool {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.Cmd.Process.Pid))
		ignored, err := strconv.ParseUint(procfile.StatusValue(status, "SigIgn"), 16, 64)
		return err == nil && ignored&(1<<(syscall.SIGHUP-1)|1<<(syscall.SIGINT-1)) == 0
	})
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		w.relays(sig)
		w.settle()
	}
	w.Signal(syscall.SIGTERM)
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
	stdin := check.Value(cmd.StdinPipe())(t)
	w := start(t, cmd)
	pid := w.PID("ready")
	w.Signal(syscall.SIGUSR1)
	clitest.WaitUntil(t, "the signal is pending in the job", func() bool {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		return err == nil && procfile.HasSignal(status, "ShdPnd", uint(syscall.SIGUSR1))
	})

	stdin.Close()
	w.wantEnd(7, "")
}

// A SIGCHLD from a process may be the only one delivered at the job's end: the kernel merges its own SIGCHLD into one
// that is pending.
func TestSignals_SIGCHLDFromProcessDoesNotHideJobsEnd(t *testing.T) {
	t.Parallel()
	cmd := command(t, "agent", "", "sh", "-c", "echo ready $$; read x; exit 7")
	stdin := check.Value(cmd.StdinPipe())(t)
	w := start(t, cmd)
	pid := w.PID("ready")
	w.Signal(syscall.SIGSTOP)
	clitest.WaitUntil(t, "the agent stops", func() bool { return clitest.ProcessState(w.Cmd.Process.Pid) == "T" })

	w.Signal(syscall.SIGCHLD)
	stdin.Close()
	clitest.WaitUntil(t, "the job ends", func() bool { return clitest.ProcessState(pid) == "Z" })
	w.Signal(syscall.SIGCONT)
	w.wantEnd(7, "")
}

func TestSignals_DeliversEarlySignal(t *testing.T) {
	t.Parallel()
	start(t, command(t, "early", "", "sleep", "600")).wantEnd(143, "SIGTERM")
}

func TestSignals_JobMayHandleOrIgnoreTERM(t *testing.T) {
	t.Parallel()
	// Wait waits while the job's handler takes its time.
	w := start(t, command(t, "agent", "", "sh", "-c",
		`trap 'sleep 0.5; echo saved; exit 3' TERM; echo pid $$; while :; do sleep 0.01; done`))
	w.PID("pid")
	w.Signal(syscall.SIGTERM)
	w.skipTo("saved")
	if st := w.wantEnd(3, ""); st.End.Sub(st.Start) < 500*time.Millisecond {
		t.Errorf("job that handles TERM: status %+v, want an end after 500 ms", st)
	}
	// A job that ignores TERM is left alone.
	cmd := command(t, "agent", "", "sh", "-c", `trap '' TERM; echo pid $$; read x; exit 4`)
	in := check.Value(cmd.StdinPipe())(t)
	w = start(t, cmd)
	w.PID("pid")
	w.Signal(syscall.SIGTERM)
	w.Signal(syscall.SIGTERM)
	in.Close()
	w.wantEnd(4, "")
}

// If no shell would notice, a job that stops itself does not stop us, and a CONT sent to us continues the job.
func TestJob_SelfStopWithoutJobControlStopsOnlyJob(t *testing.T) {
	t.Parallel()
	w := start(t, command(t, "agent", "selfstop", os.Args[0]))
	pid := w.PID("stopping")
	clitest.WaitUntil(t, "the job stops", func() bool { return clitest.ProcessState(pid) == "T" })
	w.Signal(syscall.SIGCONT)
	w.skipTo("continued")
	if clitest.ProcessState(w.Cmd.Process.Pid) == "T" {
		t.Error("the agent stopped as well, want it running: no shell would continue it")
	}
	w.wantEnd(0, "")
}

func TestSignals_LateDeliversSignalAfterEnd(t *testing.T) {
	s := Catch()
	defer s.Stop()
	check.Value(Start(Command{Args: []string{"true"}}, s))(t).Wait()
	check.Must(t, unix.Kill(os.Getpid(), syscall.SIGINT))
	select {
	case sig := <-s.Late():
		if sig != syscall.SIGINT {
			t.Errorf("Late delivered %v, want INT", sig)
		}
	case <-time.After(clitest.Longest):
		t.Errorf("Late delivered nothing within %v, want INT", clitest.Longest)
	}
}

// onTerminal starts cmd on a new terminal. At the end of the test, cmd is killed and reaped.
func onTerminal(t *testing.T, cmd *exec.Cmd) *clitest.Terminal {
	t.Helper()
	m := clitest.OnTerminal(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return m
}

// once expects exactly one delivery of sig. It also sends the agent two other signals: when they arrive, so has every
// copy of sig.
func once(m *clitest.Terminal, agent int, sig syscall.Signal) {
	m.T.Helper()
	seen := m.Expect(unix.SignalName(sig))
	for _, sig := range []syscall.Signal{syscall.SIGXCPU, syscall.SIGABRT} {
		check.Must(m.T, unix.Kill(agent, sig))
		seen += m.Expect(unix.SignalName(sig))
	}
	if strings.Contains(seen, "SIG") {
		m.T.Errorf("%v: the job received further signals, want none: %q", sig, seen)
	}
}

func TestSignals_TerminalSignalReachesJobOnce(t *testing.T) {
	t.Parallel()
	m := onTerminal(t, command(t, "agent", "counter", os.Args[0]))
	m.PID("ready")
	agent := m.Cmd.Process.Pid
	check.Must(t, unix.Kill(agent, syscall.SIGXCPU))
	m.Expect("SIGXCPU") // before the agent relays this, it may not have noticed that the job runs
	for range 5 {
		m.Send("\x03")
		once(m, agent, syscall.SIGINT)
		m.Send("\x1c")
		once(m, agent, syscall.SIGQUIT)
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
			check.Must(t, unix.Kill(agent, sig))
			once(m, agent, sig)
		}
	}
	for rows := range 5 {
		clitest.Resize(t, m.TTY, 30+rows, 99)
		once(m, agent, syscall.SIGWINCH)
	}
	check.Must(t, unix.Kill(agent, syscall.SIGWINCH))
	once(m, agent, syscall.SIGWINCH)
	check.Must(t, unix.Kill(agent, syscall.SIGTERM))
	m.Expect("SIGTERM")
}

// Only the leader of a session receives a hang-up.
func TestSignals_HangupReachesJobOnce(t *testing.T) {
	t.Parallel()
	r, w := clitest.Pipe(t)
	cmd := command(t, "agent", "counter", os.Args[0])
	cmd.Env = append(cmd.Env, "TO3=1")
	cmd.ExtraFiles = []*os.File{w}
	m := onTerminal(t, cmd)
	w.Close()
	lines := clitest.Scan(r)
	if line := <-lines; !strings.HasPrefix(line, "ready") {
		t.Fatalf("first line %q, want \"ready\"", line)
	}
	m.TTY.Close()
	var got []string
	for line := range lines {
		if got = append(got, line); line == "SIGHUP" {
			_ = unix.Kill(cmd.Process.Pid, syscall.SIGTERM)
		}
	}
	if strings.Count(strings.Join(got, " "), "SIGHUP") != 1 {
		t.Errorf("the job received %v, want one SIGHUP", got)
	}
}

// A job killed by Ctrl-C or Ctrl-\ is distinguished from one killed by kill(1), and the agent dies by the same signal.
func TestStatus_DistinguishesDeathByTerminalSignal(t *testing.T) {
	t.Parallel()
	for key, sig := range map[string]syscall.Signal{"\x03": syscall.SIGINT, "\x1c": syscall.SIGQUIT} {
		cmd := command(t, "agent", "", "sh", "-c", "echo ready $$; exec sleep 600")
		m := onTerminal(t, cmd)
		pid := m.PID("ready")
		clitest.WaitUntil(t, "sleep runs", func() bool { return nameOf(pid) == "sleep" })
		m.Send(key)
		_ = cmd.Wait()
		ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ws.Signaled() || ws.Signal() != sig || ws.CoreDump() {
			t.Errorf("%v from the terminal: the agent ended with %v, want that signal, no core", sig, cmd.ProcessState)
		}
	}
	cmd := command(t, "agent", "", "sh", "-c", "echo ready $$; exec sleep 600")
	m := onTerminal(t, cmd)
	m.PID("ready")
	_ = unix.Kill(cmd.Process.Pid, syscall.SIGINT)
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("INT from kill(2): the agent ended with %v, want exit code 130", cmd.ProcessState)
	}
}

// shell is an interactive bash on a terminal.
func shell(t *testing.T, next string) *clitest.Terminal {
	t.Helper()
	bash := testenv.NeedsTool(t, "bash", "apt-get install bash")
	cmd := command(t, "agent", next, "--norc", "--noprofile", "-i")
	cmd.Path, cmd.Args[0] = bash, bash
	cmd.Env = append(cmd.Env, "PS1=prompt-$ ", "HISTFILE=", "TERM=dumb", "AGENT="+os.Args[0])
	m := onTerminal(t, cmd)
	m.Expect("prompt-$ ")
	return m
}

// Ctrl-Z stops job and agent, and the shell gets its terminal back; fg continues both, and the job gets one SIGCONT.
func TestJob_CtrlZStopsJobAndAgent(t *testing.T) {
	t.Parallel()
	m := shell(t, "counter")
	m.Send("$AGENT $AGENT\n")
	pid := m.PID("ready")
	agent := clitest.ParentOf(t, pid)
	for range 3 {
		m.Send("\x1a")
		m.Expect("Stopped")
		m.Expect("prompt-$ ")
		// The shell reports the agent, its child; the job may stop a moment later.
		clitest.WaitUntil(t, "agent and job are stopped", func() bool { return clitest.ProcessState(agent)+clitest.ProcessState(pid) == "TT" })
		m.Send("fg\n")
		once(m, agent, syscall.SIGCONT)
	}
	m.Send("\x03")
	once(m, agent, syscall.SIGINT)
	m.Send("\x1a")
	m.Expect("prompt-$ ")
	m.Send("bg\n")
	once(m, agent, syscall.SIGCONT)
	m.Send("\n")
	m.Expect("prompt-$ ")
	_ = unix.Kill(agent, syscall.SIGTERM)
	m.Expect("SIGTERM")
	clitest.WaitUntil(t, "the agent ends", func() bool { return isDead(agent) })
}

// A job that stops itself, immediately or after tidying up, gives the shell its terminal back when it has stopped, and
// goes on after fg.
func TestJob_SelfStopReturnsTerminalToShell(t *testing.T) {
	t.Parallel()
	m := shell(t, "selfstop")
	m.Send("$AGENT $AGENT\n")
	pid := m.PID("stopping")
	agent := clitest.ParentOf(t, pid)
	m.Expect("Stopped")
	m.Expect("prompt-$ ")
	if a, b := clitest.ProcessState(agent), clitest.ProcessState(pid); a != "T" || b != "T" {
		t.Fatalf("agent in state %s, job in state %s; want T for both", a, b)
	}
	m.Send("fg\n")
	m.Expect("continued")
	m.Expect("prompt-$ ")

	m = shell(t, "editor")
	m.Send("$AGENT $AGENT\n")
	m.PID("ready")
	m.Send("\x1a")
	if before := m.Expect("tidy"); strings.Contains(before, "prompt") {
		t.Errorf("the shell prompted before the editor had tidied up: %q", before)
	}
	m.Expect("Stopped")
	m.Expect("prompt-$ ")
	m.Send("fg\n")
	m.Expect("back")
	m.Expect("prompt-$ ")
}

// A job that ignores Ctrl-Z keeps running, and keeps the terminal.
func TestJob_KeepsTerminalIfItIgnoresCtrlZ(t *testing.T) {
	t.Parallel()
	m := shell(t, "")
	m.Send("$AGENT sh -c 'trap \"\" TSTP; trap \"echo in\"t INT; echo ready; while :; do sleep 0.05; done'\n")
	m.Expect("ready\r\n")
	m.Send("\x1a")
	m.Expect("^Z")
	m.Send("\x03")
	if before := m.Expect("int\r\n"); strings.Contains(before, "Stopped") {
		t.Errorf("the shell stopped a job that ignores Ctrl-Z: %q", before)
	}
	m.Send("\x1c")
	m.Expect("prompt-$ ")
}

// Ctrl-C ends a shell's loop, as it would without us.
func TestReraise_CtrlCEndsLoop(t *testing.T) {
	t.Parallel()
	m := shell(t, "")
	m.Send("for i in 1 2 3; do $AGENT sh -c 'echo ready; exec sleep 600'; done; echo the-$((40+2))\n")
	m.Expect("ready\r\n")
	m.Send("\x03")
	before := m.Expect("prompt-$ ")
	if strings.Contains(before, "ready") || strings.Contains(before, "the-42") {
		t.Errorf("the shell's script went on after Ctrl-C, want it ended: %q", before)
	}
}

// wantReceived checks that exactly one signal was received.
func wantReceived(t *testing.T, sent []process.Signal, sig syscall.Signal, kernel bool, pid int) {
	t.Helper()
	want := process.Signal{Number: int(sig), Signal: unix.SignalName(sig), Kernel: kernel, PID: pid}
	if pid > 0 {
		want.Process = nameOf(pid)
	}
	if len(sent) == 1 {
		want.At = sent[0].At
	}
	if diff := cmp.Diff([]process.Signal{want}, sent); diff != "" || want.At.IsZero() {
		t.Fatalf("received at %v (-want +got):\n%s", want.At, diff)
	}
}

// The sender of a signal is recorded with its process ID and name, and an immediate repetition is merged.
func TestReceived_NamesSendingProcess(t *testing.T) {
	t.Parallel()
	w := start(t, command(t, "agent", "counter", os.Args[0]))
	w.PID("ready")
	w.relays(syscall.SIGTERM)
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
		cmd := command(t, "agent", "", "sh", "-c", "echo pid $$; exec sleep 600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		w := start(t, cmd)
		w.PID("pid")
		check.Must(t, unix.Kill(-cmd.Process.Pid, syscall.SIGTERM))
		wantReceived(t, w.wantEnd(143, "SIGTERM").ReceivedSignals, syscall.SIGTERM, false, os.Getpid())
	}
}

// Signals of the terminal have no sender.
func TestReceived_TerminalHasNoSender(t *testing.T) {
	t.Parallel()
	// Wait does not wait for a thread that has taken the signal without counting it yet, so the job ends later.
	cmd := command(t, "agent", "", "sh", "-c", "trap 'sleep 3; exit 5' INT; echo ready $$; while :; do sleep 0.01; done")
	file := filepath.Join(t.TempDir(), "status.json")
	cmd.Env = append(cmd.Env, result+"="+file)
	m := onTerminal(t, cmd)
	m.PID("ready")
	m.Send("\x03")
	_ = cmd.Wait()
	st := readStatus(t, file)
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
	clitest.WaitUntil(t, "the signal is recorded", func() bool { return len(s.Received()) > 0 })
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
	both, term := behind.onTheWay(syscall.SIGTERM, syscall.SIGUSR2), behind.onTheWay(syscall.SIGTERM)
	if !both || term {
		t.Errorf("onTheWay(TERM, USR2) %v, onTheWay(TERM) %v; want true, false", both, term)
	}
}
