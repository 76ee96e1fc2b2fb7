package pusher

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// A File is the source of a push for one node: the node's file or, if there is still one file per rank, a report that
// combines these files.
type File struct {
	*reportfile.File

	// parts are the files of the ranks, in which the state of the push is recorded, or nil. key is the node's key in
	// the parts.
	parts []*reportfile.File
	key   string
}

// Load reads the files of node n. reportfile.Load needs cpus for perf.py's JSON files.
func Load(n *catalog.Node, cpus int) (*File, error) {
	var parts []*reportfile.File
	var sources []reporter.SourceReport
	err := n.Retry(func() error {
		parts, sources = nil, nil
		for _, path := range n.Paths() {
			f, err := reportfile.Load(path, cpus)
			if err != nil {
				return err
			}
			parts, sources = append(parts, f), append(sources, reporter.SourceReport{Path: path, Report: f.Report})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(parts) == 1 && n.NameInFile() == n.Name() {
		return &File{File: parts[0]}, nil
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
	return &File{File: whole, parts: parts, key: n.NameInFile()}, nil
}

// recordPush records states, by node, in the file if it is a perfagent report. If there is still one file per rank,
// each rank's report gets the state of the node. A journal is not changed: either its report replaces it, or it is the
// only file left.
func (f *File) recordPush(states map[string]reporter.PushState) error {
	files := f.parts
	if files == nil {
		files = []*reportfile.File{f.File}
	} else {
		for _, state := range states { // there is only the state of this node
			states = map[string]reporter.PushState{f.key: state}
		}
	}

	var errs []error
	for _, file := range files {
		errs = append(errs, rewrite(file, "the state of the push", func(data []byte) ([]byte, error) {
			return reporter.WithPush(data, states)
		}))
	}
	return errors.Join(errs...)
}

// rewrite replaces the content of file with the result of edit, if file is a perfagent report. what names the recorded
// data in an error.
func rewrite(file *reportfile.File, what string, edit func(data []byte) ([]byte, error)) error {
	if file.Kind != reportfile.KindReport {
		return nil
	}

	data, err := edit(file.Data)
	if err != nil || string(data) == string(file.Data) {
		return err
	}
	if err := reportfile.Rewrite(file.Path, file.Data, data); err != nil {
		return fmt.Errorf("record %s: %w", what, err)
	}

	file.Data = data
	return nil
}

// artifact returns f as an Artifact, without private lines of logs. If f is a report, the data includes the states that
// done returns for the nodes after a push to run runID.
func (f *File) artifact(done func(runID string) map[string]reporter.PushState) Artifact {
	a := Artifact{Name: filepath.Base(f.Path), ContentType: "application/json"}
	if f.Kind == reportfile.KindJournal {
		a.ContentType = "application/jsonl"
	}
	a.Data = func(runID string) ([]byte, error) {
		if f.Kind != reportfile.KindReport {
			return f.Data, nil
		}
		data, err := reporter.Shareable(f.Data)
		if err != nil {
			return nil, err
		}
		return reporter.WithPush(data, done(runID))
	}
	return a
}

// EncodeNode encodes the report of the node with the given key for a store, and omits the state of the store and
// private lines of logs. It also returns the base name of the object: the file's name if the file has no other node,
// otherwise a name with key.
func (f *File) EncodeNode(key string) (data []byte, base string, err error) {
	base = strings.TrimSuffix(filepath.Base(f.Path), filepath.Ext(f.Path))
	if of, ok := catalog.ParseFileName(base + ".json"); ok && len(f.Report.Nodes) == 1 {
		base = journal.BaseName(of.Node, of.Host, "")
	} else {
		base = "node-" + key
	}

	n := *f.Report.Nodes[key].WithoutReference()
	if f.Kind == reportfile.KindReport && len(f.Report.Nodes) == 1 && n.Push != nil && n.Push.Store == nil &&
		f.Report.Nodes[key].Reference == "" {
		data, err = reporter.Shareable(f.Data)
		return data, base, err
	}

	if n.Push != nil {
		n.Push = &reporter.Push{MLflow: n.Push.MLflow}
	}
	alone := &reporter.Report{Schema: f.Report.Schema, Run: f.Report.Run, Nodes: map[string]*reporter.Node{key: &n}}
	alone.Run.Gather = nil // Gather is about the other nodes
	if data, err = reporter.Encode(alone); err == nil {
		data, err = reporter.Shareable(data)
	}
	return data, base, err
}

// RecordStore records the store state of each node in the file. Files of ranks are not changed, because they will be
// combined.
func (f *File) RecordStore(states map[string]*reporter.StoreState) error {
	if f.parts != nil || len(states) == 0 {
		return nil
	}
	return rewrite(f.File, "what was put into the store", func(data []byte) ([]byte, error) {
		return reporter.WithStore(data, states)
	})
}
