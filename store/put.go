package store

import (
	"context"
	"errors"
	"fmt"

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
		at := name{run: run, node: node, again: k}.String()
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
