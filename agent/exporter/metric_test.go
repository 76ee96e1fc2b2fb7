package exporter

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

func TestMetrics_HaveValuesOfSample(t *testing.T) {
	f := wideFeed(time.Second)
	f.sample()
	f.rec.MissedTicks = 2
	f.sample()
	text := string(f.metrics())
	reportertest.CompareGolden(t, "testdata/metrics.txt", []byte(text), *update)
	got, s := parsed(t, text), sampleOf(2)
	mib := func(c collector.Column) float64 { return s.Values[c] * (1 << 20) }
	wantValues(t, got, map[string]float64{ // spelled out independently of the implementation
		"perfagent_build_info{version=v1.2.3}": 1, "perfagent_start_time_seconds": 1_767_225_600,
		"perfagent_last_sample_timestamp_seconds": 1_767_225_602, "perfagent_samples_total": 2,
		"perfagent_missed_ticks_total": 2, "perfagent_interval_seconds": 1, "perfagent_agent_cpu_seconds_total": 0.0125,
		"perfagent_agent_max_rss_bytes": 14.5 * (1 << 20), "perfagent_cpus": 4,
		"perfagent_cpu_seconds_total{mode=user}": 2.25, "perfagent_cpu_seconds_total{mode=steal}": 16.25,
		"perfagent_cpu_busy_ratio":     s.Values[collector.CPUAvg] / 100,
		"perfagent_memory_used_ratio":  s.Values[collector.MemUsed] / 8000,
		"perfagent_memory_total_bytes": 8000 * (1 << 20), "perfagent_disk_read_bytes_total": mib(collector.DiskRead),
		"perfagent_disk_written_bytes_total":                   mib(collector.DiskWrite),
		"perfagent_network_receive_bytes_total":                mib(collector.NetExtRecv),
		"perfagent_network_transmit_bytes_total":               mib(collector.NetExtSent),
		"perfagent_loopback_receive_bytes_total":               mib(collector.NetLoRecv),
		"perfagent_loopback_transmit_bytes_total":              mib(collector.NetLoSent),
		"perfagent_filesystem_available_bytes":                 mib(collector.DiskFree),
		"perfagent_filesystem_used_ratio":                      s.Values[collector.DiskUsed] / (s.Values[collector.DiskUsed] + s.Values[collector.DiskFree]),
		"perfagent_cpu_most_busy_ratio":                        s.Values[collector.CPUMax] / 100,
		"perfagent_cpu_least_busy_ratio":                       s.Values[collector.CPUMin] / 100,
		"perfagent_job_info{source=cgroup,memory_kind=cgroup}": 1, "perfagent_job_cpu_seconds_total": 12.5,
		"perfagent_job_memory_bytes":     mib(collector.JobMemory),
		"perfagent_job_processes":        s.Values[collector.JobProcesses],
		"perfagent_job_read_bytes_total": mib(collector.JobRead),
		"perfagent_job_cpu_limit_cpus":   1.5, "perfagent_job_memory_limit_bytes": 256 << 20,
		"perfagent_job_memory_limit_used_bytes": mib(collector.LimitMemory),
		"perfagent_job_cpu_periods_total":       100, "perfagent_job_cpu_throttled_periods_total": 25, "perfagent_job_cpu_throttled_seconds_total": 7.5,
		"perfagent_job_oom_kills_total": 1, "perfagent_oom_kills_total": 2,
		"perfagent_job_pressure_waiting_seconds_total{resource=cpu}":    1,
		"perfagent_job_pressure_stalled_seconds_total{resource=memory}": 4,
		"perfagent_pressure_waiting_seconds_total{resource=io}":         50,
		"perfagent_pressure_stalled_seconds_total{resource=io}":         60,
		"perfagent_swap_in_bytes_total":                                 mib(collector.SwapIn), "perfagent_load1": s.Values[collector.Load1],
		"perfagent_gpu_of_job{gpu=0,uuid=GPU-a,name=A\\\\B}": 1, "perfagent_gpu_of_job{gpu=1,uuid=GPU-b,name=}": 0,
		"perfagent_gpu_utilization_ratio{gpu=1,uuid=GPU-b,name=}":         s.Values[collector.GPUColumn(1, collector.GPUUtilization)] / 100,
		"perfagent_gpu_memory_used_bytes{gpu=1,uuid=GPU-b,name=}":         mib(collector.GPUColumn(1, collector.GPUMemoryUsed)),
		"perfagent_gpu_memory_total_bytes{gpu=0,uuid=GPU-a,name=A\\\\B}":  1024 << 20,
		"perfagent_gpu_energy_joules_total{gpu=0,uuid=GPU-a,name=A\\\\B}": 5000,
	})
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
	collectortest.Same(t, "metrics before any sample", f.values(t), want)
}

