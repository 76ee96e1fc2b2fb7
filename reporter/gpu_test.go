package reporter_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// A value missing from an account in a file is unknown, not 0.
func TestAccount_AbsentValuesAreUnknown(t *testing.T) {
	var a collector.Account
	if err := json.Unmarshal([]byte(`{"source":"tree","cpu_seconds":1.5,"oom_kills":null,"limits":{"cpus":2}}`), &a); err != nil {
		t.Fatal(err)
	}
	want := collector.NoAccount()
	want.Source, want.CPUSeconds, want.Limits.CPUs = "tree", 1.5, 2
	if d := cmp.Diff(want, a, reportertest.SameFloats()); d != "" {
		t.Errorf("account (-want +got):\n%s", d)
	}
}

// The columns of the existing GPUs come last in the table.
func TestWriteCSV_GPUColumnsComeLast(t *testing.T) {
	w := reportertest.NewWideStream(5, 3, 2)
	rec := w.Recording(10)
	for range 5 {
		w.Next(rec)
	}
	rec.Summaries[collector.GPUColumn(0, collector.GPUUtilization)] = series.NewSummary() // [N/A]
	r := reporter.New(reporter.Input{Run: reporter.Run{ID: "r"}, Recording: rec})
	rows := csvRows(t, r)
	var got []string
	for _, name := range rows[0] {
		if strings.HasPrefix(name, "gpu_") && !strings.Contains(name, ".") {
			got = append(got, name)
		}
	}
	want := []string{"gpu_0_memory_used_mb [MiB]", "gpu_0_power_watts [W]", "gpu_0_temperature_celsius [°C]",
		"gpu_1_utilization_pct [%]", "gpu_1_memory_used_mb [MiB]", "gpu_1_power_watts [W]", "gpu_1_temperature_celsius [°C]"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("columns of GPUs (-want +got):\n%s", d)
	}
	if last := rows[0][len(rows[0])-1]; last != "gpu_1_temperature_celsius.max [°C]" {
		t.Errorf("the last column is %s, want gpu_1_temperature_celsius.max [°C]", last)
	}
}

// Energy is the device's counter, or else the power integrated over the measured time.
func TestNew_GPUEnergyIsCountedOrIntegrated(t *testing.T) {
	w := reportertest.NewWideStream(5, 3, 3)
	rec := w.Recording(10)
	for range 5 {
		w.Next(rec)
	}
	rec.GPUs[1].EnergyJoules, rec.GPUs[2].EnergyJoules = series.Unknown(), series.Unknown()
	power := series.NewSummary()
	for _, s := range [][2]float64{{100, 1}, {300, 2}, {math.NaN(), 4}, {50, 0.5}} { // the 4 s are unknown
		power.Add(s[0], s[1])
	}
	rec.Summaries[collector.GPUColumn(1, collector.GPUPower)] = power
	rec.Summaries[collector.GPUColumn(2, collector.GPUPower)] = series.NewSummary()
	n := reporter.New(reporter.Input{Run: reporter.Run{ID: "r"}, Recording: rec}).Nodes["0"]
	if counted, added := n.Metric("gpu_0_energy_joules"), n.Metric("gpu_1_energy_joules"); counted != 1500 || math.Abs(added-725) > 1e-9 {
		t.Errorf("%v J were counted, want 1500; %v J added up, want 725", counted, added)
	}
	if none := n.Metric("gpu_2_energy_joules"); !math.IsNaN(none) {
		t.Errorf("%v J without a measurement, want NaN", none)
	}
}

// Merging keeps everything of a node, and a merged report can be merged again
// with the original: findings depend on the nodes of a report.
func TestMerge_KeepsWhatANodeHas(t *testing.T) {
	node := func(i int) reporter.SourceReport {
		w := reportertest.NewWideStream(uint64(i), 2, 2)
		rec := w.Recording(10)
		for range 12 {
			w.Next(rec)
		}
		r := reporter.New(reporter.Input{Run: reporter.Run{ID: "r", Start: reporter.Time{Time: w.Start.Wall}}, Node: i, Recording: rec, Job: &reporter.Job{UserSeconds: 6}})
		r.Nodes[fmt.Sprint(i)].Findings = []reporter.Finding{{ID: "x", Severity: "info", Text: "y", Evidence: map[string]any{}}}
		return reporter.SourceReport{Path: fmt.Sprint(i), Report: r}
	}
	both := mustMerge(t, node(0), node(1))
	for i := range 2 {
		want, got := node(i).Report.Nodes[fmt.Sprint(i)], both.Nodes[fmt.Sprint(i)]
		if d := cmp.Diff(want.GPUs, got.GPUs); d != "" || len(got.GPUs) != 2 {
			t.Errorf("node %d has %d GPUs, want 2 (-want +merged):\n%s", i, len(got.GPUs), d)
		}
		if d := cmp.Diff(want.Limits, got.Limits); d != "" || got.Limits.MemoryMB != 256 {
			t.Errorf("node %d has a limit of %v MiB, want 256 (-want +merged):\n%s", i, got.Limits.MemoryMB, d)
		}
		if d := cmp.Diff(want.Job, got.Job); d != "" || got.Job.Source != "cgroup" {
			t.Errorf("node %d has a job from %q, want cgroup (-want +merged):\n%s", i, got.Job.Source, d)
		}
		if d := cmp.Diff(want.Metrics, got.Metrics); d != "" || got.Metrics["gpu_1_energy_joules"] == 0 {
			t.Errorf("node %d has %v J of GPU 1, want some; metrics (-want +merged):\n%s", i,
				got.Metrics["gpu_1_energy_joules"], d)
		}
	}
	both.Nodes["0"].Findings = nil
	mustMerge(t, reporter.SourceReport{Path: "both", Report: both}, node(0))
	mustMerge(t, node(1), reporter.SourceReport{Path: "both", Report: both})
}

// The metrics of one GPU are found by their names, like those of the table.
func TestMetricByName_FindsMetricsOfGPUs(t *testing.T) {
	for _, m := range reporter.GPUMetrics() {
		name := strings.Replace(m.Name, "{i}", "3", 1)
		if got, ok := reporter.MetricByName(name); !ok || got.Name != name || got.Unit != m.Unit {
			t.Errorf("MetricByName(%q) = %+v, %v, want that name with the unit %s", name, got, ok, m.Unit)
		}
		if source, isSource := reporter.SourceOf(name); source != host.SourceGPU+" 3" || !isSource {
			t.Errorf("SourceOf(%q) = %q, %v, want %q, true", name, source, isSource, host.SourceGPU+" 3")
		}
	}
	for _, name := range []string{"gpu_16_energy_joules", "gpu_{i}_energy_joules", "gpu_01_energy_joules", "gpu__energy_joules", "max_t_gpu_0_energy_joules"} {
		if m, ok := reporter.MetricByName(name); ok {
			t.Errorf("MetricByName(%q) = %+v, want none", name, m)
		}
	}
	n := &reporter.Node{GPUs: make([]reporter.GPU, 40)}
	if got := len(n.GPUMetrics()); got != collector.MaxGPUs*len(reporter.GPUMetrics()) {
		t.Errorf("40 GPUs have %d metrics, want %d", got, collector.MaxGPUs*len(reporter.GPUMetrics()))
	}
}
