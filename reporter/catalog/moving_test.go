package catalog_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
)

// twoRanks writes the files of a node with two ranks: the report of rank 0, and the journal of rank 1.
func twoRanks(t *testing.T, launch string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "r")
	made{name: "node-0.rank-0.json", to: 5, launch: launch, ranks: []int{0}}.write(t, dir)
	made{name: "node-0.rank-1.jsonl", from: 1, to: 6, launch: launch}.write(t, dir)
	return dir
}

// A node can be read even if its combined report has replaced the files of its ranks since they were found. This does
// not apply to files given by path.
func TestNode_ReadsReplacedFiles(t *testing.T) {
	t.Parallel()
	for _, launch := range []string{"", "mpi-1"} {
		reads := map[string]func(*catalog.Node) (*reporter.Report, error){
			"Read":    func(n *catalog.Node) (*reporter.Report, error) { return n.Read(0) },
			"Numbers": func(n *catalog.Node) (*reporter.Report, error) { return n.ReadWithoutSeries(0) },
			"Scan": func(n *catalog.Node) (*reporter.Report, error) {
				r := &reporter.Report{Nodes: make(map[string]*reporter.Node)}
				_, err := n.Scan(0, reporter.ColumnFilter{All: true}, func(_ *reporter.Run, name string, n *reporter.Node) error {
					r.Nodes[name] = n
					return nil
				})
				return r, err
			},
		}
		for name, read := range reads {
			dir := twoRanks(t, launch)
			run := runIn(t, dir)
			check.Equal(t, len(run.Launches), 1, "number of launches")
			named := catalog.NodesOf(run.Latest().Paths())

			made{name: "node-0.json", to: 6, launch: launch, ranks: []int{0, 1}}.write(t, dir)
			for _, path := range run.Latest().Paths() {
				check.Must(t, os.Remove(path))
			}

			r, err := read(&run.Latest().Nodes[0])
			if err != nil || len(r.Nodes["0"].Ranks) != 2 {
				t.Errorf("%s, launch %q: report %+v, want 2 ranks; error %v", name, launch, r, err)
			}
			if _, err := read(&named[0]); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s with files given by path: error %v, want fs.ErrNotExist", name, err)
			}
		}
	}
}

// Files of another node, or of a later launch, do not replace missing files.
func TestNode_DoesNotReadFilesOfOtherLaunches(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	made{name: "node-0.rank-0.json", to: 5, ranks: []int{0}}.write(t, dir)
	run := runIn(t, dir)
	check.Must(t, os.Remove(run.Latest().Paths()[0]))
	made{name: "node-1.json", to: 6, hasIndex: true}.write(t, dir)
	made{name: "node-0.json", from: 100, to: 106}.write(t, dir)
	if _, err := run.Latest().Nodes[0].Read(0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist: only another node and a later launch are left", err)
	}
}

// ReadRun returns all recordings with readable heads, even while files appear and disappear.
func TestReadRun_FindsAllRecordingsWhileFilesAreReplaced(t *testing.T) {
	t.Parallel()
	dir, spare := twoRanks(t, "mpi-1"), t.TempDir()
	made{name: "node-0.rank-0.jsonl", to: 5, launch: "mpi-1"}.write(t, spare)
	report, journal := filepath.Join(dir, "node-0.rank-0.json"), filepath.Join(dir, "node-0.rank-0.jsonl")
	check.Must(t, os.Link(report, filepath.Join(spare, "node-0.rank-0.json")))

	done, moved := make(chan struct{}), make(chan error, 1)
	go func() { // replaces files like ranks that end and start repeatedly
		for {
			for _, move := range [][2]string{{journal, report}, {report, journal}} {
				in, out := move[0], move[1]
				if err := errors.Join(os.Link(filepath.Join(spare, filepath.Base(in)), in), os.Remove(out)); err != nil {
					moved <- err
					return
				}
			}
			select {
			case <-done:
				close(moved)
				return
			default:
			}
		}
	}()

	t.Cleanup(func() {
		close(done)
		check.Must(t, <-moved)
	})

	for range 1000 {
		run, err := catalog.ReadRun(dir)
		if err != nil || run == nil || len(run.Unreadable) > 0 {
			t.Errorf("run %+v, want only readable recordings; error %v", run, err)
			break
		}
		for _, n := range run.Latest().Nodes {
			for _, r := range n.Entries {
				if len(run.Launches) > 1 || r.Damaged() != nil {
					t.Fatalf("run %s, want one launch; error from reading a head: %v, want none", described(run), r.Damaged())
				}
			}
		}
	}
}

// A journal that is empty, or lacks its beginning, does not hide other recordings of the run.
func TestReadRun_FindsRecordingsNextToUnreadableJournals(t *testing.T) {
	t.Parallel()
	dir := twoRanks(t, "mpi-1")
	blank := []string{"node-0.rank-2.jsonl", "node-3.rank-9.jsonl"}
	for i, name := range blank {
		write(t, filepath.Join(dir, name), []string{"", "\x00\x00\x00\x00\n"}[i])
	}
	run := runIn(t, dir)
	check.Equal(t, described(run), "r: 0=0.rank-0+0.rank-1.jsonl", "run")
	var names []string
	for _, r := range run.Unreadable {
		names = append(names, filepath.Base(r.Path()))
		if r.Damaged() == nil {
			t.Errorf("%s: Damaged is nil, want the reason", r.Path())
		}
	}
	slices.Sort(names)
	check.Equal(t, names, blank, "unreadable journals")
	check.Must(t, run.Remove())
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the run's directory was not removed: Stat returned %v, want fs.ErrNotExist", err)
	}

	write(t, filepath.Join(dir, blank[0]), "") // now the only file
	run = runIn(t, dir)
	wantValues(t, "unreadable journals of a run with only one, number of nodes", "[] 1", run.Unreadable,
		len(run.Latest().Nodes))
}
