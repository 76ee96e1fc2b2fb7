package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/journal"
)

// A made describes a recording that a test writes: a report, or a journal without a writer.
type made struct {
	name     string  // name of the file
	from, to float64 // in seconds since yesterday
	command  string

	run, launch string
	restart     int
	hasIndex    bool // whether the environment provides the index
	host, boot  string
	ranks       []int // ranks in a report: one in the report of a rank, several in a combined report
	rank        *int  // rank in the identity
}

// yesterday is the start of a test's recordings. It is so long ago that their journals are not active.
var yesterday = time.Now().Add(-24 * time.Hour).Truncate(time.Second)

// at returns the time that is the given number of seconds after yesterday.
func at(seconds float64) reporter.Time {
	return reporter.Time{Time: yesterday.Add(time.Duration(seconds * float64(time.Second)))}
}

// indexed returns a recording of a node whose index the environment provides.
func indexed(name string, from, to float64, launch string, ranks ...int) made {
	return made{name: name, from: from, to: to, hasIndex: true, launch: launch, ranks: ranks}
}

// identity returns the identity from the environment.
func (m made) identity() *reporter.Identity {
	name, _ := catalog.ParseFileName(m.name)
	if !m.hasIndex && m.launch == "" && m.restart == 0 && m.rank == nil && name.Host == "" {
		return nil
	}
	id := &reporter.Identity{NodeFrom: "none", Launch: m.launch, Restart: m.restart, Rank: m.rank}
	if m.hasIndex {
		id.Node, id.NodeFrom = &name.Node, "SLURM_NODEID"
	}
	return id
}

// write writes the recording.
func (m made) write(t *testing.T, dir string) {
	t.Helper()
	name, ok := catalog.ParseFileName(m.name)
	if !ok {
		t.Fatalf("%s is not the name of a recording", m.name)
	}
	run := reporter.Run{ID: "r", Command: []string{"job"}, Start: at(m.from), End: at(m.to), WallSeconds: m.to - m.from}
	if m.run != "" {
		run.ID = m.run
	}
	if m.command != "" {
		run.Command = []string{m.command}
	}
	machine := host.Info{Hostname: "one", BootID: "b", CPUs: 2}
	if m.host != "" {
		machine.Hostname = m.host
	}
	if m.boot != "" {
		machine.BootID = m.boot
	}

	if name.Ext == ".jsonl" {
		m.writeJournal(t, dir, name, run, machine)
		return
	}

	run.ExitCode = new(0)
	node := &reporter.Node{
		Host: (*reporter.Host)(&machine), Identity: m.identity(), Metrics: reporter.Values{}, Missing: []reporter.Missing{},
		Sampling: &reporter.Sampling{}, Job: &reporter.Job{PID: 100, Start: run.Start, End: run.End, ExitCode: new(0)},
	}
	for _, rank := range m.ranks {
		if node.Ranks == nil {
			node.Ranks = make(map[string]*reporter.Rank)
		}
		node.Ranks[strconv.Itoa(rank)] = &reporter.Rank{Rank: rank, PID: 100 + rank, Start: run.Start, End: run.End,
			ExitCode: new(0), Metrics: reporter.Values{}, Missing: []reporter.Missing{}}
	}
	writeReport(t, filepath.Join(dir, m.name), &reporter.Report{Schema: reporter.Schema, Run: run,
		Nodes: map[string]*reporter.Node{strconv.Itoa(name.Node): node}})
}

// writeJournal writes a journal with a sample.
func (m made) writeJournal(t *testing.T, dir string, name catalog.FileName, run reporter.Run, machine host.Info) {
	t.Helper()
	head := journal.Head{Run: run, Node: name.Node, Identity: m.identity(), Interval: time.Second, MaxLength: 10}
	if name.Rank >= 0 {
		head.Rank = strconv.Itoa(name.Rank)
	}
	j, err := journal.Create(t.TempDir(), head)
	check.Must(t, err)
	s := reportertest.NewStream(1)
	rec := s.Recording(10)
	rec.Host = machine
	j.Observe(s.Next(rec), rec)
	check.Must(t, j.Stop(time.Minute))
	path := filepath.Join(dir, m.name)
	check.Must(t, errors.Join(os.MkdirAll(dir, 0o755), os.Rename(j.Path(), path)))
	end := at(m.to).Time
	check.Must(t, os.Chtimes(path, end, end))
}

