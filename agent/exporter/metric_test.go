package exporter

import (
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/reporter"
)

// wantGolden compares got with a file in testdata. With -update it rewrites the file.
func wantGolden(t *testing.T, file, got string) {
	t.Helper()
	file = "testdata/" + file
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestMetrics_HaveValuesOfSample(t *testing.T) {
	f := wideFeed(time.Second)
	f.sample()
	f.rec.MissedTicks = 2
	f.sample()
	text := string(f.metrics())
	wantGolden(t, "metrics.txt", text)
	got := parsed(t, text)
	s := sampleOf(2)
	for name, want := range map[string]float64{ // spelled out independently of the implementation
		"perfagent_build_info{version=v1.2.3}":    1,
		"perfagent_start_time_seconds":            1_767_225_600,
		"perfagent_last_sample_timestamp_seconds": 1_767_225_602,
		"perfagent_samples_total":                 2,
		"perfagent_missed_ticks_total":            2,
		"perfagent_interval_seconds":              1,
		"perfagent_agent_cpu_seconds_total":       0.0125,
		"perfagent_agent_max_rss_bytes":           14.5 * (1 << 20),
		"perfagent_cpus":                          4,
		"perfagent_cpu_seconds_total{mode=user}":  2.25,
		"perfagent_cpu_seconds_total{mode=steal}": 16.25,
		"perfagent_cpu_busy_ratio":                s.Values[collector.CPUAvg] / 100,
		"perfagent_memory_used_ratio":             s.Values[collector.MemUsed] / 8000,
		"perfagent_memory_total_bytes":            8000 * (1 << 20),
		"perfagent_disk_read_bytes_total":         s.Values[collector.DiskRead] * (1 << 20),
		"perfagent_disk_written_bytes_total":      s.Values[collector.DiskWrite] * (1 << 20),
		"perfagent_network_receive_bytes_total":   s.Values[collector.NetExtRecv] * (1 << 20),
		"perfagent_network_transmit_bytes_total":  s.Values[collector.NetExtSent] * (1 << 20),
		"perfagent_loopback_receive_bytes_total":  s.Values[collector.NetLoRecv] * (1 << 20),
		"perfagent_loopback_transmit_bytes_total": s.Values[collector.NetLoSent] * (1 << 20),
		"perfagent_filesystem_available_bytes":    s.Values[collector.DiskFree] * (1 << 20),
		"perfagent_filesystem_used_ratio":         s.Values[collector.DiskUsed] / (s.Values[collector.DiskUsed] + s.Values[collector.DiskFree]),
		"perfagent_cpu_most_busy_ratio":           s.Values[collector.CPUMax] / 100,
		"perfagent_cpu_least_busy_ratio":          s.Values[collector.CPUMin] / 100,

		"perfagent_job_info{source=cgroup,memory_kind=cgroup}": 1, "perfagent_job_cpu_seconds_total": 12.5,
		"perfagent_job_memory_bytes":     s.Values[collector.JobMemory] * (1 << 20),
		"perfagent_job_processes":        s.Values[collector.JobProcesses],
		"perfagent_job_read_bytes_total": s.Values[collector.JobRead] * (1 << 20),
		"perfagent_job_cpu_limit_cpus":   1.5, "perfagent_job_memory_limit_bytes": 256 << 20,
		"perfagent_job_memory_limit_used_bytes": s.Values[collector.LimitMemory] * (1 << 20),
		"perfagent_job_cpu_periods_total":       100, "perfagent_job_cpu_throttled_periods_total": 25, "perfagent_job_cpu_throttled_seconds_total": 7.5,
		"perfagent_job_oom_kills_total": 1, "perfagent_oom_kills_total": 2,
		"perfagent_job_pressure_waiting_seconds_total{resource=cpu}":    1,
		"perfagent_job_pressure_stalled_seconds_total{resource=memory}": 4,
		"perfagent_pressure_waiting_seconds_total{resource=io}":         50,
		"perfagent_pressure_stalled_seconds_total{resource=io}":         60,
		"perfagent_swap_in_bytes_total":                                 s.Values[collector.SwapIn] * (1 << 20),
		"perfagent_load1":                                               s.Values[collector.Load1],
		"perfagent_gpu_of_job{gpu=0,uuid=GPU-a,name=A\\\\B}":            1, "perfagent_gpu_of_job{gpu=1,uuid=GPU-b,name=}": 0,
		"perfagent_gpu_utilization_ratio{gpu=1,uuid=GPU-b,name=}":         s.Values[collector.GPUColumn(1, collector.GPUUtilization)] / 100,
		"perfagent_gpu_memory_used_bytes{gpu=1,uuid=GPU-b,name=}":         s.Values[collector.GPUColumn(1, collector.GPUMemoryUsed)] * (1 << 20),
		"perfagent_gpu_memory_total_bytes{gpu=0,uuid=GPU-a,name=A\\\\B}":  1024 << 20,
		"perfagent_gpu_energy_joules_total{gpu=0,uuid=GPU-a,name=A\\\\B}": 5000,
	} {
		if v, there := got[name]; !there || math.Abs(v-want) > 1e-9 {
			t.Errorf("%s is %v (present: %v), want %v", name, v, there, want)
		}
	}
	for _, absent := range []string{"gpu_memory_total_bytes{gpu=1,", "gpu_energy_joules_total{gpu=1,", "pressure_stalled_seconds_total{resource=cpu"} {
		for name := range got {
			if strings.HasPrefix(name, "perfagent_"+absent) {
				t.Errorf("%s has a line, want none for an unknown value", name)
			}
		}
	}
	none := &metricInput{snapshot: emptySnapshot()}
	for _, m := range slices.Concat(nodeMetrics(none), jobMetrics(none), gpuMetrics()) {
		if !strings.Contains(text, "\n"+m.Name+"{") && !strings.HasPrefix(text, m.Name+"{") || m.Help == "" {
			t.Errorf("%s has no line, or no help (%q)", m.Name, m.Help)
		}
	}
}

// An unknown value has no line, neither 0 nor NaN.
func TestMetrics_UnknownValuesHaveNoLine(t *testing.T) {
	f := listenFeed(time.Second)
	f.options.Agent = func() reporter.Agent { return reporter.Agent{Version: "v"} }
	want := map[string]float64{"perfagent_build_info{version=v1.2.3}": 1, "perfagent_interval_seconds": 1,
		"perfagent_samples_total": 0, "perfagent_missed_ticks_total": 0}
	if diff := cmp.Diff(want, parsed(t, string(f.metrics()))); diff != "" {
		t.Errorf("metrics before any sample (-want +got):\n%s", diff)
	}
}

// Counters that the baseline has begin at 0 with the run, so that their growth up to the first sample is visible to
// scrapers. Gauges have no value yet.
func TestMetrics_CountersBeginAtZeroWithTheRun(t *testing.T) {
	f := listenFeed(time.Hour)
	f.rec.BootMB[0], f.rec.BootMB[1] = math.NaN(), math.NaN() // the disks could not be read
	f.Begin(f.rec)
	got := parsed(t, string(f.metrics()))
	want := map[string]float64{"perfagent_build_info{version=v1.2.3}": 1, "perfagent_interval_seconds": 3600,
		"perfagent_samples_total": 0, "perfagent_missed_ticks_total": 0, "perfagent_start_time_seconds": 1_767_225_600,
		"perfagent_agent_cpu_seconds_total": 0.0125, "perfagent_agent_max_rss_bytes": 14.5 * (1 << 20), "perfagent_cpus": 4,
		"perfagent_memory_total_bytes":          8000 * (1 << 20),
		"perfagent_network_receive_bytes_total": 0, "perfagent_network_transmit_bytes_total": 0,
		"perfagent_loopback_receive_bytes_total": 0, "perfagent_loopback_transmit_bytes_total": 0}
	for m := range host.NumCPUModes {
		want["perfagent_cpu_seconds_total{mode="+m.String()+"}"] = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics at the baseline (-want +got):\n%s", diff)
	}
	f.sample()
	if got = parsed(t, string(f.metrics())); got["perfagent_cpu_seconds_total{mode=user}"] != 1.25 || got["perfagent_disk_read_bytes_total"] == 0 {
		t.Errorf("after a sample: %v, want 1.25 s in user mode and bytes read", got)
	}

	f = listenFeed(time.Hour)
	f.rec.Host.CPUs = 0 // the number could not be read
	f.Begin(f.rec)
	if v, there := parsed(t, string(f.metrics()))["perfagent_cpu_seconds_total{mode=idle}"]; there {
		t.Errorf("CPU time that has never been read is %v, want no line", v)
	}
	f = listenFeed(time.Hour)
	f.Begin(f.rec)
	f.rec.End.Mono += time.Hour
	s := sampleOf(1)
	f.Observe(&s, f.rec) // the CPUs, which are in the baseline, can no longer be read
	if v, there := parsed(t, string(f.metrics()))["perfagent_cpu_seconds_total{mode=idle}"]; there {
		t.Errorf("CPU time of a source that fails is %v, want no line", v)
	}
}

// Ratios come from exact bytes, not from rounded percentages.
func TestMetrics_RatiosComeFromBytes(t *testing.T) {
	f := listenFeed(time.Second)
	s := sampleOf(1)
	s.Values[collector.MemPercent], s.Values[collector.MemUsed] = 3, 239.44
	s.Values[collector.DiskPercent], s.Values[collector.DiskUsed], s.Values[collector.DiskFree] = 26.2, 262.5, 737.5
	f.Observe(&s, f.rec)
	got := parsed(t, string(f.metrics()))
	if m, d := got["perfagent_memory_used_ratio"], got["perfagent_filesystem_used_ratio"]; m != 0.02993 || d != 0.2625 {
		t.Errorf("memory ratio %v, file system ratio %v; want 0.02993, 0.2625", m, d)
	}
	f.rec.Host.MemoryMB = 0
	f.Observe(&s, f.rec)
	if m := parsed(t, string(f.metrics()))["perfagent_memory_used_ratio"]; m != 0.03 {
		t.Errorf("memory ratio of a host with unknown memory: %v, want 0.03", m)
	}
	s.Values[collector.DiskUsed], s.Values[collector.DiskFree] = 0, 0 // a file system of size 0
	f.Observe(&s, f.rec)
	if d := parsed(t, string(f.metrics()))["perfagent_filesystem_used_ratio"]; d != 0 {
		t.Errorf("ratio of a file system of size 0: %v, want 0", d)
	}
}

func TestMetrics_ValuesOfFailedSourceDisappear(t *testing.T) {
	f := listenFeed(time.Second)
	f.sample()
	all := parsed(t, string(f.metrics()))
	fails := []collector.Column{collector.MemPercent, collector.MemUsed, collector.DiskRead}
	f.sample(fails...)
	f.sample(fails...) // the newest values of these columns are 2 s old
	got := parsed(t, string(f.metrics()))
	if len(got) != len(all) || got["perfagent_memory_used_ratio"] != all["perfagent_memory_used_ratio"] {
		t.Errorf("values 2 s after the source failed: %v, want all %d as before", got, len(all))
	}
	f.sample(fails...)
	got = parsed(t, string(f.metrics()))
	for _, name := range []string{"perfagent_memory_used_ratio", "perfagent_memory_used_bytes", "perfagent_disk_read_bytes_total"} {
		if v, there := got[name]; there {
			t.Errorf("%s is %v, 3 s after it was last measured, want no line", name, v)
		}
	}
	if len(got) != len(all)-3 {
		t.Errorf("%d series, want %d", len(got), len(all)-3)
	}
	f.sample()
	if got = parsed(t, string(f.metrics())); len(got) != len(all) {
		t.Errorf("%d series after the source recovered, want %d: %v", len(got), len(all), got)
	}
}

// If the CPUs can no longer be read, their CPU seconds stop growing, and soon disappear.
func TestMetrics_StaleCPUTimeDisappears(t *testing.T) {
	f := listenFeed(time.Second)
	f.sample()
	s := sampleOf(1)
	const idle = "perfagent_cpu_seconds_total{mode=idle}"
	for n := range 4 {
		f.rec.Add(&s)
		f.rec.End.Mono += time.Second
		f.Observe(&s, f.rec)
		if _, there := parsed(t, string(f.metrics()))[idle]; there != (n < 2) {
			t.Errorf("%d s after the last reading of the CPUs: CPU time exported = %v, want %v", n+1, there, n < 2)
		}
	}
}

// At an interval of 10 ms, most samples lack a CPU percentage. The newest measured percentage is served.
func TestMetrics_ShortIntervalKeepsNewestValue(t *testing.T) {
	f := listenFeed(10 * time.Millisecond)
	f.sample()
	for range 100 {
		f.sample(collector.CPUAvg)
		if v := parsed(t, string(f.metrics()))["perfagent_cpu_busy_ratio"]; v != 0.1 {
			t.Fatalf("after %d samples: busy ratio %v, want the first sample's 0.1", f.rec.Samples, v)
		}
	}
	f.sample(collector.CPUAvg)
	if v, there := parsed(t, string(f.metrics()))["perfagent_cpu_busy_ratio"]; there {
		t.Errorf("busy ratio is still %v more than a second later, want no line", v)
	}
}

func TestMetrics_EscapeLabels(t *testing.T) {
	x := exposition{labels: labelsOf("a\\b\"c\nd\xff", 7)}
	x.series(&Metric{Name: "m_x", Help: "h", Type: gauge, Label: "version"}, "v\"\n\\", 1)
	want := "# HELP m_x h\n# TYPE m_x gauge\nm_x{run_id=\"a\\\\b\\\"c\\nd\uFFFD\",node=\"7\",version=\"v\\\"\\n\\\\\"} 1\n"
	if string(x.out) != want {
		t.Errorf("lines %q, want %q", x.out, want)
	}
	parsed(t, string(x.out))
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		x := exposition{labels: labelsOf("a", 0)}
		x.series(&Metric{Name: "m_x", Help: "h", Type: gauge}, "", v)
		if len(x.out) > 0 {
			t.Errorf("value %v is written as %q, want no line", v, x.out)
		}
	}
}

