package agent

import (
	"sync"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// An observer follows an active run, as do the journal, the live push, the live page, and the refresher of a report.
type observer interface {
	// begin is called in the sampling goroutine, before the first sample.
	begin(*collector.Recording)

	// observe is called in the sampling goroutine, after each sample. It must not block, and must not keep the
	// Recording; it may keep a Clone.
	observe(*collector.Sample, *collector.Recording)

	// end is called once, after the last sample. It stops the observer's goroutines, waits for them within bounds, and
	// returns the data missing from the report because of the observer.
	end() []reporter.Missing
}

// observers passes each call of a Sampler on to all observers of a run.
type observers struct {
	// mu ensures that begin and observe do nothing after end, because a Sampler that hung may call them late. Except by
	// end, mu is only held briefly.
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
