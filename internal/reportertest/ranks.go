package reportertest

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/reporter"
)

// A RankPlan describes a simulated rank of a node. Times are in seconds since RunStart.
type RankPlan struct {
	Rank, OnNode int
	Start, End   float64
	HostSpan     [2]float64                 // start and end of its perfagent's measurement of the host; both 0 for never
	CPUs         float64                    // number of busy CPUs
	Memory       func(at float64) float64   // memory in MiB; nil for 100
	Exit         int                        // exit code
	Signal       string                     // signal that killed the rank
	Unfinished   bool                       // whether its end is unknown
	Group        string                     // control group; "" if none is visible
	OOMKills     float64                    // number of OOM kills in Group
	Capacity     int                        // capacity of the ring; 0 for 1000
	Change       func(*collector.Recording) // changes the recording of the rank; nil for no change
}

// HostBoot holds the counters since boot of the simulated host at RunStart, in MiB and in the order of
// collector.Counters. HostRates holds their growth in MiB/s.
var (
	HostBoot  = []float64{1000, 2000, 5, 100, 5, 300}
	HostRates = []float64{3, 2, 0.5, 1, 0.5, 4}
)

// RankInput returns the input of a rank's report. It has a sample at each second from the start of the rank, and one at
// the end.
func RankInput(p RankPlan) reporter.Input {
	start, length := RunStart.Add(seconds(p.Start)), seconds(p.End-p.Start)
	in := reporter.Input{
		Rank: strconv.Itoa(p.Rank), Recording: p.recording(),
		Identity: &reporter.Identity{Node: new(0), NodeFrom: "SLURM_NODEID", NodeName: "node1", Rank: new(p.Rank),
			LocalRank: new(p.Rank), RanksOnNode: p.OnNode, Scheduler: "Slurm", JobID: "4711"},
		Run: reporter.Run{ID: "4711", Command: []string{"./solver", fmt.Sprint(p.Rank)},
			Start: reporter.Time{Time: start}, End: reporter.Time{Time: start.Add(length)}, WallSeconds: p.End - p.Start},
		Agent: reporter.Agent{Version: "test", CPUSeconds: 0.125, MaxRSSMB: 14 + float64(p.Rank)},
	}
	if p.Unfinished {
		in.Run.Incomplete = "from the journal of a run that is still going on or was cut off"
		return in
	}

	used := p.CPUs * (p.End - p.Start)
	in.Run.ExitCode, in.Run.Signal = new(p.Exit), p.Signal
	in.Job = &reporter.Job{PID: 1000 + p.Rank, Start: in.Run.Start, End: in.Run.End, ExitCode: new(p.Exit),
		Signal: p.Signal, UserSeconds: used * 0.75, SystemSeconds: used * 0.25, MaxRSSMB: 50 + float64(p.Rank),
		BlockReadMB: 1, BlockWriteMB: 2, MinorFaults: 100, MajorFaults: 1, VoluntarySwitches: 10, InvoluntarySwitches: 3,
		Orphans: 1}
	return in
}

// recording returns the recording of the rank's perfagent.
func (p RankPlan) recording() *collector.Recording {
	start, length := RunStart.Add(seconds(p.Start)), seconds(p.End-p.Start)
	capacity := p.Capacity
	if capacity == 0 {
		capacity = 1000
	}
	rec := collector.NewRecording(host.Instant{Wall: start}, time.Second, capacity)
	rec.End = host.Instant{Wall: start.Add(length), Mono: length, Boot: length}
	rec.Host = host.Info{Hostname: "node1", BootID: "b", OS: "linux", Kernel: "6.1", Arch: "amd64", CPUModel: "CPU",
		CPUs: 8, MemoryMB: 32000}

	a := &rec.Account
	a.Source, a.MemoryKind, a.Group = host.JobFromTree, host.MemoryPSS, p.Group
	a.CPUSeconds = series.Optional(p.CPUs * (p.End - p.Start))
	a.Limits = host.Limits{CPUs: 8, CPUSetCPUs: 8, AffinityCPUs: 8, CPUQuota: series.Unknown(),
		MemoryMB: series.Unknown()}
	if p.Group != "" {
		a.OOMKills = series.Optional(p.OOMKills)
	}

	if p.HostSpan[1] > 0 {
		rec.Disks, rec.NICs = []string{"nvme0n1"}, []string{"eth0", "lo"}
		a.HostOOMKills, a.HostStall = 0, collector.Stalls{CPUSome: series.Optional(0.1 * (p.HostSpan[1] - p.HostSpan[0]))}
		for i, rate := range HostRates {
			rec.BootMB[i] = HostBoot[i] + rate*p.HostSpan[1]
		}
	}

	for before := p.Start; before < p.End; {
		at := min(before+1, p.End)
		s := p.sample(before, at)
		rec.Add(&s)
		before = at
	}
	if p.Change != nil {
		p.Change(rec)
	}
	return rec
}

// sample returns the sample at time at, for the window that begins at time before.
func (p RankPlan) sample(before, at float64) collector.Sample {
	var s collector.Sample
	for c := range s.Values {
		s.Values[c], s.Weights[c] = math.NaN(), at-before
	}
	s.Values[collector.Timestamp] = float64(RunStart.Unix()) + at

	memory := 100.0
	if p.Memory != nil {
		memory = p.Memory(at)
	}
	for c, v := range map[collector.Column]float64{
		collector.JobCPU: p.CPUs, collector.JobMemory: memory, collector.JobProcesses: 2, collector.JobThreads: 3,
		collector.JobRead: at - p.Start, collector.JobReadRate: 1, collector.JobReadCalls: at - p.Start,
		collector.JobWriteCalls: 0, collector.JobWrite: 2 * (at - p.Start),
		collector.JobWriteRate: 2, collector.JobMemoryAnon: 0.625 * memory, collector.JobMemoryFile: 0.125 * memory,
		collector.JobMemoryShmem: 0.25 * memory,
	} {
		s.Values[c] = v
	}

	if p.HostSpan[1] > 0 && at >= p.HostSpan[0] && at <= p.HostSpan[1] {
		p.hostSample(&s, before, at)
	}
	return s
}

// hostSample sets the values of the host. If a rank begins to measure the host after its start, its first sample of the
// host has no rates.
func (p RankPlan) hostSample(s *collector.Sample, before, at float64) {
	for c, v := range map[collector.Column]float64{
		collector.MemPercent: 25, collector.MemUsed: 8000, collector.DiskPercent: 40, collector.DiskUsed: 400,
		collector.DiskFree: 600, collector.Load1: 2, collector.SwapIn: 0.25 * (at - p.HostSpan[0]), collector.SwapOut: 0,
		collector.MajorFaults: 0,
	} {
		s.Values[c] = v
	}
	for i, c := range collector.Counters()[:len(HostRates)] {
		s.Values[c] = HostRates[i] * (at - p.HostSpan[0])
	}
	if before < p.HostSpan[0] {
		return
	}

	for c, v := range map[collector.Column]float64{
		collector.CPUAvg: min(at, 100), collector.CPUMin: 0, collector.CPUMax: 100, collector.PSICPUSome: 10,
	} {
		s.Values[c] = v
	}
	for i, c := range collector.Counters()[:len(HostRates)] {
		s.Values[c.Info().Rate] = HostRates[i]
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
