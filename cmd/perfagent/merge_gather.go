package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/store"
)

// gather fetches a run from a store and returns its nodes, after it has waited for them. It returns nil if there is no
// object of such a run, unless a flag says that there is to be one: in a ProxyStore the name may be that of any object.
func (o *mergeOptions) gather(address, object string) ([]catalog.Node, error) {
	s, err := o.openStore(address, true)
	if err != nil {
		return nil, err
	}
	ctx, stop := untilSignal()
	defer stop()
	g := store.NewGathering(s, object, func(f store.Fetched) string {
		return said(s.Reference(f.Name), o.copies.Named(f.Err.Error()))
	})
	o.gathered = g
	run, _ := store.RunIn(object)
	if o.wait > 0 {
		g.Waited, err = s.Await(ctx, run, o.awaited(run))
		if errors.Is(err, store.ErrUnknownNodes) {
			err = fmt.Errorf("--wait: %w: say it with --nodes", err)
		}
		if err != nil {
			return nil, err
		}
	}

	found, err := g.Fetch(ctx, o.inStores(), len(o.storeFlags()) == 0)
	if err != nil {
		return nil, err
	}
	if found == nil {
		o.close()
		o.gathered = nil
		return nil, nil
	}
	o.tell(found)
	g.SayPartial(o.inStores(), found.Launch)
	return found.Launch.Nodes, nil
}

// awaited says what is waited for.
func (o *mergeOptions) awaited(run string) store.Awaited {
	return store.Awaited{Nodes: o.nodes, Limit: o.wait, Tell: func(final, of int) {
		words := "?"
		if of > 0 {
			words = strconv.Itoa(of)
		}
		o.say(fmt.Sprintf("%d of %s nodes of %s are there; waiting for up to %v", final, words, run, o.wait))
	}}
}
