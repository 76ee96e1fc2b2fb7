package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

// partials puts the report so far into the store from time to time, in a goroutine of its own, so that a node that dies
// leaves what was known. It is an observer of the run. One put that fails is dropped: the next one may succeed.
type partials struct {
	session *session
	report  func(*collector.Recording) *reporter.Report
	partial *store.Partial

	due    time.Duration // monotonic time of the next one
	copies chan *collector.Recording
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	over   bool // the goroutine has ended
}

// putsPartials reports whether the recording has partial reports. Where the store is the directory of the reports there
// is the journal; the report of one rank of several is not that of the node.
func (s *session) putsPartials() bool {
	if s.stored == nil || s.o.StoreEvery < 0 || s.o.PushTimeout < 0 || s.o.Compat != "" || s.standing.piece {
		return false
	}

	dir, isDir := s.stored.Dir()
	return !isDir || absolute(dir) != filepath.Clean(absolute(s.o.Out))
}

func (s *session) newPartials(incomplete string) *partials {
	p := &partials{
		session: s, report: s.reportSoFar(incomplete), partial: store.NewPartial(s.o.RunID, s.nodeFileName()),
		copies: make(chan *collector.Recording, 1), done: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.run()

	return p
}

// begin sets the time of the first report: within one period, at a moment that is another for each node or, where no
// index is known, each host.
func (p *partials) begin(rec *collector.Recording) {
	const spread = 64
	o := &p.session.o
	place := *o.Node
	if id := p.session.identity(); id != nil && id.NodeFrom == scheduler.None { // it is 0 on all hosts of the launch
		h := fnv.New32a()
		h.Write([]byte(o.identity.NodeName))
		place = int(h.Sum32() % spread)
	}
	every := o.StoreEvery
	p.due = rec.Start.Mono + every - every*time.Duration(place%spread)/spread
}

func (p *partials) observe(_ *collector.Sample, rec *collector.Recording) {
	if rec.End.Mono < p.due {
		return
	}
	if r := p.session.standing.roster; r != nil && r.Others() { // the report is not that of the node
		return
	}

	select {
	case p.copies <- rec.Clone():
		p.due = rec.End.Mono + p.session.o.StoreEvery
	default: // the last one is still on its way
	}
}

func (p *partials) run() {
	defer close(p.done)
	to := p.session.stored
	defer to.Close()

	for rec := range p.copies {
		var data bytes.Buffer
		err := p.session.encoding(p.report(rec), rec)(&data)
		if err == nil {
			err = p.put(to, data.Bytes())
		}
		if errors.Is(err, errors.ErrUnsupported) { // no object of this store changes
			return
		}
		if err != nil {
			p.session.log.Debug(fmt.Sprintf("put the report so far: %v", err))
		}
	}
}

// put puts one report, within the time that the last one will have.
func (p *partials) put(to *store.Store, data []byte) error {
	ctx, cancel := context.WithTimeout(p.ctx, p.session.o.PushTimeout)
	defer cancel()
	return p.partial.Put(ctx, to, data)
}

// end gives up the report that is on its way, unless it is there in a moment.
func (p *partials) end() []reporter.Missing {
	close(p.copies)
	p.cancel()
	_, p.over = patience.Receive(p.done, pushGrace)

	return nil
}

// evict deletes the partial report: the last one is there. A store that hung once is left alone.
func (p *partials) evict(ctx context.Context, from *store.Store) error {
	if p == nil || !p.over {
		return nil
	}
	return p.partial.Evict(ctx, from)
}
