package collector

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// machine is a host in a synctest bubble: time passes when all goroutines wait. The test writes the counters into its
// kernel files.
type machine struct {
	t         *testing.T
	proc      string
	began     time.Time
	step      time.Duration // of the wall clock
	slept     time.Duration // boot clock minus monotonic clock
	slow      time.Duration // duration of the next Reading
	readTimes []time.Duration
	reader    *host.Reader
}

func newMachine(t *testing.T) *machine {
	proc, sys := collectortest.CopyOfTree(t)
	h := &machine{t: t, proc: proc, began: time.Now()}
	h.reader = host.NewReader(host.Options{Proc: proc, Sys: sys, Now: h.now, Statfs: h.statfs})
	t.Cleanup(h.reader.Close)
	h.cpus(0)
	return h
}

func (h *machine) statfs(path string) (host.DiskUsage, error) {
	time.Sleep(h.slow)
	h.slow = 0
	h.readTimes = append(h.readTimes, h.since())
	return host.DiskUsage{Path: path, Used: 30, Available: 70}, nil
}

func (h *machine) since() time.Duration { return time.Since(h.began) }

func (h *machine) now() host.Instant {
	d := h.since()
	return host.Instant{Wall: h.began.Add(d + h.step + h.slept), Mono: time.Hour + d, Boot: 2*time.Hour + d + h.slept}
}

// cpus writes a stat file in which both CPUs were busy for the given seconds and idle otherwise.
func (h *machine) cpus(busy float64) { h.cpusAt(busy, h.since()) }

func (h *machine) cpusAt(busy float64, now time.Duration) {
	b := int(math.Round(busy * 100))
	idle := 1000 + int(now/clockTick) - b
	write(h.t, h.proc, "stat", fmt.Appendf(nil, "cpu 0 0 0 0 0 0 0\ncpu0 %d 0 0 %d 0 0 0\ncpu1 %d 0 0 %d 0 0 0\n", b, idle, b, idle))
}

// received writes a net/dev file in which eth0 received the given number of MiB.
func (h *machine) received(mb int) {
	h.t.Helper()
	write(h.t, h.proc, "net/dev", fmt.Appendf(nil, "a|b\nc|d\nlo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\neth0: %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", mb<<20))
}

// run samples for the duration d.
func (h *machine) run(d time.Duration, o Options) *Recording {
	ctx, cancel := context.WithTimeout(h.t.Context(), d)
	defer cancel()
	return NewSampler(h.reader, o).Run(ctx)
}

func TestSampler_SamplesOnTheGridAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMachine(t)
		var observed, stamps []float64
		begun := 0
		rec := h.run(10*time.Second+250*time.Millisecond, Options{Begin: func(rec *Recording) {
			begun++
			same(t, "samples at the beginning", rec.Samples, int64(0))
			same(t, "CPUs at the beginning", rec.Host.CPUs, 2)
			same(t, "counters since boot at the beginning", rec.BootMB[:6], []float64{10, 20, 5, 10, 5, 100})
		}, Observe: func(s *Sample, rec *Recording) {
			same(t, "calls of Begin", begun, 1)
			observed = append(observed, float64(rec.Samples))
			stamps = append(stamps, s.Values[Timestamp]-float64(h.began.UnixMilli())/1000)
			h.cpus(h.since().Seconds() / 2)
		}})
		same(t, "number of samples at each call of Observe", observed, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
		same(t, "when samples were taken", stamps, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10.25})
		same(t, "samples", rec.Samples, int64(11))
		same(t, "missed ticks", rec.MissedTicks, int64(0))
		same(t, "longest gap", rec.LongestGap, time.Second)
		same(t, "length", rec.End.Mono-rec.Start.Mono, 10*time.Second+250*time.Millisecond)
		same(t, "memory", summaryOf(rec, MemPercent), summary{11, 10.25, 25})
		same(t, "disk", summaryOf(rec, DiskPercent), summary{11, 10.25, 30})
		same(t, "CPUs of the host", rec.Host.CPUs, 2)
		same(t, "devices", [][]string{rec.Disks, rec.NICs}, [][]string{{"vda"}, {"lo", "eth0"}})
		same(t, "counters since boot", rec.BootMB[:6], []float64{10, 20, 5, 10, 5, 100})
		// Each of two CPUs was busy for half of 10 s, up to the last Reading.
		same(t, "busy seconds", math.Round(100*rec.CPUSeconds[host.ModeUser])/100, 10.0)
		same(t, "idle seconds", math.Round(100*rec.CPUSeconds[host.ModeIdle])/100, 10.0)
	})
}

