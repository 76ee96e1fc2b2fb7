package collector

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

const weekOfSeconds = 7 * 24 * 3600

// burstAt is the second at which every CPU is busy, for two seconds.
const burstAt = 345_678

// weekReading writes second n of a simulated week into r: CPUs that are some tenths busy, a disk and an interface with
// wrapping counters, and a burst of two seconds.
func weekReading(r *host.Reading, n int) {
	r.At = at(time.Duration(n) * time.Second)
	for i := range r.CPU {
		busy := 0.1 + 0.01*float64((n*7+i*13)%20)
		if n == burstAt || n == burstAt+1 {
			busy = 1
		}
		r.CPU[i].Seconds[host.ModeUser] += busy
		r.CPU[i].Seconds[host.ModeIdle] += 1 - busy
	}

	r.Memory.Available = 1<<33 - uint64(n%1000)<<20
	moved := uint64(8) // sectors per second
	if n == burstAt {
		moved = 1 << 20
	}
	r.Devices[host.Disks][0].Out += moved
	r.Devices[host.NICs][1].In = (r.Devices[host.NICs][1].In + 1000) & math.MaxUint32
}

// week feeds a week of Readings through a CounterState into one Recording for each of the given capacities.
func week(capacities ...int) []*Recording {
	var recs []*Recording
	for _, capacity := range capacities {
		recs = append(recs, NewRecording(at(0), time.Second, capacity))
	}
	// CounterState keeps slices of the last Readings, so use three in turn.
	var turns [3]*host.Reading
	for i := range turns {
		turns[i] = &host.Reading{CPU: make([]host.CPUTimes, 4), Memory: &host.Memory{Total: 1 << 34}, Disk: []host.DiskUsage{{Path: "/", Used: 30, Available: 70}},
			Devices: [host.NumDeviceKinds][]host.Device{host.Disks: make([]host.Device, 1), host.NICs: make([]host.Device, 2)}}
	}
	first := turns[0]
	first.At = at(0)
	for i, name := range []string{"cpu0", "cpu1", "cpu2", "cpu3"} {
		first.CPU[i] = host.CPUTimes{Name: name, Seconds: [host.NumCPUModes]float64{host.ModeUser: 1000, host.ModeIdle: 100000}}
	}
	first.Devices[host.Disks][0] = host.Device{Name: "sda", In: 0, Out: 0, Class: host.Counted}
	first.Devices[host.NICs][0], first.Devices[host.NICs][1] = host.Device{Name: "lo", In: 0, Out: 0, Class: host.Counted | host.Loopback}, host.Device{Name: "eth0", In: 0, Out: 0, Class: host.Counted}
	p := NewCounterState(first)
	for n := 1; n <= weekOfSeconds; n++ {
		r, last := turns[n%3], turns[(n-1)%3]
		copy(r.CPU, last.CPU)
		copy(r.Devices[host.Disks], last.Devices[host.Disks])
		copy(r.Devices[host.NICs], last.Devices[host.NICs])
		weekReading(r, n)
		var s Sample
		p, s = p.Next(r, 40*time.Millisecond)
		for _, rec := range recs {
			rec.Add(&s)
		}
	}

	return recs
}

// heap returns the heap memory in use, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestRecording_KeepsBurstInAWeek(t *testing.T) {
	testenv.SkipIfShort(t, "several seconds")
	before := heap()
	capacities := []int{2, 10, 1000, 4096}
	recs := week(capacities...)
	// Each of the four Recordings has a fixed size: 20 histograms of 8 KB each, and the ring's cells of 48 bytes.
	if grew := int64(heap()) - int64(before); grew > 16<<20 {
		t.Errorf("heap grew by %d bytes, want at most %d", grew, 16<<20)
	}

	for i, rec := range recs {
		same(t, "peak of the mean", summaryOf(rec, CPUAvg), summary{weekOfSeconds, weekOfSeconds, 100})
		same(t, "peak of the least busy CPU", summaryOf(rec, CPUMin).Max, 100.0)
		same(t, "peak of the disk", summaryOf(rec, DiskWriteRate).Max, 512.0)
		same(t, "bytes received", summaryOf(rec, NetExtRecv).Max, float64(weekOfSeconds)*1000/MiB)
		same(t, "bytes written", summaryOf(rec, DiskWrite).Max, (float64(weekOfSeconds-1)*8+1<<20)*512/MiB)
		for c := range rec.NumColumns() {
			same(t, c.Key(), rec.Summaries[c].Stat(), recs[0].Summaries[c].Stat())
			for _, level := range CPUThresholds {
				got, ok := rec.Summaries[c].Share(level)
				want, wantOK := recs[0].Summaries[c].Share(level)
				same(t, c.Key()+" share", []any{got, ok}, []any{want, wantOK})
			}
		}
		burst := 0
		for c := range rec.NumColumns() { // all buckets together cover the whole week
			all, want := rec.Ring.Bucket(0).Stats[c], rec.Summaries[c].Stat()
			for b := 1; b < rec.Ring.Len(); b++ {
				all.Merge(rec.Ring.Bucket(b).Stats[c])
			}
			same(t, c.Key()+" in the ring", []any{all.Count, all.Min, all.Max, all.Weight}, []any{want.Count, want.Min, want.Max, want.Weight})
		}
		for b := range rec.Ring.Len() {
			if rec.Ring.Bucket(b).Stats[CPUAvg].Max == 100 {
				burst++
			}
		}
		if burst == 0 || burst > 2 || rec.Ring.Len() > capacities[i] {
			t.Errorf("capacity %d: %d of %d buckets contain the burst, want 1 or 2", capacities[i], burst, rec.Ring.Len())
		}
		if share, ok := rec.Summaries[CPUAvg].Share(99.95); !ok || math.Abs(share-200.0/weekOfSeconds) > 1e-15 {
			t.Errorf("Share(99.95) = %v, %v; want %v, true", share, ok, 200.0/weekOfSeconds)
		}
	}
}

