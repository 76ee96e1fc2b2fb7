package collector

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
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

// onMachine runs a test on a machine.
func onMachine(t *testing.T, test func(*testing.T, *machine)) {
	synctest.Test(t, func(t *testing.T) { test(t, newMachine(t)) })
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
	onMachine(t, func(t *testing.T, h *machine) {
		var observed, stamps []float64
		begun := 0
		rec := h.run(10*time.Second+250*time.Millisecond, Options{Begin: func(rec *Recording) {
			begun++
			same(t, "samples and CPUs at the beginning", []int{int(rec.Samples), rec.Host.CPUs}, []int{0, 2})
			same(t, "counters since boot at the beginning", rec.BootMB[:6], []float64{10, 20, 5, 10, 5, 100})
		}, Observe: func(s *Sample, rec *Recording) {
			same(t, "calls of Begin", begun, 1)
			observed = append(observed, float64(rec.Samples))
			stamps = append(stamps, s.Values[Timestamp]-float64(h.began.UnixMilli())/1000)
			h.cpus(h.since().Seconds() / 2)
		}})
		same(t, "number of samples at each call of Observe", observed, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
		same(t, "when samples were taken", stamps, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10.25})
		same(t, "samples, missed ticks, CPUs", []int{int(rec.Samples), int(rec.MissedTicks), rec.Host.CPUs}, []int{11, 0, 2})
		times := []time.Duration{rec.LongestGap, rec.End.Mono - rec.Start.Mono}
		same(t, "longest gap, length", times, []time.Duration{time.Second, 10*time.Second + 250*time.Millisecond})
		same(t, "memory", summaryOf(rec, MemPercent), summary{11, 10.25, 25})
		same(t, "disk", summaryOf(rec, DiskPercent), summary{11, 10.25, 30})
		same(t, "devices", [][]string{rec.Disks, rec.NICs}, [][]string{{"vda"}, {"lo", "eth0"}})
		same(t, "counters since boot", rec.BootMB[:6], []float64{10, 20, 5, 10, 5, 100})
		// Each of two CPUs was busy for half of 10 s, up to the last Reading.
		same(t, "busy seconds", math.Round(100*rec.CPUSeconds[host.ModeUser])/100, 10.0)
		same(t, "idle seconds", math.Round(100*rec.CPUSeconds[host.ModeIdle])/100, 10.0)
	})
}

// While a window spans several samples, the memory of its first Reading is not reused.
func TestSampler_WindowKeepsReadingItBeganWith(t *testing.T) {
	onMachine(t, func(t *testing.T, h *machine) {
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
			check.True(t, v == 50, "window %d: CPUs %v %% busy, want 50", i+1, v)
		}
		for i, v := range rates[1:] {
			check.True(t, v == 100, "window %d: %v MiB/s, want 100", i+1, v)
		}
		check.True(t, len(busy) >= 10 && len(rates) >= 10,
			"%d windows with CPU percentages and %d with rates, want at least 10 of each", len(busy), len(rates))
	})
}

