package reporter

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// wideSameFloats takes what is not known for equal.
func wideSameFloats() cmp.Option {
	return cmp.Options{cmpopts.EquateNaNs(), cmpopts.IgnoreUnexported(collector.GPU{}), cmp.Comparer(func(a, b series.Optional) bool { return a == b || !a.Known() && !b.Known() })}
}

// wideStream makes samples in which every column is busy.
type wideStream struct {
	*stream
	gpusAt, gpus int // GPUs are found at this sample
}

func newWideStream(seed uint64, gpusAt, gpus int) *wideStream {
	return &wideStream{newStream(seed), gpusAt, gpus}
}

func (w *wideStream) recording(maxLength int) *collector.Recording {
	rec := w.stream.recording(maxLength)
	a := &rec.Account
	a.Source, a.Group, a.Version = host.JobFromGroup, "/slurm/job_42", "hybrid"
	a.Limits = host.Limits{CPUs: 2, Quota: 2, CPUSet: 4, Affinity: 8, MemoryMB: 256, CPUGroup: "/slurm", MemoryGroup: "/slurm/job_42"}
	return rec
}

// next adds one sample, a second after the last.
func (w *wideStream) next(rec *collector.Recording) *collector.Sample {
	if w.n == w.gpusAt && w.gpus > 0 {
		for i := range w.gpus {
			rec.GPUs = append(rec.GPUs, collector.GPU{Device: gpu.Device{Index: i, UUID: fmt.Sprintf("GPU-%d", i), Name: "A100", MemoryMB: 81920, PowerLimitWatts: 400},
				OfJob: i == 0, EnergyJoules: series.Unknown(), ClockMHz: series.Unknown()})
		}
		rec.Widen(w.gpus)
	}
	scratch := collector.NewRecording(w.start, time.Second, 2)
	s := w.stream.next(scratch)
	rec.End, rec.BootMB = scratch.End, scratch.BootMB
	for c := collector.JobCPU; c < collector.NumColumns; c++ {
		s.Values[c] = math.Round(w.rnd.Float64()*1e5) / 1e3
	}
	for i := range rec.GPUs { // as nvidia-smi tells them
		for k, v := range []float64{float64(w.rnd.IntN(101)), float64(w.rnd.IntN(81920)), float64(5000+w.rnd.IntN(35000)) / 100, float64(30 + w.rnd.IntN(60))} {
			s.Values[collector.GPUColumn(i, collector.GPUKey(k))] = v
		}
	}
	for _, c := range []collector.Column{collector.MemUsed, collector.DiskUsed, collector.DiskFree} {
		s.Values[c] = float64(w.rnd.IntN(1<<26)) / 256
	}
	w.account(rec)
	rec.Add(s)
	return s
}

// account is what the counters say after as many seconds.
func (w *wideStream) account(rec *collector.Recording) {
	a, n := &rec.Account, series.Optional(w.n)
	a.MemoryKind, a.CPUSeconds, a.Living, a.PeakMB, a.CacheMB = host.MemoryGroup, n/2, n/4, 200, 10
	a.Periods, a.Throttled, a.ThrottledSeconds = 10*n, n, n/100
	a.OOMKills, a.HostOOMKills = 1, 2
	a.JobStall = collector.Stalls{CPUSome: n / 3, CPUFull: n / 4, MemorySome: n / 5, MemoryFull: n / 6, IOSome: n / 7, IOFull: n / 8}
	a.HostStall = a.JobStall
	a.HostStall.CPUFull = series.Unknown()
	if w.n > 3 && a.OOMAt.IsZero() {
		a.OOMAt = w.start.Wall.Add(3 * time.Second)
		a.Victims = []host.Victim{{Process: "py thon\n)", PID: 77, At: a.OOMAt, Group: "/slurm/job_42"}}
		rec.Gaps = append(rec.Gaps, series.Gap{What: "gpu", Why: "the driver says [N/A]"})
	}
	for i := range rec.GPUs {
		rec.GPUs[i].EnergyJoules, rec.GPUs[i].ClockMHz, rec.GPUs[i].Throttle = 300*n, 1410, []string{"sw_power_cap"}
	}
}

