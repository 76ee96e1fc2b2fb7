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
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

// partialUploader periodically puts the report so far into the store, in case the node dies. It is an observer of the
// run. A failed put is not repeated, because the next put replaces it.
type partialUploader struct {
	*copier
	session *session
	report  func(*collector.Recording) *reporter.Report
	partial *store.PartialReport
	ctx     context.Context
	cancel  context.CancelFunc
}

// putsPartials reports whether the recording puts partial reports into the store. A store in the directory of the
// reports needs none, because the journal is already there. One of several ranks puts none, because its report is not
// the node's.
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

// begin sets the time of the first put. Within one period, it differs from node to node, so that not all put at once.
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
		return // with other ranks, the report is not the node's
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

// evict deletes the partial report; call it when the final report has been stored. If the last put did not return in
// time (ended is false), evict does nothing.
func (p *partialUploader) evict(ctx context.Context, from *store.Store) error {
	if p == nil || !p.ended {
		return nil
	}
	return p.partial.Evict(ctx, from)
}
