package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
)

// stream makes samples as a busy host gives them, deterministically.
type stream struct {
	rnd   *rand.Rand
	start host.Instant
	n     int
	total [6]float64
}

func newStream(seed uint64) *stream {
	return &stream{rnd: rand.New(rand.NewPCG(seed, 1)), start: host.Instant{Wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Mono: time.Hour, Boot: 2 * time.Hour}}
}

// next adds one sample, one second after the last, to the Recording.
func (s *stream) next(rec *collector.Recording) *collector.Sample {
	s.n++
	var out collector.Sample
	weight := 1 + (s.rnd.Float64()-0.5)/500
	for c := range out.Values {
		out.Values[c], out.Weights[c] = math.NaN(), weight
	}
	set := func(c collector.Column, v float64) { out.Values[c] = v }
	cpu := math.Round(s.rnd.Float64()*1000) / 10
	set(collector.CPUAvg, cpu*0.7)
	set(collector.CPUMin, cpu/2)
	set(collector.CPUMax, cpu)
	set(collector.MemPercent, math.Round(s.rnd.Float64()*1000)/10)
	if s.n%7 != 0 { // a source that fails now and then
		set(collector.DiskPercent, 71.3)
	}
	for i, c := range collector.Counters() {
		moved := float64(s.rnd.IntN(200<<20)) / collector.MiB
		s.total[i] += moved
		set(c, s.total[i])
		set(collector.DiskReadRate+collector.Column(i), rounded(moved/weight, 6))
	}
	set(collector.Timestamp, float64(s.start.Wall.UnixMilli())/1000+float64(s.n))
	rec.End = s.start
	rec.End.Mono += time.Duration(s.n) * time.Second
	rec.End.Boot += time.Duration(s.n) * time.Second
	rec.BootMB = s.total
	rec.Add(&out)
	return &out
}

func (s *stream) recording(maxLength int) *collector.Recording {
	rec := collector.NewRecording(s.start, time.Second, maxLength)
	rec.Host = host.Info{Hostname: "node", CPUs: 8, MemoryMB: 1024}
	rec.Disks, rec.NICs = []string{"sda"}, []string{"lo", "eth0"}
	return rec
}

func head(s *stream, maxLength int) JournalHead {
	return JournalHead{Run: Run{ID: "r", Command: []string{"job", "\x1b[31m"}, Start: Time{s.start.Wall}, End: Time{s.start.Wall}},
		Node: 3, Interval: time.Second, MaxLength: maxLength, Agent: Agent{Version: "test"}}
}

// drain waits until the writer has taken everything.
func drain(j *Journal) {
	for len(j.queue) > 0 {
		runtime.Gosched()
	}
}

