package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter/catalog"
)

// minRefresh is the minimum of --refresh.
const minRefresh = 100 * time.Millisecond

type watchOptions struct {
	node    int
	hasNode bool // node is set, by --node or by the name of a journal
	launch  int  // K of RUN-ID@K; 0 = not given
	refresh time.Duration
	bootID  string // of this machine
	runFinder
}

func newWatch(s streams) *cobra.Command {
	o := &watchOptions{runFinder: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:        "watch [flags] [RUN]",
		SuggestFor: []string{"live", "monitor"},
		Short:      "watch a run live",
		Long: `Watch a run live, on this machine or on another one that shares --out: the CPU,
memory, disk and GPUs of the job with their peaks, its phases, the node, and
what perfagent itself costs. watch only reads the journal of the run, so the job
is not affected. RUN is a RUN-ID, RUN-ID@K for its K-th launch, @latest, @-2,
the directory of a run, or its journal. Without RUN, watch the newest run in
progress below --out.

Press q to quit. When the run ends, its last view stays on the screen. If
standard output is not a terminal, or TERM is dumb or unset, watch prints one
plain line per --refresh instead.

Exit code: 0 if the run ended while you watched, or you pressed q; 128+n after
signal n (Ctrl-C is 130); 1 otherwise: there is no such run, it is not running,
or its perfagent is gone.`,
		Example: `  perfagent watch
  perfagent watch trial-7 --node 3
  perfagent watch --refresh 10s trial-7 >> progress.log`,
		Args: atMostOne,
		RunE: func(_ *cobra.Command, args []string) error { return o.watch(args) },
	}

	f := o.addTo(cmd)
	f.IntVar(&o.node, "node", 0, "index of the node to show in full (default: the lowest that is still running)")
	f.DurationVar(&o.refresh, "refresh", time.Second, "time between updates, at least 100ms")

	return cmd
}

func (o *watchOptions) watch(args []string) error {
	runtime.GOMAXPROCS(min(2, runtime.NumCPU())) // watch needs few CPUs; the default is all
	if err := o.applyDefaults(); err != nil {
		return err
	}

	o.bootID = host.BootID()
	dir, err := o.find(nameOf(args))
	if err != nil {
		return err
	}

	w, err := o.open(dir)
	if err != nil {
		return err
	}

	defer w.close()
	if isTerminal(o.streams.out) && !isDumb() {
		return w.showScreen()
	}

	return w.printLines()
}

// isDumb reports whether the terminal supports only plain lines. An unset TERM means a dumb terminal, except on
// Windows, which does not set TERM.
func isDumb() bool {
	name := os.Getenv("TERM")
	return name == "dumb" || name == "" && runtime.GOOS != "windows"
}

// pollInterval returns the time between two reads of the journal: refresh divided by a whole number, at most a second,
// so that the end of the run appears quickly.
func (o *watchOptions) pollInterval() time.Duration {
	return o.refresh / (1 + (o.refresh-1)/time.Second)
}

// due reports whether another update is due after the one at last. It tolerates reads that are slightly early.
func (o *watchOptions) due(now, last time.Time) bool {
	return now.Sub(last) >= o.refresh-o.pollInterval()/2
}

// find returns the directory of the named run, or of the newest running run if name is "".
func (o *watchOptions) find(name string) (dir string, err error) {
	if name == "" {
		return o.newestRunning()
	}

	if o.needsCopy(name) {
		return "", errors.New("watch: that store has no journal to follow; perfagent show shows what it has")
	}
	found, err := o.runFinder.find(name)
	if dir := filepath.Join(o.out, name); err != nil && scheduler.CheckRunID(name) == nil && isDir(dir) {
		return dir, nil // the run may have just begun, or be unreadable
	}
	if err != nil {
		return "", err
	}
	if found.Launch != nil {
		if found.Launch != found.Run.Latest() {
			o.launch = found.Launch.Nth
		}
		return found.Run.Dir, nil
	}

	file, ok := catalog.ParseFileName(filepath.Base(found.File))
	if !ok {
		return "", fmt.Errorf("watch: %s is not the journal of a run", found.File)
	}
	if !o.hasNode {
		o.node, o.hasNode = indexOf(found.File, file.Node), true
	}

	return filepath.Dir(found.File), nil
}

