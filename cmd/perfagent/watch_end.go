package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/reporter/summary"
)

// nodeEnd is what became of a node.
type nodeEnd struct {
	index   int
	journal string // that was followed; "" = none
	words   string // "exit 3"; "" = nothing went wrong
	failed  bool
	open    bool   // no end is to be seen
	show    string // what has it: a report, or the journal
}

// stopped tells whether no more is to be expected of a node: it has ended, its agent is
// gone, or there was never anything of it to read.
func (n *watchedNode) stopped() bool {
	return n.over() || n.isGone() || n.trouble != nil && n.report == nil
}

// ending is what became of a node that has stopped.
func (n *watchedNode) ending() nodeEnd {
	if n.end != nil {
		e := reportEnd(n.index, n.end, n.endPath)
		e.journal = n.follower.Path()
		return e
	}

	e := nodeEnd{index: n.index, journal: n.follower.Path(), show: n.follower.Path(), open: true}
	switch {
	case n.isLost():
		e.words = "the journal is gone, without a report"
	case n.isGone():
		e.words = "its perfagent is gone"
	case n.trouble != nil:
		e.words = "cannot be read"
	}

	return e
}

// reportEnd is what became of a node by its report.
func reportEnd(node int, r *reporter.Report, path string) nodeEnd {
	e := nodeEnd{index: node, show: path}
	switch run := r.Run; {
	case run.Incomplete != "":
		e.open, e.words = true, "no end in its report"
	case run.Signal != "":
		e.failed, e.words = true, "killed by "+text.Clip(text.Printable(run.Signal), 20)
	case run.ExitCode != nil && *run.ExitCode != 0:
		e.failed, e.words = true, fmt.Sprintf("exit %d", *run.ExitCode)
	}

	return e
}

// sayEnd is the last word: how it ended and where the report is.
func (w *watching) sayEnd() error {
	if ends, unread := w.endings(); !w.options.picked && len(ends)+unread > 1 {
		return w.sayEnds(ends, unread)
	}

	name := w.id
	if w.options.picked {
		name += ", node " + w.main.name()
	}

	switch n := w.main; {
	case n.isLost():
		return fmt.Errorf("watch: run %q: %w", w.id, n.trouble)
	case n.end == nil:
		return fmt.Errorf("watch: run %q has no end: its perfagent is gone; %s", w.id, showCommand(n.follower.Path()))
	}

	_, err := fmt.Fprintf(w.options.streams.out, "perfagent: run %s: %s; %s\n", name, summary.Headline(w.main.end),
		text.Printable(showCommand(w.main.endPath)))
	return err
}

// endings are what became of all nodes, by index, and how many are not known: of those
// that had ended when we came not more are read than are followed.
func (w *watching) endings() (ends []nodeEnd, unread int) {
	for _, n := range w.nodes {
		ends = append(ends, n.ending())
	}

	for _, e := range w.past {
		ends = append(ends, e)
	}

	if there, err := findRun(w.options.out, w.id); err == nil && !w.options.picked {
		tried := 0
		for node, path := range there.reports {
			if w.knows(node) {
				continue
			}

			if tried++; tried > maxWatched {
				unread++
				continue
			}

			if r, err := reportfile.Read(path, 0); err == nil {
				ends = append(ends, reportEnd(node, r, path))
			} else {
				ends = append(ends, nodeEnd{index: node, words: "its report cannot be read", open: true, show: path})
			}
		}
	}

	slices.SortFunc(ends, func(a, b nodeEnd) int { return a.index - b.index })
	return ends, unread
}

// sayEnds is the last word of a run of several nodes: what each did that did not end
// well, and the report of the first of them.
func (w *watching) sayEnds(ends []nodeEnd, unread int) error {
	failed := slices.DeleteFunc(slices.Clone(ends), func(e nodeEnd) bool { return !e.failed })
	open := slices.DeleteFunc(slices.Clone(ends), func(e nodeEnd) bool { return !e.open })
	words := fmt.Sprintf("%d nodes", len(ends)+unread)
	if len(failed) > 0 {
		words += fmt.Sprintf(", %d failed (%s)", len(failed), nameEnds(failed))
	}
	if len(open) > 0 {
		words += fmt.Sprintf(", %d without an end (%s)", len(open), nameEnds(open))
	}
	if unread > 0 {
		words += fmt.Sprintf(", %d not looked at", unread)
	}
	if len(failed)+len(open)+unread == 0 {
		words += ", none failed"
	}

	first := slices.Concat(failed, open, ends)[0]
	words += "; " + showCommand(first.show)
	if len(open) > 0 {
		return errors.New(text.Printable("watch: run " + w.id + ": " + words))
	}

	_, err := fmt.Fprintf(w.options.streams.out, "perfagent: run %s: %s\n", w.id, text.Printable(words))
	return err
}

// nameEnds names nodes with what became of them, the first few.
func nameEnds(ends []nodeEnd) string {
	const most = 8
	var words []string
	for _, e := range ends[:min(len(ends), most)] {
		words = append(words, fmt.Sprintf("node %d %s", e.index, e.words))
	}

	if len(ends) > most {
		words = append(words, fmt.Sprintf("%d more", len(ends)-most))
	}

	return strings.Join(words, ", ")
}
