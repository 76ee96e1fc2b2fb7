package journal

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// laterColumns returns the columns that perf.py does not have, which another journal may lack.
func laterColumns() []string {
	return append([]string{"mem_used_mb", "disk_used_mb", "disk_free_mb"}, keysOf(firstColumns())[collector.JobCPU:]...)
}

// repack changes the summaries and buckets of a snapshot.
func repack(t *testing.T, snap map[string]any, change func(summaries []any, buckets []map[string]any) []any) {
	t.Helper()
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(snap["packed"].(string))))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(packed)
	var summaries []any
	if err := dec.Decode(&summaries); err != nil {
		t.Fatal(err)
	}
	var buckets []map[string]any
	for dec.More() {
		var b map[string]any
		if err := dec.Decode(&b); err != nil {
			t.Fatal(err)
		}
		buckets = append(buckets, b)
	}
	if len(buckets) == 0 {
		t.Fatal("a snapshot without buckets")
	}

	summaries = change(summaries, buckets)
	var parts []string
	for _, v := range append([]any{summaries}, toAny(buckets)...) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, string(data))
	}
	snap["packed"] = wideGzip(parts...)
}

func toAny[T any](list []T) (out []any) {
	for _, v := range list {
		out = append(out, v)
	}
	return out
}

// journalOf returns a journal of n samples, with a snapshot in the middle if snapshot is set, and its Recording.
// The queue has room for all samples.
func journalOf(t *testing.T, n int, snapshot bool) ([]byte, *collector.Recording) {
	t.Helper()
	if n > queueLength {
		t.Fatalf("%d samples do not fit in the queue", n)
	}
	s := reportertest.NewStream(uint64(n))
	rec := s.Recording(10)
	return written(t, head(s, 10), func(j *Journal) {
		for i := range n {
			if snapshot && i == n/2 {
				j.wantSnapshot.Store(true)
			}
			j.Observe(s.Next(rec), rec)
		}
	}), rec
}

