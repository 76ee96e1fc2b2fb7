// Package reportertest makes reproducible samples, recordings and reports for tests. Some reports are very large, with
// a thousand nodes.
package reportertest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
)

const (
	// Stride is the number of samples in each bucket of a large report, with one sample per second.
	Stride = 4
	// BurstSeconds is the length of the burst.
	BurstSeconds = 2
	// BurstRate is the disk write rate during the burst, in MiB per second.
	BurstRate = 1536

	cpus     = 64
	memoryMB = 256 << 10
	diskMB   = 4 << 20
)

// BurstNode returns the node with the burst: 517, or the last node if there are fewer.
func BurstNode(nodes int) int { return min(517, nodes-1) }

// BurstBucket returns the bucket with the burst. The burst begins after the first sample of the bucket, so that only
// the envelope shows it.
func BurstBucket(buckets int) int { return buckets * 3 / 5 }

// start returns the start of a large report.
func start() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }

// Large returns the report of node i in a run of several nodes, with the given number of buckets, which must be at
// least two. A thousand buckets are 1 MB of JSON. The load of each node varies differently, and stays below 65 %. The
// exception is a burst of two seconds on one node, in which all CPUs are busy and the disk is written to.
func Large(i, nodes, buckets int) *reporter.Report {
	rec := recording(i, buckets, i == BurstNode(nodes))
	end := reporter.Time{Time: rec.Start.Wall.Add(rec.End.Mono)}
	exit := 0
	began := reporter.Time{Time: rec.Start.Wall}
	wall := rec.End.Mono.Seconds()

	return reporter.New(reporter.Input{
		Node: i,
		Run: reporter.Run{ID: "large", Command: []string{"srun", "python", "train.py", "--nodes", strconv.Itoa(nodes)},
			Start: began, End: end, WallSeconds: wall, ExitCode: &exit, Tags: map[string]string{"team": "blue"}},
		Recording: rec,
		Job: &reporter.Job{PID: 4242 + i, ExitCode: new(0), Start: began, End: end,
			UserSeconds: math.Round(wall * cpus / 5), SystemSeconds: math.Round(wall), MaxRSSMB: 1536.5,
			BlockReadMB: 210.25, MinorFaults: 123456, VoluntarySwitches: 65432},
		Agent: reporter.Agent{Version: "test", CPUSeconds: 0.25, MaxRSSMB: 14},
	})
}

// recording simulates a node second by second.
func recording(i, buckets int, burst bool) *collector.Recording {
	began := host.Instant{Wall: start()}
	rec := collector.NewRecording(began, time.Second, buckets)
	rec.Host = host.Info{Hostname: fmt.Sprintf("node-%04d", i), BootID: "edb5cc38-5e6b-4c97-aa64-b1c8e1f8f3ef",
		OS: "linux", Kernel: "6.12.0", Arch: "amd64", CPUModel: "Simulated CPU", CPUs: cpus, MemoryMB: memoryMB}

	rec.Disks, rec.NICs = []string{"nvme0n1"}, []string{"lo", "eth0"}
	n := node{random: rand.New(rand.NewPCG(uint64(i), 0)), phase: float64(i) / 7}
	at := BurstBucket(buckets)*Stride + 1
	for second := range buckets * Stride {
		s := n.sample(second, burst && second >= at && second < at+BurstSeconds)
		rec.Add(&s)
	}

	rec.End.Mono = time.Duration(buckets*Stride) * time.Second
	rec.End.Boot, rec.LongestGap = rec.End.Mono, time.Second
	for k, total := range n.total {
		rec.BootMB[k] = total + 1000
	}

	return rec
}

// node is a simulated node.
type node struct {
	random *rand.Rand
	phase  float64    // phase of the waves in the load
	total  [6]float64 // in MiB, in the order of collector.Counters
}

// sample returns the sample of the second that begins at second.
func (n *node) sample(second int, burst bool) collector.Sample {
	var s collector.Sample
	for c := range s.Weights {
		s.Values[c], s.Weights[c] = math.NaN(), 1
	}

	wave := 0.5 + 0.5*math.Sin(n.phase+float64(second)/400)
	busy := 10 + 40*wave + 10*n.random.Float64()
	rates := [6]float64{20 * wave * n.random.Float64(), 5 * wave, 0, 30 * n.random.Float64(), 0, 25 * n.random.Float64()}

	low, high := busy/2, min(100, busy*1.5)
	if burst {
		low, busy, high, rates[1] = 100, 100, 100, BurstRate
	}

	used := memoryMB * (0.2 + 0.3*wave)
	filled := diskMB/4 + n.total[1]/64
	for c, v := range map[collector.Column]float64{
		collector.CPUAvg:      decimals(busy, 2),
		collector.CPUMin:      decimals(low, 1),
		collector.CPUMax:      decimals(high, 1),
		collector.MemPercent:  decimals(100*used/memoryMB, 1),
		collector.MemUsed:     pages(used),
		collector.DiskPercent: decimals(100*filled/diskMB, 1),
		collector.DiskUsed:    pages(filled),
		collector.DiskFree:    pages(diskMB - filled),
		collector.Timestamp:   float64(start().Unix()+int64(second)+1) + 0.357,
	} {
		s.Values[c] = v
	}

	for k, c := range counters() {
		moved := pages(rates[k])
		n.total[k] += moved
		s.Values[c], s.Values[c.Info().Rate] = n.total[k], moved
	}

	return s
}

func decimals(v float64, n int) float64 { return math.Round(v*math.Pow10(n)) / math.Pow10(n) }

// pages rounds MiB to whole pages of 4 KiB.
func pages(mb float64) float64 { return math.Floor(mb*256) / 256 }
