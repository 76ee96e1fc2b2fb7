package reportertest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/reporter"
)

// RunStart is the start of the runs that this package makes.
var RunStart = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// Recording returns a Recording of n seconds with a load that rises from idle to busy.
func Recording(n int) *collector.Recording {
	start := host.Instant{Wall: RunStart}
	rec := collector.NewRecording(start, time.Second, 1000)
	rec.Host = host.Info{Hostname: "gpu-box-17", BootID: "b", OS: "linux", Kernel: "6.1", Arch: "amd64",
		CPUModel: "CPU", CPUs: 8, MemoryMB: 32000}
	rec.Disks, rec.NICs = []string{"nvme0n1"}, []string{"lo", "eth0"}
	rec.BootMB = []float64{1000, 2000, 5, 100, 5, 300}
	for i := range n {
		s := Sample(i, n)
		rec.Add(&s)
	}
	length := time.Duration(n) * time.Second
	rec.End = host.Instant{Wall: RunStart.Add(length), Mono: length, Boot: length}
	return rec
}

// Sample returns the sample of second i of n. The values of all columns rise from sample to sample.
func Sample(i, n int) collector.Sample {
	var s collector.Sample
	share := float64(i+1) / float64(n)
	for c := range s.Values {
		s.Weights[c] = 1
		switch col := collector.Column(c); {
		case col == collector.Timestamp:
			s.Values[c] = float64(RunStart.Unix() + int64(i) + 1)
		case col.IsPercent():
			s.Values[c] = math.Round(share*1000) / 10
		default:
			s.Values[c] = share * 40 * float64(c)
		}
	}
	return s
}

// Input returns the input for the report of a job with Recording(n).
func Input(node, n, exit int, signal string) reporter.Input {
	end := RunStart.Add(time.Duration(n) * time.Second)
	return reporter.Input{
		Node: node,
		Run: reporter.Run{ID: "20240501-120000-7f3a", Command: []string{"python", "train.py", "--epochs", "3"},
			Start: reporter.Time{Time: RunStart}, End: reporter.Time{Time: end},
			WallSeconds: float64(n), ExitCode: &exit, Signal: signal},
		Recording: Recording(n),
		Job: &reporter.Job{PID: 4242, Start: reporter.Time{Time: RunStart}, End: reporter.Time{Time: end},
			ExitCode: new(exit), Signal: signal,
			UserSeconds: 610.25, SystemSeconds: 12.5, MaxRSSMB: 1536.4},
		Agent: reporter.Agent{Version: "test", CPUSeconds: 0.1534, MaxRSSMB: 14},
	}
}

// JobRecording returns a Recording of n seconds with a typical job that is measured by its processes. Half of the GPUs
// belong to the job.
func JobRecording(n, gpus int) *collector.Recording {
	rec := Recording(0)
	rec.EnsureGPUColumns(gpus)
	rec.Account.Source, rec.Account.MemoryKind = host.JobFromTree, host.MemoryPSS
	rec.Account.Limits = host.Limits{CPUs: 8, CPUSetCPUs: 8, AffinityCPUs: 8, CPUQuota: series.Unknown(),
		MemoryMB: series.Unknown()}
	rec.Account.CPUSeconds = 622.75
	rec.Account.HostOOMKills, rec.Account.HostStall = 0, collector.Stalls{CPUSome: 0.3, MemorySome: 0, MemoryFull: 0,
		IOSome: 0.2, IOFull: 0.1}
	for g := range gpus {
		rec.GPUs = append(rec.GPUs, collector.GPU{
			Device: gpu.Device{Index: g, UUID: fmt.Sprint("GPU-", g), Name: "NVIDIA A100-SXM4-40GB", MemoryMB: 40960,
				PowerLimitWatts: 400},
			OfJob: g < (gpus+1)/2, EnergyJoules: 15_000, ClockMHz: 1410,
		})
	}

	for i := range n {
		s := Sample(i, n)
		for c := int(collector.JobCPU); c < len(s.Values); c++ {
			s.Values[c] = math.NaN()
		}
		jobSample(&s, float64(i+1)/float64(n), gpus)
		rec.Add(&s)
	}

	length := time.Duration(n) * time.Second
	rec.End = host.Instant{Wall: RunStart.Add(length), Mono: length, Boot: length}
	return rec
}

// jobSample sets the values of a job and its GPUs. share is the elapsed share of the run.
func jobSample(s *collector.Sample, share float64, gpus int) {
	for c, v := range map[collector.Column]float64{
		collector.JobCPU:        6.2 * share,
		collector.JobMemory:     2048 * share,
		collector.JobProcesses:  4,
		collector.JobThreads:    36,
		collector.JobRead:       120 * share,
		collector.JobWrite:      200 * share,
		collector.JobReadRate:   0.6,
		collector.JobReadCalls:  500 * share,
		collector.JobWriteCalls: 7 * share,
		collector.JobWriteRate:  1,
		collector.CPUIowait:     0.5,
		collector.CPUSteal:      0,
		collector.Load1:         3.5,
		collector.ProcsRunning:  5,
		collector.SwapIn:        0,
		collector.SwapOut:       0,
		collector.MajorFaults:   0,
		collector.PSICPUSome:    1,
		collector.PSIMemorySome: 0,
		collector.PSIMemoryFull: 0,
		collector.PSIIOSome:     1,
		collector.PSIIOFull:     0.5,

		collector.JobMemoryAnon:  1664 * share,
		collector.JobMemoryFile:  192 * share,
		collector.JobMemoryShmem: 192 * share,
	} {
		s.Values[c] = v
	}
	for g := range gpus {
		for k, v := range map[collector.GPUKey]float64{
			collector.GPUUtilization: 20 * float64(g+1) * share,
			collector.GPUMemoryUsed:  8192 * float64(g+1) * share,
			collector.GPUPower:       60 + 100*share,
			collector.GPUTemperature: 50,
		} {
			s.Values[collector.GPUColumn(g, k)] = min(v, 40000)
		}
	}
}

// NoJobRecording returns a Recording of n seconds without the values of a job.
func NoJobRecording(n int) *collector.Recording {
	rec, end := Recording(0), Recording(n).End
	rec.Account.HostOOMKills, rec.Account.HostStall = 0, collector.Stalls{}
	for i := range n {
		s := Sample(i, n)
		jobSample(&s, 1, 0)
		for c := range s.Values {
			if c > int(collector.NumColumns) || slices.Contains([]string{host.SourceJob, host.SourceCgroup},
				collector.Column(c).Info().Source) {
				s.Values[c] = math.NaN()
			}
		}
		rec.Add(&s)
	}
	rec.End = end
	return rec
}

// JobInput is Input with JobRecording(n, 0).
func JobInput(node, n, exit int, signal string) reporter.Input {
	in := Input(node, n, exit, signal)
	in.Recording = JobRecording(n, 0)
	return in
}
