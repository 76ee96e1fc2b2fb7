package pusher

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// anyHost returns a host with a random interval and a random number of samples.
func anyHost(rnd *rand.Rand) *fakeHost {
	every := []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 7 * time.Second,
		time.Minute}[rnd.IntN(5)]
	h := newHost(rnd, every, 2+rnd.IntN(200))
	h.odd = rnd.IntN(4) > 0
	h.after(rnd.IntN(600))
	return h
}

// A naiveWindow is a window of the reference implementation.
type naiveWindow struct {
	step, end int64
	kept      []int // indices
}

// naive splits the kept samples into windows by their ends alone.
func naive(t nodeSeries) (out []naiveWindow) {
	times := t.samples.Column("timestamp")
	if band, ok := t.envelope["timestamp"]; ok {
		times = band.Max
	}
	n := len(times)
	if n == 0 {
		return nil
	}
	end := func(i int) float64 { return math.Round(times[i] * 1000) }
	length := end(n-1) - float64(t.start)
	for i := range n {
		begin := float64(t.start)
		if i > 0 {
			begin = end(i - 1)
		}
		step := int64(math.Floor((end(i) - float64(t.start)) / 10_000))
		if length >= 1000 && length < 10_000 {
			step = 0
			if middle := (begin + end(i)) / 2; middle-float64(t.start) >= length/2 {
				step = 1
			}
		}
		if len(out) == 0 || out[len(out)-1].step != step {
			out = append(out, naiveWindow{step: step})
		}
		w := &out[len(out)-1]
		w.end, w.kept = int64(end(i)), append(w.kept, i)
	}
	return out
}

// point computes a point of a window from the envelope, as documented.
func (w naiveWindow) point(t nodeSeries, s Series) float64 {
	sum := 0.0
	for _, c := range s.columns {
		band, times := t.envelope[c.Key()], t.envelope["timestamp"].Max
		if band.Mean == nil { // never measured
			return math.NaN()
		}
		weighted, total, most, end := 0.0, 0.0, math.Inf(-1), math.NaN()
		for _, i := range w.kept {
			before := float64(t.start) / 1000
			if i > 0 {
				before = times[i-1]
			}
			if math.IsNaN(band.Mean[i]) {
				continue
			}
			seconds := max(0.001, math.Round((times[i]-before)*1000)/1000)
			weighted, total = weighted+seconds*band.Mean[i], total+seconds
			most, end = max(most, band.Max[i]), band.Max[i]
		}
		switch {
		case total == 0:
			return math.NaN()
		case strings.HasSuffix(s.Name, "_max"):
			sum += most
		case strings.HasSuffix(s.Name, "receive_megabytes"), strings.HasSuffix(s.Name, "transmit_megabytes"):
			sum += end
		default:
			sum += weighted / total
		}
	}
	if strings.Contains(s.Name, "megabytes") {
		sum *= 1.048576
	}
	return sum
}

// Every kept sample is in exactly one window, and the points equal the reference implementation's.
func TestWindows_MatchTheReferenceImplementation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(trials(120)) {
		h := anyHost(rand.New(rand.NewPCG(seed, 7)))
		series := h.series()
		got, windows := series.windows(), naive(series)
		k := 0
		for _, w := range windows {
			want := make(map[string]float64)
			for _, s := range AllSeries() {
				if v := w.point(series, s); !math.IsNaN(v) {
					want["system/0/"+s.Name] = v
				}
			}
			if len(want) == 0 { // nothing was measured in the window
				continue
			}
			if k >= len(got) || got[k].step != w.step || got[k].end != w.end {
				t.Fatalf("seed %d: window %d: %v, want step %d at %d", seed, k, got[min(k, len(got)-1)], w.step, w.end)
			}
			wantWindow(t, fmt.Sprint("seed ", seed, ", window ", k), got[k], want)
			k++
		}
		if k != len(got) {
			t.Fatalf("seed %d: %d windows, want %d", seed, len(got), k)
		}
		wantOrder(t, seed, series, got)
	}
}

