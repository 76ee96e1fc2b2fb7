//go:build unix

package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// gpuWait waits until want returns true for a Reading, and returns that Reading. what describes it.
func gpuWait(t *testing.T, m *Monitor, what string, want func(Reading) bool) Reading {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		r := m.Read()
		if want(r) {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s within 5 minutes; Reading = %+v", what, r)
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
	for deadline := time.Now().Add(5 * time.Minute); !gpuEnded(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d has not ended within 5 minutes", pid)
		}
	}
}

func gpuErrHas(text string) func(Reading) bool {
	return func(r Reading) bool { return r.Err != nil && strings.Contains(r.Err.Error(), text) }
}

// gpuToken returns a variable that makes a fake do its fault, or begin, only once for each call of give.
func gpuToken(t *testing.T) (variable string, give func()) {
	token := filepath.Join(t.TempDir(), "token")
	return "GPU_TOKEN=" + token, func() { check.Must(t, os.WriteFile(token, nil, 0o600)) }
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
			check.True(t, !math.IsNaN(s.UtilizationPct) && !math.IsNaN(s.MemoryUsedMB) && !math.IsNaN(s.PowerWatts) && r.Devices[i].Index == i,
				"%s: device %d = %+v, state = %+v; want all values", fixture, i, r.Devices[i], s)
		}
		check.True(t, len(r.Missing) == 0, "%s: missing = %v, want none", fixture, r.Missing)
		pid := m.PID()
		group, err := syscall.Getpgid(pid)
		check.True(t, err == nil && group == pid, "process %d is in group %d, error %v; want its own group", pid, group, err)
		stop()
		check.True(t, syscall.Kill(pid, 0) != nil && m.PID() == 0,
			"after Run: process %d exists or PID() = %d, want an ended process and 0", pid, m.PID())
	}
}

func TestMonitor_RunDropsUnknownFields(t *testing.T) {
	m := gpuOpen(t, gpuEnv(t, "t4.txt", "", "GPU_UNKNOWN=clocks_throttle_reasons.active,mig.mode.current,enforced.power.limit"))
	gpuRun(t, m)
	r := gpuWait(t, m, "a device", gpuDevices(1))
	if got := strings.Join(r.States[0].Throttle, " "); got != "sw_power_cap sw_thermal_slowdown" {
		t.Errorf("throttle reasons from the field with the newer name = %q, want sw_power_cap sw_thermal_slowdown", got)
	}
	check.True(t, r.Devices[0].PowerLimitWatts == 70,
		"power limit = %v, want 70 from power.limit", r.Devices[0].PowerLimitWatts)
	check.True(t, len(r.Missing) == 1 && r.Missing[0].What == "gpu_mig", "missing = %v, want only gpu_mig", r.Missing)
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
		r := m.Read()
		check.True(t, gpuErrHas(want)(r) && !gpuErrHas("restarts")(r), "%s: error = %v, want %q without restarts", fixture, r.Err, want)
	}
}

func TestMonitor_RunGivesUpAfterThreeRestarts(t *testing.T) {
	token, give := gpuToken(t)
	m := gpuOpen(t, gpuEnv(t, "h200.txt", "die:2", token))
	gpuRun(t, m)
	give()
	gpuWait(t, m, "the restart", func(r Reading) bool {
		return r.Err == nil && len(r.Devices) == 1 && slices.ContainsFunc(r.Missing, func(g series.Missing) bool {
			return g.What == "gpu" && strings.HasPrefix(g.Why, "started again: ") && strings.HasSuffix(g.Why, "GPU is lost")
		})
	})

	r := gpuWait(t, m, "the end", func(r Reading) bool { give(); return gpuErrHas("gave up after 3 restarts: ")(r) })
	check.True(t, strings.HasSuffix(r.Err.Error(), "GPU is lost"), "error = %v, want one that ends with GPU is lost", r.Err)
	check.True(t, len(r.Devices) == 1 && math.IsNaN(r.States[0].UtilizationPct) && m.PID() == 0,
		"after the end: Reading = %+v, PID() = %d; want 1 device without values, and 0", r, m.PID())
}

