package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/perfagent/perfagent/plotter/terminal"
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
	nodes   []*watchedNode  // by index
	main    *watchedNode    // shown in full
	listed  time.Time       // when the folder was looked at last
	more    int             // nodes that go on and are not followed
	ended   int             // nodes that have ended and are not followed
	past    map[int]nodeEnd // nodes that were followed, and made room for others
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
		case at >= 0 && (!isLater(path, w.nodes[at].follower.Path()) || !w.nodes[at].over()):
		case at >= 0 && w.nodes[at] != w.main: // a second recording of a node that has ended
			w.nodes[at].follower.Close()
			w.nodes[at] = newWatchedNode(node, path, w.options.home)
		case at < 0 && w.past[node].show != "" && !isLater(path, w.past[node].journal): // known already
		case at < 0 && (len(w.nodes) < room || w.makeRoom()):
			delete(w.past, node)
			w.nodes = append(w.nodes, newWatchedNode(node, path, w.options.home))
		case at < 0:
			w.more++
		}
	}

	slices.SortFunc(w.nodes, compareNodes)
	w.ended = len(w.past)
	for node := range there.reports {
		if _, goesOn := there.journals[node]; !goesOn && !w.knows(node) {
			w.ended++
		}
	}
}

// knows tells whether a node is followed, or was.
func (w *watching) knows(node int) bool {
	_, was := w.past[node]
	return was || slices.ContainsFunc(w.nodes, func(n *watchedNode) bool { return n.index == node })
}

// makeRoom gives up a node of which no more is to come, where there is one.
func (w *watching) makeRoom() bool {
	at := slices.IndexFunc(w.nodes, func(n *watchedNode) bool { return n != w.main && n.stopped() })
	if at < 0 {
		return false
	}
	if w.past == nil {
		w.past = make(map[int]nodeEnd)
	}

	n := w.nodes[at]
	w.past[n.index] = n.ending()
	n.follower.Close()
	w.nodes = slices.Delete(w.nodes, at, at+1)
	return true
}

// over tells whether nothing more is to come: of the node that was picked, or of all.
// On a screen a node whose agent is gone stays until somebody has seen it.
func (w *watching) over(lines bool) bool {
	ended := func(n *watchedNode) bool { return n.over() || lines && n.stopped() }
	if w.options.picked {
		return ended(w.main)
	}
	return w.more == 0 && !slices.ContainsFunc(w.nodes, func(n *watchedNode) bool { return !ended(n) })
}

// lookForEnd looks, and tells whether that was the end: a node may have joined just
// before it.
func (w *watching) lookForEnd(now time.Time, room int, lines bool) bool {
	if w.look(now, room); !w.over(lines) {
		return false
	}
	w.listed = time.Time{}
	w.look(now, room)
	return w.over(lines)
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
func (w *watching) screen(now time.Time, width, height int) terminal.Options {
	o := terminal.Options{Width: width, Height: height, ASCII: !utf8Terminal(), Node: w.main.name(),
		Live: make(map[string]terminal.LiveNode), More: w.more, Ended: w.ended}
	for _, n := range w.nodes {
		o.Live[n.name()] = n.live(now)
	}
	return o
}

// inLines prints a plain line for each picture, for logs and for terminals that can do
// no more: of the lowest node that goes on.
func (w *watching) inLines() error {
	for printed := (time.Time{}); ; time.Sleep(w.options.pace()) {
		now := time.Now()
		ended := w.lookForEnd(now, maxWatched, true)
		stops := w.main.stopped() && !(ended && w.main.over()) // the last word tells that
		if stops || !ended && w.options.due(now, printed) {
			printed = now
			if err := w.printLine(now); err != nil {
				return fmt.Errorf("watch: %w", err)
			}
		}

		if ended {
			return w.sayEnd()
		}
		if stops {
			w.turn()
		}
	}
}

// printLine prints how the main node stands.
func (w *watching) printLine(now time.Time) error {
	line := terminal.Line(w.report(), w.screen(now, 0, 0))
	if len(w.nodes)+w.ended+w.more > 1 {
		line = "node " + w.main.name() + ": " + line
	}
	_, err := fmt.Fprintln(w.options.streams.out, line)
	return err
}

// turn makes the lowest node that goes on the main one.
func (w *watching) turn() {
	for _, n := range w.nodes {
		if !n.stopped() {
			w.main = n
			return
		}
	}
}

// onScreen shows the run on a terminal until it ends or somebody leaves.
func (w *watching) onScreen() error {
	t := openTerminal(w.options.streams.out)
	defer t.leave() // after a panic, too
	tick := time.NewTicker(w.options.pace())
	defer tick.Stop()
	drawn, stood := time.Time{}, ""
	for {
		width, height := w.size()
		now := time.Now()
		if w.lookForEnd(now, height, false) {
			break
		}

		if stands := w.stands(); w.options.due(now, drawn) || stands != stood {
			o := w.screen(now, width-1, height) // a full last column would be cleared with the rest of the line
			o.Color, o.Footer = colorful(w.options.streams.out), t.footer()
			t.draw(terminal.Screen(w.report(), o))
			drawn, stood = now, stands
		}

		switch then, err := t.wait(tick.C); then {
		case nextEnd:
			return err
		case nextDraw:
			drawn = time.Time{}
		}
	}

	t.leave()
	return w.showEnd()
}

// stands is another text when the nodes stand in another way than before, which is
// shown at once.
func (w *watching) stands() string {
	text := ""
	for _, n := range w.nodes {
		text += fmt.Sprintf("%d %t %t %t, ", n.index, n.over(), n.isGone(), n.trouble != nil)
	}
	return text
}

// showEnd leaves the last picture and the last word on the screen as it was before.
func (w *watching) showEnd() error {
	width, height := w.size()
	o := w.screen(time.Now(), width-1, max(1, height-2))
	o.Color = colorful(w.options.streams.out)
	lines := terminal.Screen(w.report(), o)
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
