package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter/terminal"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/reporter/summary"
)

// runFiles are the recordings in the folder of a run, by node.
type runFiles struct {
	dir      string
	journals map[int]string // of nodes that are running, or whose perfagent was killed
	reports  map[int]string // the newest of each node
}

// findRun lists the folder of a run.
func findRun(dir string) (*runFiles, error) {
	r := &runFiles{dir: dir, journals: make(map[int]string), reports: make(map[int]string)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("watch: look for the run: %w", err)
	}

	newest := make(map[string]int) // by node and kind
	for _, e := range entries {
		node, nth, kind, ok := catalog.ParseName(e.Name())
		if !ok {
			continue
		}

		path, key := filepath.Join(r.dir, e.Name()), kind+strconv.Itoa(node)
		if kind == ".jsonl" && r.isBetter(path, r.journals[node], nth > newest[key]) {
			r.journals[node], newest[key] = path, nth
		}
		if kind == ".json" && nth > newest[key] {
			r.reports[node], newest[key] = path, nth
		}
	}

	return r, nil
}

// isBetter reports whether to watch path rather than another journal of the same node. It prefers the
// one that is being written, then the later one.
func (r *runFiles) isBetter(path, than string, later bool) bool {
	if than == "" {
		return true
	}
	if a, b := journal.Running(path), journal.Running(than); a != b {
		return a
	}
	return later
}

// isLater reports whether path is a later recording of a node than the other.
func isLater(path, than string) bool {
	_, a, _, _ := catalog.ParseName(filepath.Base(path))
	_, b, _, _ := catalog.ParseName(filepath.Base(than))
	return a > b
}

