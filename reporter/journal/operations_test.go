package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// sendLines sends lines of StatsD or JSON from the job before its next sample, and adds the points of the timelines.
func sendLines(t testing.TB, rec *collector.Recording, at time.Time, lines ...string) {
	t.Helper()
	if rec.Operations == nil {
		rec.Operations = &collector.Operations{Aggregator: aggregate.New(aggregate.Options{}, at.Add(-time.Second))}
		rec.Operations.Aggregator.AddSource("statsd", "127.0.0.1:1")
	}
	account := rec.Operations.Aggregator
	for _, line := range lines {
		var e wire.Event
		if reason := e.Parse([]byte(line), wire.StatsD); reason != wire.Accepted {
			t.Fatalf("%s: reason %v, want it accepted", line, reason)
		}
		account.Add(&e, at) // Add counts events beyond the limits
	}

	rec.Operations.AddSample(rec, account.TimelineKeys(), account.Collect(at, nil))
}

// sendOperations sends operations from the job, sometimes with new series.
func sendOperations(t testing.TB, s *reportertest.Stream, rec *collector.Recording, i int) {
	var lines []string
	if i > 2 && i%3 > 0 {
		lines = append(lines, "a:1.5|ms", `{"op":"b","ms":0.25,"key":"k","bytes":7}`, fmt.Sprintf("rate:%d|g", -i), "n:5|c",
			`{"transfer":"nixl","xfer_us":5000,"bytes":1048576}`)
	}
	if i > 50 {
		lines = append(lines, fmt.Sprintf("late.%d:1|c", i%2))
	}
	sendLines(t, rec, s.Start.Wall.Add(time.Duration(i+1)*time.Second), lines...)
}

// The journal of a killed agent contains the operations of the newest Aggregator, and all points of the timelines,
// whether they are read from lines or from a snapshot.
func TestJournal_KeepsOperations(t *testing.T) {
	for _, snapshotAt := range []int{-1, 0, 9, 50, 51, 96} {
		t.Run(fmt.Sprint(snapshotAt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { keepsOperations(t, 97, snapshotAt) }) // the last sample writes operations
		})
	}
}

func keepsOperations(t *testing.T, n, snapshotAt int) {
	t.Helper()
	s := reportertest.NewStream(7)
	rec := s.Recording(10)
	h := head(s, 10)
	h.CopyAggregator = aggregatorOf(rec)
	j := createFor(t, h)
	for i := range n {
		sendOperations(t, s, rec, i)
		if i == snapshotAt {
			j.wantSnapshot.Store(true)
		}
		j.Observe(s.Next(rec), rec)
		settle(j)
	}
	got := parsed(t, stopped(t, j))
	want := diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: got.Run, Node: 3, Recording: rec}})
	a, b := want.Nodes["3"], got.Nodes["3"]
	if a.Operations.Counters["n"] == 0 || a.Transfers["nixl"].TotalMB == 0 {
		t.Fatalf("operations of the recording: %+v, want the counter n, and transfers", a.Operations)
	}
	same(t, "operations from the journal", b.Operations, a.Operations)
	same(t, "transfers from the journal", b.Transfers, a.Transfers)
	same(t, "timelines from the journal", b.Envelope, a.Envelope, cmpopts.EquateApprox(1e-5, 1e-5), cmpopts.EquateNaNs())
}

// aggregatorOf returns the CopyAggregator for a Recording.
func aggregatorOf(rec *collector.Recording) func(changes uint64) *aggregate.Aggregator {
	return func(changes uint64) *aggregate.Aggregator {
		if rec.Operations == nil || rec.Operations.Aggregator.Changes() == changes {
			return nil
		}
		return rec.Operations.CopyAggregator()
	}
}

// guardedAggregatorOf is aggregatorOf for a Recording that changes concurrently.
func guardedAggregatorOf(mu *sync.Mutex, rec *collector.Recording) func(changes uint64) *aggregate.Aggregator {
	return func(changes uint64) *aggregate.Aggregator {
		mu.Lock()
		defer mu.Unlock()
		return aggregatorOf(rec)(changes)
	}
}

