package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

// A storing is a report on its way into a store.
type storing struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	uri    string // of the store
	done   chan stored
}

// stored is the outcome: the state, and what was stored in words; "" unless the store has it.
type stored struct {
	state   *reporter.StoreState
	outcome string
}

// pendingIn returns the bytes of a report's file that says that the report is still to be put into the store. Nothing
// of a store is in perf.py's format.
func (s *session) pendingIn(data []byte, node string) []byte {
	if s.stored == nil || s.o.Compat != "" {
		return data
	}

	state := &reporter.StoreState{State: reporter.PushPending, URI: s.stored.URL()}
	pending, err := reporter.WithStore(data, map[string]*reporter.StoreState{node: state})
	if err != nil {
		s.log.Warn(err.Error())
		return data
	}
	return pending
}

// openStore opens the store, whose address Check has seen. It connects to nothing. It returns nil if there is none.
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

// startStoring begins to put a report into the store, and gives up after PushTimeout. It returns nil if there is no
// store.
func (s *session) startStoring(d delivery) *storing {
	if s.stored == nil || d.toStore == nil {
		return nil
	}

	p := &storing{uri: s.stored.URL(), done: make(chan stored, 1)}
	ctx, cancel := context.WithCancelCause(context.Background())
	p.ctx, p.cancel = ctx, cancel
	if s.o.PushTimeout < 0 {
		p.done <- stored{state: &reporter.StoreState{
			State: reporter.PushPending, URI: p.uri, Error: "nothing was put there: the push timeout is 0",
		}}
		return p
	}
	late := fmt.Errorf("not done within the --push-timeout of %v", s.o.PushTimeout)
	timed, stop := context.WithTimeoutCause(ctx, s.o.PushTimeout, late)
	p.ctx = timed
	go func() {
		defer stop()
		p.done <- s.store(p, d)
	}()

	return p
}

// store puts the report into the store.
func (s *session) store(p *storing, d delivery) stored {
	state := &reporter.StoreState{State: reporter.PushPending, URI: p.uri}
	begun, to := time.Now(), s.stored
	defer to.Close()

	name, err := to.PutReport(p.ctx, s.o.RunID, d.base, d.toStore)
	if err == nil {
		if err := s.partials.evict(p.ctx, to); err != nil {
			s.log.Warn(fmt.Sprintf("the report of the time before the end is still there: %v", err))
		}
	}
	state.Metrics = to.Metrics()
	if err != nil {
		state.Error = err.Error()
		if cause := context.Cause(p.ctx); cause != nil {
			state.Error = cause.Error()
			if !errors.Is(err, cause) {
				state.Error += ": " + err.Error()
			}
		}
		return stored{state: state}
	}

	state.Unconditional = to.Unconditional()
	state.State, state.Reference = reporter.PushDone, to.Reference(name)
	return stored{state, fmt.Sprintf("store: %s, %s in %s", state.Reference,
		text.SizeText(float64(len(d.toStore))/(1<<20)), text.Seconds(time.Since(begun).Seconds()))}
}

// cutBy returns a channel that gets what cut gets. It ends the put, too.
func (p *storing) cutBy(cut <-chan string) <-chan string {
	if p == nil {
		return cut
	}

	passed := make(chan string, 1)
	go func() {
		select {
		case why := <-cut:
			passed <- why
			p.cancel(errors.New(why))
		case <-p.ctx.Done():
		}
	}()
	return passed
}

// wait returns the outcome. It waits little longer than the put may take: a disk may hang.
func (p *storing) wait() stored {
	defer p.cancel(nil)
	select {
	case out := <-p.done:
		return out
	case <-p.ctx.Done():
	}

	select {
	case out := <-p.done:
		return out
	case <-time.After(pushGrace):
	}
	return stored{state: &reporter.StoreState{
		State: reporter.PushPending, URI: p.uri, Error: context.Cause(p.ctx).Error(),
	}}
}

// concludeStoring records what has become of the put. It logs one line if the report is not in the store.
func (s *session) concludeStoring(d *delivery, out stored) {
	if d.data != nil && !d.perfpy {
		data, err := reporter.WithStore(d.data, map[string]*reporter.StoreState{d.node: out.state})
		if err == nil {
			err = d.rewrite(data, out.state.State)
		}
		if err != nil {
			s.log.Warn(fmt.Sprintf("record the state of the store in %s: %v", d.path, err))
		}
	}

	switch {
	case out.state.State == reporter.PushDone:
	case d.path == "":
		s.log.Error("store: " + out.state.Error + "; there is no file to put there later")
	default:
		command := pusher.CommandLine([]string{d.program, "push", "--store", out.state.URI, absolutePatiently(d.path)})
		s.log.Error("store: " + out.state.Error + "; the report is safe, put it there with: " + command)
	}
}
