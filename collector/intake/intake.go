package intake

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"time"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/timeout"
)

// Options configures an Intake.
type Options struct {
	Address        Address       // of the sockets; zero = no sockets
	Endpoints      []*url.URL    // Prometheus endpoints to scrape
	ScrapeInterval time.Duration // 0 = 5 s
	Charts         []string      // patterns of the series that have a timeline
	Sidecar        bool          // perfagent did not start the job, so its servers may have started earlier
	Booted         time.Time     // when the machine was booted; zero = unknown
	// Now is the clock of all timestamps; nil means time.Now.
	Now func() time.Time
}

// maxMarks is the maximum number of pending marks.
const maxMarks = 1000

// An Intake receives operations until it is closed. Its methods are safe for concurrent use. Except for Close, they
// never wait for the job or an endpoint, but only for the processing of at most a few hundred datagrams.
type Intake struct {
	options  Options
	sockets  []*socket
	scrapers []*scraper

	open      context.Context // canceled by Close
	stop      context.CancelFunc
	receivers sync.WaitGroup
	scrapes   sync.WaitGroup
	parsing   sync.Mutex // held by the scraper that is parsing a response

	mu         sync.Mutex // guards the fields below
	aggregator *aggregate.Aggregator
	marks      marks.Update
	budget     budget
	began      time.Time // start of the budget
	closed     bool
}

// Open opens the sockets, which takes less than 100 µs. If it fails to open them, it returns an error and an Intake
// without sockets, which still scrapes the endpoints.
func Open(o Options) (*Intake, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ScrapeInterval <= 0 {
		o.ScrapeInterval = 5 * time.Second
	}

	start := o.Now()
	in := &Intake{
		options: o, began: time.Now(), budget: budget{most: maxUse},
		aggregator: aggregate.New(aggregate.Options{Charts: o.Charts}, start),
	}
	in.open, in.stop = context.WithCancel(context.Background())

	var err error
	if o.Address != (Address{}) {
		in.sockets, err = openSockets(o.Address)
	}
	if err != nil {
		in.sockets, err = nil, fmt.Errorf("receive operations: %w", err)
	}
	for _, s := range in.sockets {
		s.source = in.aggregator.AddSource(s.kind, s.address)
	}
	for _, u := range o.Endpoints {
		in.scrapers = append(in.scrapers, newScraper(in, u))
	}

	return in, err
}

// Start begins to receive and scrape in new goroutines. jobStart is the start of the job. Datagrams that arrived since
// Open are not lost.
func (in *Intake) Start(jobStart time.Time) {
	if err := in.begin(); err != nil { // Close still reads the sockets
		in.mu.Lock()
		for _, s := range in.sockets {
			in.aggregator.AddFailure(s.source, err.Error())
		}
		in.mu.Unlock()
	}
	if in.options.Sidecar {
		jobStart = time.Time{}
	}
	for _, s := range in.scrapers {
		s.endpoint = aggregate.NewEndpoint(jobStart, in.options.Booted)
		in.scrapes.Go(func() { s.run(in.open) })
	}
}

// ScrapeNow triggers an additional scrape of each endpoint and does not wait for it. It is called when a signal that
// ends the job is forwarded.
func (in *Intake) ScrapeNow() {
	for _, s := range in.scrapers {
		select {
		case s.now <- struct{}{}:
		default: // a scrape is pending
		}
	}
}

// Collect appends the Stat of each timeline since the last Collect, counts the datagrams that the kernel has dropped,
// and returns the Stats and the keys of the timelines. It is called with each sample, and does not allocate if stats
// has room and there is no new timeline.
func (in *Intake) Collect(at time.Time, stats []series.Stat) ([]series.Stat, []string) {
	in.mu.Lock()
	defer in.mu.Unlock()

	for _, s := range in.sockets { // datagrams that arrived during a pause belong to this sample
		if !in.closed && in.budget.pause(time.Since(in.began)) == 0 {
			in.read(s)
		}
	}
	in.countDrops()
	return in.aggregator.Collect(at, stats), in.aggregator.TimelineKeys()
}

