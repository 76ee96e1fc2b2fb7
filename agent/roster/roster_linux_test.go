package roster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/procfile"
)

func init() { leaveTimeout = time.Minute } // however slow the machine is

// key returns a key that is unique to the test.
func key(t *testing.T) Key { return Key{RunID: t.Name(), Launch: "mpi-1", NodeName: "node1"} }

// enterAs joins as the given rank. A negative rank means no rank.
func enterAs(t *testing.T, dir string, k Key, rank int) *Roster {
	t.Helper()
	var own *int
	if rank >= 0 {
		own = &rank
	}
	r, err := Join([]string{dir}, k, own)
	check.Must(t, err)
	return r
}

// isEmpty fails the test unless the directory is empty.
func isEmpty(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("files in %s: %v, %v; want none", dir, entries, err)
	}
}

// wantParts checks which parts an agent gets when it leaves.
func wantParts(t *testing.T, r *Roster, piece string, announced int, want ...string) {
	t.Helper()
	if got := r.Leave(piece, announced); !slices.Equal(got, want) || (got == nil) != (want == nil) {
		t.Errorf("the agent with the part %q of %d ranks got %q, want %q", piece, announced, got, want)
	}
}

// Of the announced ranks, only the last one to leave gets all parts, whatever the order in which they leave.
func TestLeave_LastAnnouncedRankGetsAllParts(t *testing.T) {
	t.Parallel()
	dir, k := t.TempDir(), key(t)
	const ranks = 64

	var mu sync.Mutex
	var closed [][]string
	var all sync.WaitGroup
	for i := range ranks {
		all.Go(func() {
			r, err := Join([]string{dir}, k, &i)
			if err != nil {
				t.Error(err)
				return
			}
			r.TakeHost()
			if pieces := r.Leave(fmt.Sprint("/p", i), ranks); pieces != nil {
				mu.Lock()
				closed = append(closed, pieces)
				mu.Unlock()
			}
		})
	}
	all.Wait()

	if len(closed) != 1 || len(closed[0]) != ranks {
		t.Fatalf("%d agents got parts, want one agent with %d parts: %v", len(closed), ranks, closed)
	}
	isEmpty(t, dir)
}

// If each rank runs two commands, one after the other, there are two node reports, even if the second command of a rank
// overlaps the first command of another.
func TestLeave_EachCommandOfTheRanksHasOneReport(t *testing.T) {
	t.Parallel()
	dir, k := t.TempDir(), key(t)
	a, b := enterAs(t, dir, k, 0), enterAs(t, dir, k, 1)
	wantParts(t, a, "/a", 2)
	second := enterAs(t, dir, k, 0)
	wantParts(t, b, "/b", 2, "/a", "/b")
	last := enterAs(t, dir, k, 1)
	wantParts(t, last, "/last", 2)
	wantParts(t, second, "/second", 2, "/last", "/second")
	isEmpty(t, dir)
}

// Without an announced number of ranks, the agent that finds no other agent is the last to leave.
func TestLeave_LastUncountedAgentGetsAllParts(t *testing.T) {
	t.Parallel()
	dir, k := t.TempDir(), key(t)
	k.Launch = ""
	a, b, c := enterAs(t, dir, k, -1), enterAs(t, dir, k, -1), enterAs(t, dir, k, -1)
	if a.JoinIndex() != 0 || b.JoinIndex() != 1 || c.JoinIndex() != 2 {
		t.Errorf("JoinIndex %d, %d, %d; want 0, 1, 2", a.JoinIndex(), b.JoinIndex(), c.JoinIndex())
	}
	if !a.HasOthers() || !b.HasOthers() {
		t.Errorf("HasOthers: first %v, second %v; want true for both", a.HasOthers(), b.HasOthers())
	}

	wantParts(t, b, "/b", 0)
	wantParts(t, a, "/a", 0)
	wantParts(t, c, "/c", 0, "/b", "/a", "/c")
	isEmpty(t, dir)
}

