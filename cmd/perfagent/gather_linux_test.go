package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/storetest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

// put puts the report of a node into a store. of is the number of nodes in the run.
func put(t *testing.T, address, name string, node, of int) {
	t.Helper()
	r := reportertest.NodeReport(node, 20, 0, nil)
	r.Nodes[strconv.Itoa(node)].Identity = &reporter.Identity{Node: &node, NodeFrom: reporter.NodeFromFlag, Nodes: of}
	putBytes(t, address, name, encoded(t, r))
}

func putBytes(t *testing.T, address, name string, data []byte) {
	t.Helper()
	s, err := store.Open(address, store.Options{})
	check.Must(t, err)
	defer s.Close()
	check.Must(t, s.Put(t.Context(), name, data))
}

// names returns the names of the objects in a store.
func names(t *testing.T, address string) []string {
	t.Helper()
	s, err := store.Open(address, store.Options{})
	check.Must(t, err)
	defer s.Close() // not in a cleanup, because names is polled
	list, err := s.List(t.Context(), "")
	check.Must(t, err)
	out := []string{}
	for _, e := range list {
		out = append(out, e.Name)
	}
	return out
}

// stores returns the addresses of empty stores, one of each kind.
func stores(t *testing.T) map[string]string {
	return map[string]string{
		"directory": "file://" + t.TempDir(), "ProxyStore": "proxystore+file://" + t.TempDir(),
		"Redis": "redis://" + storetest.Redis(t), "S3": storetest.S3(t).Address("perf"),
	}
}

// says checks that stderr contains words.
func says(t *testing.T, o clitest.Outcome, words string) {
	t.Helper()
	if !strings.Contains(o.Err, words) {
		t.Errorf("stderr = %q, want it to contain %q", o.Err, words)
	}
}

// merge merges the available nodes, and its report lists the others: a node that never reported, a node with a damaged
// report, and a node with only a partial report. --evict deletes the merged objects.
func TestMerge_MergesRestIfNodesAreDamagedOrMissing(t *testing.T) {
	t.Parallel()
	for kind, address := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			put(t, address, "job/node-0", 0, 5)
			put(t, address, "job/node-1", 1, 5)
			put(t, address, "job/node-1.partial", 1, 5)
			put(t, address, "job/node-3.partial", 3, 5)
			putBytes(t, address, "job/node-4", []byte(`{"schema":"perfagent.report/9"}`))
			put(t, address, "other/node-0", 0, 1)

			out := filepath.Join(t.TempDir(), "m.json")
			o := mustRun(t, 1, "merge", address+"#job", "--to", out, "--evict")
			says(t, o, "merge: 2 of 5 nodes missing: 4 ("+address+"#job/node-4: ")
			says(t, o, ", 2 (no object job/node-2 in "+address+")")
			says(t, o, address+"#job/node-3.partial is from before the node's end")
			r := readReport(t, out)
			g := r.Run.Gather
			if g.Store != address || g.NodesExpected != 5 || g.NodesFound != 2 || len(g.Partial) != 1 || g.Partial[0] != 3 ||
				len(g.Missing) != 2 || g.Missing[0].What != "4" || g.Missing[1].What != "2" {
				t.Errorf("gathered %+v, want 2 of 5 nodes, node 3 partial, nodes 4 and 2 missing", g)
			}
			if gets := g.Metrics.Times["store.get"].Count; gets != 5 || g.Metrics.Times["store.list"].Count != 1 {
				t.Errorf("%v gets, %v lists; want 5 and 1", gets, g.Metrics.Times["store.list"].Count)
			}
			if got := r.NodeNames(); !slices.Equal(got, []string{"0", "1", "3"}) {
				t.Errorf("nodes of the merged report = %q, want 0, 1 and 3", got)
			}
			if diff := cmp.Diff([]string{"job/node-1.partial", "job/node-4", "other/node-0"}, names(t, address)); diff != "" {
				t.Errorf("objects left in the store (-want +got):\n%s", diff)
			}
			reportertest.ReadFile(t, out) // checks it against the schema
			wantContains(t, wantCall(t, 0, "show", out).Out, "3 of 5 nodes", "missing    node 4, node 2: ")
		})
	}
}

