//go:build unix

package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

func gpuContext(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// gpuWait waits until want returns true for a Reading, and returns that Reading. what describes it.
func gpuWait(t *testing.T, m *Monitor, what string, want func(Reading) bool) Reading {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		r := m.Read()
		if want(r) {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s within a minute; Reading = %+v", what, r)
		}
		time.Sleep(time.Millisecond)
	}
}

// gpuEnded reports whether a process has ended, reaped or not.
func gpuEnded(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(data), ") Z ")
}

// gpuWaitEnded waits until a process has ended.
func gpuWaitEnded(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !gpuEnded(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d has not ended within a minute", pid)
		}
	}
}

func gpuErrHas(text string) func(Reading) bool {
	return func(r Reading) bool { return r.Err != nil && strings.Contains(r.Err.Error(), text) }
}

func gpuDevices(n int) func(Reading) bool {
	return func(r Reading) bool { return len(r.Devices) == n && r.Err == nil }
}

func TestMonitor_RunReadsAllDevices(t *testing.T) {
	for fixture, n := range map[string]int{"h200.txt": 1, "t4.txt": 1, "a100x8.txt": 8, "h100x16.txt": 16} {
		m := gpuOpen(t, gpuEnv(t, fixture, ""))
		if r := m.Read(); r.Err != nil || len(r.Devices) > 0 || m.PID() != 0 {
			t.Errorf("before Run: Reading = %+v, PID() = %d; want an empty Reading and 0", r, m.PID())
		}
		stop := gpuRun(t, m)
		r := gpuWait(t, m, "devices", gpuDevices(n))
		for i, s := range r.States {
			if math.IsNaN(s.UtilizationPct) || math.IsNaN(s.MemoryUsedMB) || math.IsNaN(s.PowerWatts) || r.Devices[i].Index != i {
				t.Errorf("%s: device %d = %+v, state = %+v; want all values", fixture, i, r.Devices[i], s)
			}
		}
		if len(r.Missing) != 0 {
			t.Errorf("%s: missing = %v, want none", fixture, r.Missing)
		}
		pid := m.PID()
		if group, err := syscall.Getpgid(pid); err != nil || group != pid {
			t.Errorf("process %d is in process group %d (error %v), want a separate group", pid, group, err)
		}
		stop()
		if syscall.Kill(pid, 0) == nil || m.PID() != 0 {
			t.Errorf("after Run: process %d exists or PID() = %d, want an ended process and 0", pid, m.PID())
		}
	}
}

func TestMonitor_RunDropsUnknownFields(t *testing.T) {
	m := gpuOpen(t, gpuEnv(t, "t4.txt", "", "GPU_UNKNOWN=clocks_throttle_reasons.active,mig.mode.current,enforced.power.limit"))
	gpuRun(t, m)
	r := gpuWait(t, m, "a device", gpuDevices(1))
	if got := strings.Join(r.States[0].Throttle, " "); got != "sw_power_cap sw_thermal_slowdown" {
		t.Errorf("throttle reasons from the field with the newer name = %q, want sw_power_cap sw_thermal_slowdown", got)
	}
	if r.Devices[0].PowerLimitWatts != 70 {
		t.Errorf("power limit = %v, want 70 from power.limit", r.Devices[0].PowerLimitWatts)
	}
	if len(r.Missing) != 1 || r.Missing[0].What != "gpu_mig" {
		t.Errorf("missing = %v, want only gpu_mig", r.Missing)
	}
}

func TestMonitor_RunEndsIfEveryFieldIsUnknown(t *testing.T) {
	all := strings.Join(newQuery().fields, ",") + ",clocks_event_reasons.active"
	m := gpuOpen(t, gpuEnv(t, "t4.txt", "", "GPU_UNKNOWN="+all))
	gpuRun(t, m)
	gpuWait(t, m, "the refusal", gpuErrHas(`Field "index" is not a valid field`))
}

func TestMonitor_RunReportsMessageWithoutRestart(t *testing.T) {
	for fixture, want := range map[string]string{
		"mismatch.txt": "Failed to initialize NVML: Driver/library version mismatch",
		"nodriver.txt": "couldn't communicate with the NVIDIA driver",
		"nodevice.txt": "No devices were found",
	} {
		m := gpuOpen(t, gpuEnv(t, fixture, ""))
		m.Run(t.Context()) // returns, because a restart is useless
		if err := m.Read().Err; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "restarts") {
			t.Errorf("%s: error = %v, want one with %q and without restarts", fixture, err, want)
		}
	}
}