func TestLeave_OneOfConcurrentAgentsGetsAllParts(t *testing.T) {
	t.Parallel()
	for range 30 {
		dir, k := t.TempDir(), key(t)
		rosters := make([]*Roster, 8)
		for i := range rosters {
			rosters[i] = enterAs(t, dir, k, -1)
		}
		closed := make(chan []string, len(rosters))
		for i, r := range rosters {
			go func() { closed <- r.Leave(fmt.Sprint("/", i), 0) }()
		}
		times := 0
		for range rosters {
			if got := <-closed; got != nil {
				times++
				if len(got) != len(rosters) {
					t.Errorf("an agent got the parts %q, want %d", got, len(rosters))
				}
			}
		}
		if times != 1 {
			t.Errorf("%d agents got the parts, want 1", times)
		}
		isEmpty(t, dir)
	}
}

// A single agent leaves no file.
func TestLeave_SingleAgentLeavesNoFile(t *testing.T) {
	t.Parallel()
	for _, announced := range []int{0, 1} {
		dir := t.TempDir()
		r := enterAs(t, dir, key(t), 0)
		if r.HasOthers() || !r.TakeHost() {
			t.Errorf("HasOthers %v, TakeHost %v; want false, true", r.HasOthers(), r.TakeHost())
		}
		wantParts(t, r, "/a", announced, "/a")
		isEmpty(t, dir)
	}
}

func TestLeave_RankWithoutReportGivesNoParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := enterAs(t, dir, key(t), 0), enterAs(t, dir, key(t), 1)
	a.Leave("", 2)
	wantParts(t, b, "/b", 2)
}

// Only one agent at a time measures the host. Another agent takes over when that agent releases the host or dies.
func TestTakeHost_OneAgentAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := enterAs(t, dir, key(t), 0), enterAs(t, dir, key(t), 1)
	if got := []bool{a.TakeHost(), b.TakeHost(), a.TakeHost()}; !slices.Equal(got, []bool{true, false, true}) {
		t.Fatalf("TakeHost of first, second, first agent = %v, want true, false, true", got)
	}
	a.ReleaseHost()
	if got := []bool{b.TakeHost(), a.TakeHost()}; !slices.Equal(got, []bool{true, false}) {
		t.Errorf("after ReleaseHost, TakeHost of second, first agent = %v, want true, false", got)
	}
	b.file.Close() // as the kernel does when the agent dies
	if !a.TakeHost() {
		t.Error("TakeHost is false after the agent that measured the host died, want true")
	}
}

// The next launch with the same key ignores the lines of killed agents.
func TestJoin_IgnoresKilledAgents(t *testing.T) {
	t.Parallel()
	for _, rank := range []int{-1, 3} {
		dir, k := t.TempDir(), key(t)
		dead := enterAs(t, dir, k, rank)
		dead.file.Close()

		r := enterAs(t, dir, k, rank)
		if r.HasOthers() || r.JoinIndex() != 0 {
			t.Errorf("rank %d after a killed agent: HasOthers %v, JoinIndex %d; want false, 0",
				rank, r.HasOthers(), r.JoinIndex())
		}
		r.Leave("", 1)
	}
}

// The last agent of a roster also removes other rosters of killed agents after a day. It keeps rosters with living
// agents, and younger rosters, which may be waiting for late ranks.
func TestLeave_RemovesAbandonedRosters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	of := func(id string) *Roster { return enterAs(t, dir, Key{RunID: id, Launch: "l"}, 0) }
	dead, young, alive := of("dead"), of("young"), of("alive")
	for _, r := range []*Roster{dead, young} {
		r.file.Close()
	}
	foreign := filepath.Join(dir, filepath.Base(dead.file.Name())+"0")
	old := time.Now().Add(-abandonedAfter - time.Hour)
	if err := errors.Join(os.WriteFile(foreign, nil, 0o600), os.Chtimes(foreign, old, old),
		os.Chtimes(dead.file.Name(), old, old), os.Chtimes(alive.file.Name(), old, old)); err != nil {
		t.Fatal(err)
	}

	of("another").Leave("/a", 1)

	for _, r := range []*Roster{young, alive} {
		if _, err := os.Stat(r.file.Name()); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dead.file.Name()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat of the old roster of killed agents: %v, want %v", err, fs.ErrNotExist)
	}
}

// A rank that joins after the other ranks have left still belongs to the node.
func TestJoin_LateRankBelongsToNode(t *testing.T) {
	t.Parallel()
	dir, k := t.TempDir(), key(t)
	wantParts(t, enterAs(t, dir, k, 0), "/0", 2)
	wantParts(t, enterAs(t, dir, k, 1), "/1", 2, "/0", "/1")
}

