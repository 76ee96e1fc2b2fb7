package reporter_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// optionalDevicesInput returns the input for a job of five seconds on a node with all optional devices.
func optionalDevicesInput() reporter.Input {
	in := reportertest.JobInput(0, 0, 0, "")
	rec := reportertest.Recording(0)
	rec.EnsureColumn(collector.NumColumns - 1)
	const n = 5
	for i := range n {
		s := reportertest.Sample(i, n)
		moved := float64(i + 1)
		for c, v := range map[collector.Column]float64{
			collector.CPUTemperature: 60 + moved, collector.CPUThrottleEvents: 2 * moved, collector.CPUThrottleSeconds: moved / 10,
			collector.NodeEnergy: 150 * moved, collector.NodePower: 140 + 4*moved,
			collector.NFSRead: 10 * moved, collector.NFSWrite: 20 * moved, collector.NFSReadRate: 10, collector.NFSWriteRate: 20,
			collector.LustreRead: 30 * moved, collector.LustreWrite: 40 * moved, collector.LustreReadRate: 30, collector.LustreWriteRate: 40,
		} {
			s.Values[c] = v
		}
		rec.Add(&s)
	}
	u := series.Unknown()
	rec.Mounts = []collector.Mount{
		{ID: "0:45", Type: "nfs4", Source: "nfs1:/home", Paths: []string{"/home", "/mnt/home"}, ReadMB: 50, WriteMB: 100,
			Total: collector.MountOp{Calls: 30, Retransmissions: 1, Timeouts: 2, Queue: 0.25, RTT: 1.5, Execute: 1.7501},
			Ops:   []collector.MountOp{{Name: "GETATTR", Calls: 20, RTT: 0.5, Execute: 0.5}, {Name: "READ", Calls: 10, Retransmissions: 1, Timeouts: 2, Queue: 0.25, RTT: 1, Execute: 1.2501}}},
		{ID: "s-1", Type: "lustre", Source: "s", ReadMB: 150, WriteMB: 200, Total: collector.MountOp{Calls: 7, Retransmissions: u, Timeouts: u, Queue: u, RTT: u, Execute: 4},
			Ops: []collector.MountOp{{Name: "open", Calls: 7, Retransmissions: u, Timeouts: u, Queue: u, RTT: u, Execute: 4}}},
	}
	in.Recording = rec
	return in
}

func TestNew_ReportsOptionalDevices(t *testing.T) {
	r := reporter.New(optionalDevicesInput())
	data := encodedReport(t, r)
	reportertest.Validate(t, data)
	n := readBack(t, data).Nodes["0"]
	wantMetrics(t, n.Metrics, map[string]float64{
		"max_t_cpu_temperature_celsius": 65, "total_cpu_throttle_events": 10, "total_cpu_throttle_seconds": 0.5,
		"node_energy_joules": 750, "max_t_node_power_watts": 160,
		"total_nfs_read_mb": 50, "total_nfs_write_mb": 100, "total_lustre_read_mb": 150, "total_lustre_write_mb": 200,
	})
	for c := collector.CPUTemperature; c < collector.NumColumns; c++ {
		if has := n.Samples.Column(c.Key()) != nil; has == c.Info().EnvelopeOnly || n.Envelope[c.Key()].Max == nil {
			t.Errorf("%s: in the samples %v, want %v; envelope %v, want values", c.Key(), has, !c.Info().EnvelopeOnly,
				n.Envelope[c.Key()].Max)
		}
	}

	got, err := json.Marshal(n.Mounts)
	check.Must(t, err)
	want := `[{"type":"lustre","source":"s","read_mb":150,"write_mb":200,"calls":7,"execute_seconds":4,` +
		`"operations":[{"name":"open","calls":7,"execute_seconds":4}]},` +
		`{"type":"nfs4","source":"nfs1:/home","mounted_on":["/home","/mnt/home"],"read_mb":50,"write_mb":100,` +
		`"calls":30,"retransmissions":1,"timeouts":2,"queue_seconds":0.25,"rtt_seconds":1.5,"execute_seconds":1.75,"operations":[` +
		`{"name":"READ","calls":10,"retransmissions":1,"timeouts":2,"queue_seconds":0.25,"rtt_seconds":1,"execute_seconds":1.25},` +
		`{"name":"GETATTR","calls":20,"retransmissions":0,"timeouts":0,"queue_seconds":0,"rtt_seconds":0.5,"execute_seconds":0.5}]}]`
	check.Equal(t, string(got), want, "mounts")
}

