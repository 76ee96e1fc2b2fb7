package collector

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
)

// partsSample returns a sample at the given second with memory and its parts: anonymous, files, shared, kernel and swap.
func partsSample(second, memory float64, parts ...float64) *Sample {
	s := &Sample{Sock: math.NaN(), HugeTLB: math.NaN()}
	for c := range s.Values {
		s.Values[c] = math.NaN()
	}
	s.Values[Timestamp], s.Values[JobMemory] = second, memory
	for i, v := range parts {
		s.Values[[]Column{JobMemoryAnon, JobMemoryFile, JobMemoryShmem, JobMemoryKernel, JobMemorySwap}[i]] = v
	}
	return s
}

func TestNewMemoryParts_ExplainsMemory(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		sample *Sample
		want   MemoryParts
		mb     float64
	}{
		"a group, with page cache": {partsSample(1, 60, 40, 30, 10, 5, 3),
			MemoryParts{Timestamp: 1, AnonMB: 40, FileMB: 30, ShmemMB: 10, KernelMB: 5, SwapMB: 3, Source: host.JobFromCreated}, 60},
		"processes, with swap": {partsSample(1, 83, 40, 30, 10, nan, 3),
			MemoryParts{Timestamp: 1, AnonMB: 40, FileMB: 30, ShmemMB: 10, SwapMB: 3, Source: host.JobFromTree}, 83},
		"processes that have grown": {partsSample(1, 200, 40, 30, 10, nan, 3),
			MemoryParts{Timestamp: 1, AnonMB: 40, FileMB: 30, ShmemMB: 10, SwapMB: 3, Source: host.JobFromTree}, 83},
		"nothing":          {partsSample(1, nan), MemoryParts{}, 0},
		"rss":              {partsSample(1, 60), MemoryParts{}, 0},
		"an unknown part":  {partsSample(1, 60, 40, nan, 10), MemoryParts{}, 0},
		"without a time":   {partsSample(nan, 60, 40, 30, 10), MemoryParts{}, 0},
		"after the job":    {partsSample(1, nan, 40, 30, 10), MemoryParts{}, 0},
		"without its swap": {partsSample(1, 60, 40, 30, 10, 5, nan), MemoryParts{Timestamp: 1, AnonMB: 40, FileMB: 30, ShmemMB: 10, KernelMB: 5, Source: host.JobFromCreated}, 60},
	} {
		got, mb := NewMemoryParts(c.sample, host.JobFromCreated)
		same(t, name+": parts", got, c.want)
		check.True(t, mb == c.mb, "%s: memory = %v MiB, want %v", name, mb, c.mb)
	}
}

// MemoryAtPeak belongs to the sample with the most memory, even if the ring no longer has that sample.
func TestRecording_MemoryAtPeakIsOfAnySample(t *testing.T) {
	rec := NewRecording(host.Instant{}, time.Second, 4)
	for i := range 1000 {
		mb := 100 + float64(i%7)
		if i == 501 {
			mb = 900
		}
		rec.Add(partsSample(float64(i+1), mb, mb-30, 10, 20))
	}
	got := rec.Account.MemoryAtPeak
	check.True(t, got.Timestamp == 502 && got.AnonMB == 870 && rec.Account.PartsPeakMB == 900,
		"parts at the peak = %+v of %v MiB, want sample 502 with 870 MiB of 900 anonymous", got, rec.Account.PartsPeakMB)
}

// The memory at a kill comes from the last sample before the kill or from the sample before it, because the memory of a
// Reading may be measured after a kill that the Reading does not count.
func TestAccountTracker_KeepsMemoryBeforeKill(t *testing.T) {
	for name, c := range map[string]struct {
		mb   []float64 // anonymous memory in each sample; the kill is counted with the last one
		want float64
	}{
		"growing": {[]float64{100, 200, 300, 10}, 300}, "measured after the kill": {[]float64{100, 300, 20, 10}, 300},
		"unknown at last": {[]float64{100, 200, math.NaN(), math.NaN()}, 200}, "in the first sample": {[]float64{100}, 0},
	} {
		nan := math.NaN()
		reading := func(i int, kills float64) *host.Reading {
			at := time.Duration(i) * time.Second
			return &host.Reading{At: host.Instant{Mono: at, Boot: at}, Job: &host.JobUsage{CPUSeconds: nan, IO: process.UnknownIO(), Memory: nan,
				Group: &cgroup.Counters{OOMKills: kills, OOMs: nan, LimitOOMs: nan}}}
		}
		tracker, a := newAccountTracker(reading(0, 0), host.JobOptions{}), NoAccount()
		for i, mb := range c.mb {
			kills, in := 0., trackerInput{}
			if i == len(c.mb)-1 {
				kills = 1
			}
			in.memory, _ = NewMemoryParts(partsSample(float64(i+1), mb, mb, 0, 0), "")
			tracker, a = tracker.next(a, reading(i+1, kills), in)
		}
		check.True(t, a.LastOOMKill != nil && a.LastOOMKill.Memory.AnonMB == c.want, "%s: kill = %v, want %v MiB before",
			name, fmt.Sprintf("%+v", a.LastOOMKill), c.want)
	}
}
