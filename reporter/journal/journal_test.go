package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/durable"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/summary"
)

func head(s *reportertest.Stream, maxLength int) Head {
	return Head{Run: reporter.Run{ID: "r", Command: []string{"job", "\x1b[31m"}, Start: reporter.Time{Time: s.Start.Wall}, End: reporter.Time{Time: s.Start.Wall}},
		Node: 3, Interval: time.Second, MaxLength: maxLength, Agent: reporter.Agent{Version: "test"}}
}

// same checks that two values are equal.
func same(t testing.TB, what string, got, want any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// read reads a journal.
func read(t testing.TB, path string) *reporter.Report {
	t.Helper()
	r, err := Parse(check.Value(os.ReadFile(path))(t))
	if err != nil {
		t.Fatalf("%s: Parse: error %v, want none", path, err)
	}
	return r
}

// settle waits until the writer is idle, in a synctest bubble.
func settle(*Journal) { synctest.Wait() }

// createFor creates a journal that is stopped at the end of its test, even if it fails: a synctest
// bubble ends only with its goroutines.
func createFor(t testing.TB, h Head) *Journal {
	t.Helper()
	j := check.Value(Create(t.TempDir(), h))(t)
	t.Cleanup(func() {
		select {
		case <-j.done:
		default:
			_ = j.Stop(time.Minute)
		}
	})
	return j
}

// written returns the journal that fill wrote.
func written(t testing.TB, h Head, fill func(j *Journal)) []byte {
	t.Helper()
	j := createFor(t, h)
	fill(j)
	return stopped(t, j)
}

// observe adds n samples of a stream to a journal.
func observe(j *Journal, s *reportertest.Stream, rec *collector.Recording, n int) {
	for range n {
		j.Observe(s.Next(rec), rec)
	}
}

// samples is a Stream or a WideStream.
type samples interface {
	Recording(maxLength int) *collector.Recording
	Next(rec *collector.Recording) *collector.Sample
}

// journalFrom returns a journal of n samples, with a snapshot after sample snapshotAt unless that is negative, and its
// Recording. The queue has room for all samples.
func journalFrom(t testing.TB, s samples, of *reportertest.Stream, n, snapshotAt int) ([]byte, *collector.Recording) {
	t.Helper()
	if n > queueLength {
		t.Fatalf("%d samples do not fit in the queue", n)
	}
	rec := s.Recording(10)
	return written(t, head(of, 10), func(j *Journal) {
		for i := range n {
			if i == snapshotAt {
				j.wantSnapshot.Store(true)
			}
			j.Observe(s.Next(rec), rec)
		}
	}), rec
}

// stopped stops a journal, and returns its content.
func stopped(t testing.TB, j *Journal) []byte {
	t.Helper()
	check.Must(t, j.Stop(time.Minute))
	return check.Value(os.ReadFile(j.Path()))(t)
}

// parsed returns the report of a journal.
func parsed(t testing.TB, data []byte) *reporter.Report {
	t.Helper()
	return check.Value(Parse(data))(t)
}

// drain waits until the writer has taken everything, in a benchmark.
func drain(j *Journal) {
	for len(j.queue) > 0 {
		runtime.Gosched()
	}
}

// The parts of the memory at the peak may come from any sample before the cut, with or without a snapshot and a state.
func TestJournal_KeepsMemoryAtPeak(t *testing.T) {
	for _, snapshotAt := range []int{-1, 0, 5, 8} {
		synctest.Test(t, func(t *testing.T) {
			s := reportertest.NewStream(1)
			rec := s.Recording(4)
			data := written(t, head(s, 4), func(j *Journal) {
				for i := range 12 {
					if i == snapshotAt {
						j.wantSnapshot.Store(true)
					}
					sample := s.Next(rec)
					mb := 100 + float64(i)
					if i == 6 {
						mb = 500
					}
					for c, v := range map[collector.Column]float64{collector.JobMemory: mb, collector.JobMemoryAnon: mb - 60,
						collector.JobMemoryFile: 10, collector.JobMemoryShmem: 50} {
						sample.Values[c] = v
					}
					if parts, mb := collector.NewMemoryParts(sample, ""); mb > rec.Account.PartsPeakMB { // as Add does
						rec.Account.MemoryAtPeak, rec.Account.PartsPeakMB = parts, mb
					}
					j.Observe(sample, rec)
				}
			})
			n := parsed(t, data).Nodes["3"]
			if p := n.PeakParts(); n.Job != nil || p == nil || p.AnonMB != 440 || p.ShmemMB != 50 || p.Source != host.JobFromTree {
				t.Errorf("snapshot after %d samples: parts at the peak = %+v, want 440 MiB of 500 anonymous", snapshotAt, p)
			}
		})
	}
}

func TestJournal_GivesSameReportAsRecording(t *testing.T) {
	for _, n := range []int{0, 1, 2, 11, 999, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { givesTheReport(t, n) })
		})
	}
}

