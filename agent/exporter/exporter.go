package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/opstats"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
)

const (
	// A page or report that is at least this old is made again when it is requested. That bounds the rate for any
	// number of clients.
	maxAge = 2 * time.Second
	// maxRefreshInterval is the longest time between updates of a live page.
	maxRefreshInterval = 30 * time.Second
	// viewTTL is how long the page and the report are kept in memory after the last request for them.
	viewTTL = 10 * time.Second
)

// Options configures an Exporter.
type Options struct {
	RunID   string
	Node    int
	Version string
	// Token, if not empty, is required in every request.
	Token string
	// Interval is the time between samples.
	Interval time.Duration
	// Agent returns perfagent's own usage so far.
	Agent func() reporter.Agent
	// Report returns a report made from a copy of the Recording. It is called in the goroutines of requests.
	Report func(*collector.Recording) *reporter.Report
	// Operations returns a copy of the Aggregator of the job's operations. It is called in the goroutines of requests,
	// and is nil if operations are not recorded.
	Operations func() *aggregate.Aggregator
	// Store returns metrics of the store for reports. It is nil if there is no store. It is called in the goroutines of
	// requests.
	Store func() *opstats.StoreMetrics
}

// An Exporter serves one run. Begin and Observe are called by the sampling goroutine, the other methods by other
// goroutines.
type Exporter struct {
	options    Options
	labels     string
	checks     bool // whether to check the Host header, which may be local
	local      string
	server     *http.Server
	snapshot   atomic.Pointer[snapshot]    // never nil
	view       atomic.Pointer[view]        // nil unless requested
	request    atomic.Pointer[viewRequest] // nil if no client waits for a view
	begun      chan struct{}               // closed by Begin
	operations operationsCache
}

// A viewRequest asks for a fresh view. done is closed when the view is available.
type viewRequest struct{ done chan struct{} }

// New returns an Exporter.
func New(o Options) *Exporter {
	e := &Exporter{options: o, labels: labelsOf(o.RunID, o.Node), begun: make(chan struct{})}
	e.snapshot.Store(emptySnapshot())
	e.server = newServer(e)
	return e
}

// Begin is called once by the sampling goroutine, with the Recording before the first sample, so that counters are
// served starting at 0. If the interval is long, the empty Recording is served as a view.
func (e *Exporter) Begin(rec *collector.Recording) {
	e.snapshot.Store(initialSnapshot(rec))
	close(e.begun)
	if e.options.Interval >= maxAge {
		e.publish(rec, e.request.Swap(nil))
	}
}

// Observe is called after every sample, by the sampling goroutine. It never blocks. It copies the Recording if a view
// was requested. If the interval is long, it always copies the Recording, because no client would wait for the next
// sample.
func (e *Exporter) Observe(s *collector.Sample, rec *collector.Recording) {
	e.snapshot.Store(e.snapshot.Load().next(s, rec))
	if req := e.request.Swap(nil); req != nil || e.options.Interval >= maxAge {
		e.publish(rec, req)
	} else if v := e.view.Load(); v != nil && time.Since(time.Unix(0, v.asked.Load())) > viewTTL {
		e.view.Store(nil)
	}
}

// publish makes a copy of rec the current view and completes req, which may be nil.
func (e *Exporter) publish(rec *collector.Recording, req *viewRequest) {
	e.view.Store(e.newView(rec.Clone()))
	if req != nil {
		close(req.done)
	}
}

// current returns a view younger than maxAge if a sample is taken in time. Otherwise it returns the newest view, or nil
// if there is none.
func (e *Exporter) current(ctx context.Context) *view {
	v := e.newest(ctx)
	if v != nil {
		v.asked.Store(time.Now().UnixNano())
	}
	return v
}

func (e *Exporter) newest(ctx context.Context) *view {
	if v := e.view.Load(); v != nil && (time.Since(v.made) < maxAge || v.samples == e.snapshot.Load().samples) {
		return v
	}

	req := e.request.Load()
	for req == nil {
		e.request.CompareAndSwap(nil, &viewRequest{done: make(chan struct{})})
		req = e.request.Load()
	}

	await(ctx, req.done)
	return e.view.Load()
}

// await waits until done is closed or ctx ends, but at most maxAge.
func await(ctx context.Context, done <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, maxAge)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// refreshInterval returns the time between updates of a live page.
func (e *Exporter) refreshInterval() time.Duration {
	return min(max(maxAge, e.options.Interval), maxRefreshInterval)
}

// metrics returns the text of /metrics.
func (e *Exporter) metrics() []byte {
	f := metricInput{
		snapshot: e.snapshot.Load(), version: e.options.Version,
		interval: e.options.Interval, agent: e.options.Agent(), operations: e.operations.get(e.options.Operations),
	}
	if e.options.Store != nil {
		f.store = e.options.Store()
	}
	x := exposition{out: make([]byte, 0, 8<<10), labels: e.labels}
	x.write(&f)
	return x.out
}

// A snapshot holds the newest values for /metrics. It is immutable.
type snapshot struct {
	start           time.Time
	samples, missed int64
	cpus            int     // 0 if unknown
	memoryMB        float64 // 0 if unknown
	values          [collector.MaxColumns]float64
	measured        [collector.MaxColumns]time.Duration // when each value was measured, on the monotonic clock
	cpu             [host.NumCPUModes]float64
	cpuMoved        time.Duration // when cpu last changed, on the monotonic clock
	cpuStale        bool          // cpuMoved is too long ago, so the source has failed
	// account and gpus are deep copies, because the Recording keeps changing.
	account collector.Account
	gpus    []collector.GPU
}