func TestMonitor_RunKillsHungNvidiaSMI(t *testing.T) {
	testenv.SkipIfShort(t, "several seconds")
	for fake, first := range map[string]bool{"hang:2": true, "slow:100000": false} {
		token, give := gpuToken(t)
		gaveUp := gpuErrHas("gave up after 3 restarts")
		var m *Monitor
		pid, seen := 0, false
		for hang := 400 * time.Millisecond; !seen && hang < time.Minute; hang *= 5 { // a start may take longer than hang
			m = gpuOpen(t, gpuEnv(t, "h200.txt", fake, token))
			m.timing.stale, m.timing.hang = hang/2, hang
			gpuRun(t, m)
			gpuWait(t, m, "process with a device", func(r Reading) bool {
				pid = m.PID()
				seen = pid != 0 && (!first || len(r.Devices) == 1 && r.States[0].UtilizationPct == 28)
				return seen || gaveUp(r)
			})
		}
		check.True(t, seen, "%s: the Monitor gave up before the hang", fake)
		r := gpuWait(t, m, "no response", func(r Reading) bool { give(); return gpuErrHas("printed nothing")(r) })
		check.True(t, !first || math.IsNaN(r.States[0].UtilizationPct), "%s: states = %+v during the hang, want unknown values", fake, r.States)
		gpuWait(t, m, "error after the last restart", func(r Reading) bool { give(); return gaveUp(r) })
		gpuWaitEnded(t, pid)
	}
}

// Environment variables that affect shells do not prevent the shell from executing nvidia-smi.
func TestMonitor_RunIgnoresShellVariables(t *testing.T) {
	m := gpuOpen(t, gpuEnv(t, "h200.txt", "", "OPTIND=abc", "SHELLOPTS=noexec", "ENV=/nothing"))
	gpuRun(t, m)
	gpuWait(t, m, "a device", gpuDevices(1))
}

func TestMonitor_RunWaitsForSlowStart(t *testing.T) {
	testenv.SkipIfShort(t, "several seconds")
	token, give := gpuToken(t)
	m := gpuOpen(t, gpuEnv(t, "h200.txt", "slow", token))
	m.timing.stale = 100 * time.Millisecond
	gpuRun(t, m)
	gpuWait(t, m, "note that nothing was printed yet", gpuErrHas("has printed nothing yet"))
	give()
	gpuWait(t, m, "a device", gpuDevices(1))
}

func TestMonitor_RunGivesUpOnFloodAndGarbage(t *testing.T) {
	testenv.SkipIfShort(t, "several seconds")
	m := gpuOpen(t, gpuEnv(t, "h200.txt", "flood"))
	m.timing.grace = time.Second
	m.Run(t.Context())
	check.True(t, gpuErrHas("more than 1 MiB a second")(m.Read()), "flood: Reading = %+v, want more than 1 MiB a second", m.Read())

	var r Reading
	quoted, text := false, ""
	for hang := 2 * time.Second; !quoted && hang < time.Minute; hang *= 5 { // a start may take longer than hang
		m = gpuOpen(t, gpuEnv(t, "h200.txt", "garbage"))
		m.timing.hang = hang
		gpuRun(t, m)
		r = gpuWait(t, m, "error after the last restart", func(r Reading) bool {
			if gpuErrHas("nvidia-smi printed something unexpected: ")(r) && strings.HasSuffix(r.Err.Error(), "999…") {
				text = r.Err.Error() // quotes the last of several lines
			}
			return gpuErrHas("gave up")(r)
		})
		quoted = text != "" && gpuErrHas("printed something unexpected")(r)
	}
	check.True(t, text != "" && len(text) <= 300 && !strings.ContainsAny(text, "\x00\x1b\n"),
		"garbage: error = %q, want one line of at most 300 bytes that quotes the output", text)
	check.True(t, strings.Contains(r.Err.Error(), "printed something unexpected and was killed: [31m"),
		"garbage: error = %v, want that nvidia-smi was killed", r.Err)
	check.True(t, len(r.Devices) == 0 && !strings.ContainsAny(r.Err.Error(), "\x00\x1b\n"),
		"garbage: Reading = %+v, want no devices and an error of one line", r)
}

