package summary

import (
	"regexp"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// Optional devices are shown for nodes that have them.
func TestWrite_ShowsOptionalDevices(t *testing.T) {
	r := reporter.New(reportertest.JobInput(0, 20, 0, ""))
	n := r.Nodes["0"]
	for name, v := range map[string]float64{
		reporter.MetricNodeEnergy: 3_120_000, reporter.MetricCPUTemperature: 91.25, reporter.MetricCPUThrottleEvents: 1,
		"total_nfs_read_mb": 2048, "total_nfs_write_mb": 0, "total_lustre_write_mb": 10,
	} {
		n.Metrics[name] = v
	}
	n.Mounts = []reporter.Mount{
		{Type: "nfs4", Source: "nfs1:/home", MountedOn: []string{"/home", "/mnt/home"}, ReadMB: 2048, MountCalls: reporter.MountCalls{Calls: 1500, ExecuteSeconds: 12.5},
			Operations: []reporter.MountOperation{{Name: "GETATTR", MountCalls: reporter.MountCalls{Calls: 1000, ExecuteSeconds: 8}}}},
		{Type: "lustre", Source: "scratch", WriteMB: 10},
	}

	lines := regexp.MustCompile(` +`).ReplaceAllString(summaryOf(t, r, Options{Long: true}), " ")
	check.Contains(t, "summary", lines,
		"\nNFS 2.0 GiB read 102.4 MiB/s\n", "\nLustre 10 MiB written 0.50 MiB/s\n",
		"\nenergy 3.1 MJ of CPU packages and memory, 156000.0 W on average\n", "\nheat 91.2 °C hottest CPU package, peak, clocked down 1 time\n")

	var got []string
	for _, d := range Details(n) {
		if d.Label == "file system" {
			got = append(got, d.Value)
		}
	}
	want := []string{
		"nfs1:/home on /home, /mnt/home (nfs4): 2.0 GiB read, 0 B written, 1500 calls in 12.5 s, of them 1000 GETATTR in 8.0 s",
		"scratch (lustre): 0 B read, 10 MiB written",
	}
	check.Equal(t, got, want, "details")
	labels := "\n"
	for _, h := range Highlights(n, 20) {
		labels += h.Label + " " + h.Value + "\n"
	}
	check.Contains(t, "highlights", labels, "\nNFS 2.0 GiB\n", "\nenergy 3.1 MJ\n", "\nheat 91.2 °C\n")
}
