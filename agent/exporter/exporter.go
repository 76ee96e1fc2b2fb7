package exporter

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
)

const (
	// fresh is how old a page or a report may be when it is asked for. So they are made
	// at most that often, however many ask.
	fresh = 2 * time.Second
	// longestLive is the longest time after which a live page asks for itself again.
	longestLive = 30 * time.Second
	// forgotten is how long nobody has asked for a page or a report when they are
	// dropped, and their memory with them.
	forgotten = 10 * time.Second
)

// Options say what is shown.
type Options struct {
	RunID   string
	Node    int
	Version string
	// Interval is the time between samples.
	Interval time.Duration
	// Agent tells what perfagent itself has used so far.
	Agent func() reporter.Agent
	// Report makes the report of a copy of the Recording, in the goroutines of requests.
	Report func(*collector.Recording) *reporter.Report
}

// Exporter shows one run. Begin and Observe are for the sampling goroutine, all else for
// others.
type Exporter struct {
	options  Options
	labels   string
	checks   bool // the Host header is looked at; local is a name that may stand there
	local    string
	server   *http.Server
	snapshot atomic.Pointer[snapshot] // nil = not begun
	view     atomic.Pointer[view]     // nil = nobody has asked yet
	wish     atomic.Pointer[wish]     // nil = nobody waits for a view
}

// wish is what those wait for who want a new view.
type wish struct{ granted chan struct{} }

// New makes an Exporter.
func New(o Options) *Exporter {
	e := &Exporter{options: o, labels: labelsOf(o.RunID, o.Node)}
	e.server = newServer(e)
	return e
}

// Begin sees the Recording before the first sample, in the sampling goroutine, so that
// counters are told from 0 on. With long intervals it is shown as it is, empty.
func (e *Exporter) Begin(rec *collector.Recording) {
	e.snapshot.Store(beginning(rec))
	if e.options.Interval >= fresh {
		e.show(rec, e.wish.Swap(nil))
	}
}

// Observe sees every sample, in the sampling goroutine. It waits for nobody. The
// Recording is copied when somebody wants it; with long intervals always, as nobody
// will wait for the next sample then.
func (e *Exporter) Observe(s *collector.Sample, rec *collector.Recording) {
	e.snapshot.Store(e.snapshot.Load().next(s, rec))
	if w := e.wish.Swap(nil); w != nil || e.options.Interval >= fresh {
		e.show(rec, w)
	} else if v := e.view.Load(); v != nil && time.Since(time.Unix(0, v.asked.Load())) > forgotten {
		e.view.Store(nil)
	}
}

// show makes a view of the Recording the current one, and grants a wish; nil = none.
func (e *Exporter) show(rec *collector.Recording, w *wish) {
	e.view.Store(e.newView(rec.Clone()))
	if w != nil {
		close(w.granted)
	}
}

// current is the view to answer with: one that is not older than fresh where a sample
// comes in time, else the newest that there is; nil = there is none.
func (e *Exporter) current(ctx context.Context) *view {
	v := e.newest(ctx)
	if v != nil {
		v.asked.Store(time.Now().UnixNano())
	}
	return v
}

func (e *Exporter) newest(ctx context.Context) *view {
	if v := e.view.Load(); v != nil && (time.Since(v.made) < fresh || v.samples == e.snapshot.Load().samples) {
		return v
	}

	w := e.wish.Load()
	for w == nil {
		e.wish.CompareAndSwap(nil, &wish{granted: make(chan struct{})})
		w = e.wish.Load()
	}

	timer := time.NewTimer(fresh)
	defer timer.Stop()
	select {
	case <-w.granted:
	case <-timer.C:
	case <-ctx.Done():
	}

	return e.view.Load()
}

// live is the time after which a live page asks for itself again.
func (e *Exporter) live() time.Duration {
	return min(max(fresh, e.options.Interval), longestLive)
}