func TestMonitor_RunGivesUpAfterThreeRestarts(t *testing.T) {
	m := gpuOpen(t, gpuEnv(t, "h200.txt", "die:2"))
	gpuRun(t, m)
	gpuWait(t, m, "the restart", func(r Reading) bool {
		return r.Err == nil && len(r.Devices) == 1 && slices.ContainsFunc(r.Missing, func(g series.Missing) bool {
			return g.What == "gpu" && strings.HasPrefix(g.Why, "started again: ") && strings.HasSuffix(g.Why, "GPU is lost")
		})
	})

	r := gpuWait(t, m, "the end", gpuErrHas("gave up after 3 restarts: "))
	if !strings.HasSuffix(r.Err.Error(), "GPU is lost") {
		t.Errorf("error = %v, want one that ends with GPU is lost", r.Err)
	}
	if len(r.Devices) != 1 || !math.IsNaN(r.States[0].UtilizationPct) || m.PID() != 0 {
		t.Errorf("after the end: Reading = %+v, PID() = %d; want 1 device without values, and 0", r, m.PID())
	}
}

func TestMonitor_RunKillsHungNvidiaSMI(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds; run without -short")
	}
	for fake, first := range map[string]bool{"hang:2": true, "slow:100000": false} {
		m := gpuOpen(t, gpuEnv(t, "h200.txt", fake))
		m.timing.stale, m.timing.hang = 250*time.Millisecond, 400*time.Millisecond
		if first {
			m.timing.hang = time.Second // at least one of its four starts must be faster
		}
		gpuRun(t, m)
		if first {
			gpuWait(t, m, "a device", func(r Reading) bool { return len(r.Devices) == 1 && r.States[0].UtilizationPct == 28 })
		}
		var pid int
		gpuWait(t, m, "a process", func(Reading) bool { pid = m.PID(); return pid != 0 })
		r := gpuWait(t, m, "no response", gpuErrHas("printed nothing"))
		if first && !math.IsNaN(r.States[0].UtilizationPct) {
			t.Errorf("%s: state = %+v while nvidia-smi hangs, want unknown values", fake, r.States[0])
		}
		gpuWait(t, m, "error after the last restart", gpuErrHas("gave up after 3 restarts"))
		gpuWaitEnded(t, pid)
	}
}

// Environment variables that affect shells do not prevent the shell from executing nvidia-smi.
func TestMonitor_RunIgnoresShellVariables(t *testing.T) {
	m := gpuOpen(t, append(gpuEnv(t, "h200.txt", ""), "OPTIND=abc", "SHELLOPTS=noexec", "ENV=/nothing"))
	gpuRun(t, m)
	gpuWait(t, m, "a device", gpuDevices(1))
}

func TestMonitor_RunWaitsForSlowStart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds; run without -short")
	}
	m := gpuOpen(t, gpuEnv(t, "h200.txt", "slow:2000"))
	m.timing.stale = 100 * time.Millisecond
	gpuRun(t, m)
	gpuWait(t, m, "note that nothing was printed yet", gpuErrHas("has printed nothing yet"))
	gpuWait(t, m, "a device", gpuDevices(1))
}

func TestMonitor_RunGivesUpOnFloodAndGarbage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds; run without -short")
	}
	m := gpuOpen(t, gpuEnv(t, "h200.txt", "flood"))
	m.Run(t.Context())
	if err := m.Read().Err; err == nil || !strings.Contains(err.Error(), "more than 1 MiB a second") {
		t.Errorf("flood of output: error = %v, want one with \"more than 1 MiB a second\"", err)
	}
	m = gpuOpen(t, gpuEnv(t, "h200.txt", "garbage"))
	m.timing.hang = 2 * time.Second
	gpuRun(t, m)
	r := gpuWait(t, m, "error that quotes the output", func(r Reading) bool { // quotes the last of several lines
		return gpuErrHas("nvidia-smi printed something unexpected: ")(r) && strings.HasSuffix(r.Err.Error(), "999…")
	})
	if text := r.Err.Error(); len(text) > 300 || strings.ContainsAny(text, "\x00\x1b\n") {
		t.Errorf("garbage: error = %q, want one line of at most 300 bytes", text)
	}
	r = gpuWait(t, m, "error after the last restart", gpuErrHas("gave up"))
	if !strings.Contains(r.Err.Error(), "printed something unexpected and was killed: [31m") {
		t.Errorf("garbage: error = %v, want that nvidia-smi was killed", r.Err)
	}
	if len(r.Devices) != 0 || strings.ContainsAny(r.Err.Error(), "\x00\x1b\n") {
		t.Errorf("garbage: Reading = %+v, want no devices and an error of one line", r)
	}
}

