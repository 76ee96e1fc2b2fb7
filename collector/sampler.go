package collector

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/intake"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/procfile"
)

// clockTick is the resolution of CPU time in /proc/stat (times(2), proc(5)).
const clockTick = time.Second / procfile.UserHZ

// FirstWindow is the shortest window of the first percentages and rates of a run: four ticks, so that a job that runs
// for 50 ms is measured.
const FirstWindow = 4 * clockTick

// MinWindow returns the shortest window of all later measurements. It is half the interval, because the closing Reading
// may come right after the last tick, and a window of a few clock ticks must not set a maximum. It is at most ten
// ticks, which measure a CPU in steps of 10 %, and at least FirstWindow, so at short intervals a window spans several
// samples.
func MinWindow(interval time.Duration) time.Duration {
	return min(max(interval/2, FirstWindow), 10*clockTick)
}

// clockJump is the smallest difference between two clocks over one window that counts as a step or a suspend. Slewing
// (adjtime) stays far below it.
const clockJump = 500 * time.Millisecond

// maxClockEvents bounds the recorded clock events, for hosts that step their clock frequently.
const maxClockEvents = 100

// maxFailures bounds the number of distinct recorded failures.
const maxFailures = 50

// Options configures a Sampler.
type Options struct {
	Interval  time.Duration // ≥ 10 ms; 0 = 1 s
	MaxLength int           // capacity of the ring; 0 = 1000
	PerfPy    bool          // also keep perf.py's ring

	// TakeHost, if not nil, is called at each tick while another agent measures the host. It reports whether this
	// Sampler measures the host from now on. It must not block.
	TakeHost func() bool
	// Begin, if not nil, is called once before the first sample, when the host is known. It runs in the sampling
	// goroutine, like Observe.
	Begin func(*Recording)
	// Observe, if not nil, is called after each sample, in the sampling goroutine. The Sampler owns Sample and
	// Recording: Observe may read or copy them, but must not keep them.
	Observe func(*Sample, *Recording)
}

// A Sampler takes Readings on a grid of ticks and builds a Recording from them.
type Sampler struct {
	reader   *host.Reader
	opts     Options
	counters CounterState
	prev     *host.Reading
	retired  []*host.Reading // older than prev, still used by counters
	rec      *Recording
	sample   Sample // the newest
	tracker  accountTracker
	mounts   []host.Mount    // newest known, of each kind
	marks    *marks.Follower // nil without a file
	intake   *intake.Intake  // nil without an intake
}

// NewSampler returns a Sampler that owns the Reader. It takes the baseline Reading before it returns: start the job
// afterwards, so that its first moments are counted.
func NewSampler(reader *host.Reader, o Options) *Sampler {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.MaxLength == 0 {
		o.MaxLength = 1000
	}
	base := reader.Baseline()
	s := &Sampler{reader: reader, opts: o, counters: NewCounterState(base), prev: base,
		tracker: newAccountTracker(base, reader.Job())}
	s.rec = NewRecording(base.At, o.Interval, o.MaxLength)
	s.rec.ReaderName, s.rec.DiskPaths = reader.Name(), reader.DiskPaths()
	if job := reader.Job(); job.Source != "" {
		s.rec.Account.Source, s.rec.Account.Running = job.Source, job.Running
		if job.Group != nil {
			s.rec.Account.Group, s.rec.Account.Version = job.Group.Path(), job.Group.Version()
			s.rec.Account.MemoryPath = job.Group.MemoryPath()
		}
	}

	s.rec.Host.CPUs = len(base.CPU)
	s.noteFailures(base)
	if o.PerfPy {
		s.rec.PerfPy = series.NewDecimator[Sample](o.MaxLength)
	}
	return s
}

// Baseline returns the Reading at the start of the run. Call it before Run.
func (s *Sampler) Baseline() *host.Reading { return s.prev }

// FollowMarks makes the Sampler read new marks from the file at path with every sample: see package marks. If begun is
// set, the lines already in the file are older than the recording, and only a phase that they leave open counts. Call
// FollowMarks before Run.
func (s *Sampler) FollowMarks(path string, begun bool) {
	s.marks = marks.Follow(path)
	if begun {
		s.marks.Skip()
	}
}

// Run samples until ctx ends, takes the closing Reading, closes the Reader and returns the Recording. It blocks: the
// caller starts the goroutine and waits for it.
func (s *Sampler) Run(ctx context.Context) *Recording {
	defer s.reader.Close()
	s.reader.WatchDeaths()
	s.tracker.leastMemory = s.reader.Memory()
	s.completeBaseline()
	if s.opts.Begin != nil {
		s.opts.Begin(s.rec)
	}

	ticks := s.ticker()
	defer ticks.stop()
	release := context.AfterFunc(ctx, ticks.stop)
	defer release()
	for ticks.wait() {
		if s.reader.JobOnly() && s.opts.TakeHost != nil && s.opts.TakeHost() {
			s.reader.MeasureHost()
		}
		s.takeSample(false)
	}

	s.takeSample(true)
	return s.rec
}

