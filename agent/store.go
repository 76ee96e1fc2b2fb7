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

// storeResult holds the state of a put, and a description of it; outcome is "" unless the store has the report.
type storeResult struct {
	state   *reporter.StoreState
	outcome string
}

// pendingIn returns data, the contents of a report's file, with the state "pending" for the store. It returns data
// unchanged in perf.py's format, which has no place for the state.
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

// openStore opens the store without connecting to it. The address was checked before. It returns nil if no store is
// wanted.
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

// startStoring begins to put the report of d into the store. wait waits for the result; it is nil if there is no store.
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
	state := &reporter.StoreState{State: reporter.PushPending, URI: to.URL()}

	name, err := to.PutReport(ctx, s.o.RunID, s.nodeFileName(), d.toStore)
	if err == nil {
		if err := s.partials.evict(ctx, to); err != nil {
			s.log.Warn(fmt.Sprintf("the report from before the end is still there: %v", err))
		}
	}
	state.Metrics = to.Metrics()
	if err != nil {
		state.Error = err.Error()
		if cause := context.Cause(ctx); cause != nil {
			state.Error = cause.Error()
			if !errors.Is(err, cause) {
				state.Error += ": " + err.Error()
			}
		}
		return storeResult{state: state}
	}

	state.Unconditional = to.Unconditional()
	state.State, state.Reference = reporter.PushDone, to.Reference(name)
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