func wantWindow(t *testing.T, where string, w window, want map[string]float64) {
	t.Helper()
	if len(w.points) != len(want) {
		t.Fatalf("%s: points %v, want %v", where, keysOf(w.points), want)
	}
	for _, p := range w.points {
		v, ok := want[p.Key]
		if !ok || math.Abs(p.Value-v) > 1e-6+1e-9*math.Abs(v) || p.Step != w.step || p.Timestamp != w.end {
			t.Fatalf("%s: %+v, want %v at step %d, %d", where, p, v, w.step, w.end)
		}
	}
}

// wantOrder checks only steps and times.
func wantOrder(t *testing.T, seed uint64, tr nodeSeries, all []window) {
	t.Helper()
	for i, m := range all {
		if i > 0 && (m.step <= all[i-1].step || m.end <= all[i-1].end) {
			t.Fatalf("seed %d: step %d at %d after step %d at %d, want a higher step and a later time", seed, m.step, m.end, all[i-1].step, all[i-1].end)
		}
		if m.step != (m.end-tr.start)/10_000 && !(len(all) <= 2 && all[len(all)-1].end-tr.start < 10_000) {
			t.Fatalf("seed %d: step %d, %d ms after the start, want a step every 10 s", seed, m.step, m.end-tr.start)
		}
	}
}

// A recording of 1 s to 10 s gives two windows. A shorter recording gives one.
func TestWindows_SplitShortRunsInTwo(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int64{1: {0}, 9: {0}, 10: {0, 1}, 11: {0, 1}, 50: {0, 1}, 99: {0, 1}, 100: {0, 1},
		101: {0, 1}, 205: {0, 1, 2}} {
		h := newHost(rand.New(rand.NewPCG(1, 1)), 100*time.Millisecond, 1000)
		h.rec.Start.Wall = h.rec.Start.Wall.Truncate(time.Second)
		var got []int64
		for _, m := range h.after(n).series().windows() {
			got = append(got, m.step)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("steps of %d samples of 0.1 s differ (-want +got):\n%s", n, d)
		}
	}
}

// A report from a file gives the same points as the one in memory.
func TestWindows_AreTheSameFromAFile(t *testing.T) {
	t.Parallel()
	for seed := range uint64(trials(40)) {
		h := anyHost(rand.New(rand.NewPCG(seed, 8)))
		data := check.Value(reporter.Encode(h.report()))(t)
		var read reporter.Report
		check.Must(t, json.Unmarshal(data, &read))
		if want, got := h.series().windows(), newNodeSeries("0", read.Nodes["0"]).windows(); !reflect.DeepEqual(want, got) {
			d := cmp.Diff(want, got, cmp.AllowUnexported(window{}))
			t.Fatalf("seed %d: windows from a file differ (-memory +file):\n%s", seed, d)
		}
	}
}

// Odd samples in a file from another program still give valid points.
func TestWindows_OddFilesGiveValidPoints(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"none":     `[]`,
		"no time":  `[{"mem_percent":1},{"mem_percent":2}]`,
		"negative": `[{"timestamp":-5,"mem_percent":1},{"timestamp":5,"mem_percent":2}]`,
		"backwards": `[{"timestamp":50,"mem_percent":1},{"timestamp":5,"mem_percent":2},
			{"timestamp":90,"mem_percent":3}]`,
		"huge": `[{"timestamp":1e300,"mem_percent":1e300},{"timestamp":9e15,"mem_percent":1e308},
			{"timestamp":5,"net_io_ext_recv_mb":1.7e308,"net_io_lo_recv_mb":1.7e308}]`,
		"unknown":      `[{"timestamp":5,"x":1}]`,
		"year 36812":   `[{"timestamp":1099511627775,"mem_percent":1}]`,
		"beyond int64": `[{"timestamp":99999999999999999999,"mem_percent":1}]`,
	} {
		var s reporter.Samples
		check.Must(t, json.Unmarshal([]byte(text), &s))
		at := int64(math.MinInt64)
		for _, m := range newNodeSeries("0", &reporter.Node{Samples: s}).windows() {
			if m.end < at || m.end <= 0 || m.step < 0 {
				t.Errorf("%s: window with step %d at %d, want a step of at least 0, and a time above 0 and not before %d", name, m.step, m.end, at)
			}
			at = m.end
			for _, p := range m.points {
				if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) || p.Timestamp <= 0 {
					t.Errorf("%s: point %+v, want a finite value and a time above 0", name, p)
				}
			}
		}
	}
}