// ticker returns a ticker for the grid start + k·interval, so that a late tick does not shift later ones.
func (s *Sampler) ticker() *ticker {
	next := func() time.Duration {
		since := s.reader.Now().Mono - s.rec.Start.Mono
		return s.opts.Interval - since%s.opts.Interval
	}
	if !s.reader.RealTime() {
		return newTicker(next, nil)
	}
	return newTicker(next, openTicks(s.reader.Now().Mono+next(), s.opts.Interval))
}

// completeBaseline reads the host's constants and the values that the baseline skipped because the job was waiting.
func (s *Sampler) completeBaseline() {
	cpus := s.rec.Host.CPUs
	if s.reader.JobOnly() {
		cpus = s.reader.CPUs()
	}
	s.rec.Host = s.reader.Info()
	s.rec.Host.CPUs = cpus
	s.reader.Classify(s.prev)
	s.beginOptional()
	s.rec.BootMB = bootTotals(s.prev, false)
	for i, v := range s.rec.BootMB {
		if !math.IsNaN(v) {
			s.rec.EnsureColumn(deviceCounters[i].total)
		}
	}
	s.noteDevices(s.prev)

	_, sample := s.counters.Next(s.prev, MinWindow(s.opts.Interval))
	_, account := s.tracker.next(s.rec.Account, s.prev, trackerInput{})
	s.rec.Baseline = &Baseline{sample, account}
}

// takeSample takes a Reading, adds its sample to the Recording and passes the sample to Observe.
func (s *Sampler) takeSample(closing bool) {
	r, news := s.read(closing)
	s.noteTime(r)
	s.noteFailures(r)
	s.noteDevices(r)
	s.noteLateStarts(r)
	s.noteOptional(r)

	sample := &s.sample
	s.counters, *sample = s.counters.Next(r, MinWindow(s.opts.Interval))
	s.noteGPUs(r)
	s.ensureDeviceColumns(sample)
	received := s.collectOperations(onAxis(s.rec.Start, r.At), closing)
	news.Lines = append(news.Lines, received.Lines...)
	news.Dropped.Marks += received.Dropped.Marks
	s.addMarks(news, r.At)
	s.rec.Add(sample)
	for i := range s.rec.GPUs {
		if g := &s.rec.GPUs[i]; g.OfJob {
			g.noteIdle(sample, i)
		}
	}
	s.rec.End = r.At
	s.account(r, closing)
	s.noteHost(r)
	if s.rec.PerfPy != nil {
		s.rec.PerfPy.Add(perfpySample(s.prev.CPU, r, sample.Values[Timestamp]))
	}

	s.retire(s.prev)
	s.prev = r
	if s.opts.Observe != nil {
		s.opts.Observe(sample, s.rec)
	}
}

// retire returns r and older Readings to the Reader when s.counters no longer refers to them.
func (s *Sampler) retire(r *host.Reading) {
	s.retired = append(s.retired, r)
	s.retired = slices.DeleteFunc(s.retired, func(r *host.Reading) bool {
		if s.counters.refersTo(r) {
			return false
		}
		s.reader.Reuse(r)
		return true
	})
}

// read takes the next Reading (or the closing one) and the new marks. The marks may be on a disk, so they are read
// last: see procfile.RawPread.
func (s *Sampler) read(closing bool) (r *host.Reading, news marks.Update) {
	read, look := s.reader.Read, (*marks.Follower).Poll
	if closing {
		read, look = s.reader.Final, (*marks.Follower).Finish
	}
	if r = read(); s.marks != nil {
		news = look(s.marks)
	}
	return r, news
}

// addMarks adds the marks read with a Reading to the Recording. Their times come from the wall clock, which may have
// been stepped.
func (s *Sampler) addMarks(news marks.Update, at host.Instant) {
	if len(news.Lines) > 0 {
		in := span{from: s.rec.NewestTimestamp(), to: s.counters.timestamp(at)}
		if step := at.Wall.Sub(s.rec.Start.Wall) - (at.Boot - s.rec.Start.Boot); step.Abs() >= clockJump {
			in.step = step.Seconds()
		}
		news.Lines = alignToTimeAxis(news.Lines, s.rec.startTimestamp(), in)
	}
	s.rec.AddMarks(news)
}

// account updates the job's Account with the newest Reading.
func (s *Sampler) account(r *host.Reading, closing bool) {
	rec := s.rec
	rec.CPUSeconds = s.counters.CPUSeconds()
	in := trackerInput{cpuSeconds: s.counters.jobCPUSeconds(), closing: closing}
	in.memory, _ = NewMemoryParts(&s.sample, rec.Account.Source)
	s.tracker, rec.Account = s.tracker.next(rec.Account, r, in)

	if s.tracker.searchLog {
		rec.Account.Victims, rec.Account.SamePIDNamespace = s.reader.Victims(r.At)
		rec.Account.Largest = s.reader.LargestTasks()
		if n, known := s.reader.Neighbours(); known {
			raiseTo(&rec.Account.Neighbours, series.Optional(n))
		}
	}
	if g := s.tracker.missing; g != nil {
		rec.addMissing(*g)
	}
	s.noteProcesses(r)
}

