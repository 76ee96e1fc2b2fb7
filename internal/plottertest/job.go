package plottertest

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/reporter"
)

// Job returns the report of a simulated job of nearly three minutes in a Slurm step with 8 CPUs, although it needs only
// five: it reads and prepares its data, trains with a checkpoint every 15 s, evaluates on one CPU, and uploads the
// results.
func Job() *reporter.Report { return jobOf(1640) }

// JobSoFar returns the report of Job after the given number of seconds, as for its live page.
func JobSoFar(seconds int) *reporter.Report {
	r := jobOf(seconds * 10)
	r.Run.ExitCode, r.Run.Incomplete = nil, "the job is still running"
	return r
}

// jobOf returns the report of the job after the given number of samples.
func jobOf(samples int) *reporter.Report {
	const step = 100 * time.Millisecond
	random := rand.New(rand.NewPCG(1, 2))
	var total [6]float64
	memory, disk, slow, used := 6.0, 41.0, 0.0, 0.0
	rec := recording(samples, step, jobLines, func(i int, s *collector.Sample) {
		p := jobPhase(float64(i) * step.Seconds())
		slow = 0.97*slow + 0.03*random.NormFloat64()*8
		noise := func(size float64) float64 { return slow*size/10 + random.NormFloat64()*size/3 }
		clamp := func(v float64) float64 { return math.Round(min(100, max(0, v))*10) / 10 }
		cpu := clamp(p.cpu + noise(5))
		memory += (p.memory - memory) * 0.012
		disk += p.write / 8192 * step.Seconds()
		job := cpu / 100 * 8 * 0.97
		s.JobCPUSeconds = job * step.Seconds()
		used += s.JobCPUSeconds
		for c, v := range map[collector.Column]float64{
			collector.JobCPU:             math.Round(job*100) / 100,
			collector.JobMemory:          math.Round((memory - 5) / 100 * 32768),
			collector.JobProcesses:       9,
			collector.JobThreads:         41,
			collector.JobReadRate:        p.read * 0.9,
			collector.JobWriteRate:       p.write * 0.95,
			collector.CPUIowait:          clamp(p.read / 40),
			collector.CPUSteal:           0,
			collector.LimitMemory:        math.Round((memory - 4) / 100 * 32768),
			collector.LimitMemoryPercent: clamp((memory - 4) / 100 * 32768 / 24576 * 100),
			collector.PSICPUSome:         clamp(cpu/5 + noise(2)),
			collector.PSIMemorySome:      0,
			collector.PSIMemoryFull:      0,
			collector.PSIIOSome:          clamp(p.read/20 + noise(2)),
			collector.PSIIOFull:          clamp(p.read/30 + noise(1)),
			collector.Load1:              4.5,
			collector.ProcsRunning:       5,
			collector.SwapIn:             0,
			collector.SwapOut:            0,
			collector.MajorFaults:        0,
			collector.JobThrottled:       0,
			collector.JobPageCache:       900,
			collector.JobRead:            float64(i),
			collector.JobReadCalls:       float64(i),
			collector.JobWriteCalls:      0,
			collector.JobWrite:           float64(i),
			collector.CPUAvg:             cpu,
			collector.CPUMin:             clamp(cpu * (0.35 + 0.4*cpu/100)),
			collector.CPUMax:             clamp(max(p.most, cpu+noise(8)+6)),
			collector.MemPercent:         clamp(memory + noise(0.3)),
			collector.MemUsed:            memory / 100 * 32768,
			collector.DiskPercent:        clamp(disk),
			collector.DiskUsed:           disk * 8192,
			collector.DiskFree:           (100 - disk) * 8192,
		} {
			s.Values[c] = v
		}
		// In the order of collector.Counters.
		for k, rate := range [6]float64{p.read, p.write, p.loopback, p.sent, p.loopback, p.received} {
			rate = math.Round(max(0, rate*(1+noise(2)/8))*256) / 256
			total[k] += rate * step.Seconds()
			c := collector.Counters()[k]
			s.Values[c.Info().Rate], s.Values[c] = rate, total[k]
		}
	})

	rec.BootMB = []float64{
		88_214.5 + total[0],
		41_007.25 + total[1],
		9120.5 + total[2],
		30_411.75 + total[3],
		9120.5 + total[4],
		77_310.25 + total[5],
	}

	jobAccount(&rec.Account, float64(samples)*step.Seconds())
	rec.Account.CPUSeconds = series.Optional(used)
	r := Report(0, rec)
	r.Run.Command = []string{"python", "train.py", "--data", "/scratch/images", "--epochs", "5"}
	j := r.Nodes["0"].Job
	j.UserSeconds, j.SystemSeconds, j.MaxRSSMB = 0.95*used, 0.05*used, 14950
	r.Run.Platform = reporter.PlatformSlurm
	return r
}

