package plottertest

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// Killed returns the report of a Slurm job with growing memory. The kernel killed it at its limit of 256 MiB, between
// two samples.
func Killed() *reporter.Report {
	const seconds = 14
	r := Report(0, Recording(seconds, 500*time.Millisecond, func(i int, s *collector.Sample) {
		at := float64(i+1) / 2
		Set(s, i, 6, 3, 0)
		s.Values[collector.CPUAvg] = 8 + 2*math.Sin(at)
		s.Values[collector.MemUsed] = 700 + 32*at
		s.Values[collector.JobCPU] = 0.15 + 0.08*math.Sin(3*at)
		s.Values[collector.JobMemory] = 30 + 32*at
		s.Values[collector.JobReadRate], s.Values[collector.JobWriteRate] = 1+at*at/6, 0
		s.Values[collector.JobProcesses], s.Values[collector.JobThreads] = 1, 1
		if i == seconds-1 { // after the kill
			s.Values[collector.JobMemory] = 12
		}
	}))
	n := r.Nodes["0"]
	exit := 137
	r.Run.ID, r.Run.Command, r.Run.Tags = "4711", []string{"python3", "train.py", "--data", "shard.bin"}, nil
	r.Run.Platform, r.Run.ExitCode, r.Run.Signal = reporter.PlatformSlurm, &exit, "SIGKILL"
	n.Job.ExitCode, n.Job.Signal, n.Job.Start = &exit, "SIGKILL", n.Sampling.Start
	n.Job.UserSeconds, n.Job.SystemSeconds, n.Job.MaxRSSMB, n.Job.PeakMemoryMB = 0.9, 0.2, 250, 250
	n.Job.CPUSeconds = 1.1
	n.Metrics[reporter.MetricJobCPU], n.Metrics[reporter.MetricJobCores] = 1.1, 1.1/7
	n.Host.Hostname, n.Agent.Version = "node17", "1.0.0"
	n.Limits = &reporter.Limits{CPUs: 2, AffinityCPUs: 2, MemoryMB: 256, MemoryGroup: "/slurm/job_4711/step_batch"}
	n.Identity = &reporter.Identity{NodeFrom: "SLURM_NODEID", Scheduler: "Slurm", JobID: "4711"}
	n.Verdict = &reporter.Verdict{
		Cause: diagnosis.CauseOOMCgroup, Conditions: []string{},
		Text: "killed by the kernel: python3 (process 13059) hit the memory limit of 256 MiB of its control group",
		Evidence: map[string]any{
			"exit_code": 137.0, "signal": "SIGKILL", "process": "python3", "pid": 13059.0, "limit_mb": 256.0, "peak_mb": 256.0,
			"oom_kills": 1.0, "limit_kills": 1.0, "group": n.Limits.MemoryGroup, "limit_group": n.Limits.MemoryGroup,
			"mb_per_second": 32.0, "time": Start().Add(6900 * time.Millisecond).Format(time.RFC3339Nano),
		},
	}
	n.Findings, r.Run.Verdict = nil, n.Verdict
	return r
}
