package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// Without /proc, all values read from it are missing, each with a reason.
func TestRun_WithoutProc_ReportsWhyValuesAreMissing(t *testing.T) {
	o, n := withTrees(t, "/nonexistent")
	for _, source := range []string{"cpu", "memory", "disk_io", "network"} {
		if why := reportertest.Reasons(n, source); !strings.Contains(why, "/nonexistent/") {
			t.Errorf("source %s: reason %q, want a reason that names /nonexistent/; missing: %v", source, why, n.Missing)
		}
	}
	if _, there := n.Metrics["job_cpu_seconds"]; !there || *n.Job.ExitCode != 7 || n.Metrics["max_t_disk_usage_percent"] == 0 {
		t.Errorf("metrics %v, job %+v; want job_cpu_seconds, exit code 7 and the disk's usage without /proc",
			n.Metrics, n.Job)
	}
	shown := insideIn(t, o.Dir, "show")
	if !strings.Contains(shown.Out, "missing") || strings.Contains(o.Err+shown.Out, "NaN") {
		t.Errorf("show lacks \"missing\", or show or the summary prints NaN: %s%s", o.Err, shown.Out)
	}
}

// withTrees runs a job for 0.1 s that exits with 7. perfagent reads proc in place of /proc, and no /sys. withTrees checks
// the outcome, and that the report has a value or a reason for each metric.
func withTrees(t *testing.T, proc string) (clitest.Outcome, *reporter.Node) {
	t.Helper()
	o := insideWith(t, []string{"HOST_PROC=" + proc, "HOST_SYS=/nonexistent"},
		"run", "--summary", "always", "--interval", "20ms", "--", "sh", "-c", "sleep 0.1; exit 7")
	n := wantNode(t, o, 7)
	clitest.WantPrintable(t, o.Err)
	reportertest.WantEveryMetric(t, n)
	return o, n
}

// With a partial /proc, available values are reported, and damaged or absent values are missing with a reason.
func TestRun_PartialProc_ReportsAvailableValues(t *testing.T) {
	testenv.SkipIfShort(t, "a second for its runs")
	for _, c := range []struct {
		name    string
		files   map[string]string // replacements for files of the good tree; "" = absent
		missing []string
	}{
		{"no meminfo", map[string]string{"meminfo": ""}, []string{"memory"}},
		{"no stat", map[string]string{"stat": ""}, []string{"cpu"}},
		{"no diskstats", map[string]string{"diskstats": ""}, []string{"disk_io"}},
		{"no net/dev", map[string]string{"net/dev": ""}, []string{"network"}},
		{"an empty stat", map[string]string{"stat": "\n"}, []string{"cpu"}},
		{"a truncated stat", map[string]string{"stat": "cpu  1 2\ncpu0 1"}, []string{"cpu"}},
		{"a truncated diskstats", map[string]string{"diskstats": "   8       0 sda 1 2"}, []string{"disk_io"}},
		{"a truncated net/dev", map[string]string{"net/dev": "x\ny\neth0: 1 2"}, []string{"network"}},
		{"binary noise", map[string]string{"stat": "\x00\xff\x1b", "meminfo": "\x00\xff\x1b", "diskstats": "\x00\xff\x1b", "net/dev": "\x00\xff\x1b"},
			[]string{"cpu", "memory", "disk_io", "network"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			proc := t.TempDir()
			check.Must(t, os.Mkdir(filepath.Join(proc, "net"), 0o755))
			for _, name := range []string{"stat", "meminfo", "diskstats", "net/dev"} {
				text := clitest.Read(t, filepath.Join("testdata/host/proc", name))
				if other, given := c.files[name]; given {
					text = other
				}
				if text != "" {
					clitest.Write(t, filepath.Join(proc, name), text, 0o644)
				}
			}
			_, n := withTrees(t, proc)
			for _, source := range []string{"cpu", "memory", "disk_io", "network"} {
				if got, want := reportertest.Reasons(n, source) != "", slices.Contains(c.missing, source); got != want {
					t.Errorf("source %s is missing: %v, want %v; missing: %v", source, got, want, n.Missing)
				}
			}
			for _, m := range n.Missing {
				clitest.WantPrintable(t, m.Why)
			}
		})
	}
}

// With HOST_PROC and HOST_SYS, every source is read from the trees that they name.
func TestSidecar_ReadsTreesNamedByHOSTVariables(t *testing.T) {
	t.Parallel()
	at, err := filepath.Abs("testdata/host")
	check.Must(t, err)
	env := []string{"HOST_PROC=" + at + "/proc", "HOST_SYS=" + at + "/sys"}
	check := func(t *testing.T, r *reporter.Report) {
		t.Helper()
		n := r.Nodes["0"]
		if n.Host.Hostname != "fixture-host" || n.Host.CPUs != 4 || n.Host.MemoryMB != 8192 || n.Host.CPUModel != "Fixture CPU" ||
			n.Host.Kernel != "6.1.0-fixture" || n.Host.BootID != "11111111-2222-3333-4444-555555555555" {
			t.Errorf("host %+v, want fixture-host with 4 CPUs, 8192 MiB, Fixture CPU, kernel 6.1.0-fixture", n.Host)
		}
		if s := n.Sampling; !slices.Equal(s.Disks, []string{"sda"}) || !slices.Equal(s.NICs, []string{"lo", "eth0"}) {
			t.Errorf("disks %q, interfaces %q; want sda, and lo and eth0: each byte must be counted once",
				s.Disks, s.NICs)
		}
		for name, want := range map[string]float64{"max_t_mem_percent": 25, "boot_total_disk_io_read_mb": 1024, "boot_total_disk_io_write_mb": 2048,
			"boot_total_net_io_lo_sent_mb": 1, "boot_total_net_io_ext_sent_mb": 2, "boot_total_net_io_lo_recv_mb": 1, "boot_total_net_io_ext_recv_mb": 3,
			"total_disk_io_read_mb": 0, "total_net_io_ext_recv_mb": 0} {
			if got, there := n.Metrics[name]; !there || got != want {
				t.Errorf("%s = %v (present: %v), want %v", name, got, there, want)
			}
		}
		if got, want := n.Metrics["node_cpu_hours"], r.Run.WallSeconds*4/3600; math.Abs(got-want) > 1e-9 {
			t.Errorf("node_cpu_hours = %v, want %v", got, want)
		}
		// The CPU times in the tree do not advance, so the utilization is missing rather than 0 %.
		if got, there := n.Metrics["cpu_avg_utilization_pct"]; there {
			t.Errorf("cpu_avg_utilization_pct = %v, want none: the CPU times in the tree do not advance", got)
		}
	}
	l, _ := beside(t, env)
	l.Signal(syscall.SIGTERM)
	check(t, mustEnd(l, 0).Report(t))

	for reader, c := range map[string]struct{ flags, env []string }{
		"auto": {}, "gopsutil": {flags: []string{"--reader", "gopsutil"}, env: []string{"PERFAGENT_READER=auto"}},
	} {
		cmd := clitest.Perfagent(t, slices.Concat([]string{"run", "--interval", "20ms"}, c.flags, []string{"--", "sleep", "0.1"})...)
		r := mustExit(t, 0, with(with(cmd, env...), c.env...)).Report(t)
		check(t, r)
		if got := r.Nodes["0"].Sampling.Reader; got != reader {
			t.Errorf("reader = %q, want %q", got, reader)
		}
	}
}
