package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

// storeResult holds the state of a put and, in outcome, its description. outcome is "" unless the store has the report.
type storeResult struct {
	state   *reporter.StoreState
	outcome string
}

// pendingIn returns data, the contents of a report's file, with the state "pending" for the store. It returns data in
// perf.py's format unchanged, because that format has no field for the state.
func (s *session) pendingIn(data []byte, node string) []byte {
	if s.reportStore == nil || s.o.Compat != "" {
		return data
	}

	state := &reporter.StoreState{State: reporter.PushPending, URI: s.reportStore.URL()}
	pending, err := reporter.WithStore(data, map[string]*reporter.StoreState{node: state})
	if err != nil {
		s.log.Warn(err.Error())
		return data
	}
	return pending
}

// openStore opens the store without connecting to it. The address has already been checked. openStore returns nil if no
// store is wanted.
func openStore(o *Options) *store.Store {
	if o.Store == "" {
		return nil
	}
	so := store.Options{Metrics: true, Name: o.RunID, Credentials: o.StoreCredentials}
	if o.Log.Core().Enabled(zap.DebugLevel) {
		so.Debug = func(line string) { o.Log.Debug(line) }
	}
	to, err := store.Open(o.Store, so)
	if err != nil {
		o.Log.Warn(err.Error())
		return nil
	}
	return to
}

// startStoring starts putting the report of d into the store. wait waits for the result. It is nil if there is no
// store.
func (s *session) startStoring(ctx context.Context, d delivery) (wait func() storeResult) {
	if s.reportStore == nil || d.toStore == nil {
		return nil
	}
	return startWithDeadline(ctx, func() storeResult { return s.putReport(ctx, d) }, func(why error) storeResult {
		return storeResult{state: &reporter.StoreState{
			State: reporter.PushPending, URI: s.reportStore.URL(), Error: why.Error(),
		}}
	})
}

// putReport puts the report of d into the store, and then deletes the partial report.
func (s *session) putReport(ctx context.Context, d delivery) storeResult {
	begun, to := time.Now(), s.reportStore
	defer to.Close()
	state, err := to.Deliver(ctx, s.o.RunID, s.nodeFileName(), d.toStore)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			state.Error = cause.Error()
			if !errors.Is(err, cause) {
				state.Error += ": " + err.Error()
			}
		}
		return storeResult{state: state}
	}

	if err := s.partials.evict(ctx, to); err != nil {
		s.log.Warn(fmt.Sprintf("the report from before the end is still there: %v", err))
	}
	state.Metrics = to.Metrics()
	return storeResult{state, fmt.Sprintf("store: %s, %s in %s", state.Reference,
		text.SizeText(float64(len(d.toStore))/(1<<20)), text.Seconds(time.Since(begun).Seconds()))}
}

// recordStoring records the state of the put in the report's file. It logs one line if the report is not in the store.
func (s *session) recordStoring(d *delivery, out storeResult) {
	s.recordPush(d, "store: "+out.state.Error, out.state.State, func(data []byte) ([]byte, error) {
		return reporter.WithStore(data, map[string]*reporter.StoreState{d.node: out.state})
	}, func() string {
		words := []string{s.program(), "push", "--store", out.state.URI, absolute(d.path)}
		return "the report is safe; store it with: " + pusher.ShellCommand(words)
	})
}

// A partialUploader periodically puts the report so far into the store, in case the node dies. It is an observer of the
// run. A failed put is not repeated, because the next put replaces it.
type partialUploader struct {
	*copier
	session *session
	report  func(*collector.Recording) *reporter.Report
	partial *store.PartialReport
	ctx     context.Context
	cancel  context.CancelFunc
}

// putsPartials reports whether the recording puts partial reports into the store. A store in the report directory needs
// none, because the journal is already there. One of several ranks puts none, because its report does not cover the
// node.
func (s *session) putsPartials() bool {
	if s.reportStore == nil || s.o.StoreEvery < 0 || s.o.PushTimeout < 0 || s.o.Compat != "" || s.nodeRole.isRankPart {
		return false
	}

	dir, isDir := s.reportStore.Dir()
	return !isDir || absolute(dir) != filepath.Clean(absolute(s.o.Out))
}

func (s *session) newPartialUploader(incomplete string) *partialUploader {
	p := &partialUploader{
		session: s, report: s.reportSoFar(incomplete), partial: store.NewPartialReport(s.o.RunID, s.nodeFileName()),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.copier = newCopier(s.o.StoreEvery, pushGrace, p.run)

	return p
}

// begin sets the time of the first put. The time differs between nodes, within one period, so that they do not all put
// at the same time.
func (p *partialUploader) begin(rec *collector.Recording) {
	const spread = 64
	o := &p.session.o
	place := *o.Node
	// Without an index, Node is 0 on every host: spread by a hash of the host name instead.
	if id := p.session.identity(); id != nil && id.NodeFrom == scheduler.NodeFromNone {
		h := fnv.New32a()
		h.Write([]byte(o.identity.NodeName))
		place = int(h.Sum32() % spread)
	}
	p.due = rec.Start.Mono + p.every - p.every*time.Duration(place%spread)/spread
}

func (p *partialUploader) observe(sample *collector.Sample, rec *collector.Recording) {
	if r := p.session.nodeRole.roster; rec.End.Mono >= p.due && r != nil && r.HasOthers() {
		return // with other ranks, the report does not cover the node
	}
	p.copier.observe(sample, rec)
}

func (p *partialUploader) run(copies <-chan *collector.Recording) {
	to := p.session.reportStore
	defer to.Close()

	for rec := range copies {
		var data bytes.Buffer
		err := p.session.encoding(p.report(rec), rec)(&data)
		if err == nil {
			err = p.put(to, data.Bytes())
		}
		if errors.Is(err, errors.ErrUnsupported) { // objects of this store cannot change
			return
		}
		if err != nil {
			p.session.log.Debug(fmt.Sprintf("store the report so far: %v", err))
		}
	}
}

// put puts one report into the store, within PushTimeout.
func (p *partialUploader) put(to *store.Store, data []byte) error {
	ctx, cancel := context.WithTimeout(p.ctx, p.session.o.PushTimeout)
	defer cancel()
	return p.partial.Put(ctx, to, data)
}

// end cancels the pending put and waits briefly for it.
func (p *partialUploader) end() []reporter.Missing {
	p.cancel()
	return p.copier.end()
}

// evict deletes the partial report. Call it when the final report has been stored. If the last put did not return in
// time (ended is false), evict does nothing.
func (p *partialUploader) evict(ctx context.Context, from *store.Store) error {
	if p == nil || !p.ended {
		return nil
	}
	return p.partial.Evict(ctx, from)
}
