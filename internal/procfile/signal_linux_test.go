package procfile

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

func TestHasSignal_ReadsSignalSet(t *testing.T) {
	const status = "Name:\tsh\nSigQ:\t0/1\nSigPnd:\t0000000000000100\nShdPnd:\t8000000000004001\nSigBlk:\tnonsense\n"
	for _, c := range []struct {
		set  string
		sig  uint
		want bool
	}{
		{"SigPnd", 9, true}, {"SigPnd", 8, false}, {"ShdPnd", 1, true}, {"ShdPnd", 15, true}, {"ShdPnd", 64, true}, {"ShdPnd", 63, false},
		{"ShdPnd", 0, false}, {"ShdPnd", 65, false}, {"SigBlk", 1, false}, {"SigCgt", 1, false}, {"Pnd", 9, false},
	} {
		if got := HasSignal([]byte(status), c.set, c.sig); got != c.want {
			t.Errorf("HasSignal(%s, %d) = %v, want %v", c.set, c.sig, got, c.want)
		}
	}

	if HasSignal(nil, "SigPnd", 9) || HasSignal([]byte("\nSigPnd:"), "SigPnd", 9) {
		t.Error("HasSignal = true without a set, want false")
	}
}

func TestStatusValue_MatchesWholeKey(t *testing.T) {
	const status = "Name:\tsh\nUid:\t1\t2\t3\t4\nVmHWM:\t    1234 kB\nEmpty:\nThreads:\t7"
	for key, want := range map[string]string{
		"Uid": "1\t2\t3\t4", "VmHWM": "1234 kB", "Empty": "", "Threads": "7", "Vm": "", "HWM": "", "None": "",
	} {
		if got := StatusValue([]byte(status), key); got != want {
			t.Errorf("StatusValue(%q) = %q, want %q", key, got, want)
		}
	}
}

// Signals sent to a stopped process stay pending.
func TestHasSignal_FindsPendingSignalOfStoppedProcess(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	check.Must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()

	status := func() []byte {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/status")
		check.Must(t, err)
		return data
	}

	stopped := func() bool { return strings.Contains(string(status()), "\nState:\tT") }
	pending := func() bool { return stopped() && HasSignal(status(), "ShdPnd", uint(syscall.SIGTERM)) }
	if pending() {
		t.Error("SIGTERM is pending before it is sent, want it not pending")
	}
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	for begin := time.Now(); !stopped() && time.Since(begin) < 5*time.Minute; {
		time.Sleep(time.Millisecond)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if !pending() {
		t.Error("SIGTERM is not pending after it was sent to a stopped process, want it pending")
	}
}