// Hosts without a node index all report as node 0. The merged report contains each of them, even a host that died, and
// --wait ends when enough of them have reported.
func TestMerge_KeepsHostsThatShareNodeZero(t *testing.T) {
	t.Parallel()
	for kind, address := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			for name, host := range map[string]string{
				"job/node-0": "a", "job/node-0.partial": "a", "job/node-0.2": "b", "job/node-0.2.partial": "c",
			} {
				r := reportertest.NodeReport(0, 20, 0, nil)
				r.Nodes["0"].Host.Hostname = host
				putBytes(t, address, name, encoded(t, r))
			}

			out := filepath.Join(t.TempDir(), "m.json")
			o := mustRun(t, 0, "merge", address+"#job", "--nodes", "2", "--wait", "10m", "--to", out, "--no-page")
			says(t, o, address+"#job/node-0.2.partial is from before the node's end")
			if strings.Contains(o.Err, "#job/node-0.partial") {
				t.Errorf("stderr names the partial report of node-0, which has a final one: %s", o.Err)
			}
			r := readReport(t, out)
			hosts := make(map[string]bool)
			for _, n := range r.Nodes {
				hosts[n.Host.Hostname] = true
			}
			if g := r.Run.Gather; g.NodesFound != 2 || len(g.Partial) != 1 || len(r.Nodes) != 3 || len(hosts) != 3 {
				t.Errorf("gathered %+v, hosts %v, %d nodes; want 2 nodes and a partial one, 3 hosts, 3 nodes in the report",
					g, hosts, len(r.Nodes))
			}

			o = mustRun(t, 0, "show", address+"#job")
			says(t, o, address+"#job/node-0.2.partial is from before the node's end")
			o = mustRun(t, 0, "merge", address+"#job", "--nodes", "3", "--wait", "100ms", "--to", out, "--force", "--no-page")
			says(t, o, "2 of 3 nodes of job are there")
		})
	}
}

// For invalid arguments, merge prints an error and writes no report.
func TestMerge_RefusesInvalidStoreArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out.json")
	putBytes(t, "file://"+dir, "job/node-0", encoded(t, reportertest.NodeReport(0, 20, 0, nil)))
	putBytes(t, "file://"+dir, "none/node-0", []byte("?"))
	for words, args := range map[string][]string{
		"name one run in a store, STORE#RUN-ID":                        {"job", "--out", dir, "--wait", "1s"},
		"--evict, --lazy: name one run":                                {dir + "#job/node-0", "--lazy", "--evict"},
		"--nodes: 0 is not a number of nodes":                          {dir + "#job", "--nodes", "0"},
		"--nodes: -1 is not a number of nodes":                         {dir + "#job", "--nodes", "-1"},
		"--wait: -1s is negative":                                      {dir + "#job", "--wait", "-1s"},
		"no report has the number of nodes of the run: give it with -": {dir + "#job", "--wait", "1s"},
		"no object of run none can be read":                            {dir + "#none"},
	} {
		o := wantCall(t, 1, append([]string{"merge", "--to", out}, args...)...)
		if !strings.Contains(o.Err, words) || clitest.Exists(out) {
			t.Errorf("%q: stderr %q, want it to contain %q, and no report written", args, o.Err, words)
		}
	}
}

// A file in the working directory is not mistaken for an object of the same name.
func TestMerge_DoesNotMistakeLocalFileForObject(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), "file://"+t.TempDir()
	put(t, address, "job/node-0", 0, 1)
	putBytes(t, "file://"+dir, "job/node-0", []byte("?"))
	cmd := clitest.Perfagent(t, "show", address+"#job")
	cmd.Dir = dir
	clitest.RunCommand(t, cmd).Want(t, 0)
}

// A report merged by reference has all numbers. Each node with requested series costs one GET, by the server's count.
func TestMerge_LazyReportCostsOneGetPerNode(t *testing.T) {
	t.Parallel()
	redis, s3 := storetest.Redis(t), storetest.S3(t)
	t.Run("Redis", func(t *testing.T) { testLazy(t, "redis://"+redis, func() int { return gets(t, redis) }) })
	t.Run("S3", func(t *testing.T) { testLazy(t, s3.Address("p"), func() int { return s3.Requests(t, "GetObject") }) })
}