// described returns a description of a run: "r@1: 0=0, 1=1.rank-4+1.rank-5; not 0.2".
func described(r *catalog.Run) string {
	bases := func(list []*catalog.Entry) []string {
		var out []string
		for _, r := range list {
			base := strings.TrimPrefix(filepath.Base(r.Path()), "node-")
			out = append(out, strings.TrimSuffix(base, ".json"))
		}
		return out
	}

	var launches []string
	for _, l := range r.Launches {
		var nodes []string
		for _, n := range l.Nodes {
			nodes = append(nodes, fmt.Sprintf("%d=%s", n.Index, strings.Join(bases(n.Entries), "+")))
		}
		words := l.ID() + ": " + strings.Join(nodes, ", ")
		if len(l.OlderEntries) > 0 {
			words += "; not " + strings.Join(bases(l.OlderEntries), "+")
		}
		launches = append(launches, words)
	}
	return strings.Join(launches, " | ")
}

func TestReadRun_GroupsRecordingsIntoLaunches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []made
		want  string
	}{
		"one rank alone": {[]made{{name: "node-0.json", to: 5}}, "r: 0=0"},
		"ranks of two nodes": {[]made{
			indexed("node-1.rank-3.json", 0, 5, "s", 3), indexed("node-0.rank-1.json", 0, 5, "s", 1),
			indexed("node-1.rank-2.jsonl", 0, 5, "s"), indexed("node-0.rank-0.json", 0, 5, "s", 0),
		}, "r: 0=0.rank-0+0.rank-1, 1=1.rank-2.jsonl+1.rank-3"},
		"three ranks on a node, one rank on another": {[]made{
			indexed("node-0.json", 0, 5, "s", 0, 1, 2),
			{name: "node-1.json", to: 5, hasIndex: true, launch: "s", rank: new(3)},
		}, "r: 0=0, 1=1"},
		"consecutive steps": {[]made{
			indexed("node-0.json", 0, 5, "step-0"), indexed("node-1.json", 0, 5, "step-0"),
			indexed("node-0.2.json", 6, 9, "step-1"),
		}, "r@1: 0=0, 1=1 | r@2: 0=0.2"},
		"concurrent steps": {[]made{
			indexed("node-0.rank-0.json", 1, 5, "step-0", 0), indexed("node-0.rank-0.2.json", 2, 5, "step-1", 0),
			indexed("node-0.rank-1.json", 3, 5, "step-0", 1),
		}, "r@1: 0=0.rank-0+0.rank-1 | r@2: 0=0.rank-0.2"},
		"requeued job": {[]made{
			indexed("node-0.json", 0, 5, "step-0"),
			{name: "node-0.2.json", from: 1, to: 9, hasIndex: true, launch: "step-0", restart: 1},
		}, "r@1: 0=0 | r@2: 0=0.2"},
		"wrapped batch script and its step": {[]made{
			{name: "node-0.json", to: 9, hasIndex: true, command: "job.sh"}, indexed("node-0.2.json", 1, 5, "step-0"),
			indexed("node-1.json", 1, 5, "step-0"),
		}, "r@1: 0=0 | r@2: 0=0.2, 1=1"},
		"wrapped batch script and its ssh commands": {[]made{
			{name: "node-0.json", to: 9, hasIndex: true, command: "job.sh"}, indexed("node-0.2.json", 1, 5, ""),
			indexed("node-1.json", 1.1, 5, ""), indexed("node-2.json", 1.2, 5, ""),
		}, "r@1: 0=0 | r@2: 0=0.2, 1=1, 2=2"},
		"nested perfagents on each node": {[]made{
			{name: "node-0.json", from: 0, to: 9, hasIndex: true, command: "perfagent"},
			indexed("node-0.2.json", 0.5, 8, ""),
			{name: "node-1.json", from: 1, to: 9, hasIndex: true, command: "perfagent"},
			indexed("node-1.2.json", 1.5, 8, ""),
		}, "r@1: 0=0, 1=1 | r@2: 0=0.2, 1=1.2"},
		"perfagent nested in a rank": {[]made{
			indexed("node-0.json", 0, 9, "s", 0, 1),
			{name: "node-0.2.json", from: 1, to: 5, hasIndex: true, launch: "s", rank: new(1), command: "inner"},
		}, "r@1: 0=0.2 | r@2: 0=0"},
		"repeated run": {[]made{
			{name: "node-0.json", to: 5}, {name: "node-0.2.json", from: 6, to: 9}, {name: "node-0.10.json", from: 10, to: 12},
		}, "r@1: 0=0 | r@2: 0=0.2 | r@3: 0=0.10"},
		"nodes that ran one after another": {[]made{
			indexed("node-0.json", 0, 5, ""), indexed("node-1.json", 6, 9, ""),
		}, "r: 0=0, 1=1"},
		"restarted pod": {[]made{
			indexed("node-0.json", 0, 9, ""), {name: "node-1.json", to: 2, hasIndex: true, host: "pod-a"},
			{name: "node-1.2.json", from: 3, to: 9, hasIndex: true, host: "pod-b"},
		}, "r: 0=0, 1=1.2; not 1"},
		"sidecar concurrent with runs": {[]made{
			{name: "node-0.json", to: 99, command: "-"}, {name: "node-0.2.json", from: 1, to: 5},
			{name: "node-0.3.json", from: 6, to: 9},
		}, "r@1: 0=0 | r@2: 0=0.2 | r@3: 0=0.3"},

		"hosts without an index": {[]made{
			{name: "node-gpu10.rank-2.json", to: 5, launch: "m", host: "gpu10", ranks: []int{2}},
			{name: "node-gpu10.rank-5.json", to: 5, launch: "m", host: "gpu10", ranks: []int{5}},
			{name: "node-gpu9.json", to: 5, launch: "m", host: "gpu9", ranks: []int{0, 3}},
			{name: "node-gpu11.rank-4.jsonl", to: 5, launch: "m", host: "gpu11"},
		}, "r: 0=gpu9, 1=gpu10.rank-2+gpu10.rank-5, 2=gpu11.rank-4.jsonl"},
		"hosts sorted by rank, then by name": {[]made{
			{name: "node-a1.json", to: 5, launch: "m", host: "a1", ranks: []int{2, 10}},
			{name: "node-a2.json", to: 5, launch: "m", host: "a2", ranks: []int{1, 9}},
			{name: "node-b10.json", to: 5, launch: "m", host: "b10"}, {name: "node-b9.json", to: 5, launch: "m", host: "b9"},
		}, "r: 0=a2, 1=a1, 2=b9, 3=b10"},
		"two hosts without a launcher": {[]made{
			{name: "node-0.json", to: 5, host: "b"}, {name: "node-0.2.json", from: 1, to: 5, host: "a"},
		}, "r: 0=0.2, 1=0"},
		"two hosts with the same name": {[]made{
			{name: "node-0.json", to: 5, boot: "x"}, {name: "node-0.2.json", from: 1, to: 5, boot: "y"},
		}, "r: 0=0, 1=0.2"},
		"index already given to another node": {[]made{
			indexed("node-0.json", 0, 5, "m"), {name: "node-z.json", to: 5, launch: "m", host: "z"},
		}, "r: 0=0, 1=z"},

		"crash while ranks were combined": {[]made{
			indexed("node-0.json", 0, 9, "s", 0, 1, 2), indexed("node-0.rank-1.json", 0, 5, "s", 1),
			indexed("node-0.rank-2.jsonl", 0, 5, "s"),
		}, "r: 0=0"},
		"rank files that overlap the combined report": {[]made{
			indexed("node-0.json", 2, 9, "s", 0, 1), indexed("node-0.rank-0.jsonl", 1, 5, "s"),
			indexed("node-0.rank-1.json", 3, 12, "s", 1),
		}, "r: 0=0; not 0.rank-0.jsonl+0.rank-1"},
		"rank that started while ranks were combined": {[]made{
			indexed("node-0.json", 0, 9, "s", 0, 1), indexed("node-0.rank-2.json", 8, 15, "s", 2),
		}, "r: 0=0+0.rank-2"},
		"ranks restarted by torchrun": {[]made{
			indexed("node-0.json", 0, 5, "t", 0, 1), indexed("node-0.rank-0.json", 6, 9, "t", 0),
			indexed("node-0.rank-1.jsonl", 6, 9, "t"),
		}, "r: 0=0.rank-0+0.rank-1.jsonl; not 0"},
		"restarted rank": {[]made{
			indexed("node-0.rank-0.json", 0, 9, "t", 0), indexed("node-0.rank-1.json", 0, 2, "t", 1),
			indexed("node-0.rank-1.2.jsonl", 3, 9, "t"),
		}, "r: 0=0.rank-0+0.rank-1.2.jsonl; not 0.rank-1"},
		"report and journal of a rank": {[]made{
			indexed("node-0.rank-0.json", 0, 9, "t", 0), indexed("node-0.rank-0.jsonl", 0, 9, "t"),
		}, "r: 0=0.rank-0"},
		"several recordings of one rank": {[]made{
			indexed("node-0.rank-0.jsonl", 0, 9, "t"), indexed("node-0.rank-0.2.json", 0, 9, "t", 0),
			indexed("node-0.rank-0.3.json", 0, 9, "t", 0),
		}, "r: 0=0.rank-0.2"},
		"rank journal without a rank in its name": {[]made{
			indexed("node-0.jsonl", 0, 9, "t"), indexed("node-0.rank-1.json", 1, 9, "t", 1),
		}, "r: 0=0.jsonl+0.rank-1"},

		"different run IDs": {[]made{{name: "node-0.json", to: 5, hasIndex: true, run: "a"}, {name: "node-1.json", from: 1, to: 5, hasIndex: true, run: "b"}},
			"r@1: 0=0 | r@2: 1=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "r")
			for _, f := range c.files {
				f.write(t, dir)
			}
			check.Equal(t, described(runIn(t, dir)), c.want, "run")
		})
	}
}

