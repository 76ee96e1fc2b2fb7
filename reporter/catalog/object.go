package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/reporter/summary"
)

// Object returns the summary of the run. It reads the numbers of all nodes, but not their series. A file that
// cannot be read makes the run Incomplete, and is its verdict.
func (r *Run) Object() summary.Object {
	var nodes []reporter.Source
	for _, n := range r.Nodes {
		report, err := numbersOf(n.Path())
		if err != nil {
			return r.unreadable(err)
		}
		nodes = append(nodes, reporter.Source{Path: n.Path(), Report: report})
	}

	whole := nodes[0].Report
	if len(nodes) > 1 {
		merged, err := diagnosis.Merge(nodes)
		if err != nil {
			return r.unreadable(err)
		}
		whole = merged
	}

	at := r.Nodes[0]
	failed := summary.FailedNodes(whole)
	if i := slices.IndexFunc(r.Nodes, func(n Recording) bool {
		return len(failed) > 0 && strconv.Itoa(n.Node) == failed[0]
	}); i >= 0 {
		at = r.Nodes[i]
	}

	o := summary.NewObject(whole, at.Path(), at.Page())
	o.RunID, o.State = r.Name, r.stateOf(whole, o.State)

	return o
}

// unreadable returns the summary of a run of which a file cannot be read.
func (r *Run) unreadable(err error) summary.Object {
	o := summary.NewObject(&reporter.Report{Run: reporter.Run{ID: r.Name}}, r.Nodes[0].Path(), "")
	o.State, o.Verdict = r.stateOf(nil, summary.Incomplete), text.Printable(err.Error())
	o.Start.Time, o.Nodes = r.Start, len(r.Nodes)

	return o
}

// numbersOf reads a report without its series, or a journal.
func numbersOf(path string) (*reporter.Report, error) {
	out := &reporter.Report{Schema: reporter.Schema, Nodes: make(map[string]*reporter.Node)}
	run, err := reportfile.Scan(path, 0, reporter.Wanted{}, func(_ *reporter.Run, name string, n *reporter.Node) error {
		n.Samples, n.Envelope = reporter.Samples{}, nil // of a journal, which is read whole
		out.Nodes[name] = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Run = *run

	return out, nil
}

// stateOf returns Running if anything of the run is being recorded, else what the report says. report may be nil. An
// earlier recording may outlive the newest one of its node: a batch job and its steps have one RUN-ID.
func (r *Run) stateOf(report *reporter.Report, otherwise string) string {
	for _, n := range r.Nodes {
		if n.Journal != "" && running(n, report) {
			return summary.Running
		}
	}

	for _, n := range r.Earlier {
		if n.Journal == "" {
			continue
		}
		own, _ := numbersOf(n.Journal) // nil: the lock and the file's time tell
		if running(n, own) {
			return summary.Running
		}
	}

	return otherwise
}

// quiet is how long a journal on another machine, whose lock is invisible, may be silent.
const quiet = 10 * time.Second

// running reports whether a perfagent records the node. The lock of its journal tells this on one machine. On
// another, the journal must have grown a moment ago.
func running(n Recording, report *reporter.Report) bool {
	writer := journal.WriterOf(n.Journal)
	if writer == journal.Alive {
		return true
	}

	var node *reporter.Node
	if report != nil {
		node = report.Nodes[strconv.Itoa(n.Node)]
	}
	here := node != nil && node.Host != nil && node.Host.BootID != "" && node.Host.BootID == host.BootID()
	if writer == journal.Gone && here {
		return false
	}

	patience := quiet
	if node != nil && node.Sampling != nil && node.Sampling.IntervalSeconds < time.Hour.Seconds() {
		patience = max(patience, time.Duration(3*node.Sampling.IntervalSeconds*float64(time.Second)))
	}
	st, err := os.Stat(n.Journal)

	return err == nil && time.Since(st.ModTime()) < patience
}

// Page returns the page beside the report, or "" if there is none.
func (r Recording) Page() string {
	if r.Report == "" {
		return ""
	}
	page := strings.TrimSuffix(r.Report, filepath.Ext(r.Report)) + pageExt
	if st, err := os.Stat(page); err != nil || !st.Mode().IsRegular() {
		return ""
	}

	return page
}
