package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// A Run is what a store tells of a run without fetching it.
type Run struct {
	ID       string    `json:"id"`
	Nodes    int       `json:"nodes"`
	Partial  int       `json:"partial"`           // how many of them have nothing but what was known while they ran
	Bytes    int64     `json:"bytes"`             // of all its objects, as stored
	Modified time.Time `json:"modified,omitzero"` // the newest of them; zero if the store does not tell
}

// A Node is what a store tells of the report of a node without fetching it.
type Node struct {
	Reference string    `json:"reference"` // STORE#NAME
	RunID     string    `json:"run_id"`
	Node      string    `json:"node"`  // its index, or its host's name
	Final     bool      `json:"final"` // it is not what was known while the node ran
	Bytes     int64     `json:"bytes"`
	Modified  time.Time `json:"modified,omitzero"`
}

// Runs returns the runs in a store, the newest first where the store tells.
func (s *Store) Runs(ctx context.Context) ([]Run, error) {
	list, err := s.List(ctx, "")
	if err != nil {
		return nil, err
	}

	runs, final := make(map[string]*Run), make(map[name]bool) // final by the first name of each node
	for _, e := range list {
		n, ok := parse(e.Name)
		if !ok {
			continue
		}
		run := runs[n.run]
		if run == nil {
			run = &Run{ID: n.run}
			runs[n.run] = run
		}
		run.Bytes += e.Size
		if e.Modified.After(run.Modified) {
			run.Modified = e.Modified
		}

		first := name{run: n.run, node: n.node}
		if _, known := final[first]; !known {
			run.Nodes++
		}
		final[first] = final[first] || !n.partial
	}
	for n, is := range final {
		if !is {
			runs[n.run].Partial++
		}
	}

	out := make([]Run, 0, len(runs))
	for _, run := range runs {
		out = append(out, *run)
	}
	slices.SortFunc(out, func(a, b Run) int {
		if d := b.Modified.Compare(a.Modified); d != 0 {
			return d
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return out, nil
}

// Nodes returns the reports of a run in a store, by name. Each recording of a node has its own.
func (s *Store) Nodes(ctx context.Context, run string) ([]Node, error) {
	list, err := s.List(ctx, run+"/")
	if err != nil {
		return nil, err
	}

	out := []Node{}
	for _, e := range list {
		if n, ok := parse(e.Name); ok {
			reference := s.Reference(e.Name)
			node := strings.TrimPrefix(n.node, "node-")
			out = append(out, Node{reference, n.run, node, !n.partial, e.Size, e.Modified})
		}
	}
	return out, nil
}