// If a rank was killed, no agent gets the parts to combine.
func TestLeave_ReturnsNoPartsIfARankWasKilled(t *testing.T) {
	t.Parallel()
	for _, announced := range []int{2, 0} {
		dir, k := t.TempDir(), key(t)
		a, b := enterAs(t, dir, k, 0), enterAs(t, dir, k, 1)
		a.file.Close()
		wantParts(t, b, "/b", announced)
	}
}

func TestJoin_DifferentKeysShareNothing(t *testing.T) {
	t.Parallel()
	dir, zero, one := t.TempDir(), 0, 1
	base := key(t)
	keys := []Key{base}
	for _, change := range []func(*Key){
		func(k *Key) { k.RunID = "b" }, func(k *Key) { k.Restart = 1 }, func(k *Key) { k.Launch = "mpi-2" },
		func(k *Key) { k.NodeName = "node2" }, func(k *Key) { k.Out = "/b" }, func(k *Key) { k.Node = &zero }, func(k *Key) { k.Node = &one },
	} {
		k := base
		change(&k)
		keys = append(keys, k)
	}
	for _, k := range keys {
		if !enterAs(t, dir, k, 0).TakeHost() {
			t.Errorf("TakeHost with the key %+v is false, want true: different keys must not share a roster", k)
		}
	}
}

// If the path is another user's file, or not a regular file, the next directory is used.
func TestJoin_SkipsForeignFiles(t *testing.T) {
	t.Parallel()
	k := key(t)
	bad := map[string]func(path string) error{
		"symbolic link": func(path string) error { return os.Symlink("/etc/passwd", path) },
		"directory":     func(path string) error { return os.Mkdir(path, 0o755) },
		"pipe":          func(path string) error { return unix.Mkfifo(path, 0o600) },
	}
	if os.Geteuid() == 0 {
		bad["file of another user"] = func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o666), os.Chown(path, 12345, 12345))
		}
	}
	for name, make := range bad {
		dir, next := t.TempDir(), t.TempDir()
		path := k.path(dir)
		check.Must(t, make(path))
		if _, err := Join([]string{dir}, k, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s instead of the roster: error %v, want an error with the path %s", name, err, path)
		}
		r, err := Join([]string{dir, next}, k, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.Leave("", 1)
	}

	if _, err := Join([]string{filepath.Join(t.TempDir(), "nowhere")}, k, nil); err == nil {
		t.Error("Join in a directory that does not exist returned nil, want an error")
	}
}

// Damaged lines do not hide other lines.
func TestParse_SkipsDamagedLines(t *testing.T) {
	t.Parallel()
	in, out := parse([]byte("{\"lock\":1024,\"pid\":7}\nnoise\n{\"lock\":0}\n{\"lock\":1025,\"left\":true,\"piece\":\"/a\"}\n{\"lock\":1"))
	if len(in) != 1 || len(out) != 1 {
		t.Errorf("joined %+v, left %+v, want one line of each", in, out)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("{\"lock\":1024,\"pid\":7,\"rank\":3}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, out := parse(data)
		for _, l := range append(in, out...) {
			if l.Lock <= 0 {
				t.Errorf("parsed line %+v has no lock, want it skipped", l)
			}
		}
		partPaths(out)
	})
}

// within is the environment variable with which the test starts itself in the job of another agent.
const within = "PERFAGENT_TEST_WITHIN"

// A descendant of an agent in the roster is not one of the ranks.
func TestJoin_RefusesNestedAgent(t *testing.T) {
	k := Key{RunID: "TestJoin_RefusesNestedAgent", NodeName: "node1"}
	if dir := os.Getenv(within); dir != "" {
		_, err := Join([]string{dir}, k, nil)
		fmt.Printf("nested: %v, descends: %v\n", errors.Is(err, ErrNested), procfile.IsAncestor(os.Getppid()))
		return
	}

	dir := t.TempDir()
	outer := enterAs(t, dir, k, -1)
	defer outer.Leave("", 0)

	cmd := exec.Command(os.Args[0], "-test.run=^TestJoin_RefusesNestedAgent$", "-test.v")
	cmd.Env = append(os.Environ(), within+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "nested: true, descends: true") {
		t.Errorf("nested test: %v, want \"nested: true, descends: true\": %s", err, out)
	}
	if outer.HasOthers() {
		t.Error("HasOthers is true, want false: a nested agent is not counted")
	}
}
