package reportertest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
)

// Stream makes reproducible samples that resemble a busy host.
type Stream struct {
	rnd   *rand.Rand
	Start host.Instant // start of the run
	n     int
	total [6]float64
}

// counters returns the device counters that every host has.
func counters() []collector.Column {
	return slices.DeleteFunc(collector.Counters(), func(c collector.Column) bool { return !c.Info().Always })
}

// NewStream returns a Stream with numbers determined by seed.
func NewStream(seed uint64) *Stream {
	return &Stream{rnd: rand.New(rand.NewPCG(seed, 1)), Start: host.Instant{Wall: time.Date(2026, 1, 2, 3, 4, 5,
		0, time.UTC), Mono: time.Hour, Boot: 2 * time.Hour}}
}

// Next adds a sample to rec, one second after the previous one.
func (s *Stream) Next(rec *collector.Recording) *collector.Sample {
	s.n++
	var out collector.Sample
	weight := 1 + (s.rnd.Float64()-0.5)/500
	for c := range out.Values {
		out.Values[c], out.Weights[c] = math.NaN(), weight
	}

	set := func(c collector.Column, v float64) { out.Values[c] = v }
	cpu := math.Round(s.rnd.Float64()*1000) / 10
	set(collector.CPUAvg, cpu*0.7)
	set(collector.CPUMin, cpu/2)
	set(collector.CPUMax, cpu)
	set(collector.MemPercent, math.Round(s.rnd.Float64()*1000)/10)
	if s.n%7 != 0 { // the source fails from time to time
		set(collector.DiskPercent, 71.3)
	}

	for i, c := range counters() {
		moved := float64(s.rnd.IntN(200<<20)) / collector.MiB
		s.total[i] += moved
		set(c, s.total[i])
		set(c.Info().Rate, text.Round(moved/weight, 6))
	}

	set(collector.Timestamp, float64(s.Start.Wall.UnixMilli())/1000+float64(s.n))
	rec.End = s.Start
	rec.End.Mono += time.Duration(s.n) * time.Second
	rec.End.Boot += time.Duration(s.n) * time.Second
	rec.BootMB = slices.Clone(s.total[:])
	rec.Add(&out)
	return &out
}

// Recording returns an empty Recording for the samples of the stream.
func (s *Stream) Recording(maxLength int) *collector.Recording {
	rec := collector.NewRecording(s.Start, time.Second, maxLength)
	rec.Host = host.Info{Hostname: "node", CPUs: 8, MemoryMB: 1024}
	rec.Disks, rec.NICs = []string{"sda"}, []string{"lo", "eth0"}
	return rec
}

// SameFloats treats all unknown values as equal.
func SameFloats() cmp.Option {
	return cmp.Options{cmpopts.EquateNaNs(), cmpopts.IgnoreUnexported(collector.GPU{}),
		cmp.Comparer(func(a, b series.Optional) bool { return a == b || !a.Known() && !b.Known() })}
}

// WideStream makes samples with values in every column.
type WideStream struct {
	*Stream
	gpusAt, gpus int // index of the sample at which the GPUs are found, and their number
}

// NewWideStream returns a WideStream that finds the given number of GPUs before sample gpusAt.
func NewWideStream(seed uint64, gpusAt, gpus int) *WideStream {
	return &WideStream{NewStream(seed), gpusAt, gpus}
}

// Recording returns an empty Recording of a job with limits.
func (w *WideStream) Recording(maxLength int) *collector.Recording {
	rec := w.Stream.Recording(maxLength)
	a := &rec.Account
	a.Source, a.Group, a.Version = host.JobFromGroup, "/slurm/job_42", "hybrid"
	a.Limits = host.Limits{CPUs: 2, CPUQuota: 2, CPUSetCPUs: 4, AffinityCPUs: 8, MemoryMB: 256, CPUGroup: "/slurm",
		MemoryGroup: "/slurm/job_42"}
	return rec
}

// Next adds a sample to rec, one second after the previous one.
func (w *WideStream) Next(rec *collector.Recording) *collector.Sample {
	if w.n == w.gpusAt && w.gpus > 0 {
		for i := range w.gpus {
			rec.GPUs = append(rec.GPUs, collector.GPU{
				Device: gpu.Device{Index: i, UUID: fmt.Sprintf("GPU-%d", i), Name: "A100", MemoryMB: 81920,
					PowerLimitWatts: 400},
				OfJob: i == 0, EnergyJoules: series.Unknown(), ClockMHz: series.Unknown(),
			})
		}
		rec.EnsureGPUColumns(w.gpus)
	}

	scratch := collector.NewRecording(w.Start, time.Second, 2)
	s := w.Stream.Next(scratch)
	rec.End, rec.BootMB = scratch.End, scratch.BootMB
	for c := collector.JobCPU; c < collector.NumColumns && c.Info().Scope != collector.ScopeDevice; c++ {
		s.Values[c] = math.Round(w.rnd.Float64()*1e5) / 1e3
	}

	for i := range rec.GPUs { // in the format of nvidia-smi
		for k, v := range []float64{float64(w.rnd.IntN(101)), float64(w.rnd.IntN(81920)),
			float64(5000+w.rnd.IntN(35000)) / 100, float64(30 + w.rnd.IntN(60))} {
			s.Values[collector.GPUColumn(i, collector.GPUKey(k))] = v
		}
	}

	for _, c := range []collector.Column{collector.MemUsed, collector.DiskUsed, collector.DiskFree} {
		s.Values[c] = float64(w.rnd.IntN(1<<26)) / 256
	}

	w.account(rec)
	rec.Add(s)
	return s
}

// account sets the counters to their values after the samples so far, with one second per sample.
func (w *WideStream) account(rec *collector.Recording) {
	a, n := &rec.Account, series.Optional(w.n)
	a.MemoryKind, a.CPUSeconds, a.LivingCPUSeconds, a.PeakMB, a.CacheMB = host.MemoryGroup, n/2, n/4, 200, 10
	a.Periods, a.ThrottledPeriods, a.ThrottledSeconds = 10*n, n, n/100
	a.OOMKills, a.HostOOMKills = 1, 2
	a.JobStall = collector.Stalls{CPUSome: n / 3, CPUFull: n / 4, MemorySome: n / 5, MemoryFull: n / 6, IOSome: n / 7,
		IOFull: n / 8}
	a.HostStall = a.JobStall
	a.HostStall.CPUFull = series.Unknown()
	if w.n > 3 && a.OOMAt.IsZero() {
		a.OOMAt = w.Start.Wall.Add(3 * time.Second)
		a.Victims = []host.Victim{{Process: "py thon\n)", PID: 77, At: a.OOMAt, Group: "/slurm/job_42"}}
		rec.Missing = append(rec.Missing, series.Missing{What: "gpu", Why: "the driver says [N/A]"})
	}
	for i := range rec.GPUs {
		rec.GPUs[i].IdleGaps = collector.IdleGaps{
			Seconds: float64(w.n) / 2, Count: 2, LongestSeconds: float64(w.n) / 3,
			JobCPUs:  collector.GapMean{Sum: float64(w.n), Seconds: float64(w.n) / 2},
			DiskRate: collector.GapMean{Sum: 3, Seconds: 2}, Waiting: collector.GapMean{Sum: 30, Seconds: 2},
		}
		rec.GPUs[i].EnergyJoules, rec.GPUs[i].ClockMHz, rec.GPUs[i].Throttle = 300*n, 1410, []string{"sw_power_cap"}
	}
}
