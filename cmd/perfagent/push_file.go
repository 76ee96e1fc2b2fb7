package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// A pushedFile is what is pushed of a node: a file or, of ranks that were not put together yet, the report that their
// files make.
type pushedFile struct {
	*reportfile.File

	// pieces are the files of the ranks, which record the state of the push, and key is the node in them.
	pieces []*reportfile.File
	key    string
}

// loadNode reads the files of a node.
func loadNode(n *catalog.Node, cpus int) (*pushedFile, error) {
	var pieces []*reportfile.File
	var sources []reporter.Source
	err := n.Retry(func() error {
		pieces, sources = nil, nil
		for _, path := range n.Paths() {
			f, err := reportfile.Load(path, cpus)
			if err != nil {
				return err
			}
			pieces, sources = append(pieces, f), append(sources, reporter.Source{Path: path, Report: f.Report})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(pieces) == 1 && n.InFile() == n.Name() {
		return &pushedFile{File: pieces[0]}, nil
	}

	report, err := n.Combine(sources)
	if err != nil {
		return nil, err
	}
	data, err := reporter.Encode(report)
	if err != nil {
		return nil, err
	}

	path := strings.TrimSuffix(n.Path(), filepath.Ext(n.Path())) + ".json"
	whole := &reportfile.File{Path: path, Kind: reportfile.KindReport, Data: data, Report: report}
	return &pushedFile{File: whole, pieces: pieces, key: n.InFile()}, nil
}

// note records the states of a push in the file, if it is a perfagent report. Of ranks that were not put together yet,
// each report records that of the node, and a journal records nothing: it is replaced or it is all that is left.
func note(file *pushedFile, states map[string]reporter.PushState) error {
	if len(states) == 0 {
		return nil
	}
	if file.pieces == nil {
		return noteIn(file.File, states)
	}

	var errs []error
	for _, state := range states { // of one node
		for _, piece := range file.pieces {
			errs = append(errs, noteIn(piece, map[string]reporter.PushState{file.key: state}))
		}
	}
	return errors.Join(errs...)
}

// noteIn records the states of a push in a file.
func noteIn(file *reportfile.File, states map[string]reporter.PushState) error {
	if file.Kind != reportfile.KindReport {
		return nil
	}

	data, err := reporter.WithPush(file.Data, states)
	if err != nil || string(data) == string(file.Data) {
		return err
	}
	if err := reportfile.Rewrite(file.Path, file.Data, data); err != nil {
		return fmt.Errorf("record the state of the push: %w", err)
	}

	file.Data = data
	return nil
}
