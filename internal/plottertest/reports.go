package plottertest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

func Start() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }

// Recording returns a recording of n samples. fill gets the index of each sample and a sample with only a time, and
// sets the values.
func Recording(n int, step time.Duration, fill func(i int, s *collector.Sample)) *collector.Recording {
	return recording(n, step, nil, fill)
}

// recording is like Recording, for a job that sends the given lines before each sample.
func recording(
	n int, step time.Duration, lines func(i int) []marks.Line, fill func(i int, s *collector.Sample),
) *collector.Recording {
	rec := collector.NewRecording(host.Instant{Wall: Start()}, step, 1000)
	rec.Host = host.Info{
		Hostname: "build-7.example.org",
		BootID:   "edb5cc38-5e6b-4c97-aa64-b1c8e1f8f3ef",
		OS:       "linux",
		Kernel:   "6.12.0",
		Arch:     "amd64",
		CPUModel: "Simulated CPU",
		CPUs:     8,
		MemoryMB: 32768,
	}

	rec.Disks, rec.NICs = []string{"nvme0n1"}, []string{"lo", "eth0"}
	rec.LongestGap = step
	for i := range n {
		var s collector.Sample
		for c := range s.Values {
			s.Values[c], s.Weights[c] = math.NaN(), step.Seconds()
		}
		end := time.Duration(i+1) * step
		s.Values[collector.Timestamp] = float64(Start().UnixMicro())/1e6 + end.Seconds()
		if fill != nil {
			fill(i, &s)
		}
		if lines != nil {
			rec.AddMarks(marks.Update{Lines: lines(i)})
		}
		rec.Add(&s)
		rec.End.Mono, rec.End.Boot, rec.End.Wall = end, end, Start().Add(end)
	}

	return rec
}

// Set sets the node's values of a sample. cpu and mem are percentages, rate is in MiB/s.
func Set(s *collector.Sample, i int, cpu, mem, rate float64) {
	for c, v := range map[collector.Column]float64{
		collector.CPUAvg:      cpu,
		collector.CPUMin:      cpu / 2,
		collector.CPUMax:      min(100, 2*cpu),
		collector.MemPercent:  mem,
		collector.MemUsed:     mem / 100 * 32768,
		collector.DiskPercent: 40 + float64(i)/64,
		collector.DiskUsed:    4000 + float64(i),
		collector.DiskFree:    6000 - float64(i),
	} {
		s.Values[c] = v
	}
	for _, c := range collector.Counters() {
		s.Values[c] = float64(i+1) * rate
		s.Values[c.Info().Rate] = rate
	}
}

// Report returns the report of a job on one node.
func Report(node int, rec *collector.Recording) *reporter.Report {
	exit, wall := 0, rec.End.Mono
	start, end := reporter.Time{Time: Start()}, reporter.Time{Time: Start().Add(wall)}
	return diagnosis.New(diagnosis.Input{Input: reporter.Input{
		Node: node,
		Run: reporter.Run{
			ID:          "trial-7",
			Command:     []string{"python", "train.py", "--epochs", "3"},
			Start:       start,
			End:         end,
			WallSeconds: wall.Seconds(),
			ExitCode:    &exit,
			Tags:        map[string]string{"branch": "main", "team": "blue"},
		},
		Recording: rec,
		Agent:     reporter.Agent{Version: "test", CPUSeconds: 0.01, MaxRSSMB: 14},
		Job: &reporter.Job{
			PID:           4711,
			Start:         start,
			End:           end,
			UserSeconds:   wall.Seconds() * 2,
			SystemSeconds: wall.Seconds() / 8,
			MaxRSSMB:      812.5,
			BlockReadMB:   12,
		},
	}})
}

// Short returns the report of a job of 50 ms, with one sample.
func Short() *reporter.Report {
	return Report(
		0,
		Recording(1, 50*time.Millisecond, func(i int, s *collector.Sample) { Set(s, i, 37.5, 25.5, 1.25) }),
	)
}

// Minute returns the report of a job of one minute. All values of the node are measured each second.
func Minute(node int) *reporter.Report {
	return Report(node, Recording(60, time.Second, func(i int, s *collector.Sample) {
		Set(s, i, float64((i*7+node*13)%97)+0.25, 20+float64((i+node)%50)/4, float64(i%9)*1.5)
	}))
}

