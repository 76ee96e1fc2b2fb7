package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// The benchmarks compare the real binary with alternatives in turn or in parallel, so that noise on the machine affects
// both alike. docs/dev/performance.md has the figures.

// BenchmarkAddedLatency measures what "perfagent run -- true" adds to "true", and what --ops on adds to that.
func BenchmarkAddedLatency(b *testing.B) {
	bin, dir := clitest.Binary(b), b.TempDir()
	var alone, wrapped, heard []float64
	for b.Loop() {
		alone = append(alone, milliseconds(b, dir, "true"))
		id := strconv.Itoa(len(alone))
		wrapped = append(wrapped, milliseconds(b, dir, bin, "run", "--run-id", "r"+id, "--", "true"))
		heard = append(heard, milliseconds(b, dir, bin, "run", "--ops", "on", "--run-id", "o"+id, "--", "true"))
	}
	b.ReportMetric(clitest.Median(alone), "true-ms")
	b.ReportMetric(clitest.Median(wrapped), "run-ms")
	b.ReportMetric(clitest.Median(wrapped)-clitest.Median(alone), "added-ms")
	b.ReportMetric(clitest.Median(heard)-clitest.Median(wrapped), "ops-added-ms")
}

// BenchmarkOpAddedLatency measures what "perfagent op -- true" adds to "true".
func BenchmarkOpAddedLatency(b *testing.B) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	check.Must(b, err)
	defer conn.Close()
	b.Setenv("PERFAGENT_OPS_ADDR", conn.LocalAddr().String())

	bin, dir := clitest.Binary(b), b.TempDir()
	var alone, recorded []float64
	for b.Loop() {
		alone = append(alone, milliseconds(b, dir, "true"))
		recorded = append(recorded, milliseconds(b, dir, bin, "op", "--", "true"))
	}
	b.ReportMetric(clitest.Median(alone), "true-ms")
	b.ReportMetric(clitest.Median(recorded)-clitest.Median(alone), "added-ms")
}

// milliseconds runs a command to its end and returns its wall time.
func milliseconds(tb testing.TB, dir string, args ...string) float64 {
	tb.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	start := time.Now()
	if err := cmd.Run(); err != nil {
		tb.Fatalf("%v: %v", args, err)
	}
	return float64(time.Since(start)) / 1e6
}

// BenchmarkSamplingCost compares the CPU time of sampling in steady state, including the journal, with perf.py's psutil
// method, which runs at the same time.
func BenchmarkSamplingCost(b *testing.B) {
	for _, interval := range []string{"1s", "100ms"} {
		b.Run(interval, func(b *testing.B) {
			for b.Loop() {
				ours, theirs := samplingCost(b, interval, 20*time.Second)
				b.ReportMetric(ours, "perfagent-ms/s")
				b.ReportMetric(theirs, "perf.py-ms/s")
				b.ReportMetric(ours/theirs, "ratio")
			}
		})
	}
}

// samplingCost returns the CPU time of perfagent and of perf.py's method, in milliseconds per second.
func samplingCost(b *testing.B, interval string, window time.Duration) (ours, theirs float64) {
	python := os.Getenv("PERFAGENT_TEST_PYTHON")
	if python == "" {
		python, _ = filepath.Abs("../../.tools/venv/bin/python")
	}
	if _, err := os.Stat(python); err != nil {
		b.Skip("no psutil to compare with: run make bench, which installs it")
	}
	every, err := time.ParseDuration(interval)
	check.Must(b, err)
	script, _ := filepath.Abs("../../scripts/perfpy_way.py")
	seconds := fmt.Sprint((window + 4*time.Second).Seconds())
	peer := exec.Command(python, script, "--interval", fmt.Sprint(every.Seconds()), "--seconds", seconds)
	var out bytes.Buffer
	peer.Stdout = &out
	us := exec.Command(clitest.Binary(b), "run", "--interval", interval, "--", "sleep", seconds)
	us.Dir = b.TempDir()
	check.Must(b, errors.Join(peer.Start(), us.Start()))
	time.Sleep(2 * time.Second) // skip the start
	before, from := cpuTime(b, us.Process.Pid), time.Now()
	time.Sleep(window)
	ours = float64(cpuTime(b, us.Process.Pid)-before) / 1e6 / time.Since(from).Seconds()
	check.Must(b, errors.Join(us.Wait(), peer.Wait()))
	var cost struct {
		CPU  float64 `json:"cpu_seconds"`
		Wall float64 `json:"wall_seconds"`
	}
	check.Must(b, json.Unmarshal(out.Bytes(), &cost))
	return ours, cost.CPU / cost.Wall * 1000
}

// cpuTime returns the CPU time of all threads of a process.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	used, ok := clitest.ThreadTime(b, pid)
	if !ok {
		b.Skipf("process %d has no schedstat: the kernel lacks CONFIG_SCHED_INFO", pid)
	}
	return used
}

// BenchmarkOutput measures a job that writes 2 GiB to stdout, with and without perfagent.
func BenchmarkOutput(b *testing.B) {
	for _, to := range []string{"file", "pipe"} {
		b.Run(to, func(b *testing.B) {
			var alone, wrapped []float64
			for b.Loop() {
				job := []string{"head", "-c", "2G", "/dev/zero"}
				alone = append(alone, outputSeconds(b, to, job))
				wrapped = append(wrapped, outputSeconds(b, to, append([]string{clitest.Binary(b), "run", "--"}, job...)))
			}
			b.ReportMetric(clitest.Median(alone), "alone-s")
			b.ReportMetric(clitest.Median(wrapped), "wrapped-s")
			b.ReportMetric(clitest.Median(wrapped)/clitest.Median(alone), "ratio")
		})
	}
}

func outputSeconds(b *testing.B, to string, args []string) float64 {
	b.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = b.TempDir()
	if to == "file" {
		f, err := os.Create(filepath.Join(cmd.Dir, "out"))
		check.Must(b, err)
		defer func() { check.Must(b, errors.Join(f.Close(), os.Remove(f.Name()))) }()
		cmd.Stdout = f
		start := time.Now()
		check.Must(b, cmd.Run())
		return time.Since(start).Seconds()
	}
	pipe, err := cmd.StdoutPipe()
	check.Must(b, err)
	start := time.Now()
	check.Must(b, cmd.Start())
	n, _ := io.Copy(io.Discard, pipe)
	if err := cmd.Wait(); err != nil || n != 2<<30 {
		b.Fatalf("read %d bytes (%v), want %d", n, err, 2<<30)
	}
	return time.Since(start).Seconds()
}

// BenchmarkResident measures the peak memory of a run that fills and halves the ring three times.
func BenchmarkResident(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		milliseconds(b, dir, clitest.Binary(b), "run", "--interval", "10ms", "--run-id", "r", "--", "sleep", "45")
		r := reportertest.ReadFile(b, filepath.Join(dir, "perfagent-out", "r", "node-0.json"))
		b.ReportMetric(r.Nodes["0"].Agent.MaxRSSMB, "max-rss-MiB")
	}
}

// BenchmarkBinarySize reports the size of the static, stripped binary.
func BenchmarkBinarySize(b *testing.B) {
	path := filepath.Join(b.TempDir(), "perfagent")
	for b.Loop() {
		if out, err := exec.Command("sh", "../../scripts/build.sh", path).CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	info, err := os.Stat(path)
	check.Must(b, err)
	b.ReportMetric(float64(info.Size())/1e6, "MB")
}