// A file with a host but no rank in its name may be from another program. The content of the file decides.
func TestReadRun_IgnoresFilesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	for name, data := range map[string]string{
		"node-modules.json": `{"name":"x"}`, "node-list.json": `["a"]`, "node-empty.json": "", "node-cut.jsonl": `{"journal":"x`,
		"node-modules.html": "mine", "node-gpu7.marks": "ours", ".node-gpu7.json.12.0.tmp": "", "node-gpu8.html": "mine",
		"node-0.jsonl.tmp": "", "node-3.rank-1.html": "", ".node-modules.json.12.0.tmp": "mine",
	} {
		write(t, filepath.Join(dir, name), data)
	}
	if run, err := catalog.ReadRun(dir); err != nil || run != nil {
		t.Errorf("directory with files of other programs: run %v, want none; error %v", run, err)
	}

	made{name: "node-gpu7.json", to: 5, launch: "m", host: "gpu7", ranks: []int{0, 1}}.write(t, dir)
	made{name: "node-gpu7.rank-2.json", to: 5, launch: "m", host: "gpu7", ranks: []int{2}}.write(t, dir)
	run := runIn(t, dir)
	check.Equal(t, described(run), "r: 0=gpu7+gpu7.rank-2", "run")
	check.Must(t, run.Remove())
	check.Equal(t, filesIn(t, dir), []string{
		".node-modules.json.12.0.tmp", "node-cut.jsonl", "node-empty.json", "node-gpu8.html", "node-list.json", "node-modules.html", "node-modules.json",
	}, "files of other programs that are left")
}