// Names follow Prometheus' conventions: base units, and _total only for counters.
func TestMetrics_NamesFollowConventions(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range Metrics() {
		base := strings.TrimSuffix(m.Name, "_total")
		known := strings.HasSuffix(base, "_seconds") || strings.HasSuffix(base, "_bytes") || strings.HasSuffix(base, "_ratio") ||
			strings.HasSuffix(base, "_watts") || strings.HasSuffix(base, "_joules") || strings.HasSuffix(base, "_celsius") ||
			slices.Contains([]string{"build_info", "samples", "missed_ticks", "cpus", "job_info", "job_processes", "job_threads",
				"job_cpu_limit_cpus", "job_cpu_periods", "job_cpu_throttled_periods", "job_oom_kills", "oom_kills", "load1", "procs_running", "cpu_throttle_events", "major_page_faults", "job_read_calls", "job_write_calls",
				"gpu_of_job", "operation_errors", "job_value", "transfer_failures", "intake_events", "intake_dropped", "store_errors"}, strings.TrimPrefix(base, "perfagent_"))
		if seen[m.Name] || !known || (m.Type == counter) != (base != m.Name) || !strings.HasPrefix(m.Name, "perfagent_") || strings.ContainsAny(m.Help, "\n\\|") {
			t.Errorf("%+v: want one metric of this name, with a known unit, _total for counters only, help in one line",
				m)
		}
		seen[m.Name] = true
	}
}

