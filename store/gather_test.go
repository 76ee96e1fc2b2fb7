package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

// report returns the bytes of a node's report with the given number of seconds.
func report(t *testing.T, node, seconds int) []byte {
	t.Helper()
	return check.Value(reporter.Encode(reportertest.NodeReport(node, seconds, 0, nil)))(t)
}

// putReport puts a report and checks its name.
func putReport(t *testing.T, s *store.Store, run, node string, data []byte, want string) {
	t.Helper()
	if got, err := s.PutReport(t.Context(), run, node, data); err != nil || got != want {
		t.Fatalf("PutReport(%s, %s) = %s, %v, want %s", run, node, got, err, want)
	}
}

// Each recording gets its own name and keeps it, and is stored only once.
func TestPutReport_StoresEachRecordingOnceUnderOwnName(t *testing.T) {
	for kind, address := range addresses(t) {
		t.Run(kind, func(t *testing.T) {
			s := open(t, address)
			first, second := report(t, 0, 20), report(t, 0, 30)
			putReport(t, s, "job-7", "node-0", first, "job-7/node-0")
			putReport(t, s, "job-7", "node-0", second, "job-7/node-0.2")
			putReport(t, s, "job-7", "node-gpu7.example", first, "job-7/node-gpu7.example")

			pushed := check.Value(reporter.WithPush(second, map[string]reporter.PushState{"0": {State: reporter.PushDone}}))(t)
			putReport(t, s, "job-7", "node-0", pushed, "job-7/node-0.2")
			if n := s.Metrics().Times["store.put"].Count; n != 3 {
				t.Errorf("%v puts, want 3: the same recording is stored once", n)
			}
		})
	}
}

// PutReport does nothing else if its first put succeeds.
func TestPutReport_UsuallyNeedsOnePut(t *testing.T) {
	s := open(t, t.TempDir())
	data := report(t, 0, 20)
	putReport(t, s, "job-7", "node-0", data, "job-7/node-0")
	puts := map[string]float64{"store.put": 1, "store.put.serialize": 1, "store.put.connector": 1}
	same(t, "counts of operations", counts(s.Metrics().Times), puts)
	same(t, "attributes", s.Metrics().Attributes, map[string]any{"store.put.object_size": float64(len(data))})
}

// If several agents put a report under one name simultaneously, each recording is stored.
func TestPutReport_StoresAllSimultaneousRecordings(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		data, s := report(t, 0, 20+i), open(t, dir)
		wg.Go(func() {
			if _, err := s.PutReport(t.Context(), "job", "node-0", data); err != nil {
				t.Errorf("PutReport during seven other puts: %v", err)
			}
		})
	}
	wg.Wait()

	nodes, err := open(t, dir).Nodes(t.Context(), "job")
	if err != nil || len(nodes) != 8 {
		t.Errorf("Nodes: %d reports, error %v, want 8", len(nodes), err)
	}
}

// Runs and Nodes include the number of nodes with only a partial report, but no reports of single ranks and no other
// files.
func TestRuns_CountsNodesAndPartialReports(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, name := range []string{
		"b/node-0", "b/node-0.2", "b/node-1.partial", "b/node-2.partial", "b/node-2", "b/node-2.rank-3", "b/node-x y", "a/node-h1",
		"a/other",
	} {
		writeFile(t, filepath.Join(dir, name+".json"), "12345")
	}

	runs := []store.Run{{ID: "a", Nodes: 1, Bytes: 5}, {ID: "b", Nodes: 3, Partial: 1, Bytes: 25}}
	byID := cmpopts.SortSlices(func(a, b store.Run) bool { return a.ID < b.ID })
	same(t, "runs", check.Value(s.Runs(t.Context()))(t), runs, byID, cmpopts.IgnoreFields(store.Run{}, "Modified"))

	var got []string
	for _, n := range check.Value(s.Nodes(t.Context(), "b"))(t) {
		got = append(got, fmt.Sprintf("%s %v %s", n.Node, n.Final, strings.TrimPrefix(n.Reference, s.URL())))
	}
	wanted := []string{"0 true #b/node-0", "0 true #b/node-0.2", "1 false #b/node-1.partial", "2 true #b/node-2", "2 false #b/node-2.partial"}
	same(t, "reports of run b", got, wanted)
}

