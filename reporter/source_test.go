package reporter_test

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
)

// The metrics in the summary are in the table, and SourceOf returns the source of each metric that has a single source.
func TestSourceOf_CoversAllMetrics(t *testing.T) {
	own := map[string]bool{reporter.MetricCPUHours: true, reporter.MetricUnusedCPUHours: true, reporter.MetricLimitCPU: true}
	for _, m := range reporter.Metrics() {
		source, isSource := reporter.SourceOf(m.Name)
		if isSource == own[m.Name] && !needsJob(m.Name) { // they are missing if there is no job
			t.Errorf("SourceOf(%q) = %q, %v, want %v", m.Name, source, isSource, !own[m.Name])
		}
	}
	for name, want := range map[string]string{
		reporter.MetricMemoryPeak: host.SourceMemory, reporter.MetricDiskPeak: host.SourceDisk, reporter.MetricDiskRead: host.SourceDiskIO,
		reporter.MetricNetworkSent: host.SourceNetwork, reporter.MetricCPUMean: host.SourceCPU, "boot_" + "total_net_io_lo_recv_mb": host.SourceNetwork,
		"mem_percent": host.SourceMemory, "journal": "journal",
	} {
		if got, _ := reporter.SourceOf(name); got != want {
			t.Errorf("SourceOf(%q) = %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{reporter.MetricCPUPeak, reporter.MetricCPUOver80, reporter.MetricDiskWritten, "total_net_io_lo_sent_mb", reporter.MetricNetworkReceived, reporter.MetricWall} {
		if _, ok := reporter.MetricByName(name); !ok {
			t.Errorf("the table of metrics lacks %s", name)
		}
	}
}

// needsJob reports whether a metric needs a wrapped job.
func needsJob(name string) bool {
	return name == reporter.MetricWall || strings.HasPrefix(name, "job_")
}