// journaled writes n samples of a stream to a journal, and calls before ahead of each. It returns the journal and the
// report read from it.
func journaled(
	t *testing.T, s *reportertest.Stream, rec *collector.Recording, n int, before func(i int, j *Journal),
) (*Journal, *reporter.Report) {
	t.Helper()
	j := createFor(t, head(s, 10))
	for i := range n {
		before(i, j)
		j.Observe(s.Next(rec), rec)
		settle(j)
	}
	return j, parsed(t, stopped(t, j))
}

// givesTheReport compares the report from a journal of n samples with the Recording's.
func givesTheReport(t *testing.T, n int) {
	t.Helper()
	s := reportertest.NewStream(uint64(n))
	rec := s.Recording(10)
	rec.ReaderName = host.Gopsutil
	j, got := journaled(t, s, rec, n, func(int, *Journal) {})
	if n == 0 { // no line contains the state
		rec = collector.NewRecording(host.Instant{Wall: s.Start.Wall}, time.Second, 10)
	}
	want := diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: got.Run, Node: 3, Recording: rec, Agent: reporter.Agent{Version: "test"}}})
	same(t, "report from the journal", got, want, cmpopts.EquateApprox(1e-9, 2e-6), cmpopts.EquateNaNs())
	same(t, "metrics from the journal, to the last bit", got.Nodes["3"].Metrics, want.Nodes["3"].Metrics)
	if got.Run.Incomplete == "" {
		t.Error("the report from a journal does not state why it is incomplete")
	}
	check.Must(t, j.Remove())
}

func TestJournal_DamagedLinesHideNoOtherLines(t *testing.T) {
	s := reportertest.NewStream(1)
	rec := s.Recording(100)
	whole := written(t, head(s, 100), func(j *Journal) { observe(j, s, rec, 60) })
	samplesOf := func(data []byte) int64 {
		n := parsed(t, data).Nodes["3"]
		for name, v := range n.Metrics {
			if v < 0 {
				t.Fatalf("metric %s is negative: %v", name, v)
			}
		}
		for c := range collector.NumColumns {
			if most := n.Summaries[c.Key()].Max; c.IsPercent() && most > 100 {
				t.Fatalf("the maximum of %s is %v, want at most 100", c.Key(), most)
			}
		}
		return n.Sampling.Samples
	}
	same(t, "samples of the whole journal", samplesOf(whole), int64(60))
	for cut := bytes.IndexByte(whole, '\n') + 1; cut < len(whole); cut += testenv.Rounds(97, 499) {
		want := int64(bytes.Count(whole[:cut], []byte{'\n'}) - 1)
		if whole[cut] == '\n' { // only the line end is missing
			want++
		}
		if got := samplesOf(whole[:cut]); got != want {
			t.Fatalf("cut at %d: %d samples, want %d", cut, got, want)
		}
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n')
	for at := last; at < len(whole); at++ { // a changed point or sign may leave a valid number
		damage := byte('-') // instead of a number's first digit
		switch before := whole[at-1]; {
		case whole[at] == '.':
			damage = '4'
		case whole[at] < '0' || whole[at] > '9' || before != '[' && before != ',' && before != ':':
			continue
		}
		data := bytes.Clone(whole)
		data[at] = damage
		if got := samplesOf(data); got < 59 {
			t.Fatalf("%q at byte %d: %d samples, want at least 59", damage, at, got)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range testenv.Rounds(300, 60) {
		data := bytes.Clone(whole)
		from := bytes.IndexByte(whole, '\n') + 1
		at := from + rnd.IntN(len(data)-from)
		data[at] ^= byte(1 + rnd.IntN(255))
		if got := samplesOf(data); got < 58 { // one damaged line, or two joined lines
			t.Fatalf("a byte flipped at %d: %d samples, want at least 58", at, got)
		}
	}
}

func TestJournal_RecordingsOfOneNodeGetDifferentNames(t *testing.T) {
	dir := t.TempDir()
	check.Must(t, os.WriteFile(filepath.Join(dir, "node-3.json"), nil, 0o644))
	var wg sync.WaitGroup
	names := make([]string, 8)
	for i := range names {
		wg.Go(func() {
			s := reportertest.NewStream(1)
			j, err := Create(dir, head(s, 10))
			if err != nil {
				t.Error(err)
				return
			}
			names[i] = filepath.Base(j.ReportPath())
			_ = j.Stop(time.Minute)
		})
	}
	wg.Wait()
	same(t, "names", slices.Sorted(slices.Values(names)), []string{"node-3.2.json", "node-3.3.json", "node-3.4.json",
		"node-3.5.json", "node-3.6.json", "node-3.7.json", "node-3.8.json", "node-3.9.json"})
}

// journalSize writes n samples to a journal on disk and then the report. It
// returns the greatest size of both together, and the report's size. wait waits for the writer.
func journalSize(tb testing.TB, n int, wait func(*Journal)) (most, report int64) {
	tb.Helper()
	s := reportertest.NewStream(7)
	rec := s.Recording(1000)
	j := createFor(tb, head(s, 1000))
	dir := filepath.Dir(j.Path())
	for i := range n {
		j.Observe(s.Next(rec), rec)
		if i%queueLength == 0 || j.wantSnapshot.Load() {
			wait(j)
			most = max(most, sizeOf(tb, dir))
		}
	}
	wait(j)
	check.Must(tb, j.Stop(time.Minute))
	data := check.Value(reporter.Encode(diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: reporter.Run{ID: "r"}, Recording: rec}})))(tb)
	check.Must(tb, durable.WriteNew(j.ReportPath(), data))
	return max(most, sizeOf(tb, dir)), int64(len(data))
}