// wideJournal makes a journal of n samples, with a snapshot after some of them where that
// is not negative, and the Recording that it is of.
func wideJournal(t testing.TB, w *wideStream, n, snapshotAt int) ([]byte, *collector.Recording) {
	t.Helper()
	rec := w.recording(10)
	j, err := CreateJournal(t.TempDir(), head(w.stream, 10))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if i == snapshotAt {
			j.wantSnapshot.Store(true)
		}
		j.Observe(w.next(rec), rec)
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

// wideSame compares a journal's report with that of the Recording. The account of the
// newest seconds may not be in the journal yet.
func wideSame(t *testing.T, what string, data []byte, rec *collector.Recording) *Report {
	t.Helper()
	got, err := parseJournal(data)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	n := got.Nodes["3"]
	want := New(Input{Run: got.Run, Node: 3, Recording: rec, Agent: Agent{Version: "test"}}).Nodes["3"]
	for _, part := range []string{"Summaries", "Limits", "Sampling"} {
		if d := cmp.Diff(reflect.ValueOf(want).Elem().FieldByName(part).Interface(), reflect.ValueOf(n).Elem().FieldByName(part).Interface(), cmpopts.EquateApprox(1e-9, 2e-6)); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", what, part, d)
		}
	}
	if d := cmp.Diff(want.Samples.Keys, n.Samples.Keys); d != "" || len(want.Envelope) != len(n.Envelope) {
		t.Errorf("%s: %d bands, want %d; keys (-want +got):\n%s", what, len(n.Envelope), len(want.Envelope), d)
	}
	for key, band := range want.Envelope { // as many decimals as a bucket keeps
		c, _ := collector.ColumnNamed(key)
		approx := cmp.Options{cmpopts.EquateApprox(1e-9, 2*math.Pow10(-bucketDigits(c))), cmpopts.EquateNaNs()}
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
			t.Errorf("%s: %+v", what, m)
		}
	}
	return got
}

// GPUs that are found in mid-run make the lines wider: the journal gives what the
// Recording has, with and without a snapshot before and after, and whatever it is cut at.
func TestWide_JournalInWhichGPUsAreFound(t *testing.T) {
	for _, gpus := range []int{0, 1, 2, collector.MaxGPUs} {
		for _, snapshotAt := range []int{-1, 0, 7, 12, 13, 20} {
			data, rec := wideJournal(t, newWideStream(5, 12, gpus), 33, snapshotAt)
			wideSame(t, fmt.Sprintf("%d GPUs, snapshot at %d", gpus, snapshotAt), data, rec)
		}
	}
}

// kill -9: whatever of the last line is on disk, the samples before it are read, the account
// is at most accountEvery old, and nothing of the GPUs is lost.
func TestWide_JournalThatIsCutOff(t *testing.T) {
	whole, _ := wideJournal(t, newWideStream(5, 12, 2), 40, 20)
	head := bytes.IndexByte(whole, '\n') + 1
	for at := head; at < len(whole); at += 211 {
		r, err := parseJournal(whole[:at])
		if err != nil {
			t.Fatalf("cut at %d: %v", at, err)
		}
		n, lines := r.Nodes["3"], bytes.Count(whole[head:at], []byte{'\n'})
		samples := int(n.Sampling.Samples)
		if bytes.Contains(whole[head:at], []byte(`{"snapshot":`)) {
			if samples > 0 && (samples < 21 || samples < 20+lines || samples > 21+lines) {
				t.Fatalf("cut at %d: %d samples, %d lines", at, samples, lines)
			}
		}
		if samples == 0 {
			continue
		}
		if (len(n.GPUs) == 2) != (samples > 12) || (n.Envelope["gpu_1_power_watts"].Mean != nil) != (samples > 12) {
			t.Fatalf("cut at %d: %d samples, %d GPUs", at, samples, len(n.GPUs))
		}
		least := float64(samples)/2 - accountEvery.Seconds()/2
		if cpu, ok := n.Metrics["job_cpu_seconds"]; !ok || cpu < least || cpu > float64(samples)/2 {
			t.Fatalf("cut at %d: %v s of CPU after %d samples", at, cpu, samples)
		}
	}
}

