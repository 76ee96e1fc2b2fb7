package aggregate

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/intake/wire"
)

// An Endpoint computes the growth between scrapes of a Prometheus endpoint. It holds the values of the last scrape.
// Create one with [NewEndpoint].
type Endpoint struct {
	jobStart         float64 // Unix seconds; NaN if perfagent did not start the job
	inTicks          float64 // jobStart at the kernel's resolution: boot time in whole seconds plus ticks of 10 ms
	zero             bool    // there was no server when the job started, so a later one counts from 0
	begun            bool    // there was a successful scrape
	lastProcessStart float64 // process_start_time_seconds of the last scrape, or NaN

	reader       *wire.PrometheusReader
	scrape       int // number of the scrape
	metrics      map[string]*metric
	touched      []*metric // metrics of this scrape, in the order of the body
	held         int       // total number of bounds of all metrics
	taken        int       // accepted samples of this scrape
	refused      int64     // samples that were refused because there was no room
	tooLong      int64     // samples with names or labels that are too long
	processStart float64   // process_start_time_seconds of this scrape, or NaN
}

// maxHistogram is the maximum number of finite buckets of one histogram.
const maxHistogram = 256

// A metric is a series of an endpoint.
type metric struct {
	series, name string
	kind         wire.MetricType
	scale        float64  // factor that converts times to milliseconds; 0 for values
	nixl         nixlPart // which of vLLM's transfer metrics the series is
	engine       string
	bounds       []float64
	scrape       int  // last scrape with the series
	known        bool // last is valid
	badBuckets   bool // there are too many buckets, or they are not in order
	last, next   metricValue
}

// A metricValue is the value of a series in a scrape.
type metricValue struct {
	count   float64 // number of observations, or the value of a counter or gauge
	sum     float64
	buckets []float64 // cumulative
}

// NewEndpoint returns an Endpoint without scrapes. jobStart is the start of the job, or zero if perfagent did not start
// it; then counts from before the first scrape are ignored. booted is the boot time of the machine; zero means unknown.
func NewEndpoint(jobStart, booted time.Time) *Endpoint {
	nan := math.NaN()
	e := &Endpoint{jobStart: nan, inTicks: nan, lastProcessStart: nan, metrics: map[string]*metric{},
		reader: wire.NewPrometheusReader(nil)}
	if jobStart.IsZero() {
		return e
	}

	e.jobStart = unixSeconds(jobStart)
	e.inTicks = e.jobStart
	if !booted.IsZero() {
		ticks := math.Floor(jobStart.Sub(booted).Seconds() * ticksPerSecond)
		e.inTicks = float64(booted.Unix()) + ticks/ticksPerSecond
	}
	return e
}

// NoteUnreachable records that there was no server when the job started. A server that starts later counts from 0.
func (e *Endpoint) NoteUnreachable() {
	if !e.begun && !math.IsNaN(e.jobStart) {
		e.zero = true
	}
}

// Read reads the body of a scrape in small parts. It returns an error if reading fails or the body is not in the text
// format 0.0.4; the scrape must then be ignored.
func (e *Endpoint) Read(body io.Reader) error {
	e.scrape++
	e.touched, e.processStart, e.taken, e.refused, e.tooLong = e.touched[:0], math.NaN(), 0, 0, 0
	for e.reader.Reset(body); e.reader.Next(); {
		s := &e.reader.Sample
		switch {
		case string(s.Name) == "process_start_time_seconds":
			e.processStart = s.Value
		case leftOut(s.Name), math.IsNaN(s.Value), s.Part == wire.Quantile:
		case s.Reason != wire.Accepted:
			e.tooLong++
		case e.take(s):
			e.taken++
		}
	}

	return e.reader.Err()
}

// AddTo adds the samples of the last Read to b, and returns the number of accepted samples. That Read must have
// succeeded, at the time at.
func (e *Endpoint) AddTo(b *Aggregator, at time.Time) (taken int) {
	b.Dropped.TooLong += e.tooLong
	b.Dropped.Series += e.refused
	e.commit(b, at)

	return e.taken
}

// leftOut reports whether a metric is about the server program itself, not about the job.
func leftOut(name []byte) bool {
	for _, prefix := range [...]string{"go_", "python_", "process_", "promhttp_", "perfagent_"} {
		if bytes.HasPrefix(name, []byte(prefix)) {
			return true
		}
	}
	return bytes.HasSuffix(name, []byte("_created"))
}

