package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// A Run summarizes a run in a store.
type Run struct {
	ID       string    `json:"id"`
	Nodes    int       `json:"nodes"`
	Partial  int       `json:"partial"`           // nodes with only a partial report
	Bytes    int64     `json:"bytes"`             // of all objects, as stored
	Modified time.Time `json:"modified,omitzero"` // of the newest object; zero if unknown
}

// A Node describes one report of a node in a store.
type Node struct {
	Reference string    `json:"reference"` // STORE#NAME
	RunID     string    `json:"run_id"`
	Node      string    `json:"node"`  // the node's index or host name
	Final     bool      `json:"final"` // the report is not partial
	Bytes     int64     `json:"bytes"`
	Modified  time.Time `json:"modified,omitzero"`
}

// A listedReport is an object that is a report, as listed by a store.
type listedReport struct {
	objectName
	ObjectInfo
}

// listReports lists the reports with names that begin with prefix.
func (s *Store) listReports(ctx context.Context, prefix string) ([]listedReport, error) {
	list, err := s.List(ctx, prefix)
	if err != nil {
		return nil, err
	}

	var out []listedReport
	for _, e := range list {
		if n, ok := parseName(e.Name); ok {
			out = append(out, listedReport{n, e})
		}
	}
	return out, nil
}

// Runs returns the runs in the store, newest first if the store records times.
func (s *Store) Runs(ctx context.Context) ([]Run, error) {
	list, err := s.listReports(ctx, "")
	if err != nil {
		return nil, err
	}

	runs, final := make(map[string]*Run), make(map[objectName]bool) // final: by the name of a node's first recording
	for _, r := range list {
		run := runs[r.run]
		if run == nil {
			run = &Run{ID: r.run}
			runs[r.run] = run
		}
		run.Bytes += r.Size
		if r.Modified.After(run.Modified) {
			run.Modified = r.Modified
		}

		first := objectName{run: r.run, node: r.node}
		if _, known := final[first]; !known {
			run.Nodes++
		}
		final[first] = final[first] || !r.partial
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
	slices.SortFunc(out, func(a, b Run) int { return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// Nodes returns the reports of run in the store, sorted by name. Each recording of a node is a separate report.
func (s *Store) Nodes(ctx context.Context, run string) ([]Node, error) {
	list, err := s.listReports(ctx, run+"/")
	out := make([]Node, 0, len(list))
	for _, r := range list {
		out = append(out, Node{s.Reference(r.Name), r.run, r.Index(), !r.partial, r.Size, r.Modified})
	}
	return out, err
}
