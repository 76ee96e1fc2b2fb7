package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// An Entry is the recording of a node or of one of its ranks by one perfagent: a report or a journal. While the report
// of a sidecar is refreshed, the Entry has both. The combined report of a node's ranks is also an Entry.
type Entry struct {
	FileName

	Report, Journal string // paths; "" = none

	head     reporter.Head // zero if it is unknown
	damaged  error         // the error from reading the head
	start    time.Time     // the modification time if the file lacks the start
	end      time.Time     // zero while the recording is active
	modified time.Time     // modification time of the file
}

// Path returns the file to read: the report if there is one, and otherwise the journal.
func (r *Entry) Path() string {
	if r.Report != "" {
		return r.Report
	}
	return r.Journal
}

// Run returns the run from the file. It is zero if the run is unknown.
func (r *Entry) Run() *reporter.Run { return &r.head.Run }

// base returns the path without its extension.
func (r *Entry) base() string { return strings.TrimSuffix(r.Path(), filepath.Ext(r.Path())) }

// Page returns the page next to the report, or "" if there is none.
func (r *Entry) Page() string {
	if r.Report == "" {
		return ""
	}
	page := r.base() + pageExt
	if st, err := os.Stat(page); err != nil || !st.Mode().IsRegular() {
		return ""
	}

	return page
}

// readHead reads the head of the recording and sets its times.
func (r *Entry) readHead() {
	if st, err := os.Stat(r.Path()); err == nil {
		r.modified = st.ModTime()
	}
	head, err := reportfile.ReadHead(r.Path())
	switch {
	case err == nil:
		r.head = *head
	case !errors.Is(err, reporter.ErrForeign): // perf.py's JSON has no head, which is not damage
		r.damaged = err
	}

	r.start = r.head.Run.Start.Time
	if r.start.IsZero() {
		r.start = r.modified
	}
	r.end = r.modified
	if run := r.head.Run; r.Report != "" && run.Incomplete == "" && !run.End.IsZero() {
		r.end = run.End.Time
	}
	if r.Journal != "" && r.isActive(nil) {
		r.end = time.Time{}
	}
	if !r.end.IsZero() && r.end.Before(r.start) {
		r.end = r.start
	}
}

// isActive reports whether a perfagent seems to be writing the journal. node is the node in the journal, or nil if it
// is unknown.
func (r *Entry) isActive(node *reporter.Node) bool {
	if r.Journal == "" {
		return false
	}
	if node == nil && r.head.Host != nil {
		node = &reporter.Node{Host: r.head.Host}
	}
	st, err := os.Stat(r.Journal)

	return err == nil && journal.ReadWriterState(r.Journal).IsActive(node, host.BootID(), time.Since(st.ModTime()))
}

// isGone reports whether the file no longer existed when its head was to be read.
func (r *Entry) isGone() bool { return errors.Is(r.damaged, fs.ErrNotExist) }

// isUnreadable reports whether the recording is a journal without a readable head.
func (r *Entry) isUnreadable() bool { return r.Report == "" && r.damaged != nil }

// Damaged returns the error from reading the head. It is nil if the head was read, and for perf.py's files.
func (r *Entry) Damaged() error { return r.damaged }

// hasRanks reports whether the recording is of one of several ranks, or is the combined report of a node's ranks.
func (r *Entry) hasRanks() bool { return r.head.Ranked || r.head.Rank != "" || r.Rank >= 0 }

// isCombined reports whether the recording combines a node's ranks.
func (r *Entry) isCombined() bool { return r.head.Ranked && r.Rank < 0 }

// mayBeRank reports whether a recording without a rank may still be of a rank: its perfagent seemed to be the only one
// on the node when it started, and there is no report yet.
func (r *Entry) mayBeRank() bool {
	return r.Report == "" && r.damaged == nil && !r.hasRanks() && len(r.head.Run.Command) > 0
}

// overlaps reports whether r and o were active at the same time.
func (r *Entry) overlaps(o *Entry) bool {
	return (r.end.IsZero() || !o.start.After(r.end)) && (o.end.IsZero() || !r.start.After(o.end))
}

// newEntries returns the recordings in the files at paths, sorted by start. A report and a journal with the same name
// are one recording. newEntries omits files of other programs.
func newEntries(paths []string) []*Entry {
	found := make(map[string]*Entry)
	for _, path := range paths {
		name, ok := ParseFileName(filepath.Base(path))
		if !ok {
			continue
		}

		r := found[strings.TrimSuffix(path, name.Ext)]
		if r == nil {
			r = &Entry{FileName: name}
			found[strings.TrimSuffix(path, name.Ext)] = r
		}
		if name.Ext == reportExt {
			r.Report = path
		} else {
			r.Journal = path
		}
	}

	for base, r := range found {
		if r.readHead(); !r.IsUnambiguous() && (r.damaged != nil || r.head.Node == "") {
			delete(found, base)
		}
	}

	return sortByStart(withoutPartial(slices.Collect(maps.Values(found))))
}

// withoutPartial removes the partial reports of nodes that have a final report. It compares node keys, because hosts
// without an index may have equal names.
func withoutPartial(list []*Entry) []*Entry {
	type node struct {
		index int
		host  string
	}
	ended := make(map[node][]nodeKey)
	for _, r := range list {
		if !r.Partial {
			at := node{r.Node, r.Host}
			ended[at] = append(ended[at], nodeKeyOf(r))
		}
	}

	return slices.DeleteFunc(list, func(r *Entry) bool {
		return r.Partial && slices.ContainsFunc(ended[node{r.Node, r.Host}], nodeKeyOf(r).matches)
	})
}

// sortByStart sorts recordings by start. Equal starts are sorted by name.
func sortByStart(list []*Entry) []*Entry {
	slices.SortFunc(list, func(a, b *Entry) int {
		return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.Node, b.Node), compareNatural(a.Host, b.Host),
			cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Nth, b.Nth), cmp.Compare(a.Path(), b.Path()))
	})
	return list
}

// readEntries lists the recordings directly in dir, sorted by start. If a file disappears before its head is read,
// readEntries reads dir again, because another file has replaced it.
func readEntries(dir string) (list []*Entry, err error) {
	for range rereads {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("look for reports: %w", err)
		}

		var paths []string
		for _, e := range entries {
			if !e.IsDir() {
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
		list = newEntries(paths)
		if !slices.ContainsFunc(list, (*Entry).isGone) {
			break
		}
	}

	return list, nil
}
