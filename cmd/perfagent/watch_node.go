package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter/terminal"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// A watchedNode follows the journals of one node. A node with several ranks has one journal per rank.
type watchedNode struct {
	index  int
	bootID string // of this machine; "" = unknown
	parts  []*watchedPart

	cachedReport *reporter.Report // of all parts, until the next poll; nil = not combined yet
}

func newWatchedNode(index int, paths []string, bootID string) *watchedNode {
	n := &watchedNode{index: index, bootID: bootID}
	for _, path := range paths {
		n.parts = append(n.parts, newWatchedPart(path, bootID))
	}
	return n
}

// name returns the node's key in a report.
func (n *watchedNode) name() string { return strconv.Itoa(n.index) }

// follow adds the journal of another rank, unless the node follows it already.
func (n *watchedNode) follow(path string) {
	if !n.follows(path) {
		n.parts = append(n.parts, newWatchedPart(path, n.bootID))
	}
}

// follows reports whether the node follows the journal at path.
func (n *watchedNode) follows(path string) bool {
	return slices.ContainsFunc(n.parts, func(p *watchedPart) bool { return p.follower.Path() == path })
}

func (n *watchedNode) close() {
	for _, p := range n.parts {
		p.follower.Close()
	}
}

// poll reads new lines of all journals.
func (n *watchedNode) poll(now time.Time) {
	n.cachedReport = nil
	for _, p := range n.parts {
		p.poll(now)
	}
}

// lead returns the part that represents the node: the first that is still running or, if all have
// stopped, the first.
func (n *watchedNode) lead() *watchedPart {
	if i := slices.IndexFunc(n.parts, func(p *watchedPart) bool { return !p.stopped() }); i >= 0 {
		return n.parts[i]
	}
	return n.parts[0]
}

// all reports whether is returns true for every part.
func (n *watchedNode) all(is func(*watchedPart) bool) bool {
	return !slices.ContainsFunc(n.parts, func(p *watchedPart) bool { return !is(p) })
}

// hasEnded reports whether all parts have ended.
func (n *watchedNode) hasEnded() bool { return n.all((*watchedPart).hasEnded) }

// isGone reports whether all parts have ended or are gone, and at least one is gone: its perfagent ended without a
// report.
func (n *watchedNode) isGone() bool {
	return !n.hasEnded() && n.all(func(p *watchedPart) bool { return p.hasEnded() || p.isGone() })
}

// stopped reports whether all parts have stopped.
func (n *watchedNode) stopped() bool { return n.all((*watchedPart).stopped) }

// hasReadErr reports whether a part could not be read.
func (n *watchedNode) hasReadErr() bool {
	return slices.ContainsFunc(n.parts, func(p *watchedPart) bool { return p.readErr != nil })
}

// report returns the report of all ranks so far, or nil if nothing is known.
func (n *watchedNode) report() *reporter.Report {
	if n.cachedReport == nil {
		n.cachedReport = n.combine()
	}
	return n.cachedReport
}

// combine merges the reports of the ranks.
func (n *watchedNode) combine() *reporter.Report {
	var known []reporter.SourceReport
	for _, p := range n.parts {
		r := p.newestReport()
		if r == nil {
			continue
		}
		if p.finalReport != nil && len(p.node().Ranks) > 1 { // the agents have already combined the ranks
			return r
		}
		known = append(known, reporter.SourceReport{Path: p.follower.Path(), Report: r})
	}

	switch len(known) {
	case 0:
		return nil
	case 1:
		return known[0].Report
	}
	if r, err := diagnosis.Combine(known); err == nil {
		return r
	}

	return cmp.Or(n.lead().newestReport(), known[0].Report)
}

// node returns the node of the newest report, or an empty node.
func (n *watchedNode) node() *reporter.Node { return onlyNode(n.report()) }

// live returns the state of the node for the screen.
func (n *watchedNode) live(now time.Time) terminal.LiveNode {
	out := n.lead().live(now)
	if len(n.parts) == 1 {
		return out
	}

	failed, open := 0, 0
	var newest [][]float64
	for _, p := range n.parts {
		if !p.stopped() {
			newest = append(newest, p.newest)
		}
		switch e := p.describeEnd(n.index); {
		case p.finalReport != nil && e.failed:
			failed++
		case p.isGone() || p.isLost():
			open++
		}
	}
	out.Newest = terminal.CombineRanks(newest)
	out.State += ", " + text.Count(len(n.parts), "rank", "ranks")
	if failed > 0 {
		out.State, out.Alarm = out.State+fmt.Sprintf(", %d failed", failed), true
	}
	if open > 0 {
		out.State, out.Alarm = out.State+fmt.Sprintf(", %d without an end", open), true
	}

	return out
}

// describeEnd describes the end of a stopped node by one of its ranks: the first failed one, else the first unfinished
// one.
func (n *watchedNode) describeEnd() nodeEnd {
	var ends []nodeEnd
	for _, p := range n.parts {
		ends = append(ends, p.describeEnd(n.index))
	}
	best := slices.IndexFunc(ends, func(e nodeEnd) bool { return e.failed })
	if best < 0 {
		best = max(0, slices.IndexFunc(ends, func(e nodeEnd) bool { return e.unfinished }))
	}

	return ends[best]
}
