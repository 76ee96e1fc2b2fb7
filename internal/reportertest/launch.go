package reportertest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
)

// Ranks returns the report of a launch with perNode ranks on each node. Each rank kept one CPU busy, used at most 512
// MiB of memory, and exited with code 0.
func Ranks(nodes, perNode, seconds int) *reporter.Report {
	r := &reporter.Report{Schema: reporter.Schema, Nodes: make(map[string]*reporter.Node)}
	for node := range nodes {
		in := JobInput(node, seconds, 0, "")
		in.Run.ID = "4711"
		in.Recording.Host.Hostname = fmt.Sprintf("node%d.cluster.example.org", node+1)
		index := node
		in.Identity = &reporter.Identity{
			Node: &index, NodeFrom: "SLURM_JOB_NODELIST", NodeName: fmt.Sprintf("node%d", node+1),
			RanksOnNode: perNode, WorldSize: nodes * perNode, Nodes: nodes, Scheduler: "Slurm", JobID: "4711", Launch: "0",
		}

		one := reporter.New(in)
		n := one.Nodes[strconv.Itoa(node)]
		n.Ranks = make(map[string]*reporter.Rank)
		for local := range perNode {
			rank := newRank(n, one.Run, node*perNode+local, local)
			n.Ranks[strconv.Itoa(rank.Rank)] = rank
		}
		n.Verdict, n.Findings = goodEnd(), nil
		quiet(n, perNode, seconds)
		r.Run, r.Nodes[strconv.Itoa(node)] = one.Run, n
	}
	return r
}

// quiet sets the metrics of a node so that its ranks cause no advice.
func quiet(n *reporter.Node, ranks, seconds int) {
	cpu := float64(ranks * seconds)
	n.Job.CPUSeconds, n.Job.UserSeconds, n.Job.SystemSeconds = cpu, cpu, 0
	n.Job.PeakMemoryMB = 512 * float64(ranks)
	n.Limits.CPUs = float64(ranks)
	for name, v := range map[string]float64{
		reporter.MetricJobCPU: cpu, reporter.MetricJobCores: float64(ranks), reporter.MetricJobCoresPeak: float64(ranks),
		reporter.MetricJobMemoryPeak: n.Job.PeakMemoryMB, reporter.MetricDiskPeak: 40,
	} {
		n.Metrics[name] = v
	}
}

// goodEnd returns the verdict on a job that exited with code 0.
func goodEnd() *reporter.Verdict {
	return &reporter.Verdict{
		Cause: "exited", Text: "exited with code 0", Evidence: map[string]any{"exit_code": 0.0}, Conditions: []string{},
	}
}

// newRank returns a rank that kept one CPU busy.
func newRank(n *reporter.Node, run reporter.Run, rank, local int) *reporter.Rank {
	seconds := run.WallSeconds
	out := &reporter.Rank{
		Rank: rank, LocalRank: &local, PID: 4242 + local, Command: run.Command, Start: run.Start, End: run.End,
		ExitCode: new(0), Verdict: goodEnd(), Missing: []reporter.Missing{},
	}
	out.Job = &reporter.Job{
		PID: out.PID, Start: run.Start, End: run.End, ExitCode: out.ExitCode, UserSeconds: seconds,
		Source: host.JobFromTree, CPUSeconds: seconds, PeakMemoryMB: 512, MemoryKind: host.MemoryPSS,
	}
	out.Metrics = reporter.Values{
		reporter.MetricWall: seconds, reporter.MetricJobCPU: seconds, reporter.MetricJobCores: 1,
		reporter.MetricJobCoresPeak: 1.02, reporter.MetricJobMemoryPeak: 512,
	}

	points := n.Samples.Len()
	out.Envelope = reporter.Envelope{
		collector.JobCPU.Key():    wave(points, rank, 1, 0.02),
		collector.JobMemory.Key(): wave(points, rank, 480, 6.4),
	}
	return out
}

// wave returns a band of n points with values that vary in steps around a mean.
func wave(n, phase int, mean, step float64) reporter.Band {
	var b reporter.Band
	for i := range n {
		v := mean + step*float64((7*i+3*phase)%11-5)
		b.Min, b.Mean, b.Max = append(b.Min, v-step), append(b.Mean, v), append(b.Max, v+step)
	}
	return b
}

// flat returns a band of n equal points.
func flat(n int, least, mean, greatest float64) reporter.Band {
	list := func(v float64) reporter.Numbers { return slices.Repeat(reporter.Numbers{v}, n) }
	return reporter.Band{Min: list(least), Mean: list(mean), Max: list(greatest)}
}