// Reports of ranks that are given by path are combined into one node. Other files of the same node are not.
func TestNodesOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var paths []string
	for _, f := range []made{
		{name: "node-2.rank-5.json", to: 5, hasIndex: true, launch: "s", ranks: []int{5}},
		{name: "node-2.rank-4.json", to: 5, hasIndex: true, launch: "s", ranks: []int{4}},
		{name: "node-2.rank-4.2.json", from: 6, to: 9, hasIndex: true, launch: "other", ranks: []int{4}},
		{name: "node-7.json", to: 5, hasIndex: true}, {name: "node-7.2.json", from: 1, to: 5, hasIndex: true},
		{name: "node-0.json", to: 5, run: "x", host: "b"}, {name: "node-0.2.json", to: 5, run: "x", host: "a"},
		{name: "node-0.3.json", to: 5, run: "x", host: "a"},
	} {
		f.write(t, dir)
		paths = append(paths, filepath.Join(dir, f.name))
	}

	var got []string
	for _, n := range catalog.NodesOf(paths) {
		var files []string
		for _, path := range n.Paths() {
			files = append(files, strings.TrimPrefix(strings.TrimSuffix(filepath.Base(path), ".json"), "node-"))
		}
		got = append(got, n.Name()+"="+strings.Join(files, "+"))
	}
	slices.Sort(got)
	check.Equal(t, got, []string{"0=0.2", "0=0.3", "1=0", "2=2.rank-4+2.rank-5", "2=2.rank-4.2", "7=7", "7=7.2"}, "nodes")
}