func TestSampler_SlowReadingDoesNotShiftLaterTicks(t *testing.T) {
	onMachine(t, func(t *testing.T, h *machine) {
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
	onMachine(t, func(t *testing.T, h *machine) {
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
	for name, tt := range map[string]struct {
		length     time.Duration
		cpu, bytes summary
	}{
		"50 ms": {50 * time.Millisecond, summary{1, 0.05, 60}, summary{1, 0.05, 7}},
		"1 ms":  {time.Millisecond, summary{0, 0, absent}, summary{1, 0.001, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, func(t *testing.T, h *machine) {
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
	onMachine(t, func(t *testing.T, h *machine) {
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
			{Suspend: true, At: h.began.Add(4*time.Second + night*time.Second), By: night * time.Second}})
		same(t, "longest gap", rec.LongestGap, time.Second+night*time.Second)
		same(t, "missed ticks", rec.MissedTicks, int64(0))
		w := rec.Summaries[MemPercent].Weight()
		check.True(t, w == 5, "the samples have a weight of %v s, want 5", w)
	})
}

func TestSampler_BoundsClockEvents(t *testing.T) {
	onMachine(t, func(t *testing.T, h *machine) {
		rec := h.run(300*time.Second, Options{Observe: func(*Sample, *Recording) { h.step += time.Hour }})
		same(t, "events", len(rec.ClockEvents), maxClockEvents)
	})
}

func TestSampler_CountsFailures(t *testing.T) {
	onMachine(t, func(t *testing.T, h *machine) {
		good := check.Value(os.ReadFile(filepath.Join(h.proc, "diskstats")))(t)
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
			{host.SourceMemory, "", "read " + h.proc + "/meminfo: no MemTotal", 1}})
		same(t, "late starts", rec.LateStarts, map[string]time.Duration{host.SourceDiskIO: 3 * time.Second})
		same(t, "bytes", summaryOf(rec, DiskRead), summary{5, 4.5, 0})
		same(t, "rate", summaryOf(rec, DiskReadRate), summary{4, 3.5, 0})
		same(t, "memory", summaryOf(rec, MemPercent), summary{6, 5.5, 60})
		same(t, "CPU", summaryOf(rec, CPUAvg).Count, int64(0)) // the CPU clock does not move in this test
	})
}

func TestSampler_ReturnsImmediatelyWhenCancelled(t *testing.T) {
	onMachine(t, func(t *testing.T, h *machine) {
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
	onMachine(t, func(t *testing.T, h *machine) {
		h.received(100)
		rec := h.run(2500*time.Millisecond, Options{PerfPy: true, Observe: func(_ *Sample, rec *Recording) { h.cpus(h.since().Seconds() / 4) }})
		var got [][2]float64
		for _, s := range rec.PerfPy.Items() {
			got = append(got, [2]float64{s.Values[CPUAvg], s.Values[NetExtRecv]})
		}
		// perf.py's bytes are since boot, and its CPU percentage is 0 for a window in which the clock did not move.
		same(t, "CPU and bytes", got, [][2]float64{{0, 100}, {25, 100}, {25, 100}})
		check.True(t, NewSampler(h.reader, Options{}).rec.PerfPy == nil, "rec.PerfPy is not nil without the option PerfPy")
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

var updateSequence = flag.Bool("update", false, "write the golden files anew")

// sequence is a host that changes from one Reading to the next, with a group that holds a job.
type sequence struct {
	t         *testing.T
	proc      string
	group     string
	mono      time.Duration
	step      time.Duration // of the wall clock
	suspended time.Duration
	samples   []Sample
}

func (q *sequence) now() host.Instant {
	wall := time.Unix(1_767_225_600, 0).Add(q.mono + q.step + q.suspended)
	return host.Instant{Wall: wall, Mono: time.Hour + q.mono, Boot: time.Hour + q.mono + q.suspended}
}

// statfs returns a file system that fills up.
func (q *sequence) statfs(path string) (host.DiskUsage, error) {
	used := uint64(q.mono / time.Microsecond)
	return host.DiskUsage{Path: path, Used: used, Available: 1<<30 - used}, nil
}

// sequenceJob returns the control group of the job.
func (q *sequence) sequenceJob() host.JobOptions {
	root := q.t.TempDir()
	q.group = filepath.Join(root, "sys/fs/cgroup/job")
	for name, text := range map[string]string{
		"proc/42/cgroup": "0::/job\n", "proc/42/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/cgroup.procs": "1\n", "sys/fs/cgroup/job/cgroup.procs": "7\n8\n",
		"sys/fs/cgroup/job/cgroup.events": "populated 1\n", "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
		"sys/fs/cgroup/job/memory.max": "1073741824\n",
	} {
		write(q.t, root, name, []byte(text))
	}
	q.put(0)

	group := check.Value(cgroup.Find(cgroup.Options{Proc: root + "/proc", Sys: root + "/sys", PID: 42}))(q.t)
	return host.JobOptions{Source: host.JobFromCreated, Group: group, PID: 1}
}

// put writes the kernel's counters at step n. Some counters are reset, and some files and devices are missing for a
// while.
func (q *sequence) put(n int) {
	count := func(each int) int { return 1000 + each*n*(n+3)/2 }
	again := func(at, each int) int { return count(each) - min(n/at, 1)*count(each)*9/10 } // a reset at step at
	swapped := func(each int) int { return each * n * (64 << 10) / os.Getpagesize() }      // pages of any size
	cpus := fmt.Sprintf("cpu 0\ncpu0 %d 20 %d %d 80 0 6 4 0 0\n", count(7)+9*(n%3), count(3), count(11)+5*(n%4))
	nics := fmt.Sprintf("a|b\nc|d\n lo: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n", count(70_000), count(70_000))
	disks := fmt.Sprintf(" 8 0 vda %d 0 %d 9 %d 0 %d 9 0 9 9\n", count(3), count(800), count(5), again(8, 9_000))
	if n != 5 && n != 6 {
		cpus += fmt.Sprintf("cpu1 %d 0 %d %d 40 1 9 0 %d 0\n", count(2), count(4), count(17), count(1))
		nics += fmt.Sprintf(" eth0: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n", again(9, 3<<20), count(1<<19))
	}
	stall := func(each int) string {
		const line = "%s avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n"
		return fmt.Sprintf(line+line, "some", count(each), "full", count(each/2))
	}

	for name, text := range map[string]string{
		"stat": cpus, "net/dev": nics, "diskstats": disks,
		"meminfo":      fmt.Sprintf("MemTotal: 8000000 kB\nMemAvailable: %d kB\n", 6_000_000-count(30_000)),
		"vmstat":       fmt.Sprintf("nr_free_pages 1\npswpin %d\npswpout %d\npgmajfault %d\noom_kill 2\n", swapped(5), swapped(n), 3*n),
		"loadavg":      fmt.Sprintf("%d.25 0.18 0.12 %d/80 11206\n", n%4, 1+n%3),
		"pressure/cpu": stall(40_000), "pressure/memory": stall(9_000), "pressure/io": stall(20_000),
	} {
		if n == 10 && (name == "vmstat" || name == "meminfo" || name == "stat") {
			text = "nothing of use\n"
		}
		write(q.t, q.proc, name, []byte(text))
	}
	cpu, memory := count(9_000), count(3<<20)
	for name, text := range map[string]string{
		"cpu.stat": fmt.Sprintf("usage_usec %d\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d\n",
			cpu, count(4), count(1), count(3_000)),
		"memory.current": fmt.Sprintln(memory), "memory.peak": fmt.Sprintln(memory + 4096),
		"pids.current":  fmt.Sprintln(2 + n%5),
		"memory.events": fmt.Sprintf("max %d\noom 0\noom_kill 0\n", n),
		"memory.stat": fmt.Sprintf("anon %d\nfile %d\nshmem 0\nactive_file %d\ninactive_file %d\n",
			memory/2, memory/3, memory/8, memory/9),
		"io.stat":      fmt.Sprintf("8:0 rbytes=%d wbytes=%d rios=1 wios=2 dbytes=0 dios=0\n", count(50_000), count(90_000)),
		"cpu.pressure": stall(30_000), "memory.pressure": stall(5_000), "io.pressure": stall(10_000),
	} {
		write(q.t, q.group, name, []byte(text))
	}
}

// run takes a sample after each change.
func (q *sequence) run() *Recording {
	sys := filepath.Join(collectortest.Root(q.t), "testdata", "sys", "healthy")
	reader := host.NewReader(host.Options{Proc: q.proc, Sys: sys, Now: q.now, Statfs: q.statfs, Job: q.sequenceJob()})
	s := NewSampler(reader, Options{Interval: 100 * time.Millisecond, MaxLength: 4,
		Observe: func(sample *Sample, _ *Recording) { q.samples = append(q.samples, *sample) }})
	s.completeBaseline()
	for n, after := range []int{100, 100, 20, 180, 100, 100, 100, 1000, 100, 100, 30_000, 100, 70} { // ms
		q.mono += time.Duration(after) * time.Millisecond
		switch n + 1 {
		case 4:
			q.step += 3 * time.Second
		case 12:
			q.suspended += 5 * time.Second
		}
		q.put(n + 1)
		s.takeSample(false)
	}

	ended, cancel := context.WithCancel(q.t.Context())
	cancel()
	return s.Run(ended) // the closing Reading
}

// table has a line for each measured column: the samples, then the results in the Recording.
func (q *sequence) table(rec *Recording) string {
	number := func(v float64) string {
		if math.IsNaN(v) {
			return "-"
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	var b strings.Builder
	for c := Column(0); c < rec.NumColumns(); c++ {
		st := rec.Summaries[c].Stat()
		if st.Count == 0 {
			continue
		}
		b.WriteString(c.Key())
		for _, s := range q.samples {
			b.WriteString(" " + number(s.Values[c]))
		}
		fmt.Fprintf(&b, " | %d in %s s: %s to %s, mean %s\n",
			st.Count, number(st.Weight), number(st.Min), number(st.Max), number(st.Mean()))
	}

	a := rec.Account
	b.WriteString("account")
	for _, v := range []series.Optional{a.CPUSeconds, a.PeakMB, a.Periods, a.ThrottledPeriods, a.ThrottledSeconds,
		a.LimitReachedPct, series.Optional(a.LimitCPUSeconds)} {
		b.WriteString(" " + number(float64(v)))
	}
	fmt.Fprintln(&b, "", rec.ClockEvents)
	return b.String()
}

// The golden file holds the numbers of an earlier version for a host with growing, reset and missing counters. Update
// it only for new columns.
func TestSampler_NumbersEqualPreviousVersion(t *testing.T) {
	proc, _ := collectortest.CopyOfTree(t)
	q := &sequence{t: t, proc: proc}
	got := q.table(q.run())

	const name = "testdata/sequence.golden"
	if *updateSequence {
		write(t, ".", name, []byte(got))
	}
	want := check.Value(os.ReadFile(name))(t)
	diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n"))
	check.True(t, diff == "", "numbers differ from the previous version (-previous +now):\n%s", diff)
}

// Both kinds of tickers keep to the grid, skip missed ticks, and stop immediately.
func TestTicker_KeepsToTheGrid(t *testing.T) {
	t.Parallel()
	const interval = 50 * time.Millisecond
	for name, file := range map[string]bool{"file": true, "timer": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := host.Now().Mono
			next := func() time.Duration { return interval - (host.Now().Mono-start)%interval }
			tick := newTicker(next, nil)
			if file {
				tick = newTicker(next, openTicks(start+interval, interval))
				if tick.file == nil {
					t.Fatal("openTicks = nil, want a timerfd")
				}
			}

			var last time.Duration
			for n := range 4 {
				if n == 2 {
					time.Sleep(2*interval + interval/2) // a slow sample
				}
				asked := host.Now().Mono - start
				if !tick.wait() {
					t.Fatal("wait = false before stop")
				}
				now := host.Now().Mono - start
				check.True(t, now/interval > asked/interval && now/interval > last,
					"wait called at %v returned at %v after tick %d, want the next tick of %v", asked, now, last, interval)
				last = now / interval
			}

			waited := make(chan bool)
			go func() {
				for tick.wait() {
				}
				waited <- true
			}()
			tick.stop()
			tick.stop()
			<-waited
			check.True(t, !tick.wait(), "wait = true after stop")
		})
	}
}