// A line that is damaged just where the GPUs are found costs the lines up to the next
// state, and no more.
func TestWide_JournalWhoseWideningIsDamaged(t *testing.T) {
	data, _ := wideJournal(t, newWideStream(5, 12, 2), 40, -1)
	lines := bytes.SplitAfter(data, []byte{'\n'})
	lines[13] = append(bytes.Repeat([]byte{'x'}, 40), '\n') // the head is line 0
	r, err := parseJournal(bytes.Join(lines, nil))
	if err != nil {
		t.Fatal(err)
	}
	n := r.Nodes["3"]
	if n.Sampling.Samples < 40-1-int64(accountEvery.Seconds()) || len(n.GPUs) != 2 || n.Envelope["gpu_1_power_watts"].Mean == nil {
		t.Errorf("%d samples, %d GPUs", n.Sampling.Samples, len(n.GPUs))
	}
}

// Account, GPUs and Gaps come back as they were.
func TestWide_JournalKeepsTheAccount(t *testing.T) {
	for _, snapshotAt := range []int{-1, 32} {
		data, rec := wideJournal(t, newWideStream(5, 3, 2), 33, snapshotAt)
		var j journalReading
		for line := range lines(data) {
			if err := j.take(line); err != nil {
				t.Fatal(err)
			}
		}
		if snapshotAt < 0 { // as of the last state, at most 4 s ago
			last := newWideStream(5, 3, 2)
			rec = last.recording(10)
			for range 32 { // the sample at 32 s has the state
				last.next(rec)
			}
		}
		if d := cmp.Diff(rec.Account, j.rec.Account, wideSameFloats()); d != "" {
			t.Errorf("account (-want +got):\n%s", d)
		}
		if d := cmp.Diff(rec.GPUs, j.rec.GPUs, wideSameFloats()); d != "" {
			t.Errorf("GPUs (-want +got):\n%s", d)
		}
		if d := cmp.Diff(rec.Gaps, j.rec.Gaps); d != "" {
			t.Errorf("gaps (-want +got):\n%s", d)
		}
	}
}

// What an account in a file does not tell is not known; 0 would be a claim.
func TestWide_AccountOfAFileThatTellsLittle(t *testing.T) {
	var a collector.Account
	if err := json.Unmarshal([]byte(`{"source":"tree","cpu_seconds":1.5,"oom_kills":null,"limits":{"cpus":2}}`), &a); err != nil {
		t.Fatal(err)
	}
	want := collector.NoAccount()
	want.Source, want.CPUSeconds, want.Limits.CPUs = "tree", 1.5, 2
	if d := cmp.Diff(want, a, wideSameFloats()); d != "" {
		t.Error(d)
	}
}

// widePacked is a snapshot's line with other packed buckets.
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

// Packed buckets that are damaged or made to harm are one damaged line, in bounded memory.
func TestWide_HostilePackedBuckets(t *testing.T) {
	data, _ := wideJournal(t, newWideStream(5, 3, 2), 20, 10)
	from := bytes.LastIndex(data, []byte(`"packed":"`)) + len(`"packed":"`)
	good := string(data[from : from+bytes.IndexByte(data[from:], '"')])
	sums := "[" + strings.TrimSuffix(strings.Repeat("null,", int(collector.GPUColumn(2, 0))), ",") + "]"
	bomb := wideGzip(strings.Repeat(" ", 1<<25))
	zeros := wideGzip(sums, `{"v":[`, strings.Repeat("0,", 1<<24), `0]}`)
	many := wideGzip(sums, strings.Repeat(`{}`, 1<<22))
	deep := wideGzip(strings.Repeat(`[`, 1<<22))
	for name, packed := range map[string]string{"empty gzip": wideGzip(""), "no gzip": "AAAA", "no base64": "%%%", "cut": good[:len(good)/2/4*4], "torn": good[:len(good)/2|1],
		"garbage behind": good[:len(good)-8] + "AAAAAAAA", "bomb of spaces": bomb, "one bucket of zeros": zeros, "many buckets": many, "deep": deep,
		"text": wideGzip("hello"), "null": wideGzip("null null"),
		"summaries only": wideGzip(sums), "too few summaries": wideGzip("[null]")} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		r, err := parseJournal(widePacked(t, data, packed))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: %d MiB were allocated for a journal of %d KiB", name, took>>20, len(packed)>>10)
		}
		if d := time.Since(begin); d > time.Minute {
			t.Errorf("%s: took %v", name, d)
		}
		n := r.Nodes["3"]
		if !slices.ContainsFunc(n.Missing, func(m Missing) bool { return m.What == "journal" && strings.Contains(m.Why, "damaged") }) {
			t.Errorf("%s: nothing is said of the damage: %v", name, n.Missing)
		}
	}
	if r, err := parseJournal(widePacked(t, data, good)); err != nil || r.Nodes["3"].Sampling.Samples != 20 {
		t.Errorf("the good one: %v", err)
	}
}

