package pusher

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// wideHost returns a host with two GPUs, which are found after the given number of samples. More samples follow.
func wideHost(before, after int) *fakeHost {
	h := newHost(rand.New(rand.NewPCG(7, 7)), time.Second, 2000)
	for range before {
		h.tick()
	}
	unknown := series.Unknown()
	known := gpu.Device{MemoryMB: 80 << 10, PowerLimitWatts: 400}
	other := gpu.Device{Index: 1, MemoryMB: unknown, PowerLimitWatts: unknown}
	h.rec.GPUs = []collector.GPU{
		{Device: known, EnergyJoules: unknown, ClockMHz: unknown},
		{Device: other, EnergyJoules: unknown, ClockMHz: unknown},
	}
	h.rec.EnsureGPUColumns(2)
	for range after {
		h.tick()
	}
	return h
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
	if d := cmp.Diff(names, listed); d != "" {
		t.Errorf("names of the GPUs' series differ (-want +got):\n%s", d)
	}
	const memory, power = "gpu_0_memory_usage_", "gpu_0_power_usage_"
	if mb, pct := p[memory+"megabytes"], p[memory+"percentage"]; math.Abs(pct-100*mb*1e6/(80<<30)) > 1e-4 ||
		!(mb > 0) {
		t.Errorf("%v MB are %v %%, want a share of 80 GiB", mb, pct)
	}
	if watts, pct := p[power+"watts"], p[power+"percentage"]; math.Abs(pct-watts/4) > 1e-4 || !(watts > 0) {
		t.Errorf("%v W are %v %%, want a share of 400 W", watts, pct)
	}
}

// Live points are exactly equal to the report's, even if the GPUs are found during the run.
func TestNewLiveSeries_GPUPointsMatchTheReport(t *testing.T) {
	h := wideHost(25, 100)
	whole := make(map[int64][]mlflow.Metric)
	for _, m := range h.series().windows() {
		whole[m.end] = m.points
	}
	for _, n := range []int{12, 25, 26, 31, 45, 99} {
		early := wideHost(min(n, 25), max(0, n-25))
		if n < 25 {
			early = newHost(rand.New(rand.NewPCG(7, 7)), time.Second, 2000)
			for range n {
				early.tick()
			}
		}
		live := newLiveSeries(early.rec, "0", 0).windows()
		if len(live) != n/10 && len(live) != n/10-1 {
			t.Errorf("%d windows of %d s, want %d or one less", len(live), n, n/10)
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
	for range 25 {
		h.tick()
	}
	got := h.series().windows()
	for _, b := range pack(nil, nil, got) {
		if len(b.Metrics) > maxItems {
			t.Errorf("a batch has %d points, want at most %d", len(b.Metrics), maxItems)
		}
	}
	seen := make(map[string]bool)
	for _, p := range got[0].points {
		if err := mlflow.CheckKey(p.Key); err != nil || seen[p.Key] {
			t.Errorf("series %s: invalid (%v) or duplicate (%v)", p.Key, err, seen[p.Key])
		}
		seen[p.Key] = true
	}
	if !seen["system/0/gpu_15_power_usage_watts"] || seen["system/0/gpu_16_power_usage_watts"] {
		t.Errorf("of %d series, want one of GPU 15 and none of GPU 16", len(got[0].points))
	}
	for _, m := range reporter.GPUMetrics() {
		name := strings.Replace(m.Name, "{i}", "0", 1)
		if err := mlflow.CheckKey(name); err != nil || seen[name] {
			t.Errorf("metric %s: invalid (%v) or also a series (%v)", name, err, seen[name])
		}
	}
}