// A merged report keeps the indexes of its nodes, including assigned indexes.
func TestNodesOf_KeepsIndexesOfMergedReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range []made{
		{name: "node-a.json", to: 5, launch: "m", host: "a"}, {name: "node-b.json", to: 5, launch: "m", host: "b"},
		{name: "node-aa.json", to: 5, launch: "m", host: "aa"},
	} {
		f.write(t, dir)
	}
	merge := func(names ...string) *reporter.Report {
		var paths []string
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		var sources []reporter.SourceReport
		nodes := catalog.NodesOf(paths)
		for i := range nodes {
			r, err := nodes[i].Read(0)
			check.Must(t, err)
			sources = append(sources, reporter.SourceReport{Path: nodes[i].Path(), Report: r})
		}
		r, err := diagnosis.Merge(sources)
		check.Must(t, err)
		return r
	}

	writeReport(t, filepath.Join(dir, "both.json"), merge("node-a.json", "node-b.json"))
	all := merge("both.json", "node-b.json", "node-aa.json")
	hosts := ""
	for _, name := range all.NodeNames() {
		hosts += name + "=" + all.Nodes[name].Host.Hostname + " "
	}
	check.Equal(t, hosts, "0=a 1=b 2=aa ", "nodes")
}

// Find finds a launch by its name. The error for an unknown name lists the existing launches.
func TestFind_AcceptsLaunchNames(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for i, launch := range []string{"step-0", "step-1", "step-2"} {
		made{name: fmt.Sprintf("node-0.%d.json", i+1), from: float64(10 * i), to: float64(10*i + 5), hasIndex: true, launch: launch}.
			write(t, filepath.Join(out, "r"))
	}
	made{name: "node-0.json", from: 12, to: 13}.write(t, filepath.Join(out, "s"))

	first, third, other := filepath.Join(out, "r/node-0.1.json"), filepath.Join(out, "r/node-0.3.json"), filepath.Join(out, "s/node-0.json")
	wantFinds(t, out, map[string]string{
		"r": third, "r@1": first, "r@3": third, "@latest": third, "@-2": other, "@-3": filepath.Join(out, "r/node-0.2.json"), "@-4": first,
		"s@1": other, filepath.Join(out, "r"): third,
	}, map[string]string{
		"r@4": "no launch r@4: run r has 3 launches", "r@0": `no run or file "r@0"`, "r@": "no run or file", "q@1": "no run or file",
		"@-5": "no run @-5", "../r@1": "no run or file",
	})
	for name, want := range map[string]int{"r": 3, "r@2": 1, "@latest": 1, "s": 1} {
		check.Equal(t, len(found(t, out, name).Launches()), want, "%s: number of launches", name)
	}
	runs := runsIn(t, out)
	var ids []string
	for _, l := range catalog.Launches(runs) {
		ids = append(ids, l.ID())
	}
	check.Equal(t, ids, []string{"r@3", "s", "r@2", "r@1"}, "launches")
	o := runs[0].Launches[0].Summary()
	wantValues(t, "ID and run ID", "r@1 r", o.ID, o.RunID)
}

