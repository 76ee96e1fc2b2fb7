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
	// maxAgain limits the search for a free name.
	maxAgain = 1000

	// maxPush limits by how many bytes a report may exceed another one of the same recording. They differ only in the
	// destinations.
	maxPush = 1 << 20
)

// PutReport puts the report of a node into the store, under the first free name of the node, and returns the name. If
// the same recording has a name already, it returns that and writes nothing. node is node-N.
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

// A PartialReport is the report of a running node in a store. It is replaced from time to time, so that data remains if
// the node dies.
type PartialReport struct {
	first objectName
	at    string // the object's name; "" until its existence is certain

	// tried is the name and sent the data of the last put, if it failed: the store may have the object if only the
	// response was lost. sent is nil if there is no such put.
	tried string
	sent  []byte
}

// NewPartialReport returns the partial report of a node, which is node-N. It stores nothing.
func NewPartialReport(run, node string) *PartialReport {
	return &PartialReport{first: objectName{run: run, node: node, partial: true}}
}

// Put replaces the last report by data. It never replaces another recording's. If objects never change in the store,
// the error is errors.ErrUnsupported.
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

// putAt stores the report under a name. If another recording has the name, the error is ErrExists.
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

// holds reports whether the object of a name equals one of these, where nil equals none. It returns false for a
// permanently unreadable object, and an error if the store does not respond.
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