func testLazy(t *testing.T, address string, gets func() int) {
	dir := t.TempDir()
	for node := range 4 {
		put(t, address, fmt.Sprintf("job/node-%d", node), node, 4)
	}
	lazy, full := filepath.Join(dir, "lazy.json"), filepath.Join(dir, "full.json")
	call("merge", address+"#job", "--lazy", "--to", lazy).Want(t, 0)
	call("merge", address+"#job", "--to", full, "--no-page").Want(t, 0)
	n := reportertest.ReadFile(t, lazy).Nodes["3"]
	if n.Reference != address+"#job/node-3" || n.Bytes == 0 || len(n.SHA256) != 64 || n.Samples.Len() > 0 || len(n.Envelope) > 0 {
		t.Errorf("reference %q, %d bytes, SHA-256 %q, %d samples; want a reference to job/node-3 and no series",
			n.Reference, n.Bytes, n.SHA256, n.Samples.Len())
	}

	before := gets()
	for _, c := range []struct {
		args string
		want int
	}{
		{"show LAZY", 0}, {"show --json LAZY", 0}, {"diff LAZY -- FULL", 0}, {"show --format csv LAZY", 4},
		{"plot LAZY --node 3 --to DIR/3.svg", 1}, {"plot LAZY --to DIR/all.html", 4},
		{"merge LAZY --to DIR/again.json --no-page", 4},
		{"push LAZY --store DIR/other", 4}, // last: push records its result in the report
	} {
		call(strings.Fields(strings.NewReplacer("LAZY", lazy, "FULL", full, "DIR", dir).Replace(c.args))...).Want(t, 0)
		now := gets()
		if now-before != c.want {
			t.Errorf("%q made %d GETs, want %d", c.args, now-before, c.want)
		}
		before = now
	}
	whole, again := readReport(t, full), readReport(t, dir+"/again.json")
	if diff := cmp.Diff(whole.Nodes, again.Nodes); diff != "" {
		t.Errorf("nodes after merging the merged report again (-want +got):\n%s", diff)
	}
	for node, n := range whole.Nodes {
		elsewhere := readReport(t, filepath.Join(dir, "other", whole.Run.ID, "node-"+node+".json")).Nodes[node]
		if diff := cmp.Diff(n.Samples, elsewhere.Samples); diff != "" || elsewhere.Reference != "" {
			t.Errorf("node %s in another store: reference %q, want none; samples (-want +got):\n%s",
				node, elsewhere.Reference, diff)
		}
	}
}

// Pushing a merged report to its store adds no objects, even if the report was merged by reference.
func TestPush_AddsNothingToStoreOfMergedReport(t *testing.T) {
	t.Parallel()
	for kind, address := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			run := reportertest.NodeReport(0, 20, 0, nil).Run.ID
			want := []string{run + "/node-0", run + "/node-1"}
			for node, name := range want {
				put(t, address, name, node, 2)
			}
			for _, flag := range []string{"--no-page", "--lazy"} {
				merged := filepath.Join(t.TempDir(), "m.json")
				clitest.Run(t, "merge", address+"#"+run, "--to", merged, flag).Want(t, 0)
				clitest.Run(t, "push", merged, "--store", address).Want(t, 0)
			}
			if diff := cmp.Diff(want, names(t, address)); diff != "" {
				t.Errorf("objects in the store (-want +got):\n%s", diff)
			}
		})
	}
}

// gets returns the number of GET commands that a Redis server has processed.
func gets(t *testing.T, server string) int {
	t.Helper()
	stats := storetest.RedisSays(t, server, "INFO commandstats")
	found := regexp.MustCompile(`cmdstat_get:calls=(\d+)`).FindStringSubmatch(stats)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	check.Must(t, err)
	return n
}

// plot draws a report merged by reference without the series that are gone or have changed since the merge.
func TestPlot_LazyReport_DrawsRemainingSeries(t *testing.T) {
	t.Parallel()
	stored, dir := t.TempDir(), t.TempDir()
	address := "file://" + stored
	for node := range 3 {
		put(t, address, fmt.Sprintf("job/node-%d", node), node, 3)
	}
	lazy := filepath.Join(dir, "lazy.json")
	clitest.Run(t, "merge", address+"#job", "--lazy", "--to", lazy).Want(t, 0)
	check.Must(t, os.Remove(filepath.Join(stored, "job", "node-1.json")))
	clitest.Write(t, filepath.Join(stored, "job", "node-2.json"), "{}", 0o600)

	o := mustRun(t, 0, "plot", lazy, "--to", dir+"/page.html")
	says(t, o, "plot: "+address+"#job/node-1: no object job/node-1.json in "+address)
	says(t, o, "plot: "+address+"#job/node-2: it is not the object that was merged")
	if !fileHas(dir+"/page.html", "it is not the object that was merged") {
		t.Error("the page lacks \"it is not the object that was merged\", the reason for the missing series")
	}
}