// optionalDeviceWords do not occur in a report of a node without optional devices.
var optionalDeviceWords = []string{"nfs", "lustre", "energy", "node_power", "cpu_temperature", "throttle", "mounts", "thermal", "_ib_", "infiniband"}

func TestNew_OmitsOptionalDevicesIfThereAreNone(t *testing.T) {
	r := reporter.New(reportertest.JobInput(0, 20, 0, ""))
	all := strings.ReplaceAll(string(encodedReport(t, r))+string(showCSV(t, r)), "job_throttled", "")
	for _, word := range optionalDeviceWords {
		if strings.Contains(all, word) {
			t.Errorf("the report or the CSV of a node without optional devices contains %q", word)
		}
	}
}

// Sources and metrics that only root may read are missing for that reason. Summaries omit the reason.
func TestNew_GivesReasonForRootOnlySources(t *testing.T) {
	in := reportertest.JobInput(0, 20, 0, "")
	why := "/sys/class/powercap/intel-rapl:0/energy_uj: only root may read the energy counters"
	in.Recording.Missing = append(in.Recording.Missing, series.Missing{What: host.SourceEnergy, Code: host.RootOnly, Why: why})
	n := reporter.New(in).Nodes["0"]
	got := slices.DeleteFunc(slices.Clone(n.Missing), func(m reporter.Missing) bool { return m.Code != host.RootOnly })
	want := []reporter.Missing{{What: "energy", Code: host.RootOnly, Why: why}, {What: "node_energy_joules", Code: host.RootOnly, Why: why},
		{What: "max_t_node_power_watts", Code: host.RootOnly, Why: why}}
	check.Equal(t, got, want, "missing")
	for _, m := range got {
		if !reporter.NothingToMeasure(m) {
			t.Errorf("NothingToMeasure(%+v) is false, want true, so that summaries omit it", m)
		}
	}
}

// If ranks measured the host in turn, the counters of CPUs and mounts are added up, and each mount is listed once.
func TestCombine_AddsUpMountsAndCPUCounters(t *testing.T) {
	with := func(n float64) func(*collector.Recording) {
		return func(rec *collector.Recording) {
			rec.EnsureColumn(collector.NumColumns - 1)
			s := collector.Sample{}
			for c := range s.Values {
				s.Values[c], s.Weights[c] = math.NaN(), 1
			}
			s.Values[collector.Timestamp] = rec.Ring.Bucket(rec.Ring.Len() - 1).Values[collector.Timestamp]
			s.Values[collector.NFSRead], s.Values[collector.NodeEnergy], s.Values[collector.CPUTemperature] = 10*n, 100*n, 50+n
			s.Values[collector.CPUThrottleSeconds], s.Values[collector.CPUThrottleEvents] = n, 2*n
			rec.Add(&s)
			rec.Mounts = []collector.Mount{{ID: "0:45", Type: "nfs4", Source: "nfs1:/home", Paths: []string{"/home"}, ReadMB: 10 * n,
				Total: collector.MountOp{Calls: n, Execute: n}, Ops: []collector.MountOp{{Name: "READ", Calls: n, Execute: n}}}}
			if n == 2 {
				rec.Mounts = append(rec.Mounts, collector.Mount{ID: "0:46", Type: "nfs4", Source: "nfs1:/data", Total: collector.MountOp{Calls: 1, Execute: 9}})
				rec.Mounts[0].Ops = append(rec.Mounts[0].Ops, collector.MountOp{Name: "OPEN", Calls: 1, Execute: 7})
			}
		}
	}
	_, n := combined(t, partsOf(t, plan{Rank: 0, End: 10, HostSpan: between(0, 10), Change: with(1)}, plan{Rank: 1, End: 30, HostSpan: between(11, 30), Change: with(2)})...)
	wantMetrics(t, n.Metrics, map[string]float64{"total_nfs_read_mb": 30, "node_energy_joules": 300, "max_t_cpu_temperature_celsius": 52,
		"total_cpu_throttle_seconds": 3, "total_cpu_throttle_events": 6})
	home := n.Mounts[1]
	wantValues(t, "number of mounts, first mount; MiB, calls, RTT and operations of the second",
		"2 nfs1:/data; 30 3 0 2 OPEN READ 3", len(n.Mounts), n.Mounts[0].Source+";", home.ReadMB, home.Calls,
		*home.RTTSeconds, len(home.Operations), home.Operations[0].Name, home.Operations[1].Name,
		home.Operations[1].ExecuteSeconds)
}
