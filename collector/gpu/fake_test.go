//go:build unix

package gpu

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
		time.Sleep(time.Duration(n) * time.Millisecond)
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
		case kind == "die" && round == n:
			fmt.Fprintln(os.Stderr, "Unable to determine the device handle for GPU0: GPU is lost")
			return 15
		case kind == "hang" && round == n:
			gpuSleep()
		case kind == "close" && round == n:
			os.Stdout.Close()
			os.Stderr.Close()
			gpuSleep()
		}
		time.Sleep(loop)
	}
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
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "nvidia-smi"))
	}
	must(t, err)
	return dir
}

// gpuEnv returns the environment in which the fake prints a fixture with a fault.
func gpuEnv(t *testing.T, fixture, fake string, more ...string) []string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("testdata", fixture))
	must(t, err)
	return append([]string{"PATH=/nowhere:" + gpuPath(t), "GPU_FIXTURE=" + file, "GPU_FAKE=" + fake, "GPU_LOOP=20",
		"GORACE=atexit_sleep_ms=0"}, more...) // otherwise, each fake that exits sleeps for a second
}

// gpuOpen opens a Monitor with shorter timeouts than usual.
func gpuOpen(t *testing.T, env []string) *Monitor {
	t.Helper()
	m := Open(Options{Sys: t.TempDir(), Env: env})
	m.timing = timing{interval: time.Second, stale: 20 * time.Second, hang: time.Minute, backoff: 10 * time.Millisecond, grace: time.Second}
	return m
}

// gpuRun runs a Monitor until the test ends or stop is called.
func gpuRun(t *testing.T, m *Monitor) (stop func()) {
	t.Helper()
	ctx, cancel := gpuContext(t)
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