func TestMonitor_RunKillsStubbornAndRestartsSilentProcess(t *testing.T) {
	testenv.SkipIfShort(t, "several seconds")
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
			got, err := gpuReap(pid)
			check.True(t, got == pid, "wait4(%d) = %d, %v; want the process: the Monitor must not reap it", pid, got, err)
			reaped <- pid
		})
		return nil
	}

	m.Run(t.Context()) // the process dies and is restarted until Run gives up
	reapers.Wait()
	n := len(reaped)
	check.True(t, n == 1+maxRestarts, "%d processes started, want %d", n, 1+maxRestarts)
	check.True(t, gpuErrHas("gave up after 3")(m.Read()), "Reading = %+v, want an error with gave up after 3", m.Read())

	for _, want := range []error{errors.New("no process to spare"), nil} {
		m = gpuOpen(t, gpuEnv(t, "h200.txt", ""))
		m.o.Start = func(func() (int, error)) error { return want }
		m.Run(t.Context())
		if err := m.Read().Err; err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("Start returned %v: error = %v, want one that wraps it", want, err)
		}
	}
}

// A canceled Monitor also ends a process that is reaped by other code.
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
	ctx, cancel := context.WithCancel(t.Context())
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
	for deadline := time.Now().Add(5 * time.Minute); syscall.Kill(pid, 0) != syscall.ESRCH; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("killed process %d was not reaped within 5 minutes", pid)
		}
	}
	_ = other.Wait()
	check.True(t, other.ProcessState.ExitCode() == 5, "other child ended with %v, want exit code 5", other.ProcessState)
}

// A message that follows rows is reported as soon as the rows are old.
func TestVendorState_CheckReportsMessageAfterOldRows(t *testing.T) {
	now := time.Now()
	b := vendorState{queryStarted: now.Add(-time.Minute), updatedAt: now.Add(-30 * time.Second), message: "WHAT", messageAt: now}
	if err := b.check(now, 5*time.Second); err == nil || err.Error() != "query GPUs: nvidia-smi printed something unexpected: WHAT" {
		t.Errorf("check with a message after old rows = %v, want the message", err)
	}
	b.updatedAt = now.Add(-time.Second)
	err := b.check(now, 5*time.Second)
	check.True(t, err == nil, "check with a message after a new row = %v, want nil", err)
}

// TestMain runs the fake nvidia-smi if the test binary is started by that name.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "nvidia-smi":
		os.Exit(gpuFake())
	case "gpu-monitor":
		gpuMonitorForEver()
	}
	os.Exit(m.Run())
}

// gpuFake behaves like nvidia-smi: it rejects unknown flags and fields, and prints the rows of a fixture in the
// requested order. GPU_FAKE selects a fault.
func gpuFake() int {
	fields, loop, bad := gpuFakeFlags(os.Args[1:])
	if bad != "" {
		fmt.Printf("ERROR: Option %s is not recognized. Please run 'nvidia-smi -h'.\n", bad)
		return 1
	}

	known := slices.DeleteFunc(append(newQuery().fields, "clocks_event_reasons.active"), func(f string) bool {
		return slices.Contains(strings.Split(os.Getenv("GPU_UNKNOWN"), ","), f)
	})

	for _, f := range fields {
		if !slices.Contains(known, f) {
			fmt.Printf("Field %q is not a valid field to query.\n\n", f)
			return 2
		}
	}

	if ms, err := strconv.Atoi(os.Getenv("GPU_LOOP")); err == nil {
		loop = time.Duration(ms) * time.Millisecond
	}
	kind, count, _ := strings.Cut(os.Getenv("GPU_FAKE"), ":")
	n, _ := strconv.Atoi(count)
	switch kind {
	case "slow":
		for time.Sleep(time.Duration(n) * time.Millisecond); !gpuTakeToken(); time.Sleep(time.Millisecond) {
		}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "flood":
		for _, err := fmt.Println(strings.Repeat("x", 1000)); err == nil; {
			_, err = fmt.Print(strings.Repeat("x", 1000))
		}
	case "garbage":
		_, _ = os.Stdout.Write([]byte("\x00\x1b[31m\xff\n,,,,\n\n0, GPU-1\n" + strings.Repeat("9", 9000) + "\n"))
		gpuSleep()
	}

	return gpuFakeRounds(kind, n, fields, loop)
}