// take adds a sample. It reports false if there is no room for a new series, or if the series already has a different
// type.
func (e *Endpoint) take(s *wire.Sample) bool {
	m := e.metrics[string(s.Series)]
	if m == nil {
		if len(e.metrics) >= MaxSeries {
			e.refused++
			return false
		}
		m = newMetric(s)
		e.metrics[m.series] = m
	}
	if m.kind != s.Type {
		return false // two metrics have the same name
	}
	if m.scrape != e.scrape {
		m.scrape = e.scrape
		m.next = metricValue{count: math.NaN(), sum: math.NaN(), buckets: m.next.buckets[:0]}
		e.touched = append(e.touched, m)
	}

	switch s.Part {
	case wire.Whole, wire.Count:
		m.next.count = s.Value
	case wire.Sum:
		m.next.sum = s.Value
	case wire.Bucket:
		e.bucket(m, s)
	}

	return true
}

// newMetric returns a metric without values.
func newMetric(s *wire.Sample) *metric {
	m := &metric{series: string(s.Series), name: string(s.Name), kind: s.Type, engine: string(s.Label("engine"))}
	switch {
	case strings.HasSuffix(m.name, "_seconds"):
		m.scale = 1000
	case strings.HasSuffix(m.name, "_milliseconds"):
		m.scale = 1
	}
	m.nixl = nixlPartOf(m.name, m.kind)

	return m
}

// bucket adds a bucket to m. Buckets must be in the order of their bounds, ending with the infinite bound.
func (e *Endpoint) bucket(m *metric, s *wire.Sample) {
	i := len(m.next.buckets)
	finite := !math.IsInf(s.Bound, 1)
	switch {
	case m.badBuckets:
		return
	case i < len(m.bounds) && m.bounds[i] == s.Bound, i == len(m.bounds) && m.known && !finite:
	case !m.known && i == len(m.bounds) && i < maxHistogram && e.held < maxBuckets &&
		(i == 0 || s.Bound > m.bounds[i-1]) && (!finite || isFinite(1000*s.Bound)):
		if finite {
			m.bounds = append(m.bounds, s.Bound)
			e.held++
		}
	default:
		m.badBuckets = true // the buckets differ from earlier scrapes, or there are too many
		return
	}
	m.next.buckets = append(m.next.buckets, s.Value)
}

// commit adds the growth of each series to b. A new series counts from 0, unless the server may have counted before the
// job started.
func (e *Endpoint) commit(b *Aggregator, at time.Time) {
	restarted := e.begun && !math.IsNaN(e.processStart) && !math.IsNaN(e.lastProcessStart) &&
		e.processStart != e.lastProcessStart
	older := e.processStart < e.jobStart-startError // a server that was not ready may already have counted
	zero := e.begun || e.zero && !older || e.startedByJob()
	for _, m := range e.touched {
		if !m.possible() {
			b.refuse([]byte(m.series), wire.NotFinite)
			continue
		}
		if len(m.next.buckets) != len(m.bounds)+1 {
			m.next.buckets = m.next.buckets[:0] // the buckets are incomplete, so there are no quantiles
		}
		if !m.known {
			m.last = metricValue{buckets: make([]float64, len(m.next.buckets))}
			if !zero {
				m.last = m.next
				m.last.buckets = slices.Clone(m.next.buckets)
			}
			m.known = true
		}
		b.grow(m, restarted, at)
		m.last, m.next = m.next, m.last
	}
	if restarted {
		e.forget()
	}

	e.begun = true
	if !math.IsNaN(e.processStart) {
		e.lastProcessStart = e.processStart
	}
}

// startError is the maximum error of process_start_time_seconds, in seconds. The reported time may be that much too
// early.
const startError = 1

// ticksPerSecond is the kernel's resolution of process start times (USER_HZ).
const ticksPerSecond = 100