// TestJournal_StaysSmall checks the promised maximum size up to the fullest
// possible ring; BenchmarkJournalWeek continues for a week.
func TestJournal_StaysSmall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		most, report := journalSize(t, testenv.Rounds(8000, 4000), settle)
		t.Logf("journal and report: at most %d bytes; report %d", most, report)
		if most > 2<<20 {
			t.Errorf("journal and report took %d bytes on disk, want at most %d", most, 2<<20)
		}
	})
}

func BenchmarkJournalWeek(b *testing.B) {
	for b.Loop() {
		most, report := journalSize(b, 7*24*3600, drain)
		b.ReportMetric(float64(most), "disk-bytes-max")
		b.ReportMetric(float64(report), "report-bytes")
	}
}

func sizeOf(t testing.TB, dir string) int64 {
	t.Helper()
	sum := int64(0)
	for _, e := range check.Value(os.ReadDir(dir))(t) {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

func TestJournal_RestoresSamplesAfterFullDisk(t *testing.T) {
	s := reportertest.NewStream(3)
	rec := s.Recording(100)
	j := createFor(t, head(s, 100))
	observe(j, s, rec, 5)
	stopped(t, j)
	w := &j.w
	good := w.file
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full here: %v", err)
	}
	w.file = full
	w.take(entry{line: j.line(s.Next(rec), rec)})
	if w.firstErr == nil || !w.failing {
		t.Fatalf("a write to a full disk: error %v, failing %v, want an error and true", w.firstErr, w.failing)
	}
	w.file, w.retry = good, w.retry.Add(time.Hour)
	w.take(entry{line: j.line(s.Next(rec), rec)})
	if j.wantSnapshot.Load() {
		t.Error("a snapshot was requested right after a failure, want a pause first")
	}
	w.retry = time.Now().Add(-time.Second)
	w.take(entry{line: j.line(s.Next(rec), rec)})
	if !j.wantSnapshot.Load() {
		t.Error("no snapshot was requested after the pause, want one")
	}
	w.take(entry{snapshot: rec.Clone()})
	if got := read(t, j.Path()).Nodes["3"].Sampling.Samples; w.failing || got != 8 {
		t.Errorf("after a rewrite: %d samples, failing %v (%v), want 8 samples", got, w.failing, w.firstErr)
	}
}

// A sign instead of a digit in the state is damage: the line is skipped, and no value
// in the report is wrongly negative. A clock step may be negative.
func TestState_RejectsNegativeNumbers(t *testing.T) {
	t.Parallel()
	const whole = `{"host":{"cpus":2,"memory_mb":1000},"missed_ticks":3,"longest_gap_ns":5,"failures":[{"source":"cpu","count":4}],` +
		`"clock":[{"by":-5}],"late":{"x":6},"account":{"cpu_seconds":7},"gpus":[{"memory_mb":8}]}`
	var s state
	if err := json.Unmarshal([]byte(whole), &s); err != nil || s.Missed != 3 || s.Clock[0].By != -5 {
		t.Fatalf("state %+v, want 3 missed ticks and a clock step of -5; error %v", s, err)
	}
	for _, digit := range "2134678" {
		damaged := strings.Replace(whole, ":"+string(digit), ":-"+string(digit), 1)
		if err := json.Unmarshal([]byte(damaged), new(state)); err == nil {
			t.Errorf("a damaged state was accepted: %s", damaged)
		}
	}
}

// An unknown reader name from a damaged line does not reach a report.
func TestState_DropsUnknownReaderNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"auto": "auto", "gopsutil": "gopsutil", "autp": "", "": ""} {
		rec := reportertest.NewStream(1).Recording(10)
		rec.ReaderName = ""
		s := state{Reader: name, Start: rec.Start}
		if s.applyTo(rec); rec.ReaderName != want {
			t.Errorf("the reader %q becomes %q, want %q", name, rec.ReaderName, want)
		}
	}
}

