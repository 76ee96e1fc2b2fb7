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
	// maxRecordings limits the search for a free name.
	maxRecordings = 1000

	// maxPushStateSize limits by how many bytes a stored report of the same recording may exceed the new one. Two
	// reports of one recording differ only in the states of their pushes.
	maxPushStateSize = 1 << 20
)

// PutReport puts the report of a node into the store, under the first free name of the node, and returns the name. If
// the same recording already has a name, PutReport returns that name and writes nothing. node is node-N.
func (s *Store) PutReport(ctx context.Context, run, node string, data []byte) (string, error) {
	for k := 1; k <= maxRecordings; k++ {
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
		case err == nil && len(had) < len(data)+maxPushStateSize && reporter.SameRecording(had, data):
			return at, nil
		case err != nil && (ctx.Err() != nil || Temporary(err)): // the object may be the same recording
			return "", err
		}
	}

	return "", fmt.Errorf("store %s of run %s: %d names are used by other recordings", node, run, maxRecordings)
}

// Deliver calls PutReport and returns the state to record in the report's file.
func (s *Store) Deliver(ctx context.Context, run, node string, data []byte) (*reporter.StoreState, error) {
	name, err := s.PutReport(ctx, run, node, data)
	state := &reporter.StoreState{State: reporter.PushPending, URI: s.URL(), Metrics: s.Metrics()}
	if err != nil {
		state.Error = err.Error()
		return state, err
	}
	state.State, state.Reference, state.Unconditional = reporter.PushDone, s.Reference(name), s.Unconditional()
	return state, nil
}

// A PartialReport is the report of a running node in a store. Put replaces it from time to time, so that its data
// survives if the node dies.
type PartialReport struct {
	first objectName
	at    string // the object's name; "" until its existence is certain

	// unconfirmedName and unconfirmed are the name and the data of the last put if it failed: the store may hold the
	// object if only the response was lost. unconfirmed is nil if the last put did not fail.
	unconfirmedName string
	unconfirmed     []byte
}

// NewPartialReport returns the partial report of a node, which is node-N. It does not access the store.
func NewPartialReport(run, node string) *PartialReport {
	return &PartialReport{first: objectName{run: run, node: node, partial: true}}
}

// Put replaces the previous report with data. It never replaces the report of another recording. If objects never
// change in the store, the error is errors.ErrUnsupported.
func (p *PartialReport) Put(ctx context.Context, s *Store, data []byte) error {
	if p.at != "" {
		return s.Replace(ctx, p.at, data)
	}

	for k := 1; k <= maxRecordings; k++ {
		at := p.first
		at.nth = k
		err := p.putAt(ctx, s, at.String(), data)
		if !errors.Is(err, ErrExists) {
			return err
		}
	}
	return fmt.Errorf("store %s of run %s: %d names are in use", p.first.node, p.first.run, maxRecordings)
}

// putAt stores the report under the name at. If another recording has that name, the error is ErrExists.
func (p *PartialReport) putAt(ctx context.Context, s *Store, at string, data []byte) error {
	err := s.Put(ctx, at, data)
	if errors.Is(err, ErrExists) {
		own, errGet := isAnyOf(ctx, s, at, data, p.unconfirmed)
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
		p.unconfirmedName, p.unconfirmed = at, data
	default:
		p.at, p.unconfirmed = at, nil
	}
	return err
}

// Evict deletes the report, if there is one.
func (p *PartialReport) Evict(ctx context.Context, s *Store) error {
	if p.at == "" && p.unconfirmed != nil {
		own, err := isAnyOf(ctx, s, p.unconfirmedName, p.unconfirmed)
		if err != nil {
			return err
		}
		if own {
			p.at = p.unconfirmedName
		}
	}

	if p.at == "" {
		return nil
	}
	return s.Evict(ctx, p.at)
}

// isAnyOf reports whether the content of the object called at is one of contents. A nil content never matches. It
// returns false for an object that is permanently unreadable, and an error if the store does not respond.
func isAnyOf(ctx context.Context, s *Store, at string, contents ...[]byte) (bool, error) {
	had, err := s.Get(ctx, at)
	if err != nil {
		if ctx.Err() != nil || Temporary(err) {
			return false, err
		}
		return false, nil
	}
	return slices.ContainsFunc(contents, func(data []byte) bool { return data != nil && bytes.Equal(data, had) }), nil
}
