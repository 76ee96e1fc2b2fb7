package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perfagent/perfagent/reporter"
)

const (
	// maxAgain bounds the search for a free name.
	maxAgain = 1000

	// maxPush is by how many bytes two reports of the same recording may differ: only by where they went.
	maxPush = 1 << 20
)

// PutReport puts the report of a node into the store, under the first name of the node that is free, and returns the
// name. A name that has the same recording will do: then nothing is written. node is node-N.
func (s *Store) PutReport(ctx context.Context, run, node string, data []byte) (string, error) {
	for k := 1; k <= maxAgain; k++ {
		at := objectName{run: run, node: node, nth: k}.String()
		err := s.Put(ctx, at, data)
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, ErrExists) {
			return "", err
		}

		had, err := s.Get(ctx, at)
		switch {
		case err == nil && len(had) < len(data)+maxPush && reporter.SameRecording(had, data):
			return at, nil
		case err != nil && (ctx.Err() != nil || Temporary(err)): // it may be the same recording
			return "", err
		}
	}

	return "", fmt.Errorf("put %s of run %s: %d names are taken by other recordings", node, run, maxAgain)
}

// A PartialReport is the report of a node that still runs, in a store. It is replaced from time to time, so that a
// node that dies leaves what it knew.
type PartialReport struct {
	first objectName
	at    string // the object's name; "" as long as it is not known that there is one

	// tried is the name of the last put if it failed, and sent what was put: the store may have it all the same, if
	// only the answer was lost. sent is nil if there is no such put.
	tried string
	sent  []byte
}

// NewPartialReport returns the partial report of a node, which is node-N. Nothing is stored yet.
func NewPartialReport(run, node string) *PartialReport {
	return &PartialReport{first: objectName{run: run, node: node, partial: true}}
}

// Put stores the report in place of the last one. It never replaces that of another recording. In a store of which no
// object changes, the error is errors.ErrUnsupported.
func (p *PartialReport) Put(ctx context.Context, s *Store, data []byte) error {
	if p.at != "" {
		return s.Replace(ctx, p.at, data)
	}

	for k := 1; k <= maxAgain; k++ {
		at := p.first
		at.nth = k
		err := p.putAt(ctx, s, at.String(), data)
		if !errors.Is(err, ErrExists) {
			return err
		}
	}
	return fmt.Errorf("put %s of run %s: %d names are taken", p.first.node, p.first.run, maxAgain)
}

// putAt stores the report under a name. If another recording has it, the error is ErrExists.
func (p *PartialReport) putAt(ctx context.Context, s *Store, at string, data []byte) error {
	err := s.Put(ctx, at, data)
	if errors.Is(err, ErrExists) {
		own, errGet := holds(ctx, s, at, data, p.sent)
		if errGet != nil {
			return errGet
		}
		if own {
			err = s.Replace(ctx, at, data)
		}
	}

	switch {
	case errors.Is(err, ErrExists):
	case err != nil:
		p.tried, p.sent = at, data
	default:
		p.at, p.sent = at, nil
	}
	return err
}

// Evict deletes the report, if there is one.
func (p *PartialReport) Evict(ctx context.Context, s *Store) error {
	if p.at == "" && p.sent != nil {
		own, err := holds(ctx, s, p.tried, p.sent)
		if err != nil {
			return err
		}
		if own {
			p.at = p.tried
		}
	}

	if p.at == "" {
		return nil
	}
	return s.Evict(ctx, p.at)
}

// holds reports whether the object of a name is one of these; nil is none. An object that can never be read is another.
// An error says that the store did not answer.
func holds(ctx context.Context, s *Store, at string, these ...[]byte) (bool, error) {
	had, err := s.Get(ctx, at)
	if err != nil {
		if ctx.Err() != nil || Temporary(err) {
			return false, err
		}
		return false, nil
	}
	return slices.ContainsFunc(these, func(data []byte) bool { return data != nil && bytes.Equal(data, had) }), nil
}
