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
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// wideJournal is journalFrom for a wide stream.
func wideJournal(t testing.TB, w *reportertest.WideStream, n, snapshotAt int) ([]byte, *collector.Recording) {
	t.Helper()
	return journalFrom(t, w, w.Stream, n, snapshotAt)
}

// wideSame compares a journal's report with the Recording's. The account of the newest seconds may not be in the
// journal yet.
func wideSame(t *testing.T, what string, data []byte, rec *collector.Recording) {
	t.Helper()
	got := parsed(t, data)
	n := got.Nodes["3"]
	want := diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: got.Run, Node: 3, Recording: rec, Agent: reporter.Agent{Version: "test"}}}).Nodes["3"]
	for _, part := range []string{"Summaries", "Limits", "Sampling"} {
		field := func(n *reporter.Node) any { return reflect.ValueOf(n).Elem().FieldByName(part).Interface() }
		same(t, what+": "+part, field(n), field(want), cmpopts.EquateApprox(1e-9, 2e-6))
	}
	same(t, what+": keys", n.Samples.Keys, want.Samples.Keys)
	same(t, what+": number of bands", len(n.Envelope), len(want.Envelope))
	for key, band := range want.Envelope { // rounded to the decimals of a bucket
		c, _ := collector.ColumnByKey(key)
		approx := cmp.Options{cmpopts.EquateApprox(1e-9, 2*math.Pow10(-c.Info().Digits)), cmpopts.EquateNaNs()}
		same(t, what+": envelope of "+key, n.Envelope[key], band, approx)
		same(t, what+": samples of "+key, n.Samples.Column(key), want.Samples.Column(key), approx)
	}
	same(t, what+": number of GPUs", len(n.GPUs), len(rec.GPUs))
	same(t, what+": missing parts of the journal", fmt.Sprint(about("journal", n.Missing)), "[]")
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
		if samples == 0 {
			continue
		}
		if least := max(21, 20+lines); bytes.Contains(whole[head:at], []byte(`{"snapshot":`)) && (samples < least || samples > 21+lines) {
			t.Fatalf("cut at %d: %d samples, want %d to %d", at, samples, least, 21+lines)
		}
		if (len(n.GPUs) == 2) != (samples > 12) || (n.Envelope["gpu_1_power_watts"].Mean != nil) != (samples > 12) {
			t.Fatalf("cut at %d: %d samples, %d GPUs, want 2 with power after sample 12", at, samples, len(n.GPUs))
		}
		most := float64(samples) / 2
		if cpu, ok := n.Metrics["job_cpu_seconds"]; !ok || cpu < most-accountEvery.Seconds()/2 || cpu > most {
			t.Fatalf("cut at %d: %v s of CPU (known: %v), want %v to %v", at, cpu, ok, most-accountEvery.Seconds()/2, most)
		}
	}
}

// If the line that announces the GPUs is damaged, only the lines up to the next state are lost.
func TestParse_DamagedLineHidesGPUsOnlyUpToTheNextState(t *testing.T) {
	data, _ := wideJournal(t, reportertest.NewWideStream(5, 12, 2), 40, -1)
	lines := bytes.SplitAfter(data, []byte{'\n'})
	lines[13] = append(bytes.Repeat([]byte{'x'}, 40), '\n') // the head is line 0
	n, least := parsed(t, bytes.Join(lines, nil)).Nodes["3"], 40-1-int64(accountEvery.Seconds())
	if n.Sampling.Samples < least || len(n.GPUs) != 2 || n.Envelope["gpu_1_power_watts"].Mean == nil {
		t.Errorf("%d samples, want at least %d; %d GPUs, want 2 with their power", n.Sampling.Samples, least, len(n.GPUs))
	}
}

// The account, the GPUs and Missing are restored unchanged.
func TestJournal_KeepsAccount(t *testing.T) {
	for _, snapshotAt := range []int{-1, 32} {
		data, rec := wideJournal(t, reportertest.NewWideStream(5, 3, 2), 33, snapshotAt)
		j := taken(t, data)
		if snapshotAt < 0 { // from the last state, at most 4 s old
			last := reportertest.NewWideStream(5, 3, 2)
			rec = last.Recording(10)
			for range 32 { // the sample at 32 s contains the state
				last.Next(rec)
			}
		}
		same(t, "account", j.rec.Account, rec.Account, reportertest.SameFloats())
		same(t, "GPUs", j.rec.GPUs, rec.GPUs, reportertest.SameFloats())
		same(t, "missing", j.rec.Missing, rec.Missing)
	}
}

// taken returns a parser that has taken the lines of a journal.
func taken(t testing.TB, data []byte) *parser {
	t.Helper()
	j := new(parser)
	for line := range lines(data) {
		check.Must(t, j.take(line))
	}
	return j
}

// parsedIn64MiB returns the report of a journal, and checks how much memory is allocated for it.
func parsedIn64MiB(t *testing.T, name string, data []byte) *reporter.Report {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := Parse(data)
	if err != nil {
		t.Fatalf("%s: Parse: error %v, want none", name, err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%s: %d MiB allocated for %d KiB, want at most 64 MiB", name, took>>20, len(data)>>10)
	}
	return r
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
	_, good, _ := strings.Cut(string(data), `"packed":"`)
	good, _, _ = strings.Cut(good, `"`)
	sums := "[" + strings.TrimSuffix(strings.Repeat("null,", int(collector.GPUColumn(2, 0))), ",") + "]"
	bomb := wideGzip(strings.Repeat(" ", 1<<25))
	zeros := wideGzip(sums, `{"v":[`, strings.Repeat("0,", 1<<24), `0]}`)
	many := wideGzip(sums, strings.Repeat(`{}`, 1<<22))
	deep := wideGzip(strings.Repeat(`[`, 1<<22))
	for name, packed := range map[string]string{"empty gzip": wideGzip(""), "not gzip": "AAAA", "no base64": "%%%", "cut": good[:len(good)/2/4*4], "odd length": good[:len(good)/2|1],
		"trailing garbage": good[:len(good)-8] + "AAAAAAAA", "bomb of spaces": bomb, "one bucket of zeros": zeros, "many buckets": many, "deeply nested": deep,
		"text": wideGzip("hello"), "null": wideGzip("null null"),
		"summaries only": wideGzip(sums), "too few summaries": wideGzip("[null]")} {
		begin := time.Now()
		n := parsedIn64MiB(t, name, widePacked(t, data, packed)).Nodes["3"]
		if d := time.Since(begin); d > time.Minute {
			t.Errorf("%s: reading took %v, want at most a minute", name, d)
		}
		if !slices.ContainsFunc(about("journal", n.Missing), func(m reporter.Missing) bool { return strings.Contains(m.Why, "damaged") }) {
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
		hostile := bytes.Replace(widePacked(t, data, wideGzip("[]", strings.Repeat(`{}`, 1<<22))),
			[]byte(`"max_length":10,"start"`), fmt.Appendf(nil, `"max_length":%d,"start"`, capacity), 1)
		parsedIn64MiB(t, fmt.Sprint("capacity ", capacity), hostile)
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
	check.Must(tb, j.Stop(time.Minute))
	most = max(most, sizeOf(tb, dir))
	data := check.Value(reporter.Encode(diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: reporter.Run{ID: "r"}, Recording: rec}})))(tb)
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