// wideFeed returns the run of a job with limits on a node with two GPUs. The second GPU has few values.
func wideFeed(interval time.Duration) *feed {
	f := listenFeed(interval)
	a, unknown := &f.rec.Account, series.Unknown()
	a.Source, a.MemoryKind, a.CPUSeconds = host.JobFromGroup, host.MemoryGroup, 12.5
	a.Limits.CPUs, a.Limits.MemoryMB = 1.5, 256
	a.Periods, a.ThrottledPeriods, a.ThrottledSeconds, a.OOMKills, a.HostOOMKills = 100, 25, 7.5, 1, 2
	a.JobStall = collector.Stalls{CPUSome: 1, CPUFull: 2, MemorySome: 3, MemoryFull: 4, IOSome: 5, IOFull: 6}
	a.HostStall = collector.Stalls{CPUSome: 10, CPUFull: unknown, MemorySome: 30, MemoryFull: 40, IOSome: 50, IOFull: 60}
	f.rec.GPUs = []collector.GPU{
		{Device: gpu.Device{Index: 0, UUID: "GPU-a", Name: `A\B`, MemoryMB: 1024, PowerLimitWatts: 400},
			OfJob: true, EnergyJoules: 5000, ClockMHz: 1410},
		{Device: gpu.Device{Index: 1, UUID: "GPU-b", MemoryMB: unknown, PowerLimitWatts: unknown},
			EnergyJoules: unknown, ClockMHz: unknown},
	}
	f.rec.EnsureGPUColumns(2)
	return f
}