// first returns the lowest node that is running, else the lowest with a journal.
func (r *runFiles) first() (int, bool) {
	nodes := slices.Sorted(maps.Keys(r.journals))
	for _, n := range nodes {
		if journal.WriterOf(r.journals[n]) != journal.Gone {
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
func (r *runFiles) nodes() string {
	all := maps.Clone(r.reports)
	maps.Copy(all, r.journals)
	var words []string
	for _, n := range slices.Sorted(maps.Keys(all)) {
		word := "node " + strconv.Itoa(n)
		if r.journals[n] == "" {
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

// A watchedNode follows one node's journal.
type watchedNode struct {
	index      int
	home       string // boot id of this machine; "" = unknown
	follower   *journal.Follower
	report     *reporter.Report // last read from the journal; nil = nothing yet
	newest     []float64
	writer     journal.Writer
	locked     bool      // its agent has held the lock
	looked     time.Time // time of the last read
	lastGrowth time.Time // when it last grew
	trouble    error     // of the last read
	end        *reporter.Report
	endPath    string
	gaps       int // reads that found neither journal nor report
}

func newWatchedNode(index int, path, home string) *watchedNode {
	return &watchedNode{index: index, home: home, follower: journal.Follow(path)}
}

// name returns the node's key in a report.
func (n *watchedNode) name() string { return strconv.Itoa(n.index) }

// look reads what is new.
func (n *watchedNode) look(now time.Time) {
	if n.over() {
		return
	}

	grew, err := n.follower.Look()
	n.trouble = err
	if errors.Is(err, fs.ErrNotExist) {
		n.finish()
		return
	}

	n.gaps = 0
	if grew {
		n.report, n.newest = n.follower.Report(), n.follower.Newest()
	}
	if grew || n.looked.IsZero() {
		n.lastGrowth = now.Add(-n.age(now))
	}

	n.looked = now
	if err != nil && n.report != nil { // it is no longer the journal that we follow
		return
	}

	n.writer = journal.WriterOf(n.follower.Path())
	n.locked = n.locked || n.writer == journal.Alive
}

// age returns how long ago the journal was written, by the file's time, but at most the time since
// the last read: the clock of another machine may differ.
func (n *watchedNode) age(now time.Time) time.Duration {
	st, err := os.Stat(n.follower.Path())
	if err != nil {
		return 0
	}

	age := max(0, now.Sub(st.ModTime()))
	if !n.looked.IsZero() {
		age = min(age, now.Sub(n.looked))
	}

	return age
}

// node returns the node from the newest report.
func (n *watchedNode) node() *reporter.Node {
	for _, r := range []*reporter.Report{n.end, n.report} {
		if r != nil && r.Nodes[n.name()] != nil {
			return r.Nodes[n.name()]
		}
	}
	return &reporter.Node{}
}

// finish reads the report that has replaced the journal. It is written before the journal is removed.
func (n *watchedNode) finish() {
	path := strings.TrimSuffix(n.follower.Path(), "l")
	r, err := reportfile.Read(path, 0)
	if err == nil {
		n.end, n.endPath = r, path
		return
	}
	n.gaps++
	n.trouble = fmt.Errorf("the journal is gone, and there is no report in its place: %w", err)
}

// over reports whether the node has ended.
func (n *watchedNode) over() bool { return n.end != nil || n.isLost() }

// isLost reports whether the journal disappeared without a report.
func (n *watchedNode) isLost() bool { return n.gaps > 1 }

// silence returns how long the journal has not grown.
func (n *watchedNode) silence(now time.Time) time.Duration { return max(0, now.Sub(n.lastGrowth)) }

// maxSilence returns how long the journal may stay unchanged without comment.
func (n *watchedNode) maxSilence() time.Duration { return journal.MaxSilence(n.node()) }

// isGone reports whether the agent ended without a report: the lock is free, and the agent held it
// before or ran on this machine. The lock of an agent on another machine may be invisible; then only
// silence counts.
func (n *watchedNode) isGone() bool {
	if n.over() || n.trouble != nil && n.report != nil || n.writer != journal.Gone {
		return false
	}
	if machine := n.node().Host; machine != nil && machine.BootID != "" {
		return n.locked || machine.BootID == n.home
	}
	return n.locked || n.silence(n.looked) > n.maxSilence() // before its first sample
}

// running reports whether the agent seems to be at work.
func (n *watchedNode) running(now time.Time) bool {
	return !n.over() && n.writer.AtWork(n.node(), n.home, n.silence(now))
}

// live returns the state of the node for the screen.
func (n *watchedNode) live(now time.Time) terminal.LiveNode {
	known, quiet := 0.0, n.silence(now)
	if n.report != nil {
		known = n.report.Run.WallSeconds
	}

	length, silent := text.Seconds(known+quiet.Seconds()), ", no sample for "+text.Seconds(quiet.Seconds())
	out := terminal.LiveNode{Newest: n.newest, Alarm: true}
	switch {
	case n.end != nil:
		out.State, out.End = summary.Headline(n.end), true
		out.Alarm = n.end.Run.Signal != "" || n.end.Run.ExitCode != nil && *n.end.Run.ExitCode != 0
	case n.isLost():
		out.State = "ended without a report here"
	case n.isGone() && n.report == nil:
		out.State = "perfagent is gone"
		if n.trouble != nil {
			out.Trouble = n.trouble.Error()
		}
	case n.trouble != nil:
		out.State, out.Trouble = "cannot be read", n.trouble.Error()
	case n.isGone():
		since := n.report.Run.End.UTC().Format("15:04:05 MST")
		out.State = fmt.Sprintf("perfagent is gone since %s, after %s", since, text.Seconds(known))
	case n.writer == journal.Alive && quiet > n.maxSilence():
		out.State = "running for " + length + silent
	case quiet > n.maxSilence():
		out.State = "seen for " + text.Seconds(known) + silent
	case n.report == nil:
		out.State, out.Alarm = "starting", false
	default:
		out.State, out.Alarm = "running for "+length, false
	}

	return out
}

// compareNodes orders nodes by their index.
func compareNodes(a, b *watchedNode) int { return cmp.Compare(a.index, b.index) }