func TestMonitor_RunKillsStubbornAndRestartsSilentProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds; run without -short")
	}
	for _, fake := range []string{"stubborn", "close:3"} {
		m := gpuOpen(t, gpuEnv(t, "h200.txt", fake))
		m.timing.grace = 4 * time.Second
		if fake == "stubborn" {
			m.timing.grace = 200 * time.Millisecond
		}
		stop := gpuRun(t, m)
		gpuWait(t, m, "a device", gpuDevices(1))
		var pid int
		gpuWait(t, m, "a process", func(Reading) bool { pid = m.PID(); return pid != 0 })
		if fake == "stubborn" {
			stop()
		} else {
			gpuWait(t, m, "another process", func(Reading) bool { return m.PID() != pid && m.PID() != 0 })
		}
		gpuWaitEnded(t, pid) // a killed process ends as soon as it gets a CPU
		stop()
	}
}

// gpuReap waits for a child and reaps it.
func gpuReap(pid int) (int, error) {
	for {
		got, err := syscall.Wait4(pid, nil, 0, nil)
		if err != syscall.EINTR {
			return got, err
		}
	}
}

func TestMonitor_RunLeavesReapingToStart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: on other systems, the Monitor reaps its children")
	}
	m := gpuOpen(t, gpuEnv(t, "h200.txt", "die:3"))
	var lock sync.Mutex
	var reapers sync.WaitGroup
	reaped := make(chan int, 16)
	m.o.Start = func(fork func() (int, error)) error {
		lock.Lock()
		defer lock.Unlock()
		pid, err := fork()
		if err != nil {
			return err
		}
		reapers.Go(func() {
			if got, err := gpuReap(pid); got != pid {
				t.Errorf("wait4(%d) = %d, %v; want the process: the Monitor must not reap it", pid, got, err)
			}
			reaped <- pid
		})
		return nil
	}

	m.Run(t.Context()) // the process dies and is restarted until Run gives up
	reapers.Wait()
	if n := len(reaped); n != 1+maxRestarts {
		t.Errorf("%d processes started, want %d", n, 1+maxRestarts)
	}
	if err := m.Read().Err; err == nil || !strings.Contains(err.Error(), "gave up after 3") {
		t.Errorf("error = %v, want one with gave up after 3", err)
	}

	for _, want := range []error{errors.New("no process to spare"), nil} {
		m = gpuOpen(t, gpuEnv(t, "h200.txt", ""))
		m.o.Start = func(func() (int, error)) error { return want }
		m.Run(t.Context())
		if err := m.Read().Err; err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("Start returned %v: error = %v, want one that wraps it", want, err)
		}
	}
}

// A cancelled Monitor also ends a process that is reaped by other code.
func TestMonitor_RunEndsProcessReapedByStart(t *testing.T) {
	m := gpuOpen(t, gpuEnv(t, "h200.txt", "stubborn"))
	m.timing.grace = 200 * time.Millisecond
	gone := make(chan struct{})
	m.o.Start = func(fork func() (int, error)) error {
		pid, err := fork()
		go func() {
			defer close(gone)
			_, _ = gpuReap(pid)
		}()
		return err
	}

	stop := gpuRun(t, m)
	gpuWait(t, m, "a device", gpuDevices(1))
	stop()
	<-gone
}

// In a long-running program, a process killed by Kill does not remain a zombie, and no other child is reaped by
// mistake.
func TestMonitor_KilledProcessIsReaped(t *testing.T) {
	m := gpuOpen(t, gpuEnv(t, "h200.txt", "stubborn"))
	m.timing.grace = time.Minute
	other := exec.Command("sh", "-c", "exit 5")
	must(t, other.Start())
	ctx, cancel := gpuContext(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Run(ctx)
	}()
	gpuWait(t, m, "a device", gpuDevices(1))
	pid := m.PID()
	cancel()
	m.Kill()
	<-ended
	for deadline := time.Now().Add(time.Minute); syscall.Kill(pid, 0) != syscall.ESRCH; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("killed process %d was not reaped within a minute", pid)
		}
	}
	if _ = other.Wait(); other.ProcessState.ExitCode() != 5 {
		t.Errorf("other child ended with %v, want exit code 5", other.ProcessState)
	}
}

// A message that follows rows is reported as soon as the rows are old.
func TestVendorState_CheckReportsMessageAfterOldRows(t *testing.T) {
	now := time.Now()
	b := vendorState{queryStarted: now.Add(-time.Minute), updatedAt: now.Add(-30 * time.Second), message: "WHAT", messageAt: now}
	if err := b.check(now, 5*time.Second); err == nil || err.Error() != "query GPUs: nvidia-smi printed something unexpected: WHAT" {
		t.Errorf("check with a message after old rows = %v, want the message", err)
	}
	b.updatedAt = now.Add(-time.Second)
	if err := b.check(now, 5*time.Second); err != nil {
		t.Errorf("check with a message after a new row = %v, want nil", err)
	}
}
