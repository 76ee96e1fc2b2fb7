package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/journal"
)

// launchFiles holds the recordings of a launch by node.
type launchFiles struct {
	dir      string
	start    time.Time        // of the launch
	journals map[int][]string // of nodes that run or lost their perfagent; one per rank
	reports  map[int]string   // of nodes that have a report
}

// listLaunchFiles lists the recordings of the k-th launch of the run in dir. For k = 0 it chooses the newest running
// launch, else the newest with a journal, else the latest.
func listLaunchFiles(dir string, k int) (*launchFiles, error) {
	run, err := catalog.ReadRun(dir)
	if err != nil {
		return nil, fmt.Errorf("watch: look for the run: %w", err)
	}

	r := &launchFiles{dir: dir, journals: make(map[int][]string), reports: make(map[int]string)}
	if run == nil {
		r.addUnreadable()
		return r, nil
	}
	l := launchToWatch(run)
	if k > 0 && k <= len(run.Launches) {
		l = &run.Launches[k-1]
	}

	r.start = l.Start
	for i := range l.Nodes {
		n := &l.Nodes[i]
		for _, entry := range n.Entries {
			if entry.Journal != "" {
				r.journals[n.Index] = append(r.journals[n.Index], entry.Journal)
			}
		}
		if entry := n.Entries[0]; entry.Report != "" {
			r.reports[n.Index] = entry.Report
		}
	}

	return r, nil
}

// addUnreadable adds files that are named like journals but are not journals, so that an error can name them.
func (r *launchFiles) addUnreadable() {
	paths, _ := filepath.Glob(filepath.Join(r.dir, "node-*.jsonl")) // none if dir is a bad pattern
	for _, path := range paths {
		if name, ok := catalog.ParseFileName(filepath.Base(path)); ok {
			r.journals[name.Node] = []string{path}
		}
	}
}

// launchToWatch returns the newest running launch, else the newest with a journal, else the latest.
func launchToWatch(run *catalog.Run) *catalog.Launch {
	var withJournal *catalog.Launch
	for i := range slices.Backward(run.Launches) {
		l := &run.Launches[i]
		for _, n := range l.Nodes {
			for _, entry := range n.Entries {
				switch {
				case entry.Journal == "":
				case journal.ReadWriterState(entry.Journal) != journal.WriterGone:
					return l
				case withJournal == nil:
					withJournal = l
				}
			}
		}
	}
	if withJournal != nil {
		return withJournal
	}

	return run.Latest()
}

// isLater reports whether path is a later recording of a node than the recording at than.
func isLater(path, than string) bool {
	a, _ := catalog.ParseFileName(filepath.Base(path))
	b, _ := catalog.ParseFileName(filepath.Base(than))
	return a.Nth > b.Nth
}

// first returns the lowest running node, else the lowest node with a journal, else the lowest node with a report. The
// bool reports whether the node has a journal.
func (r *launchFiles) first() (int, bool) {
	nodes := slices.Sorted(maps.Keys(r.journals))
	for _, n := range nodes {
		runs := func(path string) bool { return journal.ReadWriterState(path) != journal.WriterGone }
		if slices.ContainsFunc(r.journals[n], runs) {
			return n, true
		}
	}

	if len(nodes) > 0 {
		return nodes[0], true
	}

	ended := slices.Sorted(maps.Keys(r.reports))
	if len(ended) > 0 {
		return ended[0], false
	}

	return 0, false
}

// nodes lists the nodes for an error message.
func (r *launchFiles) nodes() string {
	all := maps.Clone(r.reports)
	for n := range r.journals {
		all[n] = ""
	}
	var words []string
	for _, n := range slices.Sorted(maps.Keys(all)) {
		word := "node " + strconv.Itoa(n)
		if len(r.journals[n]) == 0 {
			word += ", which has ended"
		}
		words = append(words, word)
	}

	switch {
	case len(words) == 0:
		return "none"
	case len(words) > 10:
		words = append(words[:10], fmt.Sprintf("%d more", len(words)-10))
	}

	return strings.Join(words, "; ")
}