// RankOf returns the rank with the given number from r, which must be a report from Ranks.
func RankOf(r *reporter.Report, rank int) *reporter.Rank {
	for _, n := range r.Nodes {
		if found := n.Ranks[strconv.Itoa(rank)]; found != nil {
			return found
		}
	}
	panic(fmt.Sprintf("no rank %d", rank))
}

// EndRank makes a rank end the given time before the end of the run, with the given exit code, signal and verdict.
func EndRank(r *reporter.Report, rank int, before time.Duration, code int, signal string, v *reporter.Verdict) {
	k := RankOf(r, rank)
	k.End.Time = k.End.Add(-before)
	k.ExitCode, k.Signal, k.Verdict = &code, signal, v
	k.Job.End, k.Job.ExitCode, k.Job.Signal = k.End, k.ExitCode, signal
	length := k.End.Sub(k.Start.Time).Seconds()
	k.Metrics[reporter.MetricWall], k.Metrics[reporter.MetricJobCPU] = length, length
	k.Job.UserSeconds, k.Job.CPUSeconds = length, length
	v.Evidence["exit_code"] = float64(code)
	if signal != "" {
		v.Evidence["signal"] = signal
	}
	if v.Conditions == nil {
		v.Conditions = []string{}
	}

	for _, band := range k.Envelope { // nothing was measured after the end
		last := len(band.Mean) - int(before.Seconds())
		for i := max(0, last); i < len(band.Mean); i++ {
			band.Min[i], band.Mean[i], band.Max[i] = math.NaN(), math.NaN(), math.NaN()
		}
	}
}

// TerminateRank makes a SIGTERM from sender end a rank, the given time before the end of the run.
func TerminateRank(r *reporter.Report, rank int, before time.Duration, sender string) {
	EndRank(r, rank, before, 143, "SIGTERM", &reporter.Verdict{
		Cause: "signal",
		Text: fmt.Sprintf("killed by SIGTERM from %s (process 77) at %s", sender,
			RankOf(r, rank).End.Add(-before).UTC().Format("15:04:05 MST")),
		Evidence: map[string]any{"sent_signal": "SIGTERM", "sender": sender, "sender_pid": 77.0},
	})
}

// KilledRank returns a report of 2 nodes with 4 ranks each. The kernel killed rank 3, and slurmstepd ended the other
// ranks with SIGTERM, from 0.4 to 1.2 s later.
func KilledRank() *reporter.Report {
	r := Ranks(2, 4, 20)
	const killed = 3
	for rank := range 8 {
		if rank != killed {
			TerminateRank(r, rank, time.Duration(7-rank)*800*time.Millisecond/7, "slurmstepd")
		}
	}
	at := RankOf(r, killed).End.Add(-1200 * time.Millisecond).UTC()
	EndRank(r, killed, 1200*time.Millisecond, 137, "SIGKILL", &reporter.Verdict{
		Cause: "oom_cgroup",
		Text: "killed by the kernel: python (process 4245) hit the memory limit of 8.0 GiB of its control group at " +
			at.Format("15:04:05 MST") + "; peak 8.0 GiB",
		Evidence: map[string]any{"limit_mb": 8192.0, "peak_mb": 8192.0, "oom_kills": 1.0, "limit_kills": 1.0,
			"process": "python", "pid": 4245.0, "time": at.Format(time.RFC3339Nano)},
	})

	for node, rank := range map[string]int{"0": killed, "1": 4} { // the rank that ended first on each node
		n, k := r.Nodes[node], RankOf(r, rank)
		n.Verdict, n.Job.ExitCode, n.Job.Signal = k.Verdict, k.ExitCode, k.Signal
		n.Limits.MemoryMB = 8192 // limit of the job on the node
	}
	return r
}

// UnevenRanks returns a report of 2 nodes with 4 ranks each, which ran for a minute. Rank 5 was almost idle.
func UnevenRanks() *reporter.Report {
	r := Ranks(2, 4, 60)
	k := RankOf(r, 5)
	k.Metrics[reporter.MetricJobCPU], k.Metrics[reporter.MetricJobCores] = 6, 0.1
	k.Job.UserSeconds, k.Job.CPUSeconds = 6, 6
	k.Envelope[collector.JobCPU.Key()] = flat(60, 0.08, 0.1, 0.12)
	return r
}

// LateRank returns a report of 2 nodes with 4 ranks each. Rank 6 ended 25 s after the other ranks, which took 75 s.
func LateRank() *reporter.Report {
	r := Ranks(2, 4, 100)
	for rank := range 8 {
		if rank != 6 {
			EndRank(r, rank, 25*time.Second, 0, "", goodEnd())
		}
	}
	return r
}