// In a sidecar, and before the first Reading of a job, the job's values are unknown and have no line.
func TestMetrics_UnknownJobValuesHaveNoLine(t *testing.T) {
	f := listenFeed(time.Second)
	f.Begin(f.rec)
	for name := range parsed(t, string(f.metrics())) {
		if strings.HasPrefix(name, "perfagent_job_") || strings.HasPrefix(name, "perfagent_gpu_") {
			t.Errorf("%s has a line, want none without a job and GPUs", name)
		}
	}
	f = listenFeed(time.Second)
	f.rec.Account.Source = host.JobFromTree
	f.Begin(f.rec)
	got := parsed(t, string(f.metrics()))
	if v, there := got["perfagent_job_cpu_seconds_total"]; !there || v != 0 {
		t.Errorf("the job's CPU time begins with %v (present: %v), want 0", v, there)
	}
	if v, there := got["perfagent_job_info{source=tree,memory_kind=}"]; !there || v != 1 {
		t.Errorf("no perfagent_job_info with source=tree and the value 1: %v", got)
	}
	for _, name := range []string{"perfagent_job_memory_bytes", "perfagent_job_oom_kills_total", "perfagent_job_memory_limit_bytes"} {
		if v, there := got[name]; there {
			t.Errorf("%s is %v, want no line before the first reading", name, v)
		}
	}
}

