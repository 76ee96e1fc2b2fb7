package journal

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// wideJournal returns a journal of n samples, with a snapshot after sample snapshotAt unless
// that is negative, and its Recording. The queue has room for all samples.
func wideJournal(t testing.TB, w *reportertest.WideStream, n, snapshotAt int) ([]byte, *collector.Recording) {
	t.Helper()
	if n > queueLength {
		t.Fatalf("%d samples do not fit in the queue", n)
	}
	rec := w.Recording(10)
	return written(t, head(w.Stream, 10), func(j *Journal) {
		for i := range n {
			if i == snapshotAt {
				j.wantSnapshot.Store(true)
			}
			j.Observe(w.Next(rec), rec)
		}
	}), rec
}

// wideSame compares a journal's report with the Recording's. The account of the newest seconds may not be in the
// journal yet.
func wideSame(t *testing.T, what string, data []byte, rec *collector.Recording) *reporter.Report {
	t.Helper()
	got := parsed(t, data)
	n := got.Nodes["3"]
	want := diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: got.Run, Node: 3, Recording: rec, Agent: reporter.Agent{Version: "test"}}}).Nodes["3"]
	for _, part := range []string{"Summaries", "Limits", "Sampling"} {
		if d := cmp.Diff(reflect.ValueOf(want).Elem().FieldByName(part).Interface(), reflect.ValueOf(n).Elem().FieldByName(part).Interface(), cmpopts.EquateApprox(1e-9, 2e-6)); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", what, part, d)
		}
	}
	if d := cmp.Diff(want.Samples.Keys, n.Samples.Keys); d != "" || len(want.Envelope) != len(n.Envelope) {
		t.Errorf("%s: %d bands, want %d; keys (-want +got):\n%s", what, len(n.Envelope), len(want.Envelope), d)
	}
	for key, band := range want.Envelope { // rounded to the decimals of a bucket
		c, _ := collector.ColumnByKey(key)
		approx := cmp.Options{cmpopts.EquateApprox(1e-9, 2*math.Pow10(-c.Info().Digits)), cmpopts.EquateNaNs()}
		for i, pair := range [][2]any{{band, n.Envelope[key]}, {want.Samples.Column(key), n.Samples.Column(key)}} {
			if d := cmp.Diff(pair[0], pair[1], approx); d != "" {
				t.Errorf("%s: %s of %s (-want +got):\n%s", what, []string{"envelope", "samples"}[i], key, d)
			}
		}
	}
	if len(n.GPUs) != len(rec.GPUs) {
		t.Errorf("%s: %d GPUs, want %d", what, len(n.GPUs), len(rec.GPUs))
	}
	for _, m := range n.Missing {
		if m.What == "journal" {
			t.Errorf("%s: missing %+v, want no entry about the journal", what, m)
		}
	}
	return got
}

// GPUs found during the run make the lines longer. The journal's report equals the Recording's, whether a snapshot
// comes before, after or never.
func TestJournal_KeepsGPUsFoundDuringRun(t *testing.T) {
	snapshots := []int{-1, 13, 12, 0, 7, 20}
	for _, gpus := range []int{0, 1, 2, collector.MaxGPUs} {
		for _, snapshotAt := range snapshots[:testenv.Rounds(len(snapshots), 2)] {
			data, rec := wideJournal(t, reportertest.NewWideStream(5, 12, gpus), 33, snapshotAt)
			wideSame(t, fmt.Sprintf("%d GPUs, snapshot at %d", gpus, snapshotAt), data, rec)
		}
	}
}

