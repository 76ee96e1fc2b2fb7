package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/perfagent/perfagent/gather"
	"github.com/perfagent/perfagent/reporter/catalog"
)

// gather fetches a run from a store and returns its nodes, after it has waited for them. It returns nil if there is no
// object of such a run, unless a flag says that there is to be one: in a ProxyStore the name may be that of any object.
func (o *mergeOptions) gather(address, object string) ([]catalog.Node, error) {
	s, err := o.runs.openStore(address, true)
	if err != nil {
		return nil, err
	}
	ctx, stop := untilSignal()
	defer stop()
	g := gather.NewGathering(s, object, func(f gather.Fetched) string {
		return said(s.Reference(f.Name), o.runs.copies.named(f.Err.Error()))
	})
	o.gathered = g
	run, _ := gather.RunIn(object)
	if o.wait > 0 {
		g.Waited, err = gather.Await(ctx, s, run, o.awaited(run))
		if errors.Is(err, gather.ErrUnknownNodes) {
			err = fmt.Errorf("--wait: %w: say it with --nodes", err)
		}
		if err != nil {
			return nil, err
		}
	}

	dir, isDir := s.Dir()
	if !isDir {
		if dir, err = o.runs.copies.add(s.URL(), object); err != nil {
			return nil, err
		}
	}
	fetched, err := gather.FetchRun(ctx, s, run, dir)
	if err != nil {
		return nil, err
	}
	if len(fetched) == 0 && len(o.given) == 0 && !isDir {
		o.close()
		o.gathered = nil
		return nil, nil
	}

	outside, err := o.runs.outside("merge", object, copied{dir: dir, store: s.URL()})
	if err != nil {
		return nil, err
	}
	found, err := g.Find(dir, fetched, outside)
	if err != nil {
		return nil, err
	}
	o.runs.tell("merge", found)
	for i := range found.Launch.Nodes {
		if f, ok := g.Reference(&found.Launch.Nodes[i]); ok && !f.Final {
			o.runs.say("merge", s.Reference(f.Name)+onlyPartial)
		}
	}
	return found.Launch.Nodes, nil
}

// awaited says what is waited for.
func (o *mergeOptions) awaited(run string) gather.Awaited {
	return gather.Awaited{Nodes: o.nodes, Limit: o.wait, Tell: func(final, of int) {
		words := "?"
		if of > 0 {
			words = strconv.Itoa(of)
		}
		o.runs.say("merge", fmt.Sprintf("%d of %s nodes of %s are there; waiting for up to %v", final, words, run, o.wait))
	}}
}