// A GPU that is found during the run has metrics from that time on.
func TestMetrics_GPUFoundLaterAppears(t *testing.T) {
	f, found := listenFeed(time.Second), wideFeed(time.Second)
	f.Begin(f.rec)
	f.sample()
	if strings.Contains(string(f.metrics()), "perfagent_gpu_") {
		t.Error("a GPU metric has a line before a GPU was found, want none")
	}
	f.rec.GPUs = found.rec.GPUs
	f.rec.EnsureGPUColumns(2)
	f.sample()
	if !strings.Contains(string(f.metrics()), `perfagent_gpu_power_watts{run_id="r-1",node="3",gpu="1",uuid="GPU-b",name=""}`) {
		t.Error("no perfagent_gpu_power_watts of GPU 1 after two GPUs were found, want a line")
	}
}

// Scrapes share nothing with the Recording, which changes concurrently. This test is for the race detector.
func TestExporter_ScrapesDoNotRaceWithSampling(t *testing.T) {
	f := wideFeed(time.Millisecond)
	f.Begin(f.rec)
	stop := make(chan struct{})
	var scrapers sync.WaitGroup
	for range 2 {
		scrapers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f.metrics()
				}
			}
		})
	}
	for range 300 {
		f.rec.Account.Victims = append(f.rec.Account.Victims[:0], host.Victim{PID: 1})
		f.rec.Account.CPUSeconds++
		f.rec.GPUs[0].EnergyJoules++
		f.rec.GPUs[0].Throttle = append(f.rec.GPUs[0].Throttle[:0], "hot")
		f.sample()
	}
	close(stop)
	scrapers.Wait()
}
