package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// perfpyKeys are the keys of perf.py's samples, in order.
var perfpyKeys = []string{"cpu_pct_per_cpu_avg", "cpu_pct_per_cpu_min", "cpu_pct_per_cpu_max", "mem_percent", "disk_usage_percent",
	"disk_io_read_mb", "disk_io_write_mb", "net_io_lo_sent_mb", "net_io_ext_sent_mb", "net_io_lo_recv_mb", "net_io_ext_recv_mb", "timestamp"}

// perfpyRun runs a job with --compat perf.py and returns its outcome and the path of its file.
func perfpyRun(t *testing.T) (o clitest.Outcome, path string) {
	t.Helper()
	o = clitest.Run(t, "run", "--compat", "perf.py", "--summary", "always", "--interval", "50ms", "--node", "3", "--", "sh", "-c", untilSampledSo(5)+"; exit 2")
	o.Want(t, 2)
	paths := reportertest.InDir(t, filepath.Join(o.Dir, "perfagent-out"))
	if len(paths) != 1 || filepath.Base(paths[0]) != "node-3.json" {
		t.Fatalf("reports %q, want only node-3.json", paths)
	}
	return o, filepath.Join(o.Dir, "perfagent-out", paths[0])
}

// The file of --compat perf.py has the layout of json.dump(…, indent=4) and no other content.
func TestCompat_FileHasLayoutOfPerfPy(t *testing.T) {
	_, path := perfpyRun(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var compact, indented bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		t.Fatal(err)
	}
	if err := json.Indent(&indented, compact.Bytes(), "", "    "); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(indented.String(), string(data)); diff != "" {
		t.Errorf("layout of the file (-want +got):\n%s", diff)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var tokens []string
	keys, samples := []string(nil), 0
	for depth := 0; ; {
		tok, err := dec.Token()
		if err != nil {
			break
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
			keys = nil
			continue
		case json.Delim('}'), json.Delim(']'):
			if depth--; depth == 2 {
				samples++
				if diff := cmp.Diff(perfpyKeys, keys); diff != "" {
					t.Errorf("keys of sample %d (-want +got):\n%s", samples, diff)
				}
			}
			continue
		}
		if depth == 1 {
			tokens = append(tokens, fmt.Sprint(tok))
		}
		if s, ok := tok.(string); ok && depth == 3 {
			keys = append(keys, s)
		}
	}
	if !slices.Equal(tokens, []string{"3"}) || samples < 4 {
		t.Errorf("nodes %q with %d samples, want node 3 with at least 4", tokens, samples)
	}
	for line := range strings.Lines(string(data)) { // Python writes floats with a point or an exponent
		if _, value, ok := strings.Cut(strings.TrimRight(line, ",\n"), `": `); ok && value != "[" && !strings.ContainsAny(value, ".e") {
			t.Errorf("line %q has an integer, want a float as Python writes it", line)
		}
	}
}

// For a perf.py file, show prints the same numbers as text and as JSON.
func TestCompat_ShowPrintsSameNumbersAsTextAndJSON(t *testing.T) {
	_, path := perfpyRun(t)
	cpus := strings.Count(clitest.Read(t, "/proc/stat"), "\ncpu")
	shown := inside(t, "show", path, "--cpus", fmt.Sprint(cpus))
	shown.Want(t, 0)
	values := inside(t, "show", "--json", "-v", path, "--cpus", fmt.Sprint(cpus))
	values.Want(t, 0)
	var nodes map[string]map[string]float64
	if err := json.Unmarshal([]byte(values.Out), &nodes); err != nil || len(nodes) != 1 || len(nodes["3"]) != 18 {
		t.Fatalf("show --json: %v, want 18 metrics of node 3: %s", err, values.Out)
	}
	for _, number := range []string{
		fmt.Sprintf("%.1f %%     mean", nodes["3"]["cpu_avg_utilization_pct"]),
		fmt.Sprintf(", peak %.1f %%\n", nodes["3"]["max_t_cpu_pct_per_cpu_avg"]),
		fmt.Sprintf("%.1f %%     peak of the node", nodes["3"]["max_t_mem_percent"]),
		fmt.Sprintf("%.1f %%     peak\n", nodes["3"]["max_t_disk_usage_percent"]),
	} {
		if !strings.Contains(shown.Out, number) {
			t.Errorf("show lacks %q:\n%s", number, shown.Out)
		}
	}
	if !strings.Contains(values.Err, "since boot") || !strings.Contains(shown.Out, "since boot") {
		t.Errorf("stderr of show --json %q, show %q; want both to have \"since boot\"", values.Err, shown.Out)
	}
}

// The metrics of a recorded file equal those that perf.py computed for it, except for the hours, which here end at the
// last sample.
func TestCompat_MetricsEqualPerfPy(t *testing.T) {
	file, err := filepath.Abs("testdata/perf.py.json")
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{100, 49.980000000000004, 20, 20, 60, 80, 100, 100, 4 * 8 / 3600.0, 4 * 8 / 3600.0 * (100 - 49.98) / 100,
		60.3, 70.2, 1030, 2222, 6.25, 111.5, 6.25, 421}
	for cpus, metrics := range map[string]int{"8": 18, "0": 16} {
		o := inside(t, "show", "--json", "-v", file, "--cpus", cpus)
		o.Want(t, 0)
		var nodes map[string]map[string]float64
		if err := json.Unmarshal([]byte(o.Out), &nodes); err != nil || len(nodes) != 1 || len(nodes["3"]) != metrics {
			t.Fatalf("show --json: error %v, %d metrics, want %d: %s", err, len(nodes["3"]), metrics, o.Out)
		}
		at := 0
		for i, name := range metricOrder[:18] {
			got, there := nodes["3"][name]
			if !there && cpus == "0" && strings.HasSuffix(name, "cpu_hours") {
				if !strings.Contains(o.Err, name) || !strings.Contains(o.Err, "--cpus") {
					t.Errorf("stderr lacks the reason why %s is absent: %q", name, o.Err)
				}
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
		if !strings.Contains(o.Err, "since boot") {
			t.Errorf("stderr lacks \"since boot\": %q", o.Err)
		}
	}
}
