package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
)

const (
	// listEvery is how often the folder is looked at for more nodes.
	listEvery = 2 * time.Second
	// maxWatched is how many nodes are followed at most: each costs a megabyte.
	maxWatched = 64
)

// watching is a run that is looked at.
type watching struct {
	options *watchOptions
	id      string
	nodes   []*watchedNode // by index
	main    *watchedNode   // shown in full
	listed  time.Time      // when the folder was looked at last
	more    int            // nodes that go on and are not followed
	ended   int            // nodes that had ended when we came
}

func (w *watching) close() {
	for _, n := range w.nodes {
		n.follower.Close()
	}
}

// look reads what is new of all nodes. room is how many can be shown.
func (w *watching) look(now time.Time, room int) {
	if now.Sub(w.listed) >= listEvery {
		w.listed = now
		if there, err := findRun(w.options.out, w.id); err == nil { // else what we have is all there is
			w.join(there, min(room, maxWatched))
		}
	}
	for _, n := range w.nodes {
		n.look(now)
	}
}

// join follows the journals that are new, up to so many nodes.
func (w *watching) join(there *runFiles, room int) {
	w.more = 0
	for _, node := range slices.Sorted(maps.Keys(there.journals)) {
		path := there.journals[node]
		at := slices.IndexFunc(w.nodes, func(n *watchedNode) bool { return n.index == node })
		switch {
		case at >= 0 && (w.nodes[at].follower.Path() == path || !w.nodes[at].over()):
		case at >= 0 && w.nodes[at] != w.main: // a second recording of a node that has ended
			w.nodes[at].follower.Close()
			w.nodes[at] = newWatchedNode(node, path, w.options.home)
		case at < 0 && len(w.nodes) < room:
			w.nodes = append(w.nodes, newWatchedNode(node, path, w.options.home))
		case at < 0:
			w.more++
		}
	}
	slices.SortFunc(w.nodes, compareNodes)
	w.ended = 0
	for node := range there.reports {
		_, goesOn := there.journals[node]
		if !goesOn && !slices.ContainsFunc(w.nodes, func(n *watchedNode) bool { return n.index == node }) {
			w.ended++
		}
	}
}

// over tells whether nothing more is to come: of the node that was picked, or of all.
func (w *watching) over() bool {
	if w.options.picked {
		return w.main.over()
	}
	return !slices.ContainsFunc(w.nodes, func(n *watchedNode) bool { return !n.over() })
}

// report puts what is known of the nodes together: the run is as the main node tells.
func (w *watching) report() *reporter.Report {
	out := &reporter.Report{Schema: reporter.Schema, Run: reporter.Run{ID: w.id}, Nodes: make(map[string]*reporter.Node)}
	for _, r := range []*reporter.Report{w.main.report, w.main.end} {
		if r != nil {
			out.Run = r.Run
		}
	}
	out.Run.ID = w.id
	for _, n := range w.nodes {
		out.Nodes[n.name()] = n.node()
	}
	return out
}

// screen says how the view looks now.
func (w *watching) screen(now time.Time, width, height int) plotter.ScreenOptions {
	o := plotter.ScreenOptions{Width: width, Height: height, ASCII: !utf8Terminal(), Node: w.main.name(),
		Live: make(map[string]plotter.LiveNode), More: w.more, Ended: w.ended}
	for _, n := range w.nodes {
		o.Live[n.name()] = n.live(now)
	}
	return o
}

// inLines prints a plain line for each look, for logs and for terminals that can do no
// more. It follows one node, and ends with it.
func (w *watching) inLines() error {
	out := w.options.streams.out
	for printed := (time.Time{}); ; time.Sleep(min(w.options.refresh, time.Second)) {
		now := time.Now()
		w.main.look(now)
		gone := w.main.isGone()
		if w.main.over() {
			break
		}
		if !gone && now.Sub(printed) < w.options.refresh-w.options.refresh/10 {
			continue
		}
		printed = now
		if _, err := fmt.Fprintln(out, plotter.ScreenLine(w.report(), w.screen(now, 0, 0))); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if gone {
			return fmt.Errorf("watch: run %q has no end: its perfagent is gone; %s", w.id, showCommand(w.main.follower.Path()))
		}
	}
	return w.sayEnd()
}

// sayEnd is the last word: how it ended and where the report is.
func (w *watching) sayEnd() error {
	if w.main.isLost() {
		return fmt.Errorf("watch: run %q: %w", w.id, w.main.trouble)
	}
	_, err := fmt.Fprintf(w.options.streams.out, "perfagent: run %s: %s; %s\n", w.id, reporter.Headline(w.main.end),
		reporter.Printable(showCommand(w.main.endPath)))
	return err
}

// onScreen shows the run on a terminal until it ends or somebody leaves.
func (w *watching) onScreen() error {
	t := openTerminal(w.options.streams.out)
	defer t.leave() // after a panic, too
	tick := time.NewTicker(w.options.refresh)
	defer tick.Stop()
	for {
		width, height := w.size()
		now := time.Now()
		w.look(now, height)
		if w.over() {
			w.listed = time.Time{} // a node may have joined since
			if w.look(now, height); w.over() {
				break
			}
		}
		o := w.screen(now, width-1, height) // a full last column would be cleared with the rest of the line
		o.Color, o.Footer = colorful(w.options.streams.out), t.footer()
		t.draw(plotter.Screen(w.report(), o))
		if ended, err := t.wait(tick.C); ended {
			return err
		}
	}
	t.leave()
	return w.showEnd()
}

// showEnd leaves the last picture and the last word on the screen as it was before.
func (w *watching) showEnd() error {
	width, height := w.size()
	o := w.screen(time.Now(), width-1, max(1, height-2))
	o.Color = colorful(w.options.streams.out)
	lines := plotter.Screen(w.report(), o)
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if _, err := fmt.Fprintln(w.options.streams.out, strings.Join(lines, "\n")); err != nil {
		return err
	}
	return w.sayEnd()
}

// size is the terminal's, or what one has at least.
func (w *watching) size() (width, height int) {
	width, height, err := term.GetSize(descriptor(w.options.streams.out))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