func TestJournal_GivesTheReportThatTheRecordingGives(t *testing.T) {
	for _, n := range []int{0, 1, 2, 11, 999, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newStream(uint64(n))
			rec := s.recording(10)
			j, err := CreateJournal(t.TempDir(), head(s, 10))
			if err != nil {
				t.Fatal(err)
			}
			for range n {
				j.Observe(s.next(rec), rec)
				drain(j)
			}
			if err := j.Stop(time.Minute); err != nil {
				t.Fatal(err)
			}
			got, err := Read(j.Path(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 { // no line told the state
				rec = collector.NewRecording(host.Instant{Wall: s.start.Wall}, time.Second, 10)
			}
			want := New(Input{Run: got.Run, Node: 3, Recording: rec, Agent: Agent{Version: "test"}})
			approx := cmp.Options{cmpopts.EquateApprox(1e-9, 2e-6), cmpopts.EquateNaNs()}
			if d := cmp.Diff(want, got, approx); d != "" {
				t.Errorf("report from the journal (-want +got):\n%s", d)
			}
			if d := cmp.Diff(want.Nodes["3"].Metrics, got.Nodes["3"].Metrics); d != "" { // to the last bit
				t.Errorf("report from the journal (-want +got):\n%s", d)
			}
			if got.Run.Incomplete == "" {
				t.Error("the report does not say that it is incomplete")
			}
			if err := j.Remove(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestJournal_TornAndDamagedLinesHideNothingElse(t *testing.T) {
	s := newStream(1)
	rec := s.recording(100)
	j, err := CreateJournal(t.TempDir(), head(s, 100))
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		j.Observe(s.next(rec), rec)
	}
	if err := j.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	samplesOf := func(data []byte) int64 {
		r, err := parseJournal(data)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for name, v := range r.Nodes["3"].Metrics {
			if v < 0 {
				t.Fatalf("%s of %v", name, v)
			}
		}
		for c := range collector.NumColumns {
			if most := r.Nodes["3"].Summaries[c.Key()].Max; c.Percent() && most > 100 {
				t.Fatalf("%s of %v", c.Key(), most)
			}
		}
		return r.Nodes["3"].Sampling.Samples
	}
	if got := samplesOf(whole); got != 60 {
		t.Fatalf("%d samples of 60", got)
	}
	for cut := bytes.IndexByte(whole, '\n') + 1; cut < len(whole); cut += 97 {
		want := int64(bytes.Count(whole[:cut], []byte{'\n'}) - 1)
		if whole[cut] == '\n' { // a whole line that lacks only its end
			want++
		}
		if got := samplesOf(whole[:cut]); got != want {
			t.Fatalf("cut at %d: %d samples, want %d", cut, got, want)
		}
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n')
	for at := last; at < len(whole); at++ { // a point that has become a digit, or a digit a sign, leaves a number
		damage := byte('-') // of a number's first digit
		switch before := whole[at-1]; {
		case whole[at] == '.':
			damage = '4'
		case whole[at] < '0' || whole[at] > '9' || before != '[' && before != ',' && before != ':':
			continue
		}
		data := bytes.Clone(whole)
		data[at] = damage
		if got := samplesOf(data); got < 59 {
			t.Fatalf("%q at %d: %d samples of 60", damage, at, got)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		data := bytes.Clone(whole)
		from := bytes.IndexByte(whole, '\n') + 1
		at := from + rnd.IntN(len(data)-from)
		data[at] ^= byte(1 + rnd.IntN(255))
		if got := samplesOf(data); got < 58 { // one line, or two that ran together
			t.Fatalf("a byte flipped at %d: %d samples of 60", at, got)
		}
	}
}

func TestJournal_TwoRecordingsOfOneNodeGetTwoNames(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "node-3.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	names := make([]string, 8)
	for i := range names {
		wg.Go(func() {
			s := newStream(1)
			j, err := CreateJournal(dir, head(s, 10))
			if err != nil {
				t.Error(err)
				return
			}
			names[i] = j.ReportPath()
			_ = j.Stop(time.Minute)
		})
	}
	wg.Wait()
	seen := map[string]bool{filepath.Join(dir, "node-3.json"): true}
	for _, name := range names {
		if seen[name] {
			t.Errorf("%s was given twice", name)
		}
		seen[name] = true
	}
	if !seen[filepath.Join(dir, "node-3.9.json")] {
		t.Errorf("names are not counted up: %v", names)
	}
}

// journalSize feeds n samples to a journal on disk and then writes the report. It
// gives the greatest size of both together, and that of the report.
func journalSize(tb testing.TB, n int) (most, report int64) {
	tb.Helper()
	dir := tb.TempDir()
	s := newStream(7)
	rec := s.recording(1000)
	j, err := CreateJournal(dir, head(s, 1000))
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		j.Observe(s.next(rec), rec)
		if i%256 == 0 || j.wantSnapshot.Load() {
			drain(j)
			most = max(most, sizeOf(tb, dir))
		}
	}
	drain(j)
	if err := j.Stop(time.Minute); err != nil {
		tb.Fatal(err)
	}
	data, err := Encode(New(Input{Run: Run{ID: "r"}, Recording: rec}))
	if err != nil {
		tb.Fatal(err)
	}
	if err := WriteNew(j.ReportPath(), data); err != nil {
		tb.Fatal(err)
	}
	return max(most, sizeOf(tb, dir)), int64(len(data))
}

// TestJournal_StaysSmall is the promise on the disk, up to where the ring is as
// full as it can get; BenchmarkJournalWeek goes on for a week.
func TestJournal_StaysSmall(t *testing.T) {
	most, report := journalSize(t, 8000)
	t.Logf("journal and report: at most %d bytes; report %d", most, report)
	if most > 2<<20 {
		t.Errorf("journal and report took %d bytes on disk", most)
	}
}

func BenchmarkJournalWeek(b *testing.B) {
	for b.Loop() {
		most, report := journalSize(b, 7*24*3600)
		b.ReportMetric(float64(most), "disk-bytes-max")
		b.ReportMetric(float64(report), "report-bytes")
	}
}

func sizeOf(t testing.TB, dir string) int64 {
	t.Helper()
	sum := int64(0)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

func TestJournal_MakesUpForADiskThatWasFull(t *testing.T) {
	s := newStream(3)
	rec := s.recording(100)
	j, err := CreateJournal(t.TempDir(), head(s, 100))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		j.Observe(s.next(rec), rec)
	}
	drain(j)
	if err := j.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	w := &j.w
	good := w.file
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full here: %v", err)
	}
	w.file = full
	w.take(journalEntry{line: j.line(s.next(rec), rec)})
	if w.firstErr == nil || !w.failing {
		t.Fatal("a full disk was not noticed")
	}
	w.file = good
	w.take(journalEntry{line: j.line(s.next(rec), rec)})
	if j.wantSnapshot.Load() {
		t.Error("a journal that failed just now does not rest")
	}
	w.retry = time.Now().Add(-time.Second)
	w.take(journalEntry{line: j.line(s.next(rec), rec)})
	if !j.wantSnapshot.Load() {
		t.Error("no snapshot is asked for once the disk may have recovered")
	}
	w.take(journalEntry{snapshot: rec.Clone()})
	if w.failing {
		t.Errorf("still failing: %v", w.firstErr)
	}
	r, err := Read(j.Path(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Nodes["3"].Sampling.Samples; got != 8 {
		t.Errorf("%d samples of 8", got)
	}
}

func TestWriteNew_NeverReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	for name, place := range map[string]func(string, string) error{"rename": renameNew, "link": linkNew} {
		t.Run(name, func(t *testing.T) {
			os.Remove(path)
			if err := writeFile(path, []byte("first"), (*os.File).Sync, place); err != nil {
				t.Fatal(err)
			}
			err := writeFile(path, []byte("second"), (*os.File).Sync, place)
			if !errors.Is(err, fs.ErrExist) {
				t.Errorf("second write: %v", err)
			}
			got, _ := os.ReadFile(path)
			if string(got) != "first" {
				t.Errorf("the file holds %q", got)
			}
			entries, _ := os.ReadDir(filepath.Dir(path))
			if len(entries) != 1 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

func TestEncode_IsTheSameJSON(t *testing.T) {
	s := newStream(9)
	rec := s.recording(10)
	for range 25 {
		s.next(rec)
	}
	r := New(Input{Run: Run{ID: "r", Command: []string{"a\n\"b\\", "", "<é>"}, Tags: map[string]string{}}, Recording: rec, Missing: []Missing{{"x", "y"}}})
	data, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back bytes.Buffer
	if err := json.Compact(&back, data); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(compact), back.String()); d != "" {
		t.Error(d)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends in a space", i+1)
		}
	}
}

func FuzzRead(f *testing.F) {
	s := newStream(5)
	rec := s.recording(4)
	for range 9 {
		s.next(rec)
	}
	report, _ := Encode(New(Input{Run: Run{ID: "r"}, Recording: rec}))
	f.Add("node-0.json", report)
	var snapshot bytes.Buffer
	if err := writeSnapshot(&snapshot, rec, journalNewest{}); err != nil {
		f.Fatal(err)
	}
	line, _ := marshal(JournalHead{Journal: JournalSchema, Interval: time.Second, MaxLength: 4})
	f.Add("node-0.jsonl", append(append(line, '\n'), snapshot.Bytes()...))
	sample := (&Journal{}).line(s.next(rec), rec)
	f.Add("node-0.jsonl", append(append(append(line, '\n'), sample...), sample...))
	f.Add("node-0.jsonl", append(append(line, '\n'), `{"signal":{"signal":"SIGTERM","at":"2026-11-21T20:00:24.5Z","pid":7,"process":"sh"}}`...))
	f.Add("x.json", []byte(`{"0":[{"timestamp":1.5,"cpu_pct_per_cpu_avg":NaN}]}`))
	f.Add("x.json", []byte(`{"schema":"perfagent.report/2","nodes":{}}`))
	f.Add("x.json", []byte(`{"schema":"perfagent.report/1","nodes":{"0":null}}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		r, _, err := parse(name, data, 2)
		if err != nil {
			return
		}
		again, err := Encode(r)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if !json.Valid(again) {
			t.Fatal("what was written is not JSON")
		}
		if err := WriteSummary(&bytes.Buffer{}, r, SummaryOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

// A sign in the place of a digit of the state is damage: the line is left out, and nothing
// in the report is below 0 that cannot be. A clock that was set back is none.
func TestJournal_StateBelowZero(t *testing.T) {
	t.Parallel()
	const whole = `{"host":{"cpus":2,"memory_mb":1000},"missed_ticks":3,"longest_gap_ns":5,"failures":[{"source":"cpu","count":4}],` +
		`"clock":[{"by":-5}],"late":{"x":6},"account":{"cpu_seconds":7},"gpus":[{"memory_mb":8}]}`
	var s journalState
	if err := json.Unmarshal([]byte(whole), &s); err != nil || s.Missed != 3 || s.Clock[0].By != -5 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, digit := range "2134678" {
		damaged := strings.Replace(whole, ":"+string(digit), ":-"+string(digit), 1)
		if err := json.Unmarshal([]byte(damaged), new(journalState)); err == nil {
			t.Errorf("taken: %s", damaged)
		}
	}
}
