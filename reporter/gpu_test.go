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
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// A value missing from an account in a file is unknown, not 0.
func TestAccount_AbsentValuesAreUnknown(t *testing.T) {
	var a collector.Account
	check.Must(t, json.Unmarshal([]byte(`{"source":"tree","cpu_seconds":1.5,"oom_kills":null,"limits":{"cpus":2}}`), &a))
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
	check.Equal(t, got, want, "columns of GPUs")
	check.Equal(t, rows[0][len(rows[0])-1], "gpu_1_temperature_celsius.max [°C]", "the last column")
}

// The energy is the growth of the device's counter, or else the power integrated over the measured time.
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
		t.Errorf("counted energy = %v J, want 1500; integrated energy = %v J, want 725", counted, added)
	}
	wantValues(t, "energy without a measurement", "NaN", n.Metric("gpu_2_energy_joules"))
}

// MetricByName finds the metrics of a GPU as well as the metrics of the table.
func TestMetricByName_FindsMetricsOfGPUs(t *testing.T) {
	for _, m := range reporter.GPUMetrics() {
		name := strings.Replace(m.Name, "{i}", "3", 1)
		got, ok := reporter.MetricByName(name)
		source, isSource := reporter.SourceOf(name)
		wantValues(t, "found, name, unit, and source of "+name,
			fmt.Sprintln(true, name, m.Unit, true, host.SourceGPU+" 3"), ok, got.Name, got.Unit, isSource, source)
	}
	for _, name := range []string{"gpu_16_energy_joules", "gpu_{i}_energy_joules", "gpu_01_energy_joules", "gpu__energy_joules", "max_t_gpu_0_energy_joules"} {
		if m, ok := reporter.MetricByName(name); ok {
			t.Errorf("MetricByName(%q) = %+v, want none", name, m)
		}
	}
	n := &reporter.Node{GPUs: make([]reporter.GPU, 40)}
	check.Equal(t, len(n.GPUMetrics()), collector.MaxGPUs*len(reporter.GPUMetrics()), "40 GPUs have")
}
