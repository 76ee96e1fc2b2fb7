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
	// listEvery is the time between searches of the run's directory for more nodes.
	listEvery = 2 * time.Second
	// maxWatched is the maximum number of followed nodes. Each takes about a megabyte of memory.
	maxWatched = 64
)

// A watchedRun is a run that is being watched.
type watchedRun struct {
	options *watchOptions
	id      string
	dir     string
	start   time.Time       // of the launch
	nodes   []*watchedNode  // by index
	main    *watchedNode    // shown in full
	listed  time.Time       // time of the last listing of dir
	more    int             // running nodes that are not followed
	ended   int             // ended nodes that are not followed
	evicted map[int]nodeEnd // followed nodes that made room for others, by index
}

func (w *watchedRun) close() {
	for _, n := range w.nodes {
		n.close()
	}
}

// poll reads the new lines of all followed nodes. Every listEvery it also starts to follow new nodes, up to room nodes
// in total.
func (w *watchedRun) poll(now time.Time, room int) {
	if now.Sub(w.listed) >= listEvery {
		w.listed = now
		if files, err := listLaunchFiles(w.dir, w.options.launch); err == nil { // else keep the known nodes
			w.join(files, min(room, maxWatched))
		}
	}
	for _, n := range w.nodes {
		n.poll(now)
	}
}

// join starts to follow new journals, for up to room nodes in total.
func (w *watchedRun) join(files *launchFiles, room int) {
	w.more = 0
	for _, node := range slices.Sorted(maps.Keys(files.journals)) {
		paths := files.journals[node]
		at := slices.IndexFunc(w.nodes, func(n *watchedNode) bool { return n.index == node })
		switch {
		case at >= 0 && files.start.Equal(w.start):
			for _, path := range paths {
				w.nodes[at].follow(path)
			}
		case at >= 0 && (w.nodes[at].follows(paths[0]) || !w.nodes[at].hasEnded()):
		case at >= 0 && w.nodes[at] != w.main: // another recording of a node that has ended
			w.nodes[at].close()
			w.nodes[at] = newWatchedNode(node, paths, w.options.bootID)
		case at < 0 && w.evicted[node].show != "" && !isLater(paths[0], w.evicted[node].journal): // already known
		case at < 0 && (len(w.nodes) < room || w.makeRoom()):
			delete(w.evicted, node)
			w.nodes = append(w.nodes, newWatchedNode(node, paths, w.options.bootID))
		case at < 0:
			w.more++
		}
	}

	slices.SortFunc(w.nodes, func(a, b *watchedNode) int { return a.index - b.index })
	w.ended = len(w.evicted)
	for node := range files.reports {
		if _, running := files.journals[node]; !running && !w.knows(node) {
			w.ended++
		}
	}
}

// knows reports whether the given node is or was followed.
func (w *watchedRun) knows(node int) bool {
	_, was := w.evicted[node]
	return was || slices.ContainsFunc(w.nodes, func(n *watchedNode) bool { return n.index == node })
}

// makeRoom evicts a node that has stopped. It reports whether there was one.
func (w *watchedRun) makeRoom() bool {
	at := slices.IndexFunc(w.nodes, func(n *watchedNode) bool { return n != w.main && n.stopped() })
	if at < 0 {
		return false
	}
	if w.evicted == nil {
		w.evicted = make(map[int]nodeEnd)
	}

	n := w.nodes[at]
	w.evicted[n.index] = n.describeEnd()
	n.close()
	w.nodes = slices.Delete(w.nodes, at, at+1)
	return true
}

// hasEnded reports whether the chosen node, or all nodes, have ended. On a screen, a node with a dead agent stays until
// the user quits; if lines is set, it has ended.
func (w *watchedRun) hasEnded(lines bool) bool {
	ended := func(n *watchedNode) bool { return n.hasEnded() || lines && n.stopped() }
	if w.options.hasNode {
		return ended(w.main)
	}
	return w.more == 0 && !slices.ContainsFunc(w.nodes, func(n *watchedNode) bool { return !ended(n) })
}