// rewritten changes the columns of a journal: move has the old position of each new one, −1 for an
// unknown column. counters does the same for the counters since boot with the keys names; nil for the known keys.
func rewritten(t *testing.T, data []byte, columns []string, move, counters []int, names []string) []byte {
	t.Helper()
	if names == nil {
		for _, i := range counters {
			names = append(names, firstCounters()[i].Key())
		}
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		_, isHead := m["journal"]
		if isHead {
			m["columns"], m["counters"] = columns, names
		}
		if _, ok := m["sample"]; ok {
			m["sample"], m["boot_mb"] = moved(m["sample"], move, 7.0), moved(m["boot_mb"], counters, 8.0)
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
			snap["boot_mb"] = moved(snap["boot_mb"], counters, 8.0)
			repack(t, snap, func(summaries []any, buckets []map[string]any) []any {
				for _, b := range buckets {
					b["v"], b["s"] = moved(b["v"], move, 7.0), moved(b["s"], move, []any{})
				}
				return moved(summaries, move, summaries[0])
			})
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if isHead { // a head begins with its key
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

// without returns the positions of all columns, and of the counters since boot, except for some.
func without(keys []string) (columns []string, move, counters []int) {
	for i, key := range keysOf(firstColumns()) {
		if !slices.Contains(keys, key) {
			columns, move = append(columns, key), append(move, i)
		}
	}
	for i, c := range firstCounters() {
		if !slices.Contains(keys, c.Key()) {
			counters = append(counters, i)
		}
	}
	return columns, move, counters
}

// firstCounters returns the counters since boot in a journal of a host without optional devices.
func firstCounters() []collector.Column {
	return slices.DeleteFunc(collector.Counters(), func(c collector.Column) bool { return c.Info().Scope == collector.ScopeDevice })
}

// sameBut compares two reports; the columns without are absent in got.
func sameBut(t *testing.T, what string, want, got *reporter.Report, without ...string) {
	t.Helper()
	w, g := want.Nodes["3"], got.Nodes["3"]
	for _, key := range without {
		if _, ok := g.Summaries[key]; ok {
			t.Errorf("%s: the report has a summary of %s, want none", what, key)
		}
		for _, v := range append(slices.Clone(g.Samples.Column(key)), g.Envelope[key].Max...) {
			if !math.IsNaN(v) {
				t.Errorf("%s: %s has the value %v, want NaN", what, key, v)
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
		t.Errorf("%s: %d samples, want %d; missing %v, want as many entries as %v", what, g.Sampling.Samples,
			w.Sampling.Samples, g.Missing, w.Missing)
	}
}

// A journal with fewer columns can be read; missing columns are absent, never 0.
func TestParse_MissingColumnsAreAbsent(t *testing.T) {
	t.Parallel()
	lacking := append(laterColumns(), "net_io_ext_recv_mb", "net_io_ext_recv_mb_per_second")
	columns, move, counters := without(lacking)
	if len(columns) != 16 || len(counters) != len(firstCounters())-1 {
		t.Fatalf("the shorter journal has %d columns, want 16; %d counters, want %d", len(columns), len(counters),
			len(firstCounters())-1)
	}
	for _, snapshot := range []bool{false, true} {
		for _, n := range []int{1, 8, 61} {
			data, _ := journalOf(t, n, snapshot)
			want, got := parsed(t, data), parsed(t, rewritten(t, data, columns, move, counters, nil))
			metrics := want.Nodes["3"].Metrics
			for _, absent := range []string{"total_net_io_ext_recv_mb", "boot_total_net_io_ext_recv_mb"} {
				delete(metrics, absent)
				missing := func(m reporter.Missing) bool { return m.What == absent }
				if !slices.ContainsFunc(got.Nodes["3"].Missing, missing) {
					t.Errorf("missing lacks %s", absent)
				}
			}
			got.Nodes["3"].Missing = want.Nodes["3"].Missing
			sameBut(t, fmt.Sprintf("%d samples, snapshot %v", n, snapshot), want, got, lacking...)
		}
	}
}

// Unknown columns and counters of a later version are ignored at any position, and any order
// of columns is accepted.
func TestParse_IgnoresUnknownColumnsInAnyOrder(t *testing.T) {
	t.Parallel()
	ours := keysOf(firstColumns())
	for _, snapshot := range []bool{false, true} {
		data, _ := journalOf(t, 61, snapshot)
		columns, move := []string{"gpu_percent"}, []int{-1}
		for i := range ours { // in reverse order, with a new one in the middle
			k := len(ours) - 1 - i
			columns, move = append(columns, ours[k]), append(move, k)
			if i == 9 {
				columns, move = append(columns, "power_watts"), append(move, -1)
			}
		}
		counters, names := []int{-1}, []string{"tape_io_read_mb"}
		for i, c := range firstCounters() { // also in reverse order, with two new ones
			counters, names = slices.Insert(counters, 1, i), slices.Insert(names, 1, c.Key())
		}
		got := parsed(t, rewritten(t, data, columns, move, append(counters, -1), append(names, "tape_io_write_mb")))
		sameBut(t, fmt.Sprint("snapshot ", snapshot), parsed(t, data), got)
	}
}

// Lines with another number of columns than in the head are damaged, and counted.
func TestParse_CountsLinesOfAnotherWidthAsDamaged(t *testing.T) {
	t.Parallel()
	data, _ := journalOf(t, 20, false)
	head, rest, _ := strings.Cut(string(data), "\n")
	columns, move, counters := without(laterColumns())
	short := strings.SplitAfter(string(rewritten(t, data, columns, move, counters, nil)), "\n")
	ours, all, _ := without(nil)
	fewer := strings.SplitAfter(string(rewritten(t, data, ours, all, counters[1:], nil)), "\n")
	n := parsed(t, []byte(head+"\n"+short[3]+fewer[3]+rest)).Nodes["3"]
	if n.Sampling.Samples != 20 || !slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool {
		return m.What == "journal" && strings.Contains(m.Why, "damaged lines, left out: 2")
	}) {
		t.Errorf("%d samples, want 20; missing %v, want 2 damaged lines", n.Sampling.Samples, n.Missing)
	}
	for _, columns := range [][]string{{}, {"timestamp"}, {"timestamp", "timestamp"}} {
		if _, err := Parse(rewritten(t, data, columns, move, counters, nil)); err != nil {
			t.Errorf("head with the columns %v: Parse: error %v, want none", columns, err)
		}
	}
	_, err := Parse(rewritten(t, data, nil, move, counters, nil))
	if err == nil || !strings.Contains(err.Error(), "names no columns") {
		t.Errorf("head without columns: error %v, want \"names no columns\"", err)
	}
}

// Journals of killed perfagents can be read: of a few samples, with a snapshot, after SIGTERM, with a GPU,
// and of a job with phases and operations. The metrics computed at that time are stored next to each.
func TestParse_ReadsJournalsOfKilledRuns(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(paths) != 5 {
		t.Fatalf("journals %q, want 5; error %v", paths, err)
	}
	for _, path := range paths {
		r, err := read(path)
		if err != nil {
			t.Errorf("%s: Parse: error %v, want none", path, err)
			continue
		}
		data, err := os.ReadFile(strings.TrimSuffix(path, "l"))
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string]reporter.Values)
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		n := r.Nodes["0"]
		delete(n.Metrics, "gpu_0_energy_joules") // that version did not estimate it
		maps.Copy(n.Metrics, n.PhaseValues())
		maps.Copy(n.Metrics, n.OperationValues())
		if d := cmp.Diff(want["0"], n.Metrics); d != "" {
			t.Errorf("%s: metrics (-then +now):\n%s", path, d)
		}
		for _, m := range n.Missing {
			if m.What == "journal" {
				t.Errorf("%s: missing of the journal %q, want none", path, m.Why)
			}
		}

		name := filepath.Base(path)
		if verdict := r.Run.Verdict.Text; strings.Contains(verdict, "SIGTERM from") != (name == "term.jsonl") {
			t.Errorf("%s: verdict %q, want SIGTERM in term.jsonl only", path, verdict)
		}
		lines, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		isSnapshot, hasGPU := bytes.Contains(lines, []byte(`{"snapshot":{`)), len(n.GPUs) == 1
		if isSnapshot != strings.Contains(name, "snapshot") || hasGPU != strings.Contains(name, "gpus") {
			t.Errorf("%s: snapshot %v, GPU %v, want them as in the file's name", path, isSnapshot, hasGPU)
		}
	}
}