// Counters that the baseline has begin at 0 with the run, so that their growth up to the first sample is visible to
// scrapers. Gauges have no value yet.
func TestMetrics_CountersBeginAtZeroWithTheRun(t *testing.T) {
	f := listenFeed(time.Hour)
	f.rec.BootMB[0], f.rec.BootMB[1] = math.NaN(), math.NaN() // the disks could not be read
	f.Begin(f.rec)
	want := map[string]float64{"perfagent_build_info{version=v1.2.3}": 1, "perfagent_interval_seconds": 3600,
		"perfagent_samples_total": 0, "perfagent_missed_ticks_total": 0, "perfagent_start_time_seconds": 1_767_225_600,
		"perfagent_agent_cpu_seconds_total": 0.0125, "perfagent_agent_max_rss_bytes": 14.5 * (1 << 20), "perfagent_cpus": 4,
		"perfagent_memory_total_bytes":          8000 * (1 << 20),
		"perfagent_network_receive_bytes_total": 0, "perfagent_network_transmit_bytes_total": 0,
		"perfagent_loopback_receive_bytes_total": 0, "perfagent_loopback_transmit_bytes_total": 0}
	for m := range host.NumCPUModes {
		want["perfagent_cpu_seconds_total{mode="+m.String()+"}"] = 0
	}
	collectortest.Same(t, "metrics at the baseline", f.values(t), want)
	f.sample()
	if got := f.values(t); got["perfagent_cpu_seconds_total{mode=user}"] != 1.25 || got["perfagent_disk_read_bytes_total"] == 0 {
		t.Errorf("after a sample: %v, want 1.25 s in user mode and bytes read", got)
	}

	f = listenFeed(time.Hour)
	f.rec.Host.CPUs = 0 // the number could not be read
	f.Begin(f.rec)
	wantNoLines(t, f.values(t), "perfagent_cpu_seconds_total{mode=idle}")
	f = listenFeed(time.Hour)
	f.Begin(f.rec)
	f.rec.End.Mono += time.Hour
	s := sampleOf(1)
	f.Observe(&s, f.rec) // the CPUs, which are in the baseline, can no longer be read
	wantNoLines(t, f.values(t), "perfagent_cpu_seconds_total{mode=idle}")
}

// Ratios come from exact bytes, not from rounded percentages.
func TestMetrics_RatiosComeFromBytes(t *testing.T) {
	f, s := listenFeed(time.Second), sampleOf(1)
	s.Values[collector.MemPercent], s.Values[collector.MemUsed] = 3, 239.44
	s.Values[collector.DiskPercent], s.Values[collector.DiskUsed], s.Values[collector.DiskFree] = 26.2, 262.5, 737.5
	f.Observe(&s, f.rec)
	wantValues(t, f.values(t), map[string]float64{"perfagent_memory_used_ratio": 0.02993,
		"perfagent_filesystem_used_ratio": 0.2625})
	f.rec.Host.MemoryMB = 0                                           // unknown
	s.Values[collector.DiskUsed], s.Values[collector.DiskFree] = 0, 0 // a file system of size 0
	f.Observe(&s, f.rec)
	wantValues(t, f.values(t), map[string]float64{"perfagent_memory_used_ratio": 0.03, "perfagent_filesystem_used_ratio": 0})
}

func TestMetrics_ValuesOfFailedSourceDisappear(t *testing.T) {
	f := sampledFeed(time.Second, 1)
	all := f.values(t)
	fails := []collector.Column{collector.MemPercent, collector.MemUsed, collector.DiskRead}
	f.sample(fails...)
	f.sample(fails...) // the newest values of these columns are 2 s old
	got := f.values(t)
	if len(got) != len(all) || got["perfagent_memory_used_ratio"] != all["perfagent_memory_used_ratio"] {
		t.Errorf("values 2 s after the source failed: %v, want all %d as before", got, len(all))
	}
	f.sample(fails...)
	got = f.values(t)
	wantNoLines(t, got, "perfagent_memory_used_ratio", "perfagent_memory_used_bytes", "perfagent_disk_read_bytes_total")
	if len(got) != len(all)-3 {
		t.Errorf("%d series, want %d", len(got), len(all)-3)
	}
	f.sample()
	if got = f.values(t); len(got) != len(all) {
		t.Errorf("%d series after the source recovered, want %d: %v", len(got), len(all), got)
	}
}