func TestParse_CountsLostSamples(t *testing.T) {
	s := reportertest.NewStream(1)
	rec := s.Recording(100)
	data := written(t, head(s, 100), func(j *Journal) { observe(j, s, rec, 20) })
	kept := bytes.SplitAfter(data, []byte{'\n'})
	holed := bytes.Join(append(kept[:5:5], kept[12:]...), nil) // head, 4 samples, 7 lost
	n := parsed(t, holed).Nodes["3"]
	lost := reporter.Missing{What: "journal", Code: reporter.SamplesLost, Why: "samples that are lost: 7", Count: 7}
	if n.Sampling.Samples != 13 || n.Missing[0] != lost {
		t.Errorf("%d samples, want 13; missing %v, want first %v", n.Sampling.Samples, n.Missing, lost)
	}
}

// The report from the journal of an active run contains findings.
func TestParser_ReportOfActiveRunHasFindings(t *testing.T) {
	in := reportertest.Input(0, 60, 0, "")
	in.Recording.Account.Source = host.JobFromTree
	in.Recording.Account.CPUSeconds = 60
	in.Recording.Account.Limits = host.Limits{CPUs: 16, CPUQuota: 16, MemoryMB: series.Unknown()}
	in.Run.ExitCode, in.Run.Start, in.Run.End, in.Run.WallSeconds = nil, reporter.Time{}, reporter.Time{}, 0
	head := Head{Run: in.Run, Interval: time.Second, MaxLength: 100}
	r := (&parser{head: head, rec: in.Recording}).report()
	found := func(f reporter.Finding) bool { return f.ID == "one_busy_thread" }
	if n := r.Nodes["0"]; r.Run.Incomplete == "" || !slices.ContainsFunc(n.Findings, found) {
		t.Errorf("incomplete %q, want a reason; findings %v, want one_busy_thread", r.Run.Incomplete, n.Findings)
	}
}

// headLine returns the first line of a journal of node 3.
func headLine(t testing.TB, maxLength int) []byte {
	t.Helper()
	return append(check.Value(text.JSON(Head{Journal: Schema, Node: 3, Interval: time.Second, MaxLength: maxLength,
		Columns: keysOf(firstColumns()), Counters: keysOf(countersOf(firstColumns()))}))(t), '\n')
}

// Every report that Parse returns can be encoded.
func FuzzParse(f *testing.F) {
	s := reportertest.NewStream(5)
	rec := s.Recording(4)
	for range 9 {
		s.Next(rec)
	}
	head := headLine(f, 4)
	var snapshot bytes.Buffer
	check.Must(f, writeSnapshot(&snapshot, rec, newestSample{}))
	f.Add(slices.Concat(head, snapshot.Bytes()))
	sample := (&Journal{}).line(s.Next(rec), rec)
	f.Add(slices.Concat(head, sample, sample))
	for i := range 9 {
		sendOperations(f, s, rec, i)
		s.Next(rec)
	}
	snapshot.Reset()
	operations, err := encodeOperations(rec.Operations.CopyAggregator())
	check.Must(f, errors.Join(err, writeSnapshot(&snapshot, rec, newestSample{})))
	sendOperations(f, s, rec, 9)
	f.Add(slices.Concat(head, snapshot.Bytes(), operations, (&Journal{}).line(s.Next(rec), rec)))
	f.Add(append(head[:len(head):len(head)], `{"signal":{"signal":"SIGTERM","at":"2026-11-21T20:00:24.5Z","pid":7,"process":"sh"}}`...))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(data)
		if err != nil {
			return
		}
		if again := check.Value(reporter.Encode(r))(t); !json.Valid(again) {
			t.Fatal("the encoded report is not JSON")
		}
		check.Must(t, summary.Write(&bytes.Buffer{}, r, summary.Options{}))
	})
}
