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
	"github.com/perfagent/perfagent/internal/timeout"
)

// Options say where an Intake receives.
type Options struct {
	Address        Address       // of the sockets; zero for none
	Endpoints      []*url.URL    // Prometheus endpoints to scrape
	ScrapeInterval time.Duration // 0 means 5 s
	Charts         []string      // patterns of the series that get a time line
	Sidecar        bool          // the job was not started by perfagent: its servers may be older
	Booted         time.Time     // when the machine was booted; zero is not known
	// Now is the clock of all timestamps. It is time.Now if it is nil.
	Now func() time.Time
}

// A Mark is a moment that the job has named by an event of DogStatsD.
type Mark struct {
	At   time.Time
	Text string
}

// maxMarks is how many marks wait to be taken.
const maxMarks = 1000

// An Intake receives until it is closed. Its methods may be called by any goroutine. None of them waits for the job or
// for an endpoint; at most they wait until a few hundred datagrams are accounted for.
type Intake struct {
	options  Options
	sockets  []*socket
	scrapers []*scraper

	closing   chan struct{} // closed when the Intake is
	wake      func()        // ends the wait for datagrams
	receivers sync.WaitGroup
	stop      context.CancelFunc // ends the scrapes
	scrapes   sync.WaitGroup
	reading   sync.Mutex // held by the scraper that works on its body

	mu           sync.Mutex // guards all that follows
	aggregator   *aggregate.Aggregator
	marks        []Mark
	droppedMarks int64 // marks for which there was no room
	budget       budget
	began        time.Time // of the budget
	closed       bool
}

// Open opens the sockets, which takes less than 100 µs. If they cannot be opened, the error says why, and the Intake
// returned has none; the endpoints are scraped all the same.
func Open(o Options) (*Intake, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ScrapeInterval <= 0 {
		o.ScrapeInterval = 5 * time.Second
	}

	start := o.Now()
	in := &Intake{
		options: o, closing: make(chan struct{}), began: time.Now(), budget: budget{most: maxUse},
		stop: func() {}, wake: func() {}, aggregator: aggregate.New(aggregate.Options{Charts: o.Charts}, start),
	}
	err := in.openSockets()
	for _, u := range o.Endpoints {
		in.scrapers = append(in.scrapers, newScraper(in, u))
	}

	return in, err
}

// openSockets opens the sockets of the Address: both or none.
func (in *Intake) openSockets() error {
	a := in.options.Address
	if a.IsZero() {
		return nil
	}

	var opened []*socket
	var err error
	if a.Path != "" {
		opened, err = openUnix(a.Path)
	} else {
		opened, err = openUDP(a)
	}
	if err != nil {
		return fmt.Errorf("receive operations: %w", err)
	}
	for _, s := range opened {
		s.in = in
		s.source = in.aggregator.AddSource(s.kind, s.address)
	}
	in.sockets = opened

	return nil
}

// Start begins to receive and to scrape, in goroutines of its own. jobStart is when the job started. Datagrams that
// came since Open are not lost.
func (in *Intake) Start(jobStart time.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	in.stop = cancel
	if err := in.begin(); err != nil { // they are read at the end all the same
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
		in.scrapes.Go(func() { s.run(ctx) })
	}
}

// ScrapeNow begins one more scrape of each endpoint and does not wait for it. It is for the moment at which a signal
// that ends the job is passed on.
func (in *Intake) ScrapeNow() {
	for _, s := range in.scrapers {
		select {
		case s.now <- struct{}{}:
		default: // one is wanted already
		}
	}
}

// Collect appends what each time line was since the last Collect, and counts what the kernel has dropped. It also
// returns the keys of the time lines. It is called with each sample, and allocates
// nothing if there is room in figures and no line is new.
func (in *Intake) Collect(at time.Time, figures []aggregate.WeightedMean) ([]aggregate.WeightedMean, []string) {
	in.mu.Lock()
	defer in.mu.Unlock()

	in.catchUp()
	in.countDrops()
	return in.aggregator.Collect(at, figures), in.aggregator.TimelineKeys()
}

// countDrops counts the datagrams that the kernel had no room for since the last time.
func (in *Intake) countDrops() {
	for _, s := range in.sockets {
		in.aggregator.DropDatagrams(s.dropped(), 0)
	}
}

// Marks returns the marks that came since the last call, and how many more there were than are kept.
func (in *Intake) Marks() (marks []Mark, beyond int64) {
	in.mu.Lock()
	defer in.mu.Unlock()

	marks, beyond = in.marks, in.droppedMarks
	in.marks, in.droppedMarks = nil, 0

	return marks, beyond
}

// CopyAggregator returns a copy of what was received so far.
func (in *Intake) CopyAggregator() *aggregate.Aggregator {
	in.mu.Lock()
	defer in.mu.Unlock()

	return in.aggregator.Clone()
}

// CopyAggregatorIfChanged returns a copy of the book if it has changed since it had the given number of changes, else
// nil.
func (in *Intake) CopyAggregatorIfChanged(changes uint64) *aggregate.Aggregator {
	in.mu.Lock()
	defer in.mu.Unlock()

	if in.aggregator.Changes() == changes {
		return nil
	}
	return in.aggregator.Clone()
}

// maxClose is how long Close waits for scrapes, which end as soon as their connections are closed.
const maxClose = 100 * time.Millisecond

// Close takes what still waits in the sockets and closes them. It ends the scrapes. It returns the whole book,
// which belongs to the caller; Book returns copies of a copy from then on.
func (in *Intake) Close() *aggregate.Aggregator {
	in.mu.Lock()
	already := in.closed
	if !already {
		in.drain()
		in.closed = true
		close(in.closing)
	}
	in.mu.Unlock()
	if already {
		return in.CopyAggregator()
	}

	in.wake()
	in.receivers.Wait()
	for _, s := range in.sockets {
		_ = s.close() // everything was read, and the process needs it no more
	}

	in.stop()
	timeout.Call(maxClose, func() bool { in.scrapes.Wait(); return true })

	in.mu.Lock()
	defer in.mu.Unlock()
	whole := in.aggregator
	in.aggregator = whole.Clone()

	return whole
}

// maxDrain is the CPU time in which what waits in the sockets is accounted for at the end. A full buffer of single
// lines takes 20 ms. What is left then is thrown away and counted, which is quick; after another maxDrain, somebody
// sends on and on. It is CPU time, as on a busy machine nothing may be lost uncounted either.
const maxDrain = 200 * time.Millisecond

// drain reads the sockets until they are empty, and counts what the kernel dropped.
func (in *Intake) drain() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	for _, s := range in.sockets {
		for s.discarding = false; s.readMore(); s.discarding = threadTime()-began > maxDrain {
			if threadTime()-began > 2*maxDrain {
				break
			}
		}
	}
	in.countDrops()
}

// addDatagram takes the lines of a datagram; the caller holds the lock. It returns how many events there were.
func (in *Intake) addDatagram(s *socket, datagram []byte, at time.Time) (events int64) {
	if len(datagram) > MaxDatagram { // of a Unix socket, and cut
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
			in.mark(&s.event, at)
		}
	}

	return events
}

// mark keeps the mark of an event until it is taken, if there is room; the caller holds the lock.
func (in *Intake) mark(e *wire.Event, at time.Time) {
	if len(in.marks) == maxMarks {
		in.droppedMarks++
		return
	}
	if e.At > 0 {
		at = time.UnixMilli(int64(e.At * 1000)).UTC()
	}
	in.marks = append(in.marks, Mark{at, string(e.Text)})
}