// Gaps returns the report of a job of one minute in which nothing was measured from the 20th to the 39th second.
func Gaps() *reporter.Report {
	return Report(0, Recording(60, time.Second, func(i int, s *collector.Sample) {
		if i < 20 || i >= 40 {
			Set(s, i, 30+float64(i%10), 25, 2)
		}
	}))
}

// Absent returns the report of a node on which nothing was measured.
func Absent() *reporter.Report {
	rec := Recording(0, time.Second, nil)
	rec.Host, rec.Disks, rec.NICs = host.Info{}, nil, nil
	return diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: reporter.Run{ID: "nothing"}, Recording: rec}})
}

// Sampled returns a report with real samples of this machine.
func Sampled(t testing.TB) *reporter.Report {
	t.Helper()
	reader := host.NewReader(host.Options{DiskPaths: []string{"/"}})
	ctx, stop := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer stop()
	rec := collector.NewSampler(reader, collector.Options{Interval: 20 * time.Millisecond, MaxLength: 1000}).Run(ctx)
	return diagnosis.New(
		diagnosis.Input{
			Input: reporter.Input{
				Run:       reporter.Run{ID: "here"},
				Recording: rec,
				Agent:     reporter.Agent{Version: "test"},
			},
		},
	)
}

// PerfPy returns a perf.py file of two nodes as a report.
func PerfPy(t testing.TB) *reporter.Report {
	t.Helper()
	var nodes [2][]byte
	for node := range nodes {
		samples := make([]collector.Sample, 30)
		for i := range samples {
			samples[i].Values[collector.Timestamp] = float64(Start().Unix() + int64(i))
			Set(&samples[i], i, float64((i+node)%20)*4, 33, 3)
		}
		data, err := reporter.EncodePerfPy(node, samples)
		if err != nil {
			t.Fatal(err)
		}
		nodes[node] = data
	}

	first, _ := bytes.CutSuffix(nodes[0], []byte("\n}"))
	r, err := reporter.ParsePerfPy(slices.Concat(first, []byte{','}, nodes[1][1:]), 8)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Few returns a report of twelve nodes with 64 CPUs and a thousand buckets each. The last node had a burst. All callers
// share the report.
var Few = sync.OnceValue(func() *reporter.Report {
	merged := reportertest.Large(0, 12, 1000)
	for i := range 12 {
		merged.Nodes[strconv.Itoa(i)] = reportertest.Large(i, 12, 1000).Nodes[strconv.Itoa(i)]
	}
	return merged
})

// The dimensions of the report of many nodes, and the maximum size of its page in bytes.
const (
	ManyNodes   = 1000
	ManyBuckets = 1000
	ManyBytes   = 1_500_000
)

// Many returns the run and the nodes of a report of a thousand nodes with a thousand buckets each. Most nodes are
// copies of a few, with another host name. Node 517 had a burst of 2 s.
var Many = sync.OnceValues(func() (run reporter.Run, nodes []*reporter.Node) {
	const different = 24
	for i := range ManyNodes {
		if i == reportertest.BurstNode(ManyNodes) || i < different {
			r := reportertest.Large(i, ManyNodes, ManyBuckets)
			run = r.Run
			nodes = append(nodes, r.Nodes[strconv.Itoa(i)])
			continue
		}
		n, host := *nodes[i%different], *nodes[i%different].Host
		host.Hostname = fmt.Sprintf("node-%04d", i)
		n.Host = &host
		nodes = append(nodes, &n)
	}
	return run, nodes
})

// Burst returns the bucket of n in which all CPUs were busy.
func Burst(t testing.TB, n *reporter.Node) int {
	t.Helper()
	band := n.Envelope["cpu_pct_per_cpu_avg"]
	for i, v := range band.Max {
		if v == 100 {
			if band.Mean[i] > 80 || n.Samples.Column("cpu_pct_per_cpu_avg")[i] > 80 {
				t.Fatalf("bucket %d has a mean or sample above 80 %%: only the envelope may show the burst", i)
			}
			return i
		}
	}
	t.Fatal("no bucket contains the burst")
	return 0
}
