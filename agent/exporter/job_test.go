package exporter

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// wideFeed is the run of a job with limits on a node with two GPUs; the second one has few values.
func wideFeed(interval time.Duration) *feed {
	f := listenFeed(interval)
	a, unknown := &f.rec.Account, series.Unknown()
	a.Source, a.MemoryKind, a.CPUSeconds = host.JobFromGroup, host.MemoryGroup, 12.5
	a.Limits.CPUs, a.Limits.MemoryMB = 1.5, 256
	a.Periods, a.ThrottledPeriods, a.ThrottledSeconds, a.OOMKills, a.HostOOMKills = 100, 25, 7.5, 1, 2
	a.JobStall = collector.Stalls{CPUSome: 1, CPUFull: 2, MemorySome: 3, MemoryFull: 4, IOSome: 5, IOFull: 6}
	a.HostStall = collector.Stalls{CPUSome: 10, CPUFull: unknown, MemorySome: 30, MemoryFull: 40, IOSome: 50, IOFull: 60}
	f.rec.GPUs = []collector.GPU{
		{Device: gpu.Device{Index: 0, UUID: "GPU-a", Name: `A\B`, MemoryMB: 1024, PowerLimitWatts: 400},
			OfJob: true, EnergyJoules: 5000, ClockMHz: 1410},
		{Device: gpu.Device{Index: 1, UUID: "GPU-b", MemoryMB: unknown, PowerLimitWatts: unknown},
			EnergyJoules: unknown, ClockMHz: unknown},
	}
	f.rec.EnsureGPUColumns(2)
	return f
}

// A sidecar, and a job before its first Reading: unknown values have no line.
func TestMetrics_UnknownJobValuesHaveNoLine(t *testing.T) {
	f := listenFeed(time.Second)
	f.Begin(f.rec)
	for name := range parsed(t, string(f.metrics())) {
		if strings.HasPrefix(name, "perfagent_job_") || strings.HasPrefix(name, "perfagent_gpu_") {
			t.Errorf("%s has a line, want none without a job and GPUs", name)
		}
	}
	f = listenFeed(time.Second)
	f.rec.Account.Source = host.JobFromTree
	f.Begin(f.rec)
	got := parsed(t, string(f.metrics()))
	if v, there := got["perfagent_job_cpu_seconds_total"]; !there || v != 0 {
		t.Errorf("the job's CPU time begins with %v (present: %v), want 0", v, there)
	}
	if v, there := got["perfagent_job_info{source=tree,memory_kind=}"]; !there || v != 1 {
		t.Errorf("no perfagent_job_info with source=tree and the value 1: %v", got)
	}
	for _, name := range []string{"perfagent_job_memory_bytes", "perfagent_job_oom_kills_total", "perfagent_job_memory_limit_bytes"} {
		if v, there := got[name]; there {
			t.Errorf("%s is %v, want no line before the first reading", name, v)
		}
	}
}

// GPUs found in mid-run have metrics from then on.
func TestMetrics_GPUFoundLaterAppears(t *testing.T) {
	f, found := listenFeed(time.Second), wideFeed(time.Second)
	f.Begin(f.rec)
	f.sample()
	if strings.Contains(string(f.metrics()), "perfagent_gpu_") {
		t.Error("a GPU metric has a line before a GPU was found, want none")
	}
	f.rec.GPUs = found.rec.GPUs
	f.rec.EnsureGPUColumns(2)
	f.sample()
	if !strings.Contains(string(f.metrics()), `perfagent_gpu_power_watts{run_id="r-1",node="3",gpu="1",uuid="GPU-b",name=""}`) {
		t.Error("no perfagent_gpu_power_watts of GPU 1 after two GPUs were found, want a line")
	}
}

// Scrapes share nothing with the Recording, which changes concurrently: for the race detector.
func TestExporter_ScrapesDoNotRaceWithSampling(t *testing.T) {
	f := wideFeed(time.Millisecond)
	f.Begin(f.rec)
	stop := make(chan struct{})
	var scrapers sync.WaitGroup
	for range 2 {
		scrapers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f.metrics()
				}
			}
		})
	}
	for range 300 {
		f.rec.Account.Victims = append(f.rec.Account.Victims[:0], host.Victim{PID: 1})
		f.rec.Account.CPUSeconds++
		f.rec.GPUs[0].EnergyJoules++
		f.rec.GPUs[0].Throttle = append(f.rec.GPUs[0].Throttle[:0], "hot")
		f.sample()
	}
	close(stop)
	scrapers.Wait()
}
