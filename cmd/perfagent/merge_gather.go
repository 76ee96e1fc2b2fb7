package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/store"
)

// gather fetches the run that object names from the store at address, and returns its nodes. With --wait, it first
// waits for them. If the store has no object of that run and no store flag was given, gather returns nil, because in a
// ProxyStore any object may have that name.
func (o *mergeOptions) gather(address, object string) ([]catalog.Node, error) {
	s, err := o.openStore(address, true)
	if err != nil {
		return nil, err
	}
	ctx, stop := signalContext()
	defer stop()
	g := store.NewGatherer(s, object, func(f store.FetchResult) string {
		return prefixName(s.Reference(f.String()), o.copies.WithReferences(f.Err.Error()))
	})
	o.gatherer = g
	run, _ := store.RunIDOf(object)
	if o.wait > 0 {
		g.Waited, err = s.Await(ctx, run, o.awaitOptions(run))
		if errors.Is(err, store.ErrUnknownNodes) {
			err = fmt.Errorf("--wait: %w: give it with --nodes", err)
		}
		if err != nil {
			return nil, err
		}
	}

	found, err := g.Fetch(ctx, &o.copies, len(o.storeFlags()) == 0)
	if err != nil {
		return nil, err
	}
	if found == nil {
		o.close()
		o.gatherer = nil
		return nil, nil
	}
	o.warnAbout(found)
	g.WarnPartial(&o.copies, found.Launch)
	return found.Launch.Nodes, nil
}

// awaitOptions returns the options for waiting for run, from --nodes and --wait.
func (o *mergeOptions) awaitOptions(run string) store.AwaitOptions {
	return store.AwaitOptions{Nodes: o.nodes, Limit: o.wait, Progress: func(final, of int) {
		words := "?"
		if of > 0 {
			words = strconv.Itoa(of)
		}
		o.printMessage(fmt.Sprintf("%d of %s nodes of %s are there; waiting for up to %v", final, words, run, o.wait))
	}}
}