// indexOf returns the index of the node with the journal at path within its run, or otherwise if the run does not list
// that journal.
func indexOf(path string, otherwise int) int {
	run, err := catalog.ReadRun(filepath.Dir(path))
	if err != nil || run == nil {
		return otherwise
	}
	isIt := func(other string) bool { return sameFile(other, path) }
	for _, l := range run.Launches {
		for i := range l.Nodes {
			if slices.ContainsFunc(l.Nodes[i].Paths(), isIt) {
				return l.Nodes[i].Index
			}
		}
	}

	return otherwise
}

// applyDefaults applies PERFAGENT_OUT and checks the flags.
func (o *watchOptions) applyDefaults() error {
	if err := o.runFinder.applyDefaults(); err != nil {
		return err
	}

	o.hasNode = o.given("node")
	switch {
	case o.node < 0 || o.node > agent.MaxNode:
		return fmt.Errorf("--node: %d is not between 0 and %d", o.node, agent.MaxNode)
	case o.refresh < minRefresh:
		return fmt.Errorf("--refresh: %v is below %v", o.refresh, minRefresh)
	}

	return nil
}

// open finds the journals of the run in dir and starts to follow its main node.
func (o *watchOptions) open(dir string) (*watchedRun, error) {
	id := catalog.NameOf(dir)
	w := &watchedRun{options: o, id: id, dir: dir}
	files, err := listLaunchFiles(dir, o.launch)
	if err != nil {
		return nil, err
	}

	w.start = files.start
	node, ok := files.first()
	if o.hasNode {
		node = o.node
		_, ok = files.journals[node]
	}

	switch report, ended := files.reports[node]; {
	case ok:
	case ended && o.hasNode:
		return nil, fmt.Errorf("watch: node %d of run %q has ended: %s", node, id, showCommand(report))
	case ended && len(files.reports) > 1: // another node may have failed
		return nil, fmt.Errorf("watch: run %q has ended: %s", id, showCommand(files.dir))
	case ended:
		return nil, fmt.Errorf("watch: run %q has ended: %s", id, showCommand(report))
	case o.hasNode:
		return nil, fmt.Errorf("watch: no node %d of run %q in %s; there is %s", node, id, files.dir, files.nodes())
	default:
		return nil, fmt.Errorf("watch: no recording of run %q in %s", id, files.dir)
	}

	w.main = newWatchedNode(node, files.journals[node], o.bootID)
	w.nodes = []*watchedNode{w.main}
	w.main.poll(time.Now())
	if lead := w.main.lead(); w.main.report() == nil && lead.readErr != nil {
		return nil, fmt.Errorf("watch: %w", lead.readErr)
	}

	return w, nil
}

// showCommand returns the shell command that shows the report at path.
func showCommand(path string) string {
	return pusher.ShellCommand([]string{"perfagent", "show", path})
}

// newestRunning returns the directory of the running run that started last.
func (o *watchOptions) newestRunning() (string, error) {
	entries, err := os.ReadDir(o.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("watch: look for a run: %w", err)
	}

	running, started := "", time.Time{}
	var unread unreadRuns
	for _, e := range entries {
		dir := filepath.Join(o.out, e.Name())
		files, err := listLaunchFiles(dir, 0)
		if err != nil {
			if e.IsDir() { // a plain file is not a run
				unread.add(dir, errors.Unwrap(err))
			}
			continue
		}

		for _, path := range slices.Concat(slices.Collect(maps.Values(files.journals))...) {
			p := newWatchedPart(path, o.bootID)
			p.poll(time.Now())
			if r := p.report; r != nil && p.running(time.Now()) && (running == "" || r.Run.Start.After(started)) {
				running, started = dir, r.Run.Start.Time
			}
			if p.newestReport() == nil {
				unread.add(path, p.readErr)
			}

			p.follower.Close()
		}
	}

	switch {
	case running != "":
		return running, nil
	case unread.err != nil:
		return "", fmt.Errorf("watch: no readable run is active under %s; %d cannot be read, the newest: %w",
			o.out, unread.count, unread.err)
	}

	return "", fmt.Errorf("watch: no run is active under %s: start one with perfagent run, "+
		"or show the newest report with perfagent show", o.out)
}

// unreadRuns counts recordings that could not be read. Any of them may still be running.
type unreadRuns struct {
	count  int
	err    error // of the most recently written recording
	newest time.Time
}

func (u *unreadRuns) add(path string, err error) {
	if err == nil || errors.Is(err, os.ErrNotExist) { // the run has just ended
		return
	}

	u.count++
	st, errStat := os.Stat(path)
	if u.err == nil || errStat == nil && st.ModTime().After(u.newest) {
		u.err = err
	}
	if errStat == nil && st.ModTime().After(u.newest) {
		u.newest = st.ModTime()
	}
}