// After kill -9, with any part of the last line on disk, the earlier samples are read, the account is at most
// accountEvery old, and all GPU values are kept.
func TestParse_CutJournalKeepsItsCompleteLines(t *testing.T) {
	whole, _ := wideJournal(t, reportertest.NewWideStream(5, 12, 2), 40, 20)
	head := bytes.IndexByte(whole, '\n') + 1
	for at := head; at < len(whole); at += testenv.Rounds(211, 1009) {
		n, lines := parsed(t, whole[:at]).Nodes["3"], bytes.Count(whole[head:at], []byte{'\n'})
		samples := int(n.Sampling.Samples)
		if bytes.Contains(whole[head:at], []byte(`{"snapshot":`)) {
			if samples > 0 && (samples < 21 || samples < 20+lines || samples > 21+lines) {
				t.Fatalf("cut at %d: %d samples, want %d to %d", at, samples, max(21, 20+lines), 21+lines)
			}
		}
		if samples == 0 {
			continue
		}
		if (len(n.GPUs) == 2) != (samples > 12) || (n.Envelope["gpu_1_power_watts"].Mean != nil) != (samples > 12) {
			t.Fatalf("cut at %d: %d samples, %d GPUs, want 2 with their power after sample 12, none before", at,
				samples, len(n.GPUs))
		}
		least := float64(samples)/2 - accountEvery.Seconds()/2
		if cpu, ok := n.Metrics["job_cpu_seconds"]; !ok || cpu < least || cpu > float64(samples)/2 {
			t.Fatalf("cut at %d: %v s of CPU (known: %v) after %d samples, want %v to %v", at, cpu, ok, samples, least,
				float64(samples)/2)
		}
	}
}

// If the line that announces the GPUs is damaged, only the lines up to the next state are lost.
func TestParse_DamagedLineHidesGPUsOnlyUpToTheNextState(t *testing.T) {
	data, _ := wideJournal(t, reportertest.NewWideStream(5, 12, 2), 40, -1)
	lines := bytes.SplitAfter(data, []byte{'\n'})
	lines[13] = append(bytes.Repeat([]byte{'x'}, 40), '\n') // the head is line 0
	n := parsed(t, bytes.Join(lines, nil)).Nodes["3"]
	if n.Sampling.Samples < 40-1-int64(accountEvery.Seconds()) || len(n.GPUs) != 2 || n.Envelope["gpu_1_power_watts"].Mean == nil {
		t.Errorf("damaged line 13: %d samples, want at least %d; %d GPUs, want 2 with their power", n.Sampling.Samples,
			40-1-int64(accountEvery.Seconds()), len(n.GPUs))
	}
}

// The account, the GPUs and Missing are restored unchanged.
func TestJournal_KeepsAccount(t *testing.T) {
	for _, snapshotAt := range []int{-1, 32} {
		data, rec := wideJournal(t, reportertest.NewWideStream(5, 3, 2), 33, snapshotAt)
		var j parser
		for line := range lines(data) {
			if err := j.take(line); err != nil {
				t.Fatal(err)
			}
		}
		if snapshotAt < 0 { // from the last state, at most 4 s old
			last := reportertest.NewWideStream(5, 3, 2)
			rec = last.Recording(10)
			for range 32 { // the sample at 32 s contains the state
				last.Next(rec)
			}
		}
		if d := cmp.Diff(rec.Account, j.rec.Account, reportertest.SameFloats()); d != "" {
			t.Errorf("account (-want +got):\n%s", d)
		}
		if d := cmp.Diff(rec.GPUs, j.rec.GPUs, reportertest.SameFloats()); d != "" {
			t.Errorf("GPUs (-want +got):\n%s", d)
		}
		if d := cmp.Diff(rec.Missing, j.rec.Missing); d != "" {
			t.Errorf("missing (-want +got):\n%s", d)
		}
	}
}

// widePacked returns a snapshot's line with the packed buckets replaced.
func widePacked(t testing.TB, data []byte, packed string) []byte {
	t.Helper()
	from := bytes.LastIndex(data, []byte(`"packed":"`)) + len(`"packed":"`)
	to := from + bytes.IndexByte(data[from:], '"')
	return slices.Concat(data[:from], []byte(packed), data[to:])
}

