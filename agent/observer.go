package agent

import (
	"sync"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/reporter"
)

// An observer follows an active run. Examples are the journal, the live push, the live page, and the refresher of a
// report.
type observer interface {
	// begin is called in the sampling goroutine, before the first sample.
	begin(*collector.Recording)

	// observe is called in the sampling goroutine, after each sample. It must not block, and must not keep the
	// Recording; it may keep a Clone.
	observe(*collector.Sample, *collector.Recording)

	// end is called once, after the last sample. It stops the observer's goroutines, waits for them for a limited time,
	// and returns the data missing from the report because of the observer.
	end() []reporter.Missing
}

// observers forwards each call from a Sampler to all observers of a run.
type observers struct {
	// mu ensures that begin and observe do nothing after end, because a Sampler that hung may call them late. Except in
	// end, mu is held only briefly.
	mu    sync.Mutex
	list  []observer
	ended bool
}

func (o *observers) begin(rec *collector.Recording) {
	o.each(func(one observer) { one.begin(rec) })
}

func (o *observers) observe(s *collector.Sample, rec *collector.Recording) {
	o.each(func(one observer) { one.observe(s, rec) })
}

func (o *observers) each(do func(observer)) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.ended {
		return
	}
	for _, one := range o.list {
		do(one)
	}
}

// end ends all observers in order.
func (o *observers) end() []reporter.Missing {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.ended = true
	var missing []reporter.Missing
	for _, one := range o.list {
		missing = append(missing, one.end()...)
	}

	return missing
}

const (
	// refreshEvery, plus one interval, is the maximum age of a running sidecar's report.
	refreshEvery = 30 * time.Second

	// pageEvery is the number of reports that a running sidecar writes per page. A page costs several times as much as
	// a report.
	pageEvery = 10
)

// A copier periodically passes copies of the Recording to a separate goroutine, so that a slow disk or server does not
// delay sampling. It is an observer of the run.
type copier struct {
	every       time.Duration
	due         time.Duration // monotonic time of the next copy; 0 means at the first sample
	stopTimeout time.Duration // how long end waits
	copies      chan *collector.Recording
	done        chan struct{}
	ended       bool // the goroutine has ended
}

// newCopier starts a copier, which calls run in a new goroutine. run must return when copies is closed.
func newCopier(every, stopTimeout time.Duration, run func(copies <-chan *collector.Recording)) *copier {
	c := &copier{
		every: every, stopTimeout: stopTimeout, copies: make(chan *collector.Recording, 1), done: make(chan struct{}),
	}
	go func() {
		defer close(c.done)
		run(c.copies)
	}()

	return c
}

func (c *copier) begin(*collector.Recording) {}

func (c *copier) observe(_ *collector.Sample, rec *collector.Recording) {
	if rec.End.Mono < c.due {
		return
	}

	select {
	case c.copies <- rec.Clone():
		c.due = rec.End.Mono + c.every
	default: // the previous copy is still in use
	}
}

// end waits until the last copy has been used, but at most stopTimeout.
func (c *copier) end() []reporter.Missing {
	close(c.copies)
	_, c.ended = timeout.Receive(c.done, c.stopTimeout)

	return nil
}

// newRefresher returns an observer that rewrites a sidecar's report.
func (s *session) newRefresher(incomplete string) *copier {
	soFar, out := s.reportSoFar(incomplete), s.output
	return newCopier(refreshEvery, diskTimeout, func(copies <-chan *collector.Recording) {
		reports := 0 // number of reports written so far
		for rec := range copies {
			report := soFar(rec)
			if err := out.refresh(s.encoding(report, rec)); err != nil {
				s.log.Warn(err.Error())
				continue
			}

			if reports%pageEvery == 0 || out.page == "" {
				s.savePage(out.journal.ReportPath(), report)
			}
			reports++
		}
	})
}
