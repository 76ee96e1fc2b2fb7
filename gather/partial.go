package gather

import (
	"context"
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/store"
)

// A Partial is the report of a node that still runs, in a store. It is replaced from time to time, so that a node that dies
// leaves what it knew.
type Partial struct {
	first name
	at    string // the object's name; "" as long as there is none
}

// NewPartial returns the partial report of a node, which is node-N. Nothing is stored yet.
func NewPartial(run, node string) *Partial {
	return &Partial{first: name{run: run, node: node, partial: true}}
}

// Put stores the report in place of the last one. It never replaces that of another recording. In a store of which no
// object changes, the error is errors.ErrUnsupported.
func (p *Partial) Put(ctx context.Context, s *store.Store, data []byte) error {
	if p.at != "" {
		return s.Replace(ctx, p.at, data)
	}

	for k := 1; k <= maxAgain; k++ {
		at := p.first
		at.again = k
		err := s.Put(ctx, at.String(), data)
		if err == nil {
			p.at = at.String()
			return nil
		}
		if !errors.Is(err, store.ErrExists) {
			return err
		}
	}
	return fmt.Errorf("put %s of run %s: %d names are taken", p.first.node, p.first.run, maxAgain)
}

// Evict deletes the report, if there is one.
func (p *Partial) Evict(ctx context.Context, s *store.Store) error {
	if p.at == "" {
		return nil
	}
	return s.Evict(ctx, p.at)
}