// While a window spans several samples, the memory of its first Reading is not reused.
func TestSampler_WindowKeepsReadingItBeganWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMachine(t)
		const interval = 10 * time.Millisecond // a window spans four intervals
		var busy, rates []float64
		mb := 0
		h.run(500*time.Millisecond+interval/2, Options{Interval: interval, Observe: func(s *Sample, rec *Recording) {
			if s.Has(CPUAvg) {
				busy = append(busy, s.Values[CPUAvg])
			}
			if s.Has(NetExtRecvRate) {
				rates = append(rates, s.Values[NetExtRecvRate])
			}
			mb++
			h.received(mb)
			next := h.since() + interval
			h.cpusAt(math.Floor(next.Seconds()*50+1e-9)/100, next) // every other clock tick
		}})

		for i, v := range busy[1:] {
			if v != 50 {
				t.Errorf("window %d: CPUs %v %% busy, want 50", i+1, v)
			}
		}
		for i, v := range rates[1:] {
			if v != 100 {
				t.Errorf("window %d: %v MiB/s, want 100", i+1, v)
			}
		}
		if len(busy) < 10 || len(rates) < 10 {
			t.Errorf("%d windows with CPU percentages and %d with rates, want at least 10 of each", len(busy), len(rates))
		}
	})
}

func TestSampler_SlowReadingDoesNotShiftLaterTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMachine(t)
		rec := h.run(9*time.Second+500*time.Millisecond, Options{Interval: time.Second, Observe: func(_ *Sample, rec *Recording) {
			switch rec.Samples {
			case 2: // the next Reading is slow, but takes less than a tick
				h.slow = 150 * time.Millisecond
			case 4: // processing a sample takes two and a half ticks
				time.Sleep(2500 * time.Millisecond)
			}
		}})
		ms := time.Millisecond
		same(t, "times of the Readings", h.readTimes, []time.Duration{1000 * ms, 2000 * ms, 3150 * ms, 4000 * ms, 7000 * ms, 8000 * ms, 9000 * ms, 9500 * ms})
		same(t, "missed ticks", rec.MissedTicks, int64(2))
		same(t, "longest gap", rec.LongestGap, 3*time.Second)
	})
}

// When a job ends right after a tick, the last two clock ticks must not set a maximum.
func TestSampler_ClosingReadingSetsNoMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMachine(t)
		h.received(0)
		rec := h.run(3*time.Second+20*time.Millisecond, Options{Observe: func(_ *Sample, rec *Recording) {
			h.cpus(0.1 * float64(rec.Samples))
			h.received(int(rec.Samples))
			if rec.Samples == 3 {
				go func() { // in the 20 ms after the last tick
					time.Sleep(10 * time.Millisecond)
					h.cpus(0.32)
					h.received(50)
				}()
			}
		}})
		same(t, "samples", rec.Samples, int64(4))
		// In the first second, no CPU's clock moves. In the last 20 ms, both CPUs are busy for two ticks.
		same(t, "CPU", summaryOf(rec, CPUMax), summary{2, 2, 10})
		same(t, "rate", summaryOf(rec, NetExtRecvRate), summary{3, 3, 1})
		same(t, "bytes", summaryOf(rec, NetExtRecv), summary{4, 3.02, 50})
	})
}

func TestSampler_MeasuresShortJobs(t *testing.T) {
	tests := map[string]struct {
		length     time.Duration
		cpu, bytes summary
	}{
		"50 ms": {50 * time.Millisecond, summary{1, 0.05, 60}, summary{1, 0.05, 7}},
		"1 ms":  {time.Millisecond, summary{0, 0, absent}, summary{1, 0.001, 7}},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newMachine(t)
				h.received(3)
				go func() {
					time.Sleep(tt.length / 2)
					h.cpusAt(0.03, tt.length)
					h.received(10)
				}()
				rec := h.run(tt.length, Options{})
				same(t, "samples", rec.Samples, int64(1))
				same(t, "CPU", summaryOf(rec, CPUAvg), tt.cpu)
				same(t, "bytes", summaryOf(rec, NetExtRecv), tt.bytes)
				same(t, "memory", summaryOf(rec, MemPercent), summary{1, tt.length.Seconds(), 25})
			})
		})
	}
}