// emptySnapshot returns the snapshot of a run without samples.
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

// initialSnapshot returns the snapshot before the first sample. Counters that the baseline has are 0. Gauges are
// unknown, except the ones that were measured for the baseline.
func initialSnapshot(rec *collector.Recording) *snapshot {
	s := emptySnapshot()
	s.start, s.cpus, s.memoryMB, s.cpuMoved = rec.Start.Wall, rec.Host.CPUs, rec.Host.MemoryMB, rec.Start.Mono
	for _, c := range collector.Counters() {
		if !math.IsNaN(rec.SinceBoot(c)) {
			s.values[c], s.measured[c] = 0, rec.Start.Mono
		}
	}

	if s.cpus > 0 { // the baseline includes the CPU times
		s.cpu = [host.NumCPUModes]float64{}
	}
	if s.takeAccount(rec); s.account.Source != "" { // no part of the job has run
		s.account.CPUSeconds = 0
	}

	if rec.Baseline == nil {
		return s
	}
	source := s.account
	s.account = rec.Baseline.Account
	s.account.CPUSeconds = source.CPUSeconds
	for c, v := range rec.Baseline.Sample.Values {
		if !math.IsNaN(v) && collector.Column(c) != collector.Timestamp {
			s.values[c], s.measured[c] = v, rec.Start.Mono
		}
	}

	return s
}

// takeAccount copies the job's account and the GPUs. It leaves out their lists, which change and are not served.
func (s *snapshot) takeAccount(rec *collector.Recording) {
	s.account = rec.Account
	s.account.Victims, s.account.Signals = nil, nil
	s.gpus = slices.Clone(rec.GPUs)
	for i := range s.gpus {
		s.gpus[i].Throttle = nil
	}
}

// keepCounters copies the counters that are unknown now from before, the previous account. Counters are often unknown,
// because a group without limits is read only every few seconds.
func (s *snapshot) keepCounters(before *collector.Account) {
	a := &s.account
	for _, c := range []struct{ now, before *series.Optional }{
		{&a.Periods, &before.Periods}, {&a.ThrottledPeriods, &before.ThrottledPeriods},
		{&a.ThrottledSeconds, &before.ThrottledSeconds},
		{&a.OOMKills, &before.OOMKills}, {&a.HostOOMKills, &before.HostOOMKills},
	} {
		if !c.now.Known() {
			*c.now = *c.before
		}
	}
}

// next returns the snapshot after one more sample. A value may be missing from a sample, because the sample's window is
// too short to measure it. In that case the last value is kept for two intervals, but at least for a second. After
// that, the source is considered failed, and the value disappears.
func (s *snapshot) next(sample *collector.Sample, rec *collector.Recording) *snapshot {
	out := &snapshot{start: rec.Start.Wall, samples: rec.Samples, missed: rec.MissedTicks, cpus: rec.Host.CPUs,
		memoryMB: rec.Host.MemoryMB, cpu: rec.CPUSeconds, cpuMoved: rec.End.Mono}
	out.takeAccount(rec)
	out.keepCounters(&s.account)
	now, old := rec.End.Mono, max(2*rec.Interval, time.Second)
	if out.cpu == s.cpu {
		out.cpuMoved = s.cpuMoved
	}

	out.cpuStale = now-out.cpuMoved > old // in a working source, the time of each CPU always advances
	for c, v := range sample.Values {
		out.values[c], out.measured[c] = v, now
		if !sample.Has(collector.Column(c)) && now-s.measured[c] <= old {
			out.values[c], out.measured[c] = s.values[c], s.measured[c]
		}
	}

	return out
}

// A view holds the documents made from one copy of the Recording. Each document is made when it is first requested.
type view struct {
	made    time.Time
	asked   atomic.Int64 // time of the last request, in ns since 1970
	samples int64
	page    func() document
	report  func() document
}

// A document is a response body that is ready to be sent.
type document struct {
	contentType   string
	plain, zipped []byte
	err           error
}

func (e *Exporter) newView(rec *collector.Recording) *view {
	report := sync.OnceValue(func() *reporter.Report { return e.options.Report(rec) })

	v := &view{
		made: time.Now(), samples: rec.Samples,
		page: sync.OnceValue(func() document {
			return render("text/html; charset=utf-8", report, func(w io.Writer, r *reporter.Report) error {
				return plotter.WritePage(w, r, plotter.PageOptions{Live: e.refreshInterval()})
			})
		}),
		report: sync.OnceValue(func() document {
			return render("application/json", report, reporter.EncodeTo)
		}),
	}

	v.asked.Store(v.made.UnixNano())
	return v
}

// render returns the document that write produces, in plain and compressed form.
func render(
	contentType string, report func() *reporter.Report, write func(io.Writer, *reporter.Report) error,
) (d document) {
	defer func() { // a panic must not end the process during the job
		if p := recover(); p != nil {
			d.err = fmt.Errorf("panic: %v", p)
		}
	}()
	d.contentType = contentType
	var plain, zipped bytes.Buffer
	if err := write(&plain, report()); err != nil {
		return document{err: err}
	}

	z, _ := gzip.NewWriterLevel(&zipped, gzip.BestSpeed) // the level is valid
	_, _ = z.Write(plain.Bytes())                        // to memory
	_ = z.Close()
	d.plain, d.zipped = plain.Bytes(), zipped.Bytes()
	return d
}
