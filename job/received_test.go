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
		t.Fatalf("sent: %+v, want one %v", sent, sig)
	}
	s := sent[0]
	name := ""
	if pid > 0 {
		name = nameOf(pid)
	}
	if s.Signal != sig || s.Name != unix.SignalName(sig) || s.Kernel != kernel ||
		s.PID != pid || s.Process != name || s.At.IsZero() {
		t.Errorf("sent: %+v, want %v from %d %q, kernel %v", s, sig, pid, name, kernel)
	}
}

// The sender of a signal is known by process ID and name, and an immediate repetition is merged.
func TestReceived_ByProcess(t *testing.T) {
	t.Parallel()
	w := start(t, command(t, "agent", "counter", os.Args[0]))
	w.pid("ready")
	w.signal(syscall.SIGTERM)
	w.expectOnly("SIGTERM")
	_, st := w.end()
	wantReceived(t, st.ReceivedSignals, syscall.SIGTERM, false, os.Getpid())
	if at := st.ReceivedSignals[0].At; at.Before(st.Start) || at.After(st.End) {
		t.Errorf("sent at %v, the job ran from %v to %v", at, st.Start, st.End)
	}
}

// A signal to the whole group may end the job before our copy arrives.
func TestReceived_ToGroup(t *testing.T) {
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
			t.Errorf("exit code %d", code)
		}
		wantReceived(t, st.ReceivedSignals, syscall.SIGTERM, false, os.Getpid())
	}
}

// Signals of the terminal have no sender.
func TestReceived_ByTerminal(t *testing.T) {
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
		t.Errorf("exit code %d", st.ExitCode)
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
func TestReceived_ToSelf(t *testing.T) {
	s := caughtByUs(t, syscall.SIGUSR1)
	wantReceived(t, s.Received(), syscall.SIGUSR1, false, os.Getpid())
	wantReceived(t, []ReceivedSignal{<-s.Incoming()}, syscall.SIGUSR1, false, os.Getpid())
}

// A receiver that does not read Incoming delays nothing.
func TestSignals_IncomingUnread(t *testing.T) {
	s := &Signals{incoming: make(chan ReceivedSignal, 1)}
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM} {
		s.recordReceived(sig, 1, 0)
	}
	if first := <-s.Incoming(); len(s.Received()) != 3 || first.Signal != syscall.SIGUSR1 || len(s.incoming) != 0 {
		t.Errorf("sent %+v, noted first %+v and %d more", s.Received(), first, len(s.incoming))
	}
}

// A signal that the handler has counted and relay has not seen is on its way.
func TestSignals_OnTheWay(t *testing.T) {
	s := caughtByUs(t, syscall.SIGUSR2)
	if s.onTheWay(relayedSignals()...) {
		t.Error("a signal that was told is still on its way")
	}
	behind := &Signals{}
	if !behind.onTheWay(syscall.SIGTERM, syscall.SIGUSR2) || behind.onTheWay(syscall.SIGTERM) {
		t.Error("SIGUSR2 is not on its way, or SIGTERM is")
	}
}
