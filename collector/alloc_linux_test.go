package collector

import (
	"context"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// watchSleep returns a Sampler of this host and of a job that sleeps until the test ends.
func watchSleep(t testing.TB, o Options) *Sampler {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	job := host.JobOptions{Source: host.JobFromTree, Tree: process.NewTree(process.Options{Root: os.Getpid()}),
		Reaped: func() host.ReapedUsage { return host.ReapedUsage{} }}
	if group, err := cgroup.Find(cgroup.Options{}); err == nil {
		group.CountTasks(false)
		job.Group = group
	}
	return NewSampler(host.NewReader(host.Options{Job: job}), o)
}

// After a warm-up, a sample does not allocate, neither to read nor to compute, even if it reads sources that are not
// read for every sample.
func TestSampler_AllocatesNothing(t *testing.T) {
	testenv.SkipIfShort(t, "five seconds")
	fewest := math.Inf(1)
	for try := 0; try < 3 && fewest > 0.3; try++ { // the runtime itself may allocate for waiting goroutines
		fewest = min(fewest, allocationsOfSample(t))
	}
	check.True(t, fewest <= 0.3, "%.2f allocations per sample, want at most 0.3", fewest)
}

// perNewProcess is the number of allocations needed to identify a new process of the host.
const perNewProcess = 5

// allocationsOfSample returns the mean number of allocations of this process per sample, excluding allocations for new
// processes.
func allocationsOfSample(t *testing.T) float64 {
	const warm, most = 120, 320 // samples of 10 ms; most covers every period except 5 s
	var before, after runtime.MemStats
	var started, ended float64
	ctx, end := context.WithCancel(t.Context())
	defer end()
	s := watchSleep(t, Options{Interval: 10 * time.Millisecond, Observe: func(_ *Sample, rec *Recording) {
		switch rec.Samples {
		case warm:
			started = processesStarted(t)
			runtime.ReadMemStats(&before)
		case warm + most:
			runtime.ReadMemStats(&after)
			ended = processesStarted(t)
			end()
		}
	}})
	s.Run(ctx)
	return (float64(after.Mallocs-before.Mallocs) - perNewProcess*(ended-started)) / most
}

// processesStarted returns the number of processes and threads started on the host since boot.
func processesStarted(t *testing.T) float64 {
	data := check.Value(os.ReadFile("/proc/stat"))(t)
	_, rest, _ := strings.Cut(string(data), "\nprocesses ")
	count, _, _ := strings.Cut(rest, "\n")
	return check.Value(strconv.ParseFloat(count, 64))(t)
}

// BenchmarkSample_Job measures a whole sample of this host and of a job of one sleeping process.
func BenchmarkSample_Job(b *testing.B) {
	s := watchSleep(b, Options{})
	defer s.reader.Close()
	s.completeBaseline()
	s.takeSample(false)
	b.ReportAllocs()
	for b.Loop() {
		s.takeSample(false)
	}
}

// BenchmarkSample measures the work after a Reading: to compute the Sample and to add it to the ring and the summaries.
func BenchmarkSample(b *testing.B) {
	r := host.NewReader(host.Options{})
	defer r.Close()
	first, second := r.Read(), r.Read()
	p := NewCounterState(first)
	rec := NewRecording(first.At, time.Second, 1000)
	defer collectortest.CPUPerOp(b)()
	for b.Loop() {
		second.At.Mono += time.Second
		var s Sample
		p, s = p.Next(second, 40*time.Millisecond)
		rec.Add(&s)
	}
}