// wholeWindows returns the windows that a live push would hand over now.
func wholeWindows(rec *collector.Recording, sent int64) []window {
	return newLiveSeries(rec, "0", sent).windows()
}

// The windows pushed live and at the end, taken together, equal the final windows until the ring is halved. After that,
// no step is repeated, and the end is not missing.
func TestNewLiveSeries_GivesTheFinalWindows(t *testing.T) {
	t.Parallel()
	for seed := range uint64(trials(80)) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		every := []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second, 7 * time.Second}[rnd.IntN(4)]
		h := newHost(rnd, every, []int{2, 10, 50, 1000, 5000}[rnd.IntN(5)])
		h.odd = seed%3 > 0
		var sent []window
		until, step := int64(0), int64(0)
		for range rnd.IntN(1500) {
			h.tick()
			now := int64((h.rec.End.Boot - h.rec.Start.Boot) / windowLength)
			if now == step || rnd.IntN(4) == 0 { // the server is slow or down
				continue
			}
			step = now
			all := wholeWindows(h.rec, until)
			all = all[:rnd.IntN(len(all)+1)] // or stores only a part of the batch
			if len(all) > 0 {
				until = all[len(all)-1].end
			}
			sent = append(sent, all...)
		}
		final := h.series()
		all := final.windows()
		for _, m := range all {
			if m.end > until {
				sent = append(sent, m)
			}
		}
		if h.rec.Ring.Stride() == 1 && !(len(all) == 0 && len(sent) == 0) && !reflect.DeepEqual(all, sent) {
			d := cmp.Diff(all, sent, cmp.AllowUnexported(window{}))
			t.Fatalf("seed %d: sent windows differ (-final +sent):\n%s", seed, d)
		}
		wantOrder(t, seed, final, sent)
		if n := len(all); n > 0 && sent[len(sent)-1].end != all[n-1].end {
			t.Fatalf("seed %d: the last sent window ends at %d, want %d", seed, sent[len(sent)-1].end, all[n-1].end)
		}
	}
}

// Live never sends a window that is still open.
func TestNewLiveSeries_LeavesOutTheOpenWindow(t *testing.T) {
	t.Parallel()
	h := newHost(rand.New(rand.NewPCG(3, 3)), time.Second, 100)
	for i := range trials(1000) {
		h.tick()
		now := int64((h.rec.End.Boot - h.rec.Start.Boot) / windowLength)
		for _, m := range wholeWindows(h.rec, 0) {
			if m.step >= now {
				t.Fatalf("after %d s window %d is handed over, want only windows before %d", i+1, m.step, now)
			}
		}
	}
}

// No name is the folder of another series of any node or of a metric, and every server accepts all names.
func TestAllSeries_HaveValidNames(t *testing.T) {
	t.Parallel()
	var all []string
	for _, m := range reporter.Metrics() {
		all = append(all, m.Name)
	}
	for _, node := range []string{"0", "1", "10", "2147483647"} {
		for _, s := range AllSeries() {
			all = append(all, folder(node)+s.Name)
		}
	}
	// MLflow's system metrics monitor may write to the same run, with or without a node ID.
	for _, name := range []string{"cpu_utilization_percentage", "system_memory_usage_megabytes",
		"network_receive_megabytes", "gpu_0_memory_usage_megabytes"} {
		all = append(all, "system/"+name, "system/host/"+name)
	}
	wantKeys(t, all)
}

// wideHost returns a host with two GPUs, which are found after the given number of samples. More samples follow.
func wideHost(before, after int) *fakeHost {
	h := newHost(rand.New(rand.NewPCG(7, 7)), time.Second, 2000).after(before)
	unknown := series.Unknown()
	known := gpu.Device{MemoryMB: 80 << 10, PowerLimitWatts: 400}
	other := gpu.Device{Index: 1, MemoryMB: unknown, PowerLimitWatts: unknown}
	h.rec.GPUs = []collector.GPU{
		{Device: known, EnergyJoules: unknown, ClockMHz: unknown},
		{Device: other, EnergyJoules: unknown, ClockMHz: unknown},
	}
	h.rec.EnsureGPUColumns(2)
	return h.after(after)
}