func wideGzip(parts ...string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	for _, p := range parts {
		_, _ = z.Write([]byte(p))
	}
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// Damaged or hostile packed buckets count as one damaged line and take bounded memory.
func TestParse_HostilePackedBucketsTakeBoundedMemory(t *testing.T) {
	data, _ := wideJournal(t, reportertest.NewWideStream(5, 3, 2), 20, 10)
	from := bytes.LastIndex(data, []byte(`"packed":"`)) + len(`"packed":"`)
	good := string(data[from : from+bytes.IndexByte(data[from:], '"')])
	sums := "[" + strings.TrimSuffix(strings.Repeat("null,", int(collector.GPUColumn(2, 0))), ",") + "]"
	bomb := wideGzip(strings.Repeat(" ", 1<<25))
	zeros := wideGzip(sums, `{"v":[`, strings.Repeat("0,", 1<<24), `0]}`)
	many := wideGzip(sums, strings.Repeat(`{}`, 1<<22))
	deep := wideGzip(strings.Repeat(`[`, 1<<22))
	for name, packed := range map[string]string{"empty gzip": wideGzip(""), "not gzip": "AAAA", "no base64": "%%%", "cut": good[:len(good)/2/4*4], "odd length": good[:len(good)/2|1],
		"trailing garbage": good[:len(good)-8] + "AAAAAAAA", "bomb of spaces": bomb, "one bucket of zeros": zeros, "many buckets": many, "deeply nested": deep,
		"text": wideGzip("hello"), "null": wideGzip("null null"),
		"summaries only": wideGzip(sums), "too few summaries": wideGzip("[null]")} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		r, err := Parse(widePacked(t, data, packed))
		if err != nil {
			t.Errorf("%s: Parse: error %v, want none", name, err)
			continue
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: %d MiB allocated for a journal of %d KiB, want at most 64 MiB", name, took>>20,
				len(packed)>>10)
		}
		if d := time.Since(begin); d > time.Minute {
			t.Errorf("%s: reading took %v, want at most a minute", name, d)
		}
		n := r.Nodes["3"]
		if !slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool { return m.What == "journal" && strings.Contains(m.Why, "damaged") }) {
			t.Errorf("%s: missing %v, want damaged lines of the journal", name, n.Missing)
		}
	}
	if r, err := Parse(widePacked(t, data, good)); err != nil || r.Nodes["3"].Sampling.Samples != 20 {
		t.Errorf("undamaged buckets: error %v, want 20 samples", err)
	}
}

// A hostile capacity in a snapshot does not lead to unlimited unpacking.
func TestParse_HostileCapacityTakesBoundedMemory(t *testing.T) {
	data, _ := wideJournal(t, reportertest.NewWideStream(5, 3, 0), 20, 10)
	for _, capacity := range []int{-2, 0, 3, 1 << 30, math.MaxInt64} {
		hostile := bytes.Replace(widePacked(t, data, wideGzip("[]", strings.Repeat(`{}`, 1<<22))), []byte(`"max_length":10,"start"`), fmt.Appendf(nil, `"max_length":%d,"start"`, capacity), 1)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Parse(hostile); err != nil {
			t.Errorf("capacity %d: Parse: error %v, want none", capacity, err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("capacity %d: %d MiB allocated, want at most 64 MiB", capacity, took>>20)
		}
	}
}

// wideSize writes samples with values in every column to a journal on disk, with GPUs from
// the start, in a synctest bubble. It returns the greatest size of the journal and the size of the report.
func wideSize(tb testing.TB, n, gpus int) (most, report int64) {
	tb.Helper()
	w := reportertest.NewWideStream(7, 0, gpus)
	rec := w.Recording(1000)
	j := createFor(tb, head(w.Stream, 1000))
	dir := filepath.Dir(j.Path())
	for i := range n {
		j.Observe(w.Next(rec), rec)
		settle(j) // in a real run, the writer has a second for each sample
		if i%queueLength == 0 || j.wantSnapshot.Load() {
			most = max(most, sizeOf(tb, dir))
		}
	}
	settle(j)
	if err := j.Stop(time.Minute); err != nil {
		tb.Fatal(err)
	}
	most = max(most, sizeOf(tb, dir))
	data, err := reporter.Encode(diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: reporter.Run{ID: "r"}, Recording: rec}}))
	if err != nil {
		tb.Fatal(err)
	}
	return most, int64(len(data))
}

// The promised maximum size holds with values in every column of a host and its job, up to
// the fullest possible ring.
func TestJournal_StaysSmallWithGPUs(t *testing.T) {
	all := []int{0, 8, 16}
	for _, gpus := range all[testenv.Rounds(0, 2):] {
		t.Run(fmt.Sprint(gpus), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				// The last sample before the third halving, or before the first.
				most, report := wideSize(t, testenv.Rounds(3900, 980), gpus)
				t.Logf("%d GPUs: journal at most %d bytes, report %d", gpus, most, report)
				if most > 2<<20 {
					t.Errorf("%d GPUs: the journal took %d bytes on disk, want at most %d", gpus, most, 2<<20)
				}
			})
		})
	}
}
