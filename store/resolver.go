package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/perfagent/perfagent/reporter"
)

// A Resolver fetches the series of nodes that were merged without series. It is safe for concurrent use.
type Resolver struct {
	Open func(address string) (*Store, error)
	Warn func(words string) // reports series that cannot be fetched

	mu     sync.Mutex
	stores map[string]*Store // by address
}

// Resolve returns n with its series and their reference. If the series cannot be fetched, Resolve adds them to the
// node's Missing and issues a one-line warning.
func (r *Resolver) Resolve(n *reporter.Node) *reporter.Node {
	if n.Reference == "" {
		return n
	}

	whole, err := r.fetch(n)
	if err != nil {
		err = fmt.Errorf("%s: %w", n.Reference, err)
		r.Warn(err.Error())
		out := *n
		out.Missing = append(out.Missing[:len(out.Missing):len(out.Missing)],
			reporter.Missing{What: "samples", Code: reporter.Unreadable, Why: err.Error()})
		return &out
	}

	return n.WithSeries(whole)
}

// Fill replaces each node of report with the result of Resolve.
func (r *Resolver) Fill(report *reporter.Report) {
	for name, n := range report.Nodes {
		report.Nodes[name] = r.Resolve(n)
	}
}

// fetch returns the node that n refers to, if the object is unchanged since the merge.
func (r *Resolver) fetch(n *reporter.Node) (*reporter.Node, error) {
	address, name, ok := SplitReference(n.Reference)
	if !ok {
		return nil, errors.New("it is not of the form STORE#NAME")
	}
	s, err := r.open(address)
	if err != nil {
		return nil, err
	}
	data, stored, err := s.GetStored(context.Background(), name) // a signal ends the command
	if err != nil {
		return nil, err
	}
	if sha256Hex(stored) != n.SHA256 {
		return nil, errors.New("it is not the object that was merged: its hash differs")
	}

	report, err := reporter.Decode(data)
	if err != nil {
		return nil, err
	}
	for _, whole := range report.Nodes {
		if len(report.Nodes) == 1 {
			return whole, nil
		}
	}
	return nil, fmt.Errorf("it has %d nodes", len(report.Nodes))
}

// open returns the store at address, which is opened only once.
func (r *Resolver) open(address string) (*Store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.stores[address]; s != nil {
		return s, nil
	}

	s, err := r.Open(address)
	if err != nil {
		return nil, err
	}
	if r.stores == nil {
		r.stores = make(map[string]*Store)
	}
	r.stores[address] = s
	return s, nil
}

// Close closes the stores.
func (r *Resolver) Close() {
	for _, s := range r.stores {
		s.Close()
	}
}
