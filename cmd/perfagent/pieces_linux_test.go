package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/reporter/summary"
)

// A madeRank describes a generated recording of a rank.
type madeRank struct {
	reportertest.RankPlan
	node   int
	host   string // set if the node's index is unknown
	launch string
	name   string // file name; "" = the usual one
	push   reporter.PushState
}

// input returns the input of the rank's report.
func (m madeRank) input() reporter.Input {
	in := reportertest.RankInput(m.RankPlan)
	in.Node, in.Identity.Node, in.Identity.Launch, in.Push = m.node, &m.node, m.launch, m.push
	in.Recording.Host.Hostname = fmt.Sprintf("node%d", m.node)
	if m.host != "" {
		in.Node, in.Identity.Node, in.Identity.NodeFrom = 0, nil, "none"
		in.Recording.Host.Hostname = m.host
	}
	return in
}

// base returns the name of the files without an extension.
func (m madeRank) base() string {
	switch {
	case m.name != "":
		return m.name
	case m.host != "":
		return fmt.Sprintf("node-%s.rank-%d", m.host, m.Rank)
	}
	return fmt.Sprintf("node-%d.rank-%d", m.node, m.Rank)
}

// report writes the rank's report into dir.
func (m madeRank) report(t testing.TB, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, m.base()+".json")
	writeReport(t, path, diagnosis.New(diagnosis.Input{Input: m.input()}))
	return path
}

func writeReport(t testing.TB, path string, r *reporter.Report) {
	t.Helper()
	fill := func(w io.Writer) error { return reporter.EncodeTo(w, r) }
	check.Must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), reportfile.WriteNew(path, fill)))
}

// journal writes the rank's journal into dir and keeps it open, so that the test is its writer.
func (m madeRank) journal(t testing.TB, dir string) *journal.Journal {
	t.Helper()
	in := m.input()
	in.Run.ExitCode, in.Run.Signal = nil, ""
	j, err := journal.Create(t.TempDir(), journal.Head{Run: in.Run, Node: in.Node, Identity: in.Identity, Rank: in.Rank,
		Interval: time.Second, MaxLength: 100})
	check.Must(t, err)
	stream := reportertest.NewStream(1)
	rec := stream.Recording(100)
	rec.Host = in.Recording.Host
	for range 3 {
		j.Observe(stream.Next(rec), rec)
	}
	path := filepath.Join(dir, m.base()+".jsonl")
	check.Must(t, errors.Join(os.MkdirAll(dir, 0o755), os.Rename(j.Path(), path)))
	return j
}

// eightRanks writes the parts of a run of two nodes and eight ranks, in which rank 6 failed.
func eightRanks(t testing.TB, dir string, change func(*madeRank)) (paths []string) {
	t.Helper()
	for rank := range 8 {
		m := madeRank{node: rank / 4, launch: "step-0"}
		m.RankPlan = reportertest.RankPlan{Rank: rank, OnNode: 4, End: 10, CPUs: 0.25 * float64(rank+1)}
		if rank%4 == 0 {
			m.HostSpan = [2]float64{0, 10}
		}
		if rank == 6 {
			m.Exit, m.End = 7, 8
		}
		if change != nil {
			change(&m)
		}
		paths = append(paths, m.report(t, dir))
	}
	return paths
}

// shownNumbers returns the output of show --json.
func shownNumbers(t *testing.T, dir string, args ...string) map[string]reporter.Values {
	t.Helper()
	o := wantInsideIn(t, dir, 0, append([]string{"show", "--json"}, args...)...)
	return decoded[map[string]reporter.Values](t, o.Out)
}