// Only a clock that is ahead is reported. A clock that is right, or of unknown offset, is not.
func TestLaunch_ClockWarningsReportFastClocks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	ahead := time.Since(yesterday).Seconds() + 30
	made{name: "node-0.json", to: time.Since(yesterday).Seconds() - 1, hasIndex: true}.write(t, dir)
	made{name: "node-1.json", to: ahead, hasIndex: true, host: "fast"}.write(t, dir)
	made{name: "node-2.json", to: ahead, hasIndex: true}.write(t, dir)
	old := time.Now().Add(-time.Hour) // simulates a copy that preserves times
	check.Must(t, os.Chtimes(filepath.Join(dir, "node-2.json"), old, old))

	clocks := runIn(t, dir).Latest().ClockWarnings()
	if runtime.GOOS != "linux" { // the change time is available only on Linux
		if len(clocks) != 0 {
			t.Errorf("warnings %q, want none on this system", clocks)
		}
		return
	}
	if len(clocks) != 1 {
		t.Fatalf("warnings %q, want one", clocks)
	}
	rest, ok := strings.CutPrefix(clocks[0], "the clock of node 1 (fast) is at least ")
	by, _, words := strings.Cut(rest, " s ahead of that of the file system")
	if seconds, err := strconv.ParseFloat(by, 64); err != nil || !ok || !words || seconds < 25 || seconds > 31 {
		t.Errorf("warnings %q, want one that node 1 (fast) is 25 to 31 s ahead", clocks)
	}
}

// For any host name, ParseFileName parses the file names that perfagent chooses.
func TestParseFileName_ParsesNamesWithAnyHost(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"gpu7", "10.0.0.1", "4711", "node-1", "_x", ".", "", "a.example.org", "日本", "c-2.3", strings.Repeat("x", 300)} {
		safe := scheduler.SafeHost(host)
		for _, rank := range []string{"", "0", "17"} {
			name := journal.BaseName(0, safe, rank) + ".json"
			n, ok := catalog.ParseFileName(name)
			if !ok || n.Host == "" || (n.Rank >= 0) != (rank != "") || len(name) > 255 {
				t.Errorf("host %q: ParseFileName(%q) = %+v, %v, want a host, and the rank in the name", host, name, n, ok)
			}
			if rank != "" && (n.Host != safe || strconv.Itoa(n.Rank) != rank) {
				t.Errorf("host %q: ParseFileName(%q) = %+v, want host %q and rank %s", host, name, n, safe, rank)
			}
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, name := range []string{"node-0.json", "node-0.rank-3.2.jsonl", "node-gpu7.rank-0.json", "node-c1.example.json", "node-modules.json", "node-0.rank-.json"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		n, ok := catalog.ParseFileName(name)
		if !ok {
			return
		}
		node := n.Host
		if node == "" {
			node = strconv.Itoa(n.Node)
		}
		again := "node-" + node
		if n.Rank >= 0 {
			again += fmt.Sprintf(".rank-%d", n.Rank)
		}
		if n.Nth != 1 {
			again += fmt.Sprintf(".%d", n.Nth)
		}
		if back, ok := catalog.ParseFileName(again + n.Ext); !ok || back != n {
			t.Errorf("ParseFileName(%q) = %+v, but ParseFileName(%q) = %+v, %v", name, n, again+n.Ext, back, ok)
		}
		if strings.Trim(n.Host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "" || n.Nth < 0 {
			t.Errorf("ParseFileName(%q) = %+v, want a host of safe characters and no negative number", name, n)
		}
	})
}