// The capacity that a hostile snapshot claims is no licence to unpack without end.
func TestWide_HostileCapacity(t *testing.T) {
	data, _ := wideJournal(t, newWideStream(5, 3, 0), 20, 10)
	for _, capacity := range []int{-2, 0, 3, 1 << 30, math.MaxInt64} {
		hostile := bytes.Replace(widePacked(t, data, wideGzip("[]", strings.Repeat(`{}`, 1<<22))), []byte(`"max_length":10,"start"`), fmt.Appendf(nil, `"max_length":%d,"start"`, capacity), 1)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := parseJournal(hostile); err != nil {
			t.Errorf("%d: %v", capacity, err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("capacity %d: %d MiB were allocated", capacity, took>>20)
		}
	}
}

// The columns of GPUs stand last in the table, and only those that there are.
func TestWide_CSVOfGPUs(t *testing.T) {
	w := newWideStream(5, 3, 2)
	rec := w.recording(10)
	for range 5 {
		w.next(rec)
	}
	rec.Summaries[collector.GPUColumn(0, collector.GPUUtilization)] = series.NewSummary() // [N/A]
	r := New(Input{Run: Run{ID: "r"}, Recording: rec})
	rows, err := csv.NewReader(bytes.NewReader(showCSV(t, r))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range rows[0] {
		if strings.HasPrefix(name, "gpu_") && !strings.Contains(name, ".") {
			got = append(got, name)
		}
	}
	want := []string{"gpu_0_memory_used_mb [MiB]", "gpu_0_power_watts [W]", "gpu_0_temperature_celsius [°C]",
		"gpu_1_utilization_pct [%]", "gpu_1_memory_used_mb [MiB]", "gpu_1_power_watts [W]", "gpu_1_temperature_celsius [°C]"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if last := rows[0][len(rows[0])-1]; last != "gpu_1_temperature_celsius.max [°C]" {
		t.Errorf("the last column is %s", last)
	}
}

// Merging keeps what a node has, and a report that has been merged can be merged again
// with the original: findings follow from the nodes that a report has.
func TestWide_MergeKeepsWhatANodeHas(t *testing.T) {
	node := func(i int) Source {
		w := newWideStream(uint64(i), 2, 2)
		rec := w.recording(10)
		for range 12 {
			w.next(rec)
		}
		r := New(Input{Run: Run{ID: "r", Start: Time{w.start.Wall}}, Node: i, Recording: rec, Job: &Job{UserSeconds: 6}})
		r.Nodes[fmt.Sprint(i)].Findings = []Finding{{ID: "x", Severity: "info", Text: "y", Evidence: map[string]any{}}}
		return Source{fmt.Sprint(i), r}
	}
	both := mustMerge(t, node(0), node(1))
	for i := range 2 {
		want, got := node(i).Report.Nodes[fmt.Sprint(i)], both.Nodes[fmt.Sprint(i)]
		if d := cmp.Diff(want.GPUs, got.GPUs); d != "" || len(got.GPUs) != 2 {
			t.Errorf("GPUs:\n%s", d)
		}
		if d := cmp.Diff(want.Limits, got.Limits); d != "" || got.Limits.MemoryMB != 256 {
			t.Errorf("limits:\n%s", d)
		}
		if d := cmp.Diff(want.Job, got.Job); d != "" || got.Job.Source != "cgroup" {
			t.Errorf("job:\n%s", d)
		}
		if d := cmp.Diff(want.Metrics, got.Metrics); d != "" || got.Metrics["gpu_1_energy_joules"] == 0 {
			t.Errorf("metrics:\n%s", d)
		}
	}
	both.Nodes["0"].Findings = nil
	mustMerge(t, Source{"both", both}, node(0))
	mustMerge(t, node(1), Source{"both", both})
}

// The metrics of a device are found by their own names, as those of the table are.
func TestWide_MetricsOfGPUsHaveNames(t *testing.T) {
	for _, m := range GPUMetrics() {
		name := gpuMetricName(m.Name, 3)
		if got, ok := MetricNamed(name); !ok || got.Name != name || got.Unit != m.Unit {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
		if source, isSource := sourceOf(name); source != host.SourceGPU+" 3" || !isSource {
			t.Errorf("%s is of %q", name, source)
		}
	}
	for _, name := range []string{"gpu_16_energy_joules", "gpu_{i}_energy_joules", "gpu_01_energy_joules", "gpu__energy_joules", "max_t_gpu_0_energy_joules"} {
		if m, ok := MetricNamed(name); ok {
			t.Errorf("%s is %+v", name, m)
		}
	}
	n := &Node{GPUs: make([]GPU, 40)}
	if got := len(n.GPUMetrics()); got != collector.MaxGPUs*len(GPUMetrics()) {
		t.Errorf("40 GPUs have %d metrics", got)
	}
}

// wideSize feeds samples of which every column is busy to a journal on disk, the GPUs from
// the start. It gives the greatest size of the journal and that of the report.
func wideSize(tb testing.TB, n, gpus int) (most, report int64) {
	tb.Helper()
	dir := tb.TempDir()
	w := newWideStream(7, 0, gpus)
	rec := w.recording(1000)
	j, err := CreateJournal(dir, head(w.stream, 1000))
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		j.Observe(w.next(rec), rec)
		if i%64 == 0 || j.wantSnapshot.Load() {
			drain(j)
			most = max(most, sizeOf(tb, dir))
		}
	}
	drain(j)
	if err := j.Stop(time.Minute); err != nil {
		tb.Fatal(err)
	}
	most = max(most, sizeOf(tb, dir))
	data, err := Encode(New(Input{Run: Run{ID: "r"}, Recording: rec}))
	if err != nil {
		tb.Fatal(err)
	}
	return most, int64(len(data))
}

// The promise on the disk holds where every column of a host and its job is busy, up to
// where the ring is as full as it can get.
func TestWide_JournalStaysSmall(t *testing.T) {
	for _, gpus := range []int{0, 8, 16} {
		most, report := wideSize(t, 3900, gpus) // the last one before the third halving
		t.Logf("%d GPUs: journal at most %d bytes, report %d", gpus, most, report)
		if most > 2<<20 {
			t.Errorf("%d GPUs: the journal took %d bytes on disk", gpus, most)
		}
	}
}

// A journal of the version before the buckets were packed, and the report that it made of
// it then.
func TestWide_JournalWithPlainBuckets(t *testing.T) {
	got, err := Read("testdata/journal/plain-buckets.jsonl", 0)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Read("testdata/journal/plain-buckets.json", 0)
	if err != nil {
		t.Fatal(err)
	}
	w, g := want.Nodes["3"], got.Nodes["3"]
	if g.Sampling.Samples != 41 || len(g.Metrics) < len(w.Metrics) {
		t.Errorf("%d samples, %d metrics", g.Sampling.Samples, len(g.Metrics))
	}
	for name, v := range w.Metrics {
		if g.Metrics[name] != v {
			t.Errorf("%s is %v, was %v", name, g.Metrics[name], v)
		}
	}
	for key, band := range w.Envelope {
		if d := cmp.Diff(band, g.Envelope[key], cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-9, 2e-6)); d != "" {
			t.Errorf("envelope of %s (-then +now):\n%s", key, d)
		}
	}
	if g.Limits != nil || len(g.GPUs) > 0 || len(g.Envelope) != len(w.Envelope) {
		t.Errorf("limits %v, GPUs %v, %d bands", g.Limits, g.GPUs, len(g.Envelope))
	}
}