// widePoints returns the values of a window's points, keyed by the last part of their names.
func widePoints(w window) map[string]float64 {
	out := make(map[string]float64)
	for _, p := range w.points {
		out[p.Key[strings.LastIndex(p.Key, "/")+1:]] = p.Value
	}
	return out
}

// The series of a GPU begin when the GPU is found, and have MLflow's names and units. Percentages of unknown totals are
// left out.
func TestWindows_GPUSeriesBeginWhenGPUIsFound(t *testing.T) {
	h := wideHost(30, 60)
	got := h.series().windows()
	for i, m := range got {
		p := widePoints(m)
		if _, there := p["gpu_0_utilization_percentage"]; there != (m.end > got[2].end) {
			t.Errorf("window %d: has points of GPU 0: %v, want them only from the fourth window on", i, there)
		}
	}
	p := widePoints(got[len(got)-1])
	var names []string
	for i, name := range []string{"utilization_percentage", "memory_usage_megabytes", "memory_usage_percentage",
		"power_usage_watts", "power_usage_percentage", "temperature_celsius"} {
		for _, device := range []string{"gpu_0_", "gpu_1_"} {
			share := i == 2 || i == 4
			if _, there := p[device+name]; there == (share && device == "gpu_1_") {
				t.Errorf("%s%s: has points: %v, want %v: a percentage needs a known total", device, name, there, !there)
			}
		}
		names = append(names, "gpu_{i}_"+name)
	}
	var listed []string
	for _, s := range gpuTable() {
		listed = append(listed, s.Name)
	}
	collectortest.Same(t, "names of the GPUs' series", listed, names)
	const memory, power = "gpu_0_memory_usage_", "gpu_0_power_usage_"
	if mb, pct := p[memory+"megabytes"], p[memory+"percentage"]; math.Abs(pct-100*mb*1e6/(80<<30)) > 1e-4 || !(mb > 0) {
		t.Errorf("memory usage = %v MB and %v %%, want the percentage of 80 GiB", mb, pct)
	}
	if watts, pct := p[power+"watts"], p[power+"percentage"]; math.Abs(pct-watts/4) > 1e-4 || !(watts > 0) {
		t.Errorf("power usage = %v W and %v %%, want the percentage of 400 W", watts, pct)
	}
}

// Live points are exactly equal to the report's, even if the GPUs are found during the run.
func TestNewLiveSeries_GPUPointsMatchTheReport(t *testing.T) {
	h, whole := wideHost(25, 100), make(map[int64][]mlflow.Metric)
	for _, m := range h.series().windows() {
		whole[m.end] = m.points
	}
	for _, n := range []int{12, 25, 26, 31, 45, 99} {
		early := wideHost(min(n, 25), max(0, n-25))
		if n < 25 {
			early = newHost(rand.New(rand.NewPCG(7, 7)), time.Second, 2000).after(n)
		}
		live := newLiveSeries(early.rec, "0", 0).windows()
		if len(live) != n/10 && len(live) != n/10-1 {
			t.Errorf("%d windows after %d s, want %d or one less", len(live), n, n/10)
		}
		for _, m := range live {
			if d := cmp.Diff(whole[m.end], m.points); d != "" {
				t.Errorf("after %d s, the window that ends at %d differs (-report +live):\n%s", n, m.end, d)
			}
		}
	}
}

// With the maximum number of GPUs, names are valid and no window is too large for a batch.
func TestWindows_ManyGPUsFitABatch(t *testing.T) {
	h := wideHost(0, 0)
	for len(h.rec.GPUs) < collector.MaxGPUs+4 {
		h.rec.GPUs = append(h.rec.GPUs, h.rec.GPUs[0])
	}
	h.rec.EnsureGPUColumns(len(h.rec.GPUs))
	got := h.after(25).series().windows()
	wantFitting(t, got)
	keys := keysOf(got[0].points)
	if !slices.Contains(keys, "system/0/gpu_15_power_usage_watts") || slices.Contains(keys, "system/0/gpu_16_power_usage_watts") {
		t.Errorf("of %d series, want one of GPU 15 and none of GPU 16", len(keys))
	}
	for _, m := range reporter.GPUMetrics() {
		keys = append(keys, strings.Replace(m.Name, "{i}", "0", 1))
	}
	wantKeys(t, keys)
}