// The Aggregator is written within 5 s with or without samples, and only if it has changed. A journal of a job
// without operations records that they were requested.
func TestJournal_WritesOperationsBetweenSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := reportertest.NewStream(7)
		rec := s.Recording(100)
		h := head(s, 100)
		var mu sync.Mutex
		h.CopyAggregator = guardedAggregatorOf(&mu, rec)
		j := createFor(t, h)
		if r := read(t, j.Path()); r.Nodes["3"].Operations == nil {
			t.Errorf("before the first Aggregator is written: report %v, want operations", r)
		}

		for i := range 60 {
			if i < 20 {
				mu.Lock()
				sendLines(t, rec, s.Start.Wall.Add(time.Duration(i+1)*time.Second), "a:1|c")
				mu.Unlock()
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if n := read(t, j.Path()).Nodes["3"].Operations.Counters["a"]; n < float64(min(i+1, 20)-5) {
				t.Errorf("after %d s the journal counts %v, want at least %d", i+1, n, min(i+1, 20)-5)
			}
		}
		if n := bytes.Count(check.Value(os.ReadFile(j.Path()))(t), []byte(`{"operations":"`)); n < 5 || n > 8 {
			t.Errorf("the Aggregator was written %d times in 20 s with changes and 40 s without, want 5 to 8", n)
		}
	})
}

// A job with the maximum number of lists, series and names, all of them incompressible, leaves a journal of at
// most 4 MiB.
func TestJournal_StaysSmallWithManyOperations(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU")
	synctest.Test(t, boundOperations)
}

func boundOperations(t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	word := func(n int) (letters string) {
		const known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		for range n {
			letters += string(known[r.IntN(len(known))])
		}
		return letters
	}

	s := reportertest.NewStream(7)
	rec := s.Recording(1000)
	h := head(s, 1000)
	var mu sync.Mutex
	h.CopyAggregator = guardedAggregatorOf(&mu, rec)
	j := createFor(t, h)
	most := int64(0)
	for i := range 1100 {
		var lines []string
		if i < 520 {
			lines = append(lines, fmt.Sprintf("%s:%v|ms", word(190), r.ExpFloat64()), fmt.Sprintf(`{"op":"a","ms":1,"key":"%s"}`, word(190)))
		}
		for range 40 {
			lines = append(lines, fmt.Sprintf(`{"transfer":"nixl","xfer_us":%v,"post_us":%v,"bytes":%d}`,
				r.ExpFloat64()*1e4, r.ExpFloat64()*1e3, r.IntN(1<<30)))
		}
		mu.Lock()
		sendLines(t, rec, s.Start.Wall.Add(time.Duration(i+1)*time.Second), lines...)
		mu.Unlock()
		j.Observe(s.Next(rec), rec)
		time.Sleep(50 * time.Millisecond)
		settle(j)
		if st, err := os.Stat(j.Path()); err == nil {
			most = max(most, st.Size())
		}
	}
	parsed(t, stopped(t, j))
	t.Logf("at most %.2f MiB", float64(most)/(1<<20))
	if most > 4<<20 {
		t.Errorf("the journal took %d bytes, want at most %d", most, 4<<20)
	}
}

// Lines with damaged operations are skipped, and hide no others.
func TestParse_SkipsOnlyLinesWithDamagedOperations(t *testing.T) {
	s := reportertest.NewStream(7)
	rec := s.Recording(10)
	h := head(s, 10)
	h.CopyAggregator = aggregatorOf(rec)
	data := written(t, h, func(j *Journal) {
		for i := range 6 {
			sendOperations(t, s, rec, i)
			j.Observe(s.Next(rec), rec)
		}
	})
	for _, damage := range [][2]string{
		{`"points":[`, `"points":[1,`}, {`"points":[`, `"points":[1,2,3,4,`},
		{`"work":{"keys":["`, `"work":{"keys":["x","`}, {`"work":{`, `"ignored":{`},
		{`{"operations":"`, `{"operations":"AAAA`}, {`{"operations":"`, `{"operations":"","x":"`},
	} {
		if !bytes.Contains(data, []byte(damage[0])) {
			t.Fatalf("the journal has no %s", damage[0])
		}
		r, err := Parse(bytes.ReplaceAll(data, []byte(damage[0]), []byte(damage[1])))
		if err != nil {
			t.Fatalf("%s: Parse: error %v, want none", damage[1], err)
		}
		n := r.Nodes["3"]
		for key, band := range n.Envelope {
			if len(band.Mean) != n.Samples.Len() {
				t.Errorf("%s: %s has %d points, want %d", damage[1], key, len(band.Mean), n.Samples.Len())
			}
		}
		check.Value(json.Marshal(r))(t)
	}
}
