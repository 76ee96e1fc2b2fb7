package journal

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// laterColumns are those that the first version of the journal did not have.
func laterColumns() []string {
	return append([]string{"mem_used_mb", "disk_used_mb", "disk_free_mb"}, columnKeys(collector.NumColumns)[collector.JobCPU:]...)
}

// unpacked replaces the packed part of a snapshot by a plain one, as versions before
// it wrote it.
func unpacked(t *testing.T, snap map[string]any) (summaries, buckets []any) {
	t.Helper()
	var parsed snapshot
	text, err := json.Marshal(snap)
	if err == nil {
		err = json.Unmarshal(text, &parsed)
	}
	if err == nil {
		err = parsed.unpack(int(collector.NumColumns))
	}
	for list, into := range map[any]*[]any{&parsed.Summaries: &summaries, &parsed.Buckets: &buckets} {
		if err == nil {
			text, err = json.Marshal(list)
		}
		if err == nil {
			err = json.Unmarshal(text, into)
		}
	}
	if err != nil || len(buckets) == 0 {
		t.Fatalf("%d buckets, %v", len(buckets), err)
	}
	delete(snap, "packed")
	snap["buckets"], snap["summaries"] = buckets, summaries
	return summaries, buckets
}

// journalOf makes a journal of n samples and the Recording that it is of. With so
// small a bound it has a snapshot, too.
func journalOf(t *testing.T, n int, snapshot bool) ([]byte, *collector.Recording) {
	t.Helper()
	s := reportertest.NewStream(uint64(n))
	rec := s.Recording(10)
	j, err := Create(t.TempDir(), head(s, 10))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if snapshot && i == n/2 {
			j.wantSnapshot.Store(true)
		}
		sample := s.Next(rec)
		// Values of the later columns, of which newStream knows nothing.
		j.Observe(sample, rec)
		drain(j)
	}
	if err := j.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	return data, rec
}

// rewritten changes the columns of a journal: move gives for each new place the old
// one, −1 = a column that we don't know.
func rewritten(t *testing.T, data []byte, columns []string, move []int) []byte {
	t.Helper()
	var out []string
	for line := range strings.Lines(string(data)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		delete(m, "columns")
		if _, isHead := m["journal"]; isHead && columns != nil {
			m["columns"] = columns
		}
		if _, ok := m["sample"]; ok {
			m["sample"] = moved(m["sample"], move, 7.0)
			if weights, ok := m["weights"].(map[string]any); ok {
				to := make(map[string]any)
				for place, old := range move {
					if w, ok := weights[fmt.Sprint(old)]; ok {
						to[fmt.Sprint(place)] = w
					}
				}
				m["weights"] = to
			}
		}
		if snap, ok := m["snapshot"].(map[string]any); ok {
			summaries, buckets := unpacked(t, snap)
			snap["summaries"] = moved(summaries, move, summaries[0])
			for _, b := range buckets {
				bucket := b.(map[string]any)
				bucket["v"], bucket["s"] = moved(bucket["v"], move, 7.0), moved(bucket["s"], move, []any{})
			}
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, isHead := m["journal"]; isHead { // a head begins with its key
			rest := strings.Replace(string(text), `"journal":"perfagent.journal/1",`, "", 1)
			text = []byte(`{"journal":"perfagent.journal/1",` + rest[1:])
		}
		out = append(out, string(text))
	}
	return []byte(strings.Join(out, "\n") + "\n")
}

func moved(list any, move []int, unknown any) (out []any) {
	for _, old := range move {
		if old < 0 {
			out = append(out, unknown)
		} else {
			out = append(out, list.([]any)[old])
		}
	}
	return out
}

// withoutLater are the places of the first version's eighteen columns.
func withoutLater() (move []int) {
	later := laterColumns()
	for i, key := range columnKeys(collector.NumColumns) {
		if !slices.Contains(later, key) {
			move = append(move, i)
		}
	}
	return move
}

// sameBut compares two reports; the columns without are absent in got.
func sameBut(t *testing.T, what string, want, got *reporter.Report, without ...string) {
	t.Helper()
	w, g := want.Nodes["3"], got.Nodes["3"]
	for _, key := range without {
		if _, ok := g.Summaries[key]; ok {
			t.Errorf("%s: there is a summary of %s", what, key)
		}
		for _, v := range append(slices.Clone(g.Samples.Column(key)), g.Envelope[key].Max...) {
			if !math.IsNaN(v) {
				t.Errorf("%s: %s is %v", what, key, v)
			}
		}
	}
	if d := cmp.Diff(w.Metrics, g.Metrics); d != "" {
		t.Errorf("%s: metrics (-want +got):\n%s", what, d)
	}
	for key := range w.Envelope {
		if slices.Contains(without, key) {
			continue
		}
		if d := cmp.Diff(w.Envelope[key], g.Envelope[key], cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-9, 2e-6)); d != "" {
			t.Errorf("%s: envelope of %s (-want +got):\n%s", what, key, d)
		}
	}
	if w.Sampling.Samples != g.Sampling.Samples || len(g.Missing) != len(w.Missing) {
		t.Errorf("%s: %d samples, want %d; missing %v", what, g.Sampling.Samples, w.Sampling.Samples, g.Missing)
	}
}

