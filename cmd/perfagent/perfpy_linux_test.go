package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// perfpyKeys are the keys of perf.py's samples, in order.
var perfpyKeys = []string{"cpu_pct_per_cpu_avg", "cpu_pct_per_cpu_min", "cpu_pct_per_cpu_max", "mem_percent", "disk_usage_percent",
	"disk_io_read_mb", "disk_io_write_mb", "net_io_lo_sent_mb", "net_io_ext_sent_mb", "net_io_lo_recv_mb", "net_io_ext_recv_mb", "timestamp"}

// perfpyRun runs a job with --compat perf.py and returns the path of its file.
func perfpyRun(t *testing.T) (path string) {
	t.Helper()
	o := mustRun(t, 2, "run", "--compat", "perf.py", "--summary", "always", "--interval", "50ms", "--node", "3", "--",
		"sh", "-c", untilSampledSo(5)+"; exit 2")
	paths := reportertest.InDir(t, filepath.Join(o.Dir, "perfagent-out"))
	if len(paths) != 1 || filepath.Base(paths[0]) != "node-3.json" {
		t.Fatalf("reports %q, want only node-3.json", paths)
	}
	return filepath.Join(o.Dir, "perfagent-out", paths[0])
}

// The file of --compat perf.py has the layout of json.dump(…, indent=4) and no other content.
func TestCompat_FileHasLayoutOfPerfPy(t *testing.T) {
	data := []byte(clitest.Read(t, perfpyRun(t)))
	var compact, indented bytes.Buffer
	check.Must(t, json.Compact(&compact, data))
	check.Must(t, json.Indent(&indented, compact.Bytes(), "", "    "))
	if diff := cmp.Diff(indented.String(), string(data)); diff != "" {
		t.Errorf("layout of the file (-want +got):\n%s", diff)
	}
	var keys []string
	for _, m := range regexp.MustCompile(`(?m)^ *"(.*)": `).FindAllSubmatch(data, -1) {
		keys = append(keys, string(m[1]))
	}
	samples := max(4, strings.Count(string(data), "\n        {\n"))
	if diff := cmp.Diff(append([]string{"3"}, slices.Repeat(perfpyKeys, samples)...), keys); diff != "" {
		t.Errorf("keys of node 3 and its %d samples or more (-want +got):\n%s", samples, diff)
	}
	for line := range strings.Lines(string(data)) { // Python writes floats with a point or an exponent
		if _, value, ok := strings.Cut(strings.TrimRight(line, ",\n"), `": `); ok && value != "[" && !strings.ContainsAny(value, ".e") {
			t.Errorf("line %q has an integer, want a float as Python writes it", line)
		}
	}
}

// For a perf.py file, show prints the same numbers as text and as JSON.
func TestCompat_ShowPrintsSameNumbersAsTextAndJSON(t *testing.T) {
	path := perfpyRun(t)
	cpus := strings.Count(clitest.Read(t, "/proc/stat"), "\ncpu")
	shown := wantInside(t, 0, "show", path, "--cpus", fmt.Sprint(cpus))
	values := wantInside(t, 0, "show", "--json", "-v", path, "--cpus", fmt.Sprint(cpus))
	nodes := decoded[map[string]map[string]float64](t, values.Out)
	if len(nodes) != 1 || len(nodes["3"]) != 18 {
		t.Fatalf("show --json prints %s, want 18 metrics of node 3", values.Out)
	}
	wantContains(t, shown.Out, "since boot", fmt.Sprintf("%.1f %%     mean", nodes["3"]["cpu_avg_utilization_pct"]),
		fmt.Sprintf(", peak %.1f %%\n", nodes["3"]["max_t_cpu_pct_per_cpu_avg"]),
		fmt.Sprintf("%.1f %%     peak of the node", nodes["3"]["max_t_mem_percent"]),
		fmt.Sprintf("%.1f %%     peak\n", nodes["3"]["max_t_disk_usage_percent"]))
	wantContains(t, values.Err, "since boot")
}

// The metrics of a recorded file equal those that perf.py computed for it, except for the hours, which here end at the
// last sample.
func TestCompat_MetricsEqualPerfPy(t *testing.T) {
	file, err := filepath.Abs("testdata/perf.py.json")
	check.Must(t, err)
	want := []float64{100, 49.980000000000004, 20, 20, 60, 80, 100, 100, 4 * 8 / 3600.0, 4 * 8 / 3600.0 * (100 - 49.98) / 100,
		60.3, 70.2, 1030, 2222, 6.25, 111.5, 6.25, 421}
	for cpus, metrics := range map[string]int{"8": 18, "0": 16} {
		o := wantInside(t, 0, "show", "--json", "-v", file, "--cpus", cpus)
		nodes := decoded[map[string]map[string]float64](t, o.Out)
		if len(nodes) != 1 || len(nodes["3"]) != metrics {
			t.Fatalf("show --json: %d metrics, want %d: %s", len(nodes["3"]), metrics, o.Out)
		}
		at := 0
		for i, name := range metricOrder[:18] {
			got, there := nodes["3"][name]
			if !there && cpus == "0" && strings.HasSuffix(name, "cpu_hours") {
				wantContains(t, o.Err, name, "--cpus")
				continue
			}
			if math.Abs(got-want[i]) > 1e-9 {
				t.Errorf("%s is %v, want %v", name, got, want[i])
			}
			next := strings.Index(o.Out, `"`+name+`"`)
			if next < at {
				t.Errorf("%s is out of order, want the order of perf.py", name)
			}
			at = next
		}
		wantContains(t, o.Err, "since boot")
	}
}