// gpuFakeRounds prints a round of rows in each interval.
func gpuFakeRounds(kind string, n int, fields []string, loop time.Duration) int {
	rows := gpuFixtureLines(os.Getenv("GPU_FIXTURE"))
	for round := 1; ; round++ {
		for _, line := range rows {
			values := strings.Split(line, ", ")
			if len(values) != len(newQuery().fields) {
				fmt.Println(line)
				continue
			}
			var out []string
			for _, f := range fields {
				out = append(out, values[slices.Index(newQuery().fields, strings.Replace(f, "event", "throttle", 1))])
			}
			if _, err := fmt.Println(strings.Join(out, ", ")); err != nil {
				return 1
			}
		}
		switch {
		case len(rows) > 0 && !strings.Contains(rows[0], ", "):
			return 9 // the fixture is a message
		case kind == "die" && round >= n && gpuTakeToken():
			fmt.Fprintln(os.Stderr, "Unable to determine the device handle for GPU0: GPU is lost")
			return 15
		case kind == "hang" && round >= n && gpuTakeToken():
			gpuSleep()
		case kind == "close" && round == n:
			os.Stdout.Close()
			os.Stderr.Close()
			gpuSleep()
		}
		time.Sleep(loop)
	}
}

// gpuTakeToken reports whether the test has given a token, or gives none.
func gpuTakeToken() bool {
	token := os.Getenv("GPU_TOKEN")
	return token == "" || os.Remove(token) == nil
}

// gpuSleep sleeps until a signal ends the process.
func gpuSleep() {
	for {
		time.Sleep(time.Hour)
	}
}

// gpuFakeFlags parses the command line. bad is the first flag that nvidia-smi does not have.
func gpuFakeFlags(args []string) (fields []string, loop time.Duration, bad string) {
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch {
		case name == "--query-gpu":
			fields = strings.Split(value, ",")
		case arg == "--format=csv,noheader,nounits":
		case name == "--loop-ms":
			ms, err := strconv.Atoi(value)
			if err != nil || ms < 1000 { // an interval shorter than the driver's window is never requested
				return nil, 0, arg
			}
			loop = time.Duration(ms) * time.Millisecond
		default:
			return nil, 0, arg
		}
	}
	return fields, loop, ""
}

// gpuFixtureLines returns the lines of a fixture, without comments.
func gpuFixtureLines(file string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		fmt.Println(err)
		os.Exit(99)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimRight(string(data), "\n"), "\n"), func(l string) bool {
		return strings.HasPrefix(l, "#")
	})
}

// gpuPath returns a directory for the PATH that contains the fake.
func gpuPath(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Symlink(check.Value(os.Executable())(t), filepath.Join(dir, "nvidia-smi")))
	return dir
}

// gpuEnv returns the environment in which the fake prints a fixture with a fault.
func gpuEnv(t *testing.T, fixture, fake string, more ...string) []string {
	t.Helper()
	file := check.Value(filepath.Abs(filepath.Join("testdata", fixture)))(t)
	return append([]string{"PATH=/nowhere:" + gpuPath(t), "GPU_FIXTURE=" + file, "GPU_FAKE=" + fake, "GPU_LOOP=20",
		"GORACE=atexit_sleep_ms=0"}, more...) // otherwise, each fake that exits sleeps for a second
}

// gpuOpen opens a Monitor with shorter timeouts than usual.
func gpuOpen(t *testing.T, env []string) *Monitor {
	t.Helper()
	m := Open(Options{Sys: t.TempDir(), Env: env})
	m.timing = timing{interval: time.Second, stale: 20 * time.Second, hang: time.Minute, backoff: 10 * time.Millisecond, grace: time.Minute}
	return m
}

// gpuRun runs a Monitor until the test ends or stop is called.
func gpuRun(t *testing.T, m *Monitor) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()

	stop = func() {
		cancel()
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			t.Error("Run has not returned within 2 minutes after the end of its context")
		}
	}

	t.Cleanup(stop)
	return stop
}

// gpuMonitorForEver is a program that monitors GPUs until it is killed. It prints the process ID of its query.
func gpuMonitorForEver() {
	m := Open(Options{Sys: "/nowhere"})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go m.Run(ctx)
	for r := m.Read(); len(r.Devices) == 0; r = m.Read() {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(m.PID())
	gpuSleep()
}