// A journal of the first version is read; what it lacks is absent, never 0.
func TestJournal_OfTheFirstVersion(t *testing.T) {
	t.Parallel()
	if len(withoutLater()) != 18 {
		t.Fatalf("the first version had 18 columns, not %d", len(withoutLater()))
	}
	for _, snapshot := range []bool{false, true} {
		for _, n := range []int{1, 8, 61} {
			data, _ := journalOf(t, n, snapshot)
			want, err := Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse(rewritten(t, data, nil, withoutLater()))
			if err != nil {
				t.Fatal(err)
			}
			sameBut(t, fmt.Sprintf("%d samples, snapshot %v", n, snapshot), want, got, laterColumns()...)
		}
	}
}

// Columns of a later version, wherever they stand, are left out, and an order that is
// another one is understood.
func TestJournal_OfALaterVersion(t *testing.T) {
	t.Parallel()
	ours := columnKeys(collector.NumColumns)
	for _, snapshot := range []bool{false, true} {
		data, _ := journalOf(t, 61, snapshot)
		want, err := Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		columns, move := []string{"gpu_percent"}, []int{-1}
		for i := range ours { // the last first, with a new one in the middle
			k := len(ours) - 1 - i
			columns, move = append(columns, ours[k]), append(move, k)
			if i == 9 {
				columns, move = append(columns, "power_watts"), append(move, -1)
			}
		}
		got, err := Parse(rewritten(t, data, columns, move))
		if err != nil {
			t.Fatal(err)
		}
		sameBut(t, fmt.Sprint("snapshot ", snapshot), want, got)
	}
}

// Lines of another width than the head says are damaged, and counted.
func TestJournal_LinesOfAnotherWidth(t *testing.T) {
	t.Parallel()
	data, _ := journalOf(t, 20, false)
	head, rest, _ := strings.Cut(string(data), "\n")
	short := strings.SplitAfter(string(rewritten(t, data, nil, withoutLater())), "\n")
	r, err := Parse([]byte(head + "\n" + short[3] + rest))
	if err != nil {
		t.Fatal(err)
	}
	n := r.Nodes["3"]
	if n.Sampling.Samples != 20 || !slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool {
		return m.What == "journal" && strings.Contains(m.Why, "damaged lines that were left out: 1")
	}) {
		t.Errorf("%d samples, missing %v", n.Sampling.Samples, n.Missing)
	}
	for _, columns := range [][]string{{}, {"timestamp"}} {
		if _, err := Parse(rewritten(t, data, columns, withoutLater())); err != nil {
			t.Errorf("head with the columns %v: %v", columns, err)
		}
	}
}
