//go:build linux && (amd64 || arm64)

package job

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// wantReceived checks that exactly one signal was received.
func wantReceived(t *testing.T, sent []ReceivedSignal, sig syscall.Signal, kernel bool, pid int) {
	t.Helper()
	if len(sent) != 1 {
		t.Fatalf("received %+v, want one %v", sent, sig)
	}
	s := sent[0]
	name := ""
	if pid > 0 {
		name = nameOf(pid)
	}
	if s.Signal != sig || s.Name != unix.SignalName(sig) || s.Kernel != kernel ||
		s.PID != pid || s.Process != name || s.At.IsZero() {
		t.Errorf("received %+v, want %v from %d %q, Kernel %v, with a time", s, sig, pid, name, kernel)
	}
}

// The sender of a signal is known by process ID and name, and an immediate repetition is merged.
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
	until(t, "the signal is noted", func() bool { return len(s.Received()) > 0 })
	return s
}

// The handler also works where the test binary cannot be started again (an emulator).
func TestReceived_RecordsSignalSentToSelf(t *testing.T) {
	s := caughtByUs(t, syscall.SIGUSR1)
	wantReceived(t, s.Received(), syscall.SIGUSR1, false, os.Getpid())
	wantReceived(t, []ReceivedSignal{<-s.Incoming()}, syscall.SIGUSR1, false, os.Getpid())
}

// A receiver that does not read Incoming delays nothing.
func TestSignals_UnreadIncomingDelaysNothing(t *testing.T) {
	s := &Signals{incoming: make(chan ReceivedSignal, 1)}
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM} {
		s.recordReceived(sig, 1, 0)
	}
	if first := <-s.Incoming(); len(s.Received()) != 3 || first.Signal != syscall.SIGUSR1 || len(s.incoming) != 0 {
		t.Errorf("received %+v, want 3; Incoming gave %+v first and holds %d more, want USR1 and 0",
			s.Received(), first, len(s.incoming))
	}
}

// A signal that the handler has counted and relay has not seen is on its way.
func TestSignals_OnTheWayKnowsUncollectedSignal(t *testing.T) {
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