// countDrops counts the datagrams that the kernel has dropped since the last call.
func (in *Intake) countDrops() {
	for _, s := range in.sockets {
		in.aggregator.DropDatagrams(s.dropped(), 0)
	}
}

// Marks returns the moments that the job has marked with DogStatsD events since the last call: at most maxMarks, and
// the number of dropped ones.
func (in *Intake) Marks() (update marks.Update) {
	in.mu.Lock()
	defer in.mu.Unlock()

	update, in.marks = in.marks, update
	return update
}

// CopyAggregator returns a copy of the current Aggregator.
func (in *Intake) CopyAggregator() *aggregate.Aggregator {
	in.mu.Lock()
	defer in.mu.Unlock()

	return in.aggregator.Clone()
}

// CopyAggregatorIfChanged returns a copy of the Aggregator if its Changes differ from changes, and nil otherwise.
func (in *Intake) CopyAggregatorIfChanged(changes uint64) *aggregate.Aggregator {
	in.mu.Lock()
	defer in.mu.Unlock()

	if in.aggregator.Changes() == changes {
		return nil
	}
	return in.aggregator.Clone()
}

// maxClose is the maximum time that Close waits for scrapes, which end when their connections are closed.
const maxClose = 100 * time.Millisecond

// Close reads the remaining datagrams, closes the sockets, and ends the scrapes. It returns the Aggregator, which the
// caller may change. Later calls of Close and CopyAggregator return copies.
func (in *Intake) Close() *aggregate.Aggregator {
	in.mu.Lock()
	already := in.closed
	if !already {
		in.drain()
		in.closed = true
	}
	in.mu.Unlock()
	if already {
		return in.CopyAggregator()
	}

	in.stop()
	in.receivers.Wait()
	for _, s := range in.sockets {
		_ = s.close() // everything was read, so an error does not matter
	}
	timeout.Call(maxClose, func() bool { in.scrapes.Wait(); return true })

	in.mu.Lock()
	defer in.mu.Unlock()
	whole := in.aggregator
	in.aggregator = whole.Clone()

	return whole
}

// maxDrain is the CPU time for processing pending datagrams at the end. A full buffer of single lines takes 20 ms. Any
// remaining datagrams are discarded and counted, which is faster. After another maxDrain, reading stops, because
// senders may never stop. The limit is CPU time, so that even on a busy machine no datagram is lost without being
// counted.
const maxDrain = 200 * time.Millisecond

// drain reads the sockets until they are empty or maxDrain is used up twice, and counts the datagrams that the kernel
// dropped.
func (in *Intake) drain() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	for _, s := range in.sockets {
		for s.discarding = false; in.read(s); s.discarding = threadTime()-began > maxDrain {
			if threadTime()-began > 2*maxDrain {
				break
			}
		}
	}
	in.countDrops()
}

// addDatagram adds the lines of a datagram, and returns the number of events. The caller holds the lock.
func (in *Intake) addDatagram(s *socket, datagram []byte, at time.Time) (events int64) {
	if len(datagram) > MaxDatagram { // from a Unix socket, and possibly truncated
		in.aggregator.Drop(wire.TooLong, datagram)
		return 0
	}

	for more := true; more; {
		var line []byte
		line, datagram, more = wire.Cut(datagram, '\n')
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if reason := s.event.Parse(line, s.dialect); reason != wire.Accepted {
			in.aggregator.Drop(reason, line)
			continue
		}
		if s.event.Kind == wire.Nothing || !in.aggregator.Add(&s.event, at) {
			continue
		}
		events++
		if s.event.Kind == wire.Mark {
			in.mark(&s.event, in.options.Now()) // at may be earlier than the arrival
		}
	}

	return events
}

// mark stores the mark of an event, or counts it as dropped if there is no room. The caller holds the lock.
func (in *Intake) mark(e *wire.Event, at time.Time) {
	if len(in.marks.Lines) == maxMarks {
		in.marks.Dropped.Marks++
		return
	}
	if e.At > 0 {
		at = time.UnixMilli(int64(e.At * 1000)).UTC()
	}
	in.marks.Lines = append(in.marks.Lines, marks.NewMarkLine(string(e.Text), marks.UnixSeconds(at)))
}