func TestSampler_RecordsClockEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMachine(t)
		var stamps []float64
		rec := h.run(5*time.Second, Options{Observe: func(s *Sample, rec *Recording) {
			stamps = append(stamps, s.Values[Timestamp]-float64(h.began.UnixMilli())/1000)
			switch rec.Samples {
			case 1:
				h.step = time.Hour
			case 2:
				h.step = 0
			case 3:
				h.slept = 8 * time.Hour
			case 4:
				h.step = 100 * time.Millisecond // slewing is not a step
			}
		}})
		const night = 8 * 3600
		same(t, "timestamps", stamps, []float64{1, 2, 3, 4 + night, 5 + night, 5 + night}[:len(stamps)])
		same(t, "clock events", rec.ClockEvents, []ClockEvent{
			{At: h.began.Add(2 * time.Second), By: time.Hour},
			{At: h.began.Add(3 * time.Second), By: -time.Hour},
			{Suspend: true, At: h.began.Add(4*time.Second + night*time.Second), By: night * time.Second},
		})
		same(t, "longest gap", rec.LongestGap, time.Second+night*time.Second)
		same(t, "missed ticks", rec.MissedTicks, int64(0))
		if w := rec.Summaries[MemPercent].Weight(); w != 5 {
			t.Errorf("the samples have a weight of %v s, want 5", w)
		}
	})
}

func TestSampler_BoundsClockEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMachine(t)
		rec := h.run(300*time.Second, Options{Observe: func(*Sample, *Recording) { h.step += time.Hour }})
		same(t, "events", len(rec.ClockEvents), maxClockEvents)
	})
}

func TestSampler_CountsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMachine(t)
		good, err := os.ReadFile(filepath.Join(h.proc, "diskstats"))
		must(t, err)
		write(t, h.proc, "diskstats", []byte("nonsense")) // at the baseline
		rec := h.run(6500*time.Millisecond, Options{Observe: func(_ *Sample, rec *Recording) {
			switch rec.Samples {
			case 2:
				write(t, h.proc, "diskstats", good)
				write(t, h.proc, "meminfo", nil)
			case 3:
				write(t, h.proc, "meminfo", []byte("MemTotal: 100 kB\nMemAvailable: 40 kB\n"))
			}
		}})
		same(t, "failures", rec.Failures, []Failure{
			{host.SourceDiskIO, "", "read " + h.proc + `/diskstats: line "nonsense" has 1 fields`, 3},
			{host.SourceMemory, "", "read " + h.proc + "/meminfo: no MemTotal", 1},
		})
		same(t, "late starts", rec.LateStarts, map[string]time.Duration{host.SourceDiskIO: 3 * time.Second})
		same(t, "bytes", summaryOf(rec, DiskRead), summary{5, 4.5, 0})
		same(t, "rate", summaryOf(rec, DiskReadRate), summary{4, 3.5, 0})
		same(t, "memory", summaryOf(rec, MemPercent), summary{6, 5.5, 60})
		same(t, "CPU", summaryOf(rec, CPUAvg).Count, int64(0)) // the CPU clock does not move in this test
	})
}

func TestSampler_ReturnsImmediatelyWhenCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMachine(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan *Recording)
		go func() { done <- NewSampler(h.reader, Options{Interval: time.Hour}).Run(ctx) }()
		time.Sleep(30 * time.Minute)
		before := time.Now()
		cancel()
		rec := <-done
		same(t, "duration of Run after the cancellation", time.Since(before), time.Duration(0))
		same(t, "samples", rec.Samples, int64(1))
		same(t, "memory", summaryOf(rec, MemPercent), summary{1, 1800, 25})
	})
}

func TestSampler_KeepsPerfPyRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMachine(t)
		h.received(100)
		rec := h.run(2500*time.Millisecond, Options{PerfPy: true, Observe: func(_ *Sample, rec *Recording) { h.cpus(h.since().Seconds() / 4) }})
		var got [][2]float64
		for _, s := range rec.PerfPy.Items() {
			got = append(got, [2]float64{s.Values[CPUAvg], s.Values[NetExtRecv]})
		}
		// perf.py's bytes are since boot, and its CPU percentage is 0 for a window in which the clock did not move.
		same(t, "CPU and bytes", got, [][2]float64{{0, 100}, {25, 100}, {25, 100}})
		if NewSampler(h.reader, Options{}).rec.PerfPy != nil {
			t.Error("rec.PerfPy is not nil without the option PerfPy")
		}
	})
}

func TestMinWindow_FollowsTheInterval(t *testing.T) {
	got := map[time.Duration]time.Duration{}
	for _, i := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Hour} {
		got[i] = MinWindow(i)
	}
	same(t, "shortest window by interval", got, map[time.Duration]time.Duration{10 * time.Millisecond: FirstWindow, 50 * time.Millisecond: FirstWindow,
		100 * time.Millisecond: 50 * time.Millisecond, time.Second: 10 * clockTick, time.Hour: 10 * clockTick})
}