// FetchRun fetches all reports of a run. The result of an unreadable object contains the error, and is left out if the
// object is a partial report next to a final one.
func TestFetchRun_CopiesReportsAndListsUnreadableObjects(t *testing.T) {
	s := open(t, "proxystore+file://"+t.TempDir())
	ctx := t.Context()
	putReport(t, s, "job", "node-0", report(t, 0, 20), "job/node-0")
	putReport(t, s, "job", "node-0", report(t, 0, 25), "job/node-0.2")
	for name, data := range map[string][]byte{
		"job/node-0.partial": report(t, 0, 10), "job/node-1.partial": report(t, 1, 10),
		"job/node-2": report(t, 2, 20)[:500], "job/node-3": []byte(`{"schema":"perfagent.report/9","run":{},"nodes":{}}`),
		"job/node-4": []byte("PK"), "job/node-0.2.partial": []byte("cut"), "other/node-0": report(t, 0, 20),
	} {
		check.Must(t, s.Put(ctx, name, data))
	}

	dir := t.TempDir()
	s = open(t, s.URL())
	var became []string
	for _, f := range check.Value(s.FetchRun(ctx, "job", dir))(t) {
		what := "partial"
		switch {
		case f.Err != nil && f.Err.Error() != "":
			what = "unreadable"
		case !strings.HasSuffix(f.String(), ".partial"):
			what = "final"
		}
		became = append(became, f.String()+" "+what)
	}
	same(t, "fetched objects", became, []string{"job/node-0 final", "job/node-0.2 final", "job/node-0.partial partial",
		"job/node-1.partial partial", "job/node-2 unreadable", "job/node-3 unreadable", "job/node-4 unreadable"})

	files := check.Value(fs.Glob(os.DirFS(dir), "*/*"))(t)
	same(t, "copied files", files, []string{"job/node-0.2.json", "job/node-0.json", "job/node-0.partial.json", "job/node-1.partial.json"})
	n := counts(s.Metrics().Times)
	same(t, "gets and lists", []float64{n["store.get"], n["store.list"]}, []float64{8, 1})
}

// If a copy cannot be written, the error names its directory and not the store.
func TestFetch_WriteErrorNamesDirectory(t *testing.T) {
	s := open(t, "proxystore+file://"+t.TempDir())
	putReport(t, s, "job", "node-0", report(t, 0, 20), "job/node-0")
	const dir = "/dev/full"
	_, errRun := s.FetchRun(t.Context(), "job", dir)
	_, err := s.Fetch(t.Context(), "job/node-0", dir)
	for _, err := range []error{errRun, err} {
		if err == nil || err.Error() != "copy job/node-0 to /dev/full: not a directory" {
			t.Errorf("copying below /dev/full: %v, want \"copy job/node-0 to /dev/full: not a directory\"", err)
		}
	}
}

// A node that was recorded several times counts once, but each of several hosts that share a name counts.
func TestAwait_CountsNodesNotRecordings(t *testing.T) {
	s := open(t, t.TempDir())
	for i, host := range []string{"a", "a", "b"} {
		r := reportertest.NodeReport(0, 20+i, 0, nil)
		r.Nodes["0"].Host.Hostname = host
		check.Must(t, second(s.PutReport(t.Context(), "job", "node-0", check.Value(reporter.Encode(r))(t))))
	}
	for range 2 {
		putReport(t, s, "job", "node-gpu1", report(t, 0, 20), "job/node-gpu1")
	}

	for _, name := range []string{"job/node-0.9", "job/node-gpu1.2"} {
		check.Must(t, s.Put(t.Context(), name, []byte("cut")))
	}

	var told []int
	ctx, cancel := context.WithCancel(t.Context())
	a := store.AwaitOptions{Nodes: 4, Limit: time.Minute, Progress: func(final, of int) { told = append(told, final, of); cancel() }}
	if _, err := s.Await(ctx, "job", a); !errors.Is(err, context.Canceled) {
		t.Errorf("Await: %v, want context.Canceled", err)
	}
	same(t, "numbers for Progress", told, []int{3, 4})
}

// A partial report replaces its predecessor, never the report of another recording. Nothing can be replaced in a
// ProxyStore.
func TestPartialReport_ReplacesOnlyItsPredecessor(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	first, second := store.NewPartialReport("job", "node-0"), store.NewPartialReport("job", "node-0")
	if err := first.Evict(t.Context(), a); err != nil {
		t.Errorf("Evict before a Put: %v, want no error", err)
	}
	for i := range 3 {
		check.Must(t, first.Put(t.Context(), a, report(t, 0, 10+i)))
		check.Must(t, second.Put(t.Context(), b, report(t, 0, 20+i)))
	}
	for name, want := range map[string][]byte{"job/node-0.partial": report(t, 0, 12), "job/node-0.2.partial": report(t, 0, 22)} {
		if got, err := a.Get(t.Context(), name); err != nil || string(got) != string(want) {
			t.Errorf("Get(%s): %d bytes, error %v, want the report of the last Put", name, len(got), err)
		}
	}
	if err := second.Evict(t.Context(), b); err != nil {
		t.Errorf("Evict of the second report: %v", err)
	}
	if nodes, err := a.Nodes(t.Context(), "job"); err != nil || len(nodes) != 1 || nodes[0].Final {
		t.Errorf("reports after Evict: %+v, %v, want one partial report", nodes, err)
	}

	p, s := store.NewPartialReport("job", "node-0"), open(t, "proxystore+file://"+t.TempDir())
	err := errors.Join(p.Put(t.Context(), s, report(t, 0, 10)), p.Put(t.Context(), s, report(t, 0, 11)))
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("two Puts into a ProxyStore: %v, want ErrUnsupported", err)
	}
}
