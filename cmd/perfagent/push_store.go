package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

// checkStore checks --store and the flags that exclude it.
func (o *pushOptions) checkStore() error {
	if o.store == "" {
		return nil
	}
	if o.target != (pusher.Target{}) {
		return errors.New("--store: the flags of MLflow and --dry-run do not apply to a store")
	}

	s, err := store.Open(o.store, store.Options{})
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	return s.Close()
}

// storeFile puts each node of file into the store under its own name, and records the results in file.
func (o *pushOptions) storeFile(ctx context.Context, file *pusher.File) error {
	states := make(map[string]*reporter.StoreState)
	var errs []error
	for _, key := range file.Report.NodeNames() {
		state, err := o.put(ctx, file, key)
		if err != nil {
			errs = append(errs, err)
			if was := file.Report.Nodes[key].Push; was != nil && was.Store != nil && was.Store.State == reporter.PushDone {
				continue // keep the record of an earlier successful put
			}
		}
		states[key] = state
	}

	if err := file.RecordStore(states); err != nil {
		o.streams.warn(err) // the exit code covers only the store
	}
	return errors.Join(errs...)
}

// put puts the node named key into the store, prints its reference and returns the state to record.
func (o *pushOptions) put(ctx context.Context, file *pusher.File, key string) (*reporter.StoreState, error) {
	into, err := o.openStore(o.store, true) // opened for each node, because the store's metrics are recorded per node
	if err != nil {
		return nil, err
	}
	defer into.Close()

	data, base, err := file.EncodeNode(key)
	if err != nil {
		return &reporter.StoreState{State: reporter.PushPending, URI: into.URL(), Error: err.Error()}, err
	}
	state, err := into.Deliver(ctx, file.Report.Run.ID, base, data)
	if err != nil {
		return state, err
	}

	fmt.Fprintf(o.streams.out, "%s: %s\n", text.Printable(o.copies.WithReferences(file.Path)),
		text.Printable(state.Reference))
	return state, nil
}