// If the CPUs can no longer be read, their CPU seconds stop growing, and soon disappear.
func TestMetrics_StaleCPUTimeDisappears(t *testing.T) {
	f, s := sampledFeed(time.Second, 1), sampleOf(1)
	const idle = "perfagent_cpu_seconds_total{mode=idle}"
	for n := range 4 {
		f.rec.Add(&s)
		f.rec.End.Mono += time.Second
		f.Observe(&s, f.rec)
		if _, there := f.values(t)[idle]; there != (n < 2) {
			t.Errorf("%d s after the last reading of the CPUs: CPU time exported = %v, want %v", n+1, there, n < 2)
		}
	}
}

// At an interval of 10 ms, most samples lack a CPU percentage. The newest measured percentage is served.
func TestMetrics_ShortIntervalKeepsNewestValue(t *testing.T) {
	f := sampledFeed(10*time.Millisecond, 1)
	for range 100 {
		f.sample(collector.CPUAvg)
		if v := f.values(t)["perfagent_cpu_busy_ratio"]; v != 0.1 {
			t.Fatalf("after %d samples: busy ratio %v, want the first sample's 0.1", f.rec.Samples, v)
		}
	}
	f.sample(collector.CPUAvg)
	wantNoLines(t, f.values(t), "perfagent_cpu_busy_ratio") // more than a second later
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
			t.Errorf("%+v: want one metric of this name, with a known unit, _total for counters only, help in one line", m)
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
	for name := range f.values(t) {
		if strings.HasPrefix(name, "perfagent_job_") || strings.HasPrefix(name, "perfagent_gpu_") {
			t.Errorf("%s has a line, want none without a job and GPUs", name)
		}
	}
	f = listenFeed(time.Second)
	f.rec.Account.Source = host.JobFromTree
	f.Begin(f.rec)
	got := f.values(t)
	wantValues(t, got, map[string]float64{"perfagent_job_cpu_seconds_total": 0,
		"perfagent_job_info{source=tree,memory_kind=}": 1})
	wantNoLines(t, got, "perfagent_job_memory_bytes", "perfagent_job_oom_kills_total", "perfagent_job_memory_limit_bytes")
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

// aggregatorOf returns the aggregator of a job that sent the given lines.
func aggregatorOf(lines ...string) *aggregate.Aggregator {
	at := time.Unix(1_767_225_600, 0)
	b := aggregate.New(aggregate.Options{}, at)
	var e wire.Event
	taken := int64(0)
	for _, line := range lines {
		if r := e.Parse([]byte(line), wire.StatsD); r != wire.Accepted {
			b.Drop(r, []byte(line))
		} else if b.Add(&e, at) {
			taken++
		}
	}
	b.AddReceived(b.AddSource("statsd", "127.0.0.1:43121"), int64(len(lines)), taken, at)
	b.AddSource("dogstatsd", "127.0.0.1:43122")
	b.AddScrape(b.AddSource("scrape", "http://127.0.0.1:1/metrics"), 9, "", at)
	b.AddScrape(b.AddSource("scrape", "http://127.0.0.1:2/metrics"), 8, "", at)
	b.DropDatagrams(3, 0)
	return b
}

// operationLines are lines of a job with all kinds of names.
var operationLines = []string{
	`{"op":"get","ms":10}`, `{"op":"get","ms":20}`, `{"op":"get","ms":30}`, `{"op":"get","ok":false}`, `{"op":"put","ok":false}`,
	`{"op":"GET","us":0.5,"tags":{"path":"/a\\b\"c\nd</script>"}}`,
	`{"proxystore":"1.1.0","id":"w","metrics":{"times":{"handed":{"count":4,"avg_time_ms":2,"min_time_ms":1,"max_time_ms":3}}}}`,
	"rows:-5|c", "rate:1e-12|g", "queue:7|g", "queue:-3|g", "users:joe|s", "size:5|h", "nonsense",
	`{"transfer":"nixl","xfer_us":0.5,"bytes":1048576}`, `{"transfer":"nixl","xfer_us":0.25,"bytes":1}`,
	`{"transfer":"nixl","failed":"kv_expired"}`, `{"transfer":"nixl","failed":"transfer"}`,
}

func TestMetrics_HaveOperations(t *testing.T) {
	f := listenFeed(time.Second)
	f.options.Operations = func() *aggregate.Aggregator { return aggregatorOf(operationLines...) }
	text := string(f.metrics())
	text = text[strings.Index(text, "# HELP perfagent_operation_seconds"):]
	reportertest.CompareGolden(t, "testdata/work.txt", []byte(text), *update)

	got := parsed(t, text)
	wantValues(t, got, map[string]float64{
		"perfagent_operation_seconds_sum{operation=get}":   0.06,
		"perfagent_operation_seconds_count{operation=get}": 3, "perfagent_operation_seconds_count{operation=put}": 0,
		"perfagent_operation_seconds_sum{operation=handed}": 0.008, "perfagent_operation_seconds_count{operation=handed}": 4,
		"perfagent_operation_errors_total{operation=get}": 1, "perfagent_operation_errors_total{operation=put}": 1,
		"perfagent_job_value{kind=counter,series=rows}": -5, "perfagent_job_value{kind=gauge,series=queue}": 4,
		"perfagent_job_value{kind=gauge,series=rate}":                      1e-12,
		"perfagent_transfer_seconds_sum{transfer=nixl}":                    0.75e-6, // the reduced averages have 3 decimals of a millisecond
		"perfagent_transfer_seconds_count{transfer=nixl}":                  2,
		"perfagent_transfer_bytes_total{transfer=nixl}":                    1048577,
		"perfagent_transfer_failures_total{transfer=nixl,kind=kv_expired}": 1,
		"perfagent_intake_events_total{source=statsd}":                     17,
		"perfagent_intake_events_total{source=dogstatsd}":                  0,
		"perfagent_intake_events_total{source=scrape}":                     17,
		"perfagent_intake_dropped_total{reason=kernel}":                    3,
		"perfagent_intake_dropped_total{reason=malformed}":                 1,
		"perfagent_intake_dropped_total{reason=rate}":                      0,
	})
	if v := got["perfagent_operation_seconds{operation=get,quantile=0.5}"]; math.Abs(v-0.02) > 0.0002 {
		t.Errorf("the median of get is %v s, want 0.02 within 1 %%", v)
	}
	for name := range got {
		if strings.Contains(name, "operation=handed,quantile") || strings.Contains(name, "operation=put,quantile") {
			t.Errorf("%s has a line, want none for an unknown quantile", name)
		}
	}
	for _, m := range operationMetrics() {
		if !strings.Contains(text, "\n# TYPE "+m.Name+" "+m.Type+"\n") || m.Help == "" {
			t.Errorf("no TYPE line with %s for %s, or no help (%q)", m.Type, m.Name, m.Help)
		}
	}
}

// Recorded operations change no other metric, and a run without them has no operation metrics.
func TestMetrics_OperationsChangeNoOtherMetric(t *testing.T) {
	f := wideFeed(time.Second)
	f.sample()
	before := string(f.metrics())
	f.options.Operations = func() *aggregate.Aggregator { return aggregatorOf() }
	if after := string(f.metrics()); !strings.HasPrefix(after, before) || strings.Contains(before, "_intake_") {
		t.Errorf("operations changed other metrics, or exist without (-without +with):\n%s", cmp.Diff(before, after))
	}
}

// The aggregator is copied once, regardless of the number of clients.
func TestOperationsCache_IsCopiedOnce(t *testing.T) {
	var n operationsCache
	copies := 0
	ask := func() *aggregate.Aggregator { copies++; return aggregatorOf("rows:5|c") }
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			if w := n.get(ask); w.Counters["rows"] != 5 {
				t.Errorf("copy %+v, want 5 rows", w)
			}
		})
	}
	clients.Wait()
	if copies != 1 {
		t.Errorf("%d copies for 20 clients, want 1", copies)
	}
	n.made = n.made.Add(-maxOperationsAge)
	if n.get(ask); copies != 2 {
		t.Errorf("%d copies after the first copy expired, want 2", copies)
	}
}

// perfagent's operations on a store have times and failures. Without a store, there are no such metrics.
func TestMetrics_StoreOperationsAreCounted(t *testing.T) {
	dir := t.TempDir()
	s := check.Value(store.Open(dir, store.Options{Metrics: true}))(t)
	for i := range 3 {
		check.Must(t, s.Put(t.Context(), fmt.Sprintf("job/node-%d", i), []byte("x")))
	}
	if err := s.Put(t.Context(), "no name", nil); err == nil {
		t.Fatal("Put with an invalid name returned nil, want an error")
	}

	f := listenFeed(time.Second)
	if text := string(f.metrics()); strings.Contains(text, "perfagent_store") {
		t.Errorf("store metrics of a run without a store: %s, want none", text)
	}
	f.options.Store = s.Metrics
	got := f.values(t)
	wantValues(t, got, map[string]float64{
		"perfagent_store_seconds_count{operation=put}": 3, "perfagent_store_seconds_count{operation=put.connector}": 3,
		"perfagent_store_errors_total{operation=put}": 1,
	})
	if sum := got["perfagent_store_seconds_sum{operation=put}"]; sum <= 0 || sum > 60 {
		t.Errorf("the puts took %v s, want 0 to 60", sum)
	}
}