// A RUN-ID selects all nodes and ranks, whether or not the ranks were combined.
func TestShow_RunIDSelectsAllNodesAndRanks(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "perfagent-out", "4711")
	pieces := eightRanks(t, run, nil)

	nodes := shownNumbers(t, dir, "4711")
	if len(nodes) != 2 {
		t.Fatalf("%d nodes, want 2: %v", len(nodes), nodes)
	}
	// Each rank keeps its CPUs busy for 10 s, rank 6 for 8 s.
	for name, want := range map[string]float64{"0": 10 * 0.25 * (1 + 2 + 3 + 4), "1": 0.25 * (10*(5+6+8) + 8*7)} {
		if got := nodes[name]["job_cpu_seconds"]; got != want {
			t.Errorf("node %s: %v CPU seconds, want %v", name, got, want)
		}
	}
	if o := wantInsideIn(t, dir, 0, "show", "4711"); o.Err != "" {
		t.Errorf("stderr %s, want none", o.Err)
	}

	if r := onlyListed(t, dir); r.ID != "4711" || r.Nodes != 2 || r.Ranks != 8 || r.State != summary.StateEnded || *r.ExitCode != 7 || !slices.Equal(r.FailedNodes, []int{1}) {
		t.Errorf("ls lists %+v, want the ended run 4711 of 2 nodes and 8 ranks, exit code 7, node 1 failed", r)
	}
	wantContains(t, insideIn(t, dir, "ls").Out, " 2 (8 ranks) ", "exit 7")

	// Merging the named parts, the run or its directory gives the same report.
	insideIn(t, dir, "merge", "4711", "--to", "run.json").Want(t, 0)
	insideIn(t, dir, append([]string{"merge", "--to", "pieces.json"}, pieces...)...).Want(t, 0)
	insideIn(t, dir, "merge", run, "--to", "dir.json").Want(t, 0)
	// The same holds if one node has been combined, and one of its parts was left over.
	closeNode(t, run, pieces[:4])
	check.Must(t, errors.Join(os.Remove(pieces[0]), os.Remove(pieces[1]), os.Remove(pieces[3])))
	insideIn(t, dir, "merge", "4711", "--to", "closed.json").Want(t, 0)
	whole := clitest.Read(t, filepath.Join(dir, "run.json"))
	for _, name := range []string{"pieces.json", "dir.json", "closed.json"} {
		if clitest.Read(t, filepath.Join(dir, name)) != whole {
			t.Errorf("%s differs from the merged run", name)
		}
	}

	for _, args := range [][]string{{"plot", "4711", "--to", "all.html"}, {"plot", "4711", "--to", "one.svg", "--node", "1"}, {"diff", "4711", "4711"},
		{"show", "--format", "csv", "4711"}, {"show", "--format", "md", "4711"}} {
		insideIn(t, dir, args...).Want(t, 0)
	}
	wantContains(t, clitest.Read(t, filepath.Join(dir, "all.html")), "4711")

	insideIn(t, dir, "prune", "--keep", "0").Want(t, 0)
	if clitest.Exists(run) {
		t.Errorf("%s exists after prune, want it removed", run)
	}
}

// closeNode combines the parts of a node, as the last perfagent of the node does.
func closeNode(t *testing.T, dir string, pieces []string) {
	t.Helper()
	var sources []reporter.SourceReport
	for _, path := range pieces {
		sources = append(sources, reporter.SourceReport{Path: path, Report: reportertest.ReadFile(t, path)})
	}
	r, err := diagnosis.Combine(sources)
	check.Must(t, err)
	writeReport(t, filepath.Join(dir, "node-"+r.NodeNames()[0]+".json"), r)
}

// listed returns the output of ls --json.
func listed(t *testing.T, dir string, names ...string) []summary.Overview {
	t.Helper()
	o := wantInsideIn(t, dir, 0, append([]string{"ls", "--json"}, names...)...)
	return decoded[[]summary.Overview](t, o.Out)
}

// onlyListed returns the only run that ls --json lists.
func onlyListed(t *testing.T, dir string, names ...string) summary.Overview {
	t.Helper()
	runs := listed(t, dir, names...)
	if len(runs) != 1 {
		t.Fatalf("%d runs listed, want 1: %+v", len(runs), runs)
	}
	return runs[0]
}

// Hosts without an index are numbered by their ranks, in all commands.
func TestPieces_HostsWithoutIndexAreNumberedByRanks(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "perfagent-out", "4711")
	eightRanks(t, run, func(m *madeRank) { m.host = []string{"z9", "a10"}[m.node] })

	nodes := shownNumbers(t, dir, "4711")
	if nodes["0"]["job_cpu_seconds"] != 25 || nodes["1"]["job_cpu_seconds"] != 61.5 {
		t.Errorf("job_cpu_seconds %v and %v, want 25 and 61.5", nodes["0"]["job_cpu_seconds"], nodes["1"]["job_cpu_seconds"])
	}
	insideIn(t, dir, "merge", "4711", "--to", "run.json").Want(t, 0)
	r := reportertest.ReadFile(t, filepath.Join(dir, "run.json"))
	if len(r.Nodes) != 2 || r.Nodes["0"].Host.Hostname != "z9" || r.Nodes["1"].Host.Hostname != "a10" || len(r.Nodes["1"].Ranks) != 4 {
		t.Errorf("nodes %q, want 0 on z9 and 1 on a10 with 4 ranks", r.NodeNames())
	}
	insideIn(t, dir, "plot", "4711", "--to", "one.svg", "--node", "1").Want(t, 0)
	insideIn(t, dir, "plot", "4711", "--to", "none.svg", "--node", "2").Want(t, 1)
	if r := onlyListed(t, dir); !slices.Equal(r.FailedNodes, []int{1}) || !strings.Contains(r.Report, "node-a10.rank-") {
		t.Errorf("ls lists %+v, want node 1 failed, and a report of a rank of node-a10", r)
	}
}