// startedByJob reports whether the server's process started after the job, according to process_start_time_seconds.
// Most clients add the start in ticks since boot to the boot time in whole seconds, so the result may be up to a second
// early; inTicks is computed in the same way. Clients for Node.js round to a second. Other clients use the wall clock.
func (e *Endpoint) startedByJob() bool {
	ticks := e.processStart * ticksPerSecond
	switch {
	case e.processStart == math.Trunc(e.processStart):
		return e.processStart >= e.jobStart+0.5
	case math.Abs(ticks-math.Round(ticks)) < 1e-3:
		return math.Round(ticks) >= math.Round(e.inTicks*ticksPerSecond)
	}
	return e.processStart >= e.jobStart
}

// forget resets the series that a restarted server does not have yet, so that they count from 0 when they reappear.
func (e *Endpoint) forget() {
	for _, m := range e.metrics {
		if m.scrape != e.scrape {
			m.last = metricValue{buckets: make([]float64, len(m.last.buckets))}
		}
	}
}

// grow adds the growth of a series since the last scrape, or the value of a gauge.
func (b *Aggregator) grow(m *metric, restarted bool, at time.Time) {
	if m.kind == wire.GaugeMetric || m.kind == wire.Untyped {
		b.setGauge([]byte(m.series), m.next.count, false, at)
		return
	}

	switch g := m.growth(restarted); {
	case m.nixl != noPart:
		b.growNIXL(m, &g, at)
	case m.kind == wire.CounterMetric:
		b.count([]byte(m.series), g.count)
	default:
		b.growDistribution(m, &g)
	}
}

// possible reports whether the values of a scrape are possible for the type of the series.
func (m *metric) possible() bool {
	switch m.kind {
	case wire.GaugeMetric, wire.Untyped:
		return isFinite(m.next.count)
	case wire.CounterMetric:
		return isCount(m.next.count)
	}
	whole := m.next.count == math.Trunc(m.next.count) // a fraction such as 1e-300 would make averages huge
	return isCount(m.next.count) && whole && isFinite(m.next.sum) && (m.signed() || m.next.sum >= 0) &&
		areCounts(m.next.buckets...)
}

// signed reports whether the observations of a histogram or a summary may be negative. Times and transfers may not be
// negative.
func (m *metric) signed() bool { return m.scale == 0 && m.nixl == noPart }

// isCount reports whether v can be the value of a counter.
func isCount(v float64) bool { return v >= 0 && isFinite(v) }

// areCounts reports whether all values can be values of counters.
func areCounts(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !isCount(v) })
}

// growth returns the growth of a counter, a histogram or a summary since the last scrape. A lower value means that the
// server was restarted.
func (m *metric) growth(restarted bool) metricValue {
	if restarted || m.wasReset() {
		return m.next
	}

	g := metricValue{count: m.next.count - m.last.count, sum: m.next.sum - m.last.sum}
	if !m.signed() {
		g.sum = max(0, g.sum) // a fall within sumError is a rounding error
	}
	if len(m.last.buckets) == len(m.next.buckets) {
		for i, n := range m.next.buckets {
			m.last.buckets[i] = n - m.last.buckets[i]
		}
		g.buckets = m.last.buckets // reuse the slice, because last is no longer needed
	}

	return g
}

// sumError is the fraction by which a sum may fall without a restart, because a server may add up several processes in
// a different order each time.
const sumError = 1e-9

// wasReset reports whether a value of the metric fell, which means that it was reset to 0.
func (m *metric) wasReset() bool {
	if m.next.count < m.last.count || !m.signed() && m.next.sum < m.last.sum*(1-sumError) {
		return true
	}
	for i, n := range m.next.buckets {
		if i < len(m.last.buckets) && n < m.last.buckets[i] {
			return true
		}
	}
	return false
}

// growDistribution adds the growth of a histogram or a summary to a timing or a value. Without observations, it does
// not create the series.
func (b *Aggregator) growDistribution(m *metric, g *metricValue) {
	if g.count <= 0 {
		return
	}

	scale := m.scale
	var d **distribution
	if scale > 0 {
		t := b.timing([]byte(m.series))
		if t == nil {
			return
		}
		t.interval.addMany(g.sum*scale, g.count)
		d = &t.Scraped
	} else {
		o := findOrAdd(b, &b.Values, []byte(m.series), nil)
		if o == nil {
			return
		}
		d, scale = &o.Scraped, 1
	}
	if *d == nil {
		*d = &distribution{}
	}
	(*d).grow(g, m.bounds, scale, &b.used)
}