// jobGroup is the control group of the simulated job.
const jobGroup = "/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0"

// jobAccount fills in the account of the simulated job after the given number of seconds, except for its CPU time.
func jobAccount(a *collector.Account, seconds float64) {
	a.Source, a.Group, a.MemoryKind = host.JobFromGroup, jobGroup, host.MemoryGroup
	a.Limits = host.Limits{
		CPUs:         8,
		CPUQuota:     8,
		CPUSetCPUs:   8,
		AffinityCPUs: 8,
		MemoryMB:     24576,
		CPUGroup:     jobGroup,
		MemoryGroup:  jobGroup,
	}
	a.Periods, a.ThrottledPeriods, a.ThrottledSeconds, a.OOMKills, a.HostOOMKills = series.Optional(10*seconds), 0, 0, 0, 0
	part := func(share float64) series.Optional { return series.Optional(share * seconds) }
	stall := collector.Stalls{CPUSome: part(0.07), CPUFull: part(0.02), IOSome: part(0.02), IOFull: part(0.01)}
	a.JobStall, a.HostStall = stall, stall
}

// jobLoad is the load in a phase of the job: percentages, and rates in MiB/s.
type jobLoad struct {
	name                                  string
	cpu, most, memory                     float64
	read, write, loopback, sent, received float64
}

// jobLines returns the lines that the job marks before sample i: the beginning of a phase, and the end of an epoch.
func jobLines(i int) []marks.Line {
	const step = 0.1
	at, now := float64(Start().Unix())+float64(i)*step, jobPhase(float64(i)*step).name
	before := ""
	if i > 0 {
		before = jobPhase(float64(i-1) * step).name
	}

	var lines []marks.Line
	if now != before {
		lines = append(lines, marks.Line{IsPhase: true, Text: now, At: at})
	}
	if before == "train" && now != before {
		lines = append(lines, marks.Line{Text: "epoch " + strconv.Itoa(int(float64(i)*step-38)/15+1), At: at})
	}

	return lines
}

func jobPhase(at float64) jobLoad {
	switch {
	case at < 14:
		return jobLoad{name: "read", cpu: 14, most: 72, memory: 22, read: 410, write: 0.2, loopback: 0.1}
	case at < 38:
		return jobLoad{name: "prepare", cpu: 42, most: 100, memory: 47, read: 35, write: 12, loopback: 0.4}
	case at < 113 && math.Mod(at-38, 15) > 12.6:
		return jobLoad{name: "checkpoint", cpu: 16, most: 95, memory: 52, read: 1, write: 520, loopback: 2}
	case at < 113:
		return jobLoad{name: "train", cpu: 37, most: 100, memory: 58, read: 22, write: 0.5, loopback: 64, received: 0.3}
	case at < 141:
		return jobLoad{name: "evaluate", cpu: 13, most: 100, memory: 35, read: 4, write: 0.5, loopback: 6, received: 31}
	}
	return jobLoad{name: "upload", cpu: 5, most: 24, memory: 30, read: 118, write: 0.3, sent: 112, received: 1.5}
}