// Commands use the newest of several launches, and one line lists the other launches.
func TestPieces_NewestLaunchIsUsed(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "perfagent-out", "4711")
	for step := range 3 {
		eightRanks(t, run, func(m *madeRank) {
			m.launch, m.Start, m.End = fmt.Sprintf("step-%d", step), float64(100*step), float64(100*step)+m.End
			if m.HostSpan[1] > 0 {
				m.HostSpan = [2]float64{m.Start, m.End}
			}
			m.name = fmt.Sprintf("node-%d.rank-%d.%d", m.node, m.Rank, step+1)
			m.CPUs = float64(step + 1)
		})
	}

	for name, want := range map[string]float64{"4711": 3, "4711@1": 1, "4711@2": 2, "@latest": 3, "@-3": 1, run: 3} {
		o := wantInsideIn(t, dir, 0, "show", "--json", name)
		if got := shownNumbers(t, dir, name)["0"]["job_cpu_seconds"]; got != 40*want {
			t.Errorf("%s: %v CPU seconds, want %v", name, got, 40*want)
		}
		if lines := strings.Count(o.Err, "launches"); lines != 1 || !strings.Contains(o.Err, fmt.Sprintf("this is 4711@%v; the others are ", want)) {
			t.Errorf("%s: %d lines on launches, want one with 4711@%v: %s", name, lines, want, o.Err)
		}
	}

	var ids []string
	for _, r := range listed(t, dir) {
		ids = append(ids, r.ID)
		if r.RunID != "4711" || r.Ranks != 8 {
			t.Errorf("ls lists %+v, want run 4711 with 8 ranks", r)
		}
	}
	if !slices.Equal(ids, []string{"4711@3", "4711@2", "4711@1"}) {
		t.Errorf("launches %q, want 4711@3, 4711@2, 4711@1", ids)
	}
	if one := onlyListed(t, dir, "4711@2"); one.ID != "4711@2" {
		t.Errorf("ls of 4711@2 lists %+v, want that launch", one)
	}

	// diff compares all launches of a RUN-ID, or a single named launch.
	o := wantInsideIn(t, dir, 0, "diff", "--format", "json", "4711@1", "4711")
	if c := decoded[struct{ A, B struct{ Runs int } }](t, o.Out); c.A.Runs != 1 || c.B.Runs != 3 {
		t.Errorf("diff of one launch and all three: %+v, want 1 and 3 runs: %.300s", c, o.Out)
	}
	insideIn(t, dir, "merge", "4711@1", "4711@2", "--to", "x.json").Want(t, 1)
	insideIn(t, dir, "plot", "4711@2").Want(t, 0)
	clitest.Read(t, filepath.Join(dir, "4711@2.png"))
	insideIn(t, dir, "show", "4711@4").WantLine(t, "no launch 4711@4: run 4711 has 3 launches")
}