func TestCounterState_SampleAllocatesNothing(t *testing.T) {
	rec := NewRecording(at(0), time.Second, 1000)
	prev, cur := reading(0, 10, 0, 0, 0), reading(time.Second, 10.5, 100, 200, 300)
	p := NewCounterState(prev)
	pressure := &cgroup.Pressure{CPU: cgroup.Stall{Some: 1, Full: absent}}
	for _, r := range []*host.Reading{prev, cur} {
		r.Load, r.VM, r.Pressure = &host.Load{Load1: 1, Running: 2}, &host.VMStat{SwapIn: 1, SwapOut: 2, OOMKills: 3}, pressure
		r.Job = &host.JobUsage{CPUSeconds: r.At.Mono.Seconds(), Memory: 1 << 30, Group: &cgroup.Counters{Periods: 1, Pressure: *pressure}}
		r.GPUs = &gpu.Reading{Devices: make([]gpu.Device, 2), States: make([]gpu.State, 2)}
	}

	p = NewCounterState(prev)
	rec.EnsureGPUColumns(2)
	many := func() {
		for range 5000 {
			_, s := p.Next(cur, 0)
			rec.Add(&s)
		}
	}

	// Take the minimum of several runs, because a garbage collection may allocate as well.
	fewest := math.Inf(1)
	for try := 0; try < 5 && fewest > 0; try++ {
		fewest = min(fewest, testing.AllocsPerRun(1, many))
	}
	check.True(t, fewest == 0, "%v allocations in 5000 samples, want 0", fewest)
}

// A clone belongs to another goroutine: later samples must not change it.
func TestRecording_CloneSharesNothing(t *testing.T) {
	rec := NewRecording(at(0), time.Second, 10)
	p := NewCounterState(reading(0, 10, 0, 0, 0))
	_, s := p.Next(reading(time.Second, 10.5, 100, 200, 300), 0)
	rec.Failures = append(make([]Failure, 0, 4), Failure{host.SourceCPU, "", "why", 1})
	rec.Add(&s)
	rec.LateStarts = map[string]time.Duration{host.SourceDiskIO: time.Second}
	clone := rec.Clone()
	rec.Add(&s)
	rec.LateStarts[host.SourceNetwork] = time.Second
	rec.Failures[0].Count++
	rec.Disks = append(rec.Disks, "sda")
	same(t, "samples", clone.Samples, int64(1))
	same(t, "ring", clone.Ring.Count(), int64(1))
	same(t, "summary", summaryOf(clone, CPUAvg), summary{1, 1, 50})
	same(t, "failures", clone.Failures, []Failure{{host.SourceCPU, "", "why", 1}})
	same(t, "disks of the clone", clone.Disks, []string(nil))
	same(t, "late sources", clone.LateStarts, map[string]time.Duration{host.SourceDiskIO: time.Second})
}

func TestColumnByKey_FindsEveryColumn(t *testing.T) {
	keys := map[string]bool{}
	for c := range Column(MaxColumns) {
		found, ok := ColumnByKey(c.Key())
		if !ok || found != c || c.Info().Unit == "" || c.Info().Source == "" || keys[c.Key()] {
			t.Errorf("column %d: ColumnByKey(%q) = %d, %v, unit %q, source %q; want the column itself, a unique key, a unit "+
				"and a source", c, c.Key(), found, ok, c.Info().Unit, c.Info().Source)
		}
		keys[c.Key()] = true
	}

	for _, key := range []string{"", "nothing", "gpu_", "gpu_0", "gpu_0_", "gpu_0_nothing", "gpu_16_power_watts", "gpu_-1_power_watts",
		"gpu_00_power_watts", "gpu_+1_power_watts", "gpu_x_power_watts"} {
		c, ok := ColumnByKey(key)
		check.True(t, !ok, "ColumnByKey(%q) = column %d, %s; want no column", key, c, c.Key())
	}

	same(t, "the key of a GPU", GPUColumn(3, GPUPower).Key(), "gpu_3_power_watts")
	same(t, "counters", Counters(), []Column{DiskRead, DiskWrite, NetLoSent, NetExtSent, NetLoRecv, NetExtRecv, NetIBRecv, NetIBSent,
		NFSRead, NFSWrite, LustreRead, LustreWrite})
}