// metrics is the text of /metrics.
func (e *Exporter) metrics() []byte {
	f := facts{snapshot: e.snapshot.Load(), version: e.options.Version, interval: e.options.Interval, agent: e.options.Agent()}
	if f.snapshot == nil {
		f.snapshot = emptySnapshot()
	}
	x := exposition{out: make([]byte, 0, 8<<10), labels: e.labels}
	x.write(&f)
	return x.out
}

// snapshot is what /metrics tells of the newest sample. It is never changed.
type snapshot struct {
	start           time.Time
	samples, missed int64
	cpus            int     // 0 = not known
	memoryMB        float64 // 0 = not known
	values          [collector.MaxColumns]float64
	measured        [collector.MaxColumns]time.Duration // when each was, on the monotonic clock
	cpu             [host.NumCPUModes]float64
	cpuMoved        time.Duration // when cpu last changed, on the monotonic clock
	cpuStale        bool          // that is long ago: the source fails
	// account and gpus share nothing with the Recording, which goes on.
	account collector.Account
	gpus    []collector.GPU
}

// emptySnapshot is that of a run without a sample.
func emptySnapshot() *snapshot {
	s := new(snapshot)
	for c := range s.values {
		s.values[c] = math.NaN()
	}

	for m := range s.cpu {
		s.cpu[m] = math.NaN()
	}

	s.account = collector.NoAccount()
	return s
}

// beginning is the snapshot before the first sample: the counters that were read at the
// baseline are 0, gauges are not known.
func beginning(rec *collector.Recording) *snapshot {
	s := emptySnapshot()
	s.start, s.cpus, s.memoryMB, s.cpuMoved = rec.Start.Wall, rec.Host.CPUs, rec.Host.MemoryMB, rec.Start.Mono
	for i, c := range collector.Counters() {
		if !math.IsNaN(rec.BootMB[i]) {
			s.values[c], s.measured[c] = 0, rec.Start.Mono
		}
	}

	if s.cpus > 0 { // the baseline has them
		s.cpu = [host.NumCPUModes]float64{}
	}
	if s.takeAccount(rec); s.account.Source != "" { // nothing of the job has run
		s.account.CPUSeconds = 0
	}

	return s
}

// takeAccount copies what is told of the job's account and of the GPUs. Their lists go on
// to change, and are told nothing of.
func (s *snapshot) takeAccount(rec *collector.Recording) {
	s.account = rec.Account
	s.account.Victims, s.account.Signals = nil, nil
	s.gpus = slices.Clone(rec.GPUs)
	for i := range s.gpus {
		s.gpus[i].Throttle = nil
	}
}

// next is the snapshot after one more sample. A value that this one lacks, because its
// window is too short to be measured, is still the newest for two intervals, at least
// for a second; that of a source which fails goes away then.
func (s *snapshot) next(sample *collector.Sample, rec *collector.Recording) *snapshot {
	if s == nil {
		s = emptySnapshot()
	}

	out := &snapshot{start: rec.Start.Wall, samples: rec.Samples, missed: rec.MissedTicks, cpus: rec.Host.CPUs,
		memoryMB: rec.Host.MemoryMB, cpu: rec.CPUSeconds, cpuMoved: rec.End.Mono}
	out.takeAccount(rec)
	now, old := rec.End.Mono, max(2*rec.Interval, time.Second)
	if out.cpu == s.cpu {
		out.cpuMoved = s.cpuMoved
	}

	out.cpuStale = now-out.cpuMoved > old // CPUs are busy or idle, but never neither
	for c, v := range sample.Values {
		out.values[c], out.measured[c] = v, now
		if !sample.Has(collector.Column(c)) && now-s.measured[c] <= old {
			out.values[c], out.measured[c] = s.values[c], s.measured[c]
		}
	}

	return out
}

// cpuSeconds are those by mode; none where the source fails.
func (s *snapshot) cpuSeconds() []float64 {
	if s.cpuStale {
		return nil
	}
	return s.cpu[:]
}
