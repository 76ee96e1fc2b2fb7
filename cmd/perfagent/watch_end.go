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

// A nodeEnd describes how a node ended.
type nodeEnd struct {
	index      int
	journal    string // the journal that was followed; "" = none
	words      string // "exit 3"; "" = success
	failed     bool
	unfinished bool   // its end is unknown
	show       string // path of the report or the journal to show
}

// stopped reports whether the recording is final: it has ended, its agent is gone, or it was never readable.
func (p *watchedPart) stopped() bool {
	return p.hasEnded() || p.isGone() || p.readErr != nil && p.report == nil
}

// describeEnd describes the end of a stopped part of a node.
func (p *watchedPart) describeEnd(node int) nodeEnd {
	if p.finalReport != nil {
		e := reportEnd(node, p.finalReport, p.finalPath)
		e.journal = p.follower.Path()
		return e
	}

	e := nodeEnd{index: node, journal: p.follower.Path(), show: p.follower.Path(), unfinished: true}
	switch {
	case p.isLost():
		e.words = "the journal is gone and there is no report"
	case p.isGone():
		e.words = "its perfagent is gone"
	case p.readErr != nil:
		e.words = "cannot be read"
	}

	return e
}

// reportEnd describes the end of a node from its report r at path.
func reportEnd(node int, r *reporter.Report, path string) nodeEnd {
	e := nodeEnd{index: node, show: path}
	switch run := r.Run; {
	case run.Incomplete != "":
		e.unfinished, e.words = true, "its report is incomplete"
	case run.Signal != "":
		e.failed, e.words = true, "killed by "+text.Clip(text.Printable(run.Signal), 20)
	case run.ExitCode != nil && *run.ExitCode != 0:
		e.failed, e.words = true, fmt.Sprintf("exit %d", *run.ExitCode)
	}

	return e
}

// printEnd prints how the run ended, and the command that shows its report.
func (w *watchedRun) printEnd() error {
	if ends, unread := w.endings(); !w.options.hasNode && len(ends)+unread > 1 {
		return w.printEnds(ends, unread)
	}

	name := w.id
	if w.options.hasNode {
		name += ", node " + w.main.name()
	}

	part := w.main.lead()
	if i := slices.IndexFunc(w.main.parts, func(p *watchedPart) bool { return p.finalReport == nil }); i >= 0 {
		part = w.main.parts[i]
	}
	switch {
	case part.isLost():
		return fmt.Errorf("watch: run %q: %w", w.id, part.readErr)
	case part.finalReport == nil:
		return fmt.Errorf("watch: run %q has no end: its perfagent is gone; %s", w.id, w.showMain(part.follower.Path()))
	}

	_, err := fmt.Fprintf(w.options.streams.out, "perfagent: run %s: %s %s\n", name,
		summary.Conclude(w.main.report()).Cause, text.Printable(w.showMain(part.finalPath)))
	return err
}

// showMain returns the shell command that shows path or, if the main node has several ranks, the run's directory.
func (w *watchedRun) showMain(path string) string {
	if len(w.main.parts) > 1 {
		path = w.dir
	}
	return showCommand(path)
}

// endings returns the ends of all nodes by index, and the number of nodes with an unread report. It reads the reports
// of at most maxWatched nodes that ended before watch started.
func (w *watchedRun) endings() (ends []nodeEnd, unread int) {
	for _, n := range w.nodes {
		ends = append(ends, n.describeEnd())
	}

	for _, e := range w.evicted {
		ends = append(ends, e)
	}

	if files, err := listLaunchFiles(w.dir, w.options.launch); err == nil && !w.options.hasNode {
		tried := 0
		for node, path := range files.reports {
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
				ends = append(ends, nodeEnd{index: node, words: "its report cannot be read", unfinished: true, show: path})
			}
		}
	}

	slices.SortFunc(ends, func(a, b nodeEnd) int { return a.index - b.index })
	return ends, unread
}

// printEnds prints how a run of several nodes ended: failed and unfinished nodes, and the command that shows the first
// of them.
func (w *watchedRun) printEnds(ends []nodeEnd, unread int) error {
	failed := slices.DeleteFunc(slices.Clone(ends), func(e nodeEnd) bool { return !e.failed })
	open := slices.DeleteFunc(slices.Clone(ends), func(e nodeEnd) bool { return !e.unfinished })
	words := fmt.Sprintf("%d nodes", len(ends)+unread)
	if len(failed) > 0 {
		words += fmt.Sprintf(", %d failed (%s)", len(failed), nameEnds(failed))
	}
	if len(open) > 0 {
		words += fmt.Sprintf(", %d unfinished (%s)", len(open), nameEnds(open))
	}
	if unread > 0 {
		words += fmt.Sprintf(", %d not read", unread)
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

// nameEnds lists the first few nodes with their ends.
func nameEnds(ends []nodeEnd) string {
	const maxNamed = 8
	var words []string
	for _, e := range ends[:min(len(ends), maxNamed)] {
		words = append(words, fmt.Sprintf("node %d %s", e.index, e.words))
	}

	if len(ends) > maxNamed {
		words = append(words, fmt.Sprintf("%d more", len(ends)-maxNamed))
	}

	return strings.Join(words, ", ")
}
