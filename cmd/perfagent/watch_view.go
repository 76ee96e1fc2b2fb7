package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/plotter/terminal"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
)

const (
	// listEvery is how often the folder is searched for more nodes.
	listEvery = 2 * time.Second
	// maxWatched is the maximum number of nodes followed. Each costs a megabyte.
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
	there   *catalog.Launch // as the folder was last listed
	listed  time.Time       // when that was
	more    int             // running nodes that are not followed
	ended   int             // ended nodes that are not followed
	dropped map[string]bool // journals of followed nodes that made room for others
}

func (w *watchedRun) close() {
	for _, n := range w.nodes {
		n.close()
	}
}

// look reads the news of all nodes. room is how many can be shown.
func (w *watchedRun) look(now time.Time, room int) {
	if now.Sub(w.listed) >= listEvery {
		w.listed = now
		if there, err := findRun(w.dir, w.options.launch); err == nil { // else keep what we have
			w.there = there
			w.join(min(room, maxWatched))
		}
	}
	for _, n := range w.nodes {
		n.look(now)
	}
}

// join follows new journals, up to room nodes.
func (w *watchedRun) join(room int) {
	w.more = 0
	for _, n := range w.there.Nodes {
		paths := w.open(n)
		at := w.at(n.Index)
		switch {
		case len(paths) == 0:
		case at < 0 && (len(w.nodes) < room || w.makeRoom()):
			w.nodes = append(w.nodes, newWatchedNode(n.Index, paths))
		case at < 0:
			w.more++
		case w.there.Start.Equal(w.start):
			w.nodes[at].follow(paths)
		case w.nodes[at] != w.main && w.nodes[at].over() && !w.nodes[at].follows(paths[0]): // a second recording
			w.nodes[at].close()
			w.nodes[at] = newWatchedNode(n.Index, paths)
		}
	}

	slices.SortFunc(w.nodes, func(a, b *watchedNode) int { return a.index - b.index })
	w.ended = 0
	for _, n := range w.there.Nodes {
		if w.at(n.Index) < 0 && len(w.open(n)) == 0 {
			w.ended++
		}
	}
}

// open returns the journals of a node, without those that were followed to their end.
func (w *watchedRun) open(n catalog.Node) []string {
	return slices.DeleteFunc(journalsOf(n), func(path string) bool { return w.dropped[path] })
}

// at returns the place of a node among those that are followed, or -1.
func (w *watchedRun) at(index int) int {
	return slices.IndexFunc(w.nodes, func(n *watchedNode) bool { return n.index == index })
}

// makeRoom drops a node that has stopped. It reports whether there was one. A node without any file stays: only what
// was seen of it says how it ended.
func (w *watchedRun) makeRoom() bool {
	at := slices.IndexFunc(w.nodes, func(n *watchedNode) bool {
		return n != w.main && n.stopped() && !slices.ContainsFunc(n.parts, (*watchedPart).isLost)
	})
	if at < 0 {
		return false
	}

	for _, p := range w.nodes[at].parts {
		w.dropped[p.follower.Path()] = true
	}
	w.nodes[at].close()
	w.nodes = slices.Delete(w.nodes, at, at+1)
	return true
}

// over reports whether the node that was picked, or all nodes, have ended. On a screen a node whose
// agent is gone stays until the user quits.
func (w *watchedRun) over(lines bool) bool {
	ended := func(n *watchedNode) bool { return n.over() || lines && n.stopped() }
	if w.options.picked {
		return ended(w.main)
	}
	return w.more == 0 && !slices.ContainsFunc(w.nodes, func(n *watchedNode) bool { return !ended(n) })
}

// lookForEnd reads the news and reports whether the run is over. It lists the folder once more
// before it says so, because a node may have just joined.
func (w *watchedRun) lookForEnd(now time.Time, room int, lines bool) bool {
	if w.look(now, room); !w.over(lines) {
		return false
	}
	w.listed = time.Time{}
	w.look(now, room)
	return w.over(lines)
}

// report combines the nodes into one report. Its Run is the main node's.
func (w *watchedRun) report() *reporter.Report {
	out := &reporter.Report{Schema: reporter.Schema, Nodes: make(map[string]*reporter.Node)}
	if r := w.main.report(); r != nil {
		out.Run = r.Run
	}

	out.Run.ID = w.id
	for _, n := range w.nodes {
		out.Nodes[n.name()] = n.node()
	}

	return out
}

// screen returns the options of the view.
func (w *watchedRun) screen(now time.Time, width, height int) terminal.Options {
	o := terminal.Options{Width: width, Height: height, ASCII: !utf8Terminal(), Node: w.main.name(),
		Live: make(map[string]terminal.LiveNode), More: w.more, Ended: w.ended}
	for _, n := range w.nodes {
		o.Live[n.name()] = n.live(now)
	}
	return o
}

// inLines prints one plain line per update, for logs and dumb terminals. The line is that of the
// lowest running node.
func (w *watchedRun) inLines() error {
	for printed := (time.Time{}); ; time.Sleep(w.options.pace()) {
		now := time.Now()
		ended := w.lookForEnd(now, maxWatched, true)
		stops := w.main.stopped() && !(ended && w.main.over()) // printEnd says that
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

// onScreen shows the run on a terminal until it ends or the user quits.
func (w *watchedRun) onScreen() error {
	t := openTerminal(w.options.streams.out)
	defer t.leave() // after a panic, too
	tick := time.NewTicker(w.options.pace())
	defer tick.Stop()
	drawn, shown := time.Time{}, ""
	for {
		width, height := size(w.options.streams.out)
		now := time.Now()
		if w.lookForEnd(now, height, false) {
			break
		}

		if states := w.states(); w.options.due(now, drawn) || states != shown {
			o := w.screen(now, width-1, height) // a full last column would be cleared with the rest of the line
			o.Color, o.Footer = colorful(w.options.streams.out), t.footer()
			t.draw(terminal.Screen(w.report(), o))
			drawn, shown = now, states
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

// states returns a text that changes with the state of any node. A change is shown at once.
func (w *watchedRun) states() string {
	text := ""
	for _, n := range w.nodes {
		text += fmt.Sprintf("%d %t %t %t, ", n.index, n.over(), n.isGone(), n.isTroubled())
	}
	return text
}

// showEnd prints the last picture and how the run ended on the restored screen.
func (w *watchedRun) showEnd() error {
	width, height := size(w.options.streams.out)
	o := w.screen(time.Now(), width-1, max(1, height-2))
	o.Color = colorful(w.options.streams.out)
	picture := strings.Join(terminal.Screen(w.report(), o), "\n")
	if _, err := fmt.Fprintln(w.options.streams.out, strings.TrimRight(picture, "\n")); err != nil {
		return err
	}

	return w.printEnd()
}