// noteProcesses keeps the newest table of the job's processes, and their deaths.
func (s *Sampler) noteProcesses(r *host.Reading) {
	if r.Job == nil {
		return
	}
	if r.Job.Table != nil {
		s.rec.Processes = r.Job.Table
	}
	if r.Job.Deaths != nil {
		s.rec.Deaths = r.Job.Deaths
	}
	if why := r.Job.TableErr; why != nil {
		s.rec.addMissing(series.Missing{What: ProcessTable, Code: ProcessesUnread, Why: why.Error()})
	}
}

// noteGPUs updates the GPUs with the newest Reading, and adds columns for new ones.
func (s *Sampler) noteGPUs(r *host.Reading) {
	if r.GPUs == nil {
		return
	}
	s.rec.GPUError = ""
	if r.GPUs.Err != nil {
		s.rec.GPUError = r.GPUs.Err.Error()
	}

	var missing []series.Missing
	var environs [][]string
	if r.Job != nil {
		environs = r.Job.Environs
	}
	s.rec.GPUs, missing = noteGPUs(s.rec.GPUs, r.GPUs, s.reader.Job(), environs)
	for _, g := range missing {
		s.rec.addMissing(g)
	}
	s.rec.EnsureGPUColumns(len(s.rec.GPUs))
}

// ensureDeviceColumns adds the columns of new devices.
func (s *Sampler) ensureDeviceColumns(sample *Sample) {
	for c := s.rec.NumColumns(); c < NumColumns; c++ {
		if sample.Has(c) {
			s.rec.EnsureColumn(c)
		}
	}
}

// noteHost keeps the counters since boot, and facts about the host that the baseline could not read.
func (s *Sampler) noteHost(r *host.Reading) {
	for i := range deviceCounters {
		if v := deviceCounters[i].bootTotal(r, false); !math.IsNaN(v) {
			s.rec.BootMB[i] = v
		}
	}
	if s.rec.Host.CPUs == 0 {
		s.rec.Host.CPUs = len(r.CPU)
	}
	if s.rec.Host.MemoryMB == 0 && r.Memory != nil {
		s.rec.Host.MemoryMB = float64(r.Memory.Total) / MiB
	}
}

// noteTime counts missed ticks and detects gaps, clock steps and suspends.
func (s *Sampler) noteTime(r *host.Reading) {
	before, start := s.prev.At, s.rec.Start.Mono
	passed := (r.At.Mono-start)/s.opts.Interval - (before.Mono-start)/s.opts.Interval
	s.rec.MissedTicks += max(0, int64(passed)-1)
	mono, boot, wall := r.At.Mono-before.Mono, r.At.Boot-before.Boot, r.At.Wall.Sub(before.Wall)
	s.rec.LongestGap = max(s.rec.LongestGap, mono, boot)
	at := onAxis(s.rec.Start, r.At)
	if slept := boot - mono; slept >= clockJump {
		s.noteClock(ClockEvent{Suspend: true, At: at, By: slept})
	}
	if step := wall - boot; step >= clockJump || step <= -clockJump {
		s.noteClock(ClockEvent{At: at, By: step})
	}
}

// onAxis returns the time of a Reading on the time axis of the samples: wall clock of the start plus boot clock since.
func onAxis(start, at host.Instant) time.Time { return start.Wall.Add(at.Boot - start.Boot) }

func (s *Sampler) noteClock(e ClockEvent) {
	if len(s.rec.ClockEvents) < maxClockEvents {
		s.rec.ClockEvents = append(s.rec.ClockEvents, e)
	}
}

// noteDevices records the names of the counted devices, and the counters that are full.
func (s *Sampler) noteDevices(r *host.Reading) {
	s.rec.Disks = addCounted(s.rec.Disks, r.Devices[host.Disks])
	s.rec.NICs = addCounted(s.rec.NICs, r.Devices[host.NICs])
	for _, g := range fullCounters(r) {
		s.rec.addMissing(g)
	}
}

func addCounted(names []string, devs []host.Device) []string {
	for _, d := range devs {
		if d.Class&host.Counted != 0 && !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	return names
}

// noteLateStarts records when a counter that was missing from the baseline first appeared.
func (s *Sampler) noteLateStarts(r *host.Reading) {
	for k, devs := range r.Devices {
		notFresh := func(d host.Device) bool { return d.Class&host.Added == 0 }
		if s.counters.devices[k] != nil || !slices.ContainsFunc(devs, notFresh) {
			continue // no device, or only devices added since the last Reading
		}
		if s.rec.LateStarts == nil {
			s.rec.LateStarts = make(map[string]time.Duration)
		}
		s.rec.LateStarts[host.DeviceKind(k).Source()] = r.At.Mono - s.rec.Start.Mono
	}
}