// A rank is counted if it has only a journal, whether it is running or its perfagent is dead.
func TestPieces_RanksWithOnlyJournalAreCounted(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "perfagent-out", "4711")
	first := reportertest.RankPlan{Rank: 0, OnNode: 2, End: 10, CPUs: 1, HostSpan: [2]float64{0, 10}}
	madeRank{launch: "s", RankPlan: first}.report(t, run)
	second := reportertest.RankPlan{Rank: 1, OnNode: 2, End: 10, CPUs: 1}
	j := madeRank{launch: "s", RankPlan: second}.journal(t, run)

	if r := onlyListed(t, dir); r.State != summary.StateRunning || r.Ranks != 2 || r.Nodes != 1 {
		t.Errorf("while the journals are written: %+v, want a running node with 2 ranks", r)
	}
	check.Must(t, errors.Join(j.Stop(time.Minute), j.Sync()))
	path := filepath.Join(run, "node-0.rank-1.jsonl")
	data, err := os.ReadFile(path) // a copy has no writer
	hour := time.Now().Add(-time.Hour)
	check.Must(t, errors.Join(err, os.Remove(path), os.WriteFile(path, data, 0o644), os.Chtimes(path, hour, hour)))
	if r := onlyListed(t, dir); r.State != summary.StateIncomplete || r.Ranks != 2 {
		t.Errorf("after the kill of perfagent: %+v, want an incomplete run with 2 ranks", r)
	}
	wantContains(t, wantInsideIn(t, dir, 0, "show", "4711").Out, "Rank 1 has no end")
	insideIn(t, dir, "merge", "4711", "--to", "run.json").Want(t, 0)
	r := reportertest.ReadFile(t, filepath.Join(dir, "run.json"))
	if ranks := r.Nodes["0"].Ranks; len(ranks) != 2 || ranks["1"].Incomplete == "" || ranks["0"].Incomplete != "" {
		t.Errorf("ranks %+v, want 2, only rank 1 incomplete", ranks)
	}

	insideIn(t, dir, "prune", "--keep", "0").Want(t, 0)
	if !clitest.Exists(path) {
		t.Errorf("prune without --force removed %s, want it kept", path)
	}
}

// Separate ranks are pushed as one node, and each file records the push.
func TestPush_SeparateRanksArePushedAsOneNode(t *testing.T) {
	testenv.SkipIfShort(t, "a second for its pushes")
	site := newSite(t)
	dir := t.TempDir()
	run := filepath.Join(dir, "perfagent-out", "4711")
	pieces := eightRanks(t, run, func(m *madeRank) {
		m.host = []string{"z9", "a10"}[m.node]
		m.push = reporter.PushState{State: reporter.PushPending, URI: site.URL}
	})
	if r := onlyListed(t, dir); r.Push != reporter.PushPending {
		t.Errorf("push state before the push: %+v, want pending", r)
	}
	insideIn(t, dir, "prune", "--keep", "0").WantLine(t, "its push is pending")

	insideIn(t, dir, "push", "4711").Want(t, 0)
	site.only(t)
	for _, path := range pieces {
		if state := recorded(t, path); state.State != reporter.PushDone || state.RunID == "" {
			t.Errorf("%s records the push %+v, want done with a run ID", path, state)
		}
	}
	if o := wantInsideIn(t, dir, 0, "push", "4711"); strings.Count(o.Out, "0 metrics and 0 points sent") != 2 {
		t.Errorf("the second push sent something, want 0 metrics and 0 points twice:\n%s", o.Out)
	}
	if r := onlyListed(t, dir); r.Push != reporter.PushDone {
		t.Errorf("push state after the push: %+v, want done", r)
	}
}

// watch prints one line per node for all ranks of the node, and follows the node until its ranks have been combined.
func TestWatch_RanksOfNodeShareOneLine(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "perfagent-out", "4711")
	rank := func(n int) madeRank {
		plan := reportertest.RankPlan{Rank: n, OnNode: 3, End: 10, CPUs: 1, HostSpan: [2]float64{0, 10}}
		if n == 1 {
			plan.Exit = 7
		}
		return madeRank{launch: "s", RankPlan: plan}
	}
	var journals []*journal.Journal
	for n := range 3 {
		journals = append(journals, rank(n).journal(t, run))
	}

	watch := startInside(t, "watch", "--refresh", "100ms", run)
	next := func(words string) {
		t.Helper()
		for line := range watch.lines {
			if strings.Contains(line, words) {
				return
			}
		}
		t.Fatalf("watch did not print %q", words)
	}

	next(", 3 ranks")
	var pieces []string
	end := func(n int) {
		check.Must(t, errors.Join(journals[n].Stop(time.Minute), os.Remove(filepath.Join(run, rank(n).base()+".jsonl"))))
	}
	for n := range 2 {
		pieces = append(pieces, rank(n).report(t, run))
		end(n)
	}
	next(", 3 ranks, 1 failed")
	closeNode(t, run, append(slices.Clone(pieces), rank(2).report(t, t.TempDir())))
	check.Must(t, errors.Join(os.Remove(pieces[0]), os.Remove(pieces[1])))
	end(2)
	next("exit 7")
	for range watch.lines { // until EOF
	}
	if code := <-watch.ended; code != 0 {
		t.Errorf("watch ended with exit code %d, want 0", code)
	}
}