// pollEnd polls and reports whether the run has ended. Before it returns true it lists the directory again, because a
// node may have just joined.
func (w *watchedRun) pollEnd(now time.Time, room int, lines bool) bool {
	if w.poll(now, room); !w.hasEnded(lines) {
		return false
	}
	w.listed = time.Time{}
	w.poll(now, room)
	return w.hasEnded(lines)
}

// report combines the nodes into one report, with the Run of the main node.
func (w *watchedRun) report() *reporter.Report {
	out := &reporter.Report{
		Schema: reporter.Schema,
		Run:    reporter.Run{ID: w.id},
		Nodes:  make(map[string]*reporter.Node),
	}
	if r := w.main.report(); r != nil {
		out.Run = r.Run
	}

	out.Run.ID = w.id
	for _, n := range w.nodes {
		out.Nodes[n.name()] = n.node()
	}

	return out
}

// screen returns the options for drawing the run at the given time, width and height.
func (w *watchedRun) screen(now time.Time, width, height int) terminal.Options {
	o := terminal.Options{Width: width, Height: height, ASCII: !isUTF8Locale(), Node: w.main.name(),
		Live: make(map[string]terminal.LiveNode), More: w.more, Ended: w.ended}
	for _, n := range w.nodes {
		o.Live[n.name()] = n.live(now)
	}
	return o
}

// printLines prints one plain line per update, for logs and dumb terminals. The line describes the lowest running node.
func (w *watchedRun) printLines() error {
	for printed := (time.Time{}); ; time.Sleep(w.options.pollInterval()) {
		now := time.Now()
		ended := w.pollEnd(now, maxWatched, true)
		stops := w.main.stopped() && !(ended && w.main.hasEnded()) // then printEnd prints the end
		if stops || !ended && w.options.due(now, printed) {
			printed = now
			if err := w.printLine(now); err != nil {
				return fmt.Errorf("watch: %w", err)
			}
		}

		if ended {
			return w.printEnd()
		}
		if stops {
			w.switchMain()
		}
	}
}

// printLine prints the state of the main node.
func (w *watchedRun) printLine(now time.Time) error {
	line := terminal.Line(w.report(), w.screen(now, 0, 0))
	if len(w.nodes)+w.ended+w.more > 1 {
		line = "node " + w.main.name() + ": " + line
	}
	_, err := fmt.Fprintln(w.options.streams.out, line)
	return err
}

// switchMain makes the lowest running node the main one.
func (w *watchedRun) switchMain() {
	for _, n := range w.nodes {
		if !n.stopped() {
			w.main = n
			return
		}
	}
}

// showScreen shows the run on a terminal until it ends or the user quits.
func (w *watchedRun) showScreen() error {
	t := openTerminal(w.options.streams.out)
	defer t.leave() // even after a panic
	tick := time.NewTicker(w.options.pollInterval())
	defer tick.Stop()
	drawn, shown := time.Time{}, ""
	for {
		width, height := w.size()
		now := time.Now()
		if w.pollEnd(now, height, false) {
			break
		}

		if states := w.states(); w.options.due(now, drawn) || states != shown {
			o := w.screen(now, width-1, height) // a full last column would be cleared with the rest of the line
			o.Color, o.Footer = colorful(w.options.streams.out), t.footer()
			t.draw(terminal.Screen(w.report(), o))
			drawn, shown = now, states
		}

		switch then, err := t.wait(tick.C); then {
		case actionQuit:
			return err
		case actionDraw:
			drawn = time.Time{}
		}
	}

	t.leave()
	return w.showEnd()
}

// states returns a text that differs if the state of any node has changed, so that the change is drawn immediately.
func (w *watchedRun) states() string {
	text := ""
	for _, n := range w.nodes {
		text += fmt.Sprintf("%d %t %t %t, ", n.index, n.hasEnded(), n.isGone(), n.hasReadErr())
	}
	return text
}

// showEnd prints the last picture and how the run ended on the restored screen.
func (w *watchedRun) showEnd() error {
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

	return w.printEnd()
}

// size returns the size of the terminal, or 80 × 24 if unknown.
func (w *watchedRun) size() (width, height int) {
	width, height, err := term.GetSize(descriptor(w.options.streams.out))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
