package reporter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// goldenMetrics are perf.py's metrics for PerfPySamples with 8 CPUs, in the order of the table. The CPU hours are 4 s ×
// 8 CPUs, because they end at the last sample.
var goldenMetrics = []float64{100.0, 49.980000000000004, 20.0, 20.0, 60.0, 80.0, 100.0, 100.0, 4 * 8 / 3600.0,
	4 * 8 / 3600.0 * (100 - 49.98) / 100, 60.3, 70.2, 1030.0, 2222.0, 6.25, 111.5, 6.25, 421.0}

func checkGolden(t *testing.T, n *reporter.Node) {
	t.Helper()
	if len(n.Metrics) != len(goldenMetrics) {
		t.Errorf("%d metrics, want %d: %v", len(n.Metrics), len(goldenMetrics), n.Metrics)
	}
	for i, m := range reporter.Metrics()[:len(goldenMetrics)] {
		if got, ok := n.Metrics[m.Name]; !ok || math.Abs(got-goldenMetrics[i]) > 1e-9 {
			t.Errorf("%s is %v, want %v", m.Name, got, goldenMetrics[i])
		}
	}
	if len(n.Missing) != 0 {
		t.Errorf("missing %v, want nothing", n.Missing)
	}
}

// parsedPerfPy returns the report of a file in perf.py's format.
func parsedPerfPy(t *testing.T, data string, cpus int) *reporter.Report {
	t.Helper()
	r, err := reporter.ParsePerfPy([]byte(data), cpus)
	check.Must(t, err)
	return r
}

func TestParsePerfPy_ComputesGoldenMetrics(t *testing.T) {
	r, again := parsedPerfPy(t, reportertest.PerfPyJSON(), 8), parsedPerfPy(t, reportertest.PerfPyJSON(), 8)
	n := r.Nodes["3"]
	checkGolden(t, n)
	wantValues(t, "origin, CPUs, number of samples", reporter.OriginPerfPy+" 8 5", n.Origin, n.Host.CPUs,
		n.Samples.Len())
	wantValues(t, "start, end, length of the run", "1000 1004 4", r.Run.Start.Unix(), r.Run.End.Unix(),
		r.Run.WallSeconds)
	check.Equal(t, n.Remarks(), []string{reporter.PerfPyRemark}, "remarks")
	if again.Run.ID != r.Run.ID || !strings.HasPrefix(r.Run.ID, "perfpy-") {
		t.Errorf("run IDs %q and %q, want the same ID with the prefix perfpy-", r.Run.ID, again.Run.ID)
	}
}

// A run without times gets those of its samples.
func TestNewPerfPyReport_MatchesParsedFile(t *testing.T) {
	r := reporter.NewPerfPyReport(reportertest.PerfPySamples(), 3, 8, reporter.Run{ID: "x", ExitCode: new(7)})
	checkGolden(t, r.Nodes["3"])
	wantValues(t, "ID, exit code, length of the run", "x 7 4", r.Run.ID, *r.Run.ExitCode, r.Run.WallSeconds)
	live, _ := text.JSON(r.Nodes["3"])
	read, _ := text.JSON(parsedPerfPy(t, reportertest.PerfPyJSON(), 8).Nodes["3"])
	check.Equal(t, string(live), string(read), "node of the live run, as of the file")

	run := reporter.Run{Start: reporter.Time{Time: reportertest.RunStart}, End: reporter.Time{Time: reportertest.RunStart.Add(6e9)}, WallSeconds: 5.5}
	r = reporter.NewPerfPyReport(reportertest.PerfPySamples(), 0, 8, run)
	wantValues(t, "length and start of a run with times", fmt.Sprintln(5.5, reportertest.RunStart), r.Run.WallSeconds,
		r.Run.Start)
	checkGolden(t, r.Nodes["0"])
}

func TestParsePerfPy_AbsentMetricsHaveReasons(t *testing.T) {
	for _, c := range []struct {
		name, data, metric, why string
		cpus, present           int
	}{
		{"no CPUs", reportertest.PerfPyJSON(), reporter.MetricCPUHours, "--cpus", 0, 16},
		{"no CPUs", reportertest.PerfPyJSON(), reporter.MetricUnusedCPUHours, "--cpus", -3, 16},
		{"one sample", `{"0": [{"cpu_pct_per_cpu_avg": 1, "timestamp": 5.5}]}`, reporter.MetricCPUHours, "fewer than two", 8, 6},
		{"no sample", `{"0": []}`, reporter.MetricCPUMean, "no samples", 8, 0},
		{"no sample", `{"0": []}`, reporter.MetricCPUHours, "no samples", 8, 0},
		{"no keys", `{"0": [{}, {}]}`, reporter.MetricMemoryPeak, "no sample has mem_percent", 8, 0},
		{"no timestamps", `{"0": [{"mem_percent": 1}, {"mem_percent": 2}]}`, reporter.MetricCPUHours, "timestamp", 8, 1},
		{"timestamps go backwards", `{"0": [{"timestamp": 9}, {"timestamp": 2}]}`, reporter.MetricCPUHours, "not after the first", 8, 0},
		{"nulls", `{"0": [{"timestamp": 9, "mem_percent": null}, {"timestamp": 12}]}`, reporter.MetricMemoryPeak, "mem_percent", 8, 1},
	} {
		r := parsedPerfPy(t, c.data, c.cpus)
		n := r.Nodes[r.NodeNames()[0]]
		at := slices.IndexFunc(n.Missing, func(m reporter.Missing) bool { return m.What == c.metric })
		if at < 0 || !strings.Contains(n.Missing[at].Why, c.why) {
			t.Errorf("%s: missing %v, want %s with a reason that contains %q", c.name, n.Missing, c.metric, c.why)
		}
		wantValues(t, c.name+": number of metrics, of missing, and whether there is a host",
			fmt.Sprintln(c.present, 18-c.present, c.cpus > 0), len(n.Metrics), len(n.Missing), n.Host != nil)
	}
}

func TestParsePerfPy_CountsSamplesWithoutKeys(t *testing.T) {
	got := parsedPerfPy(t, `{"0": [{}, {"extra": 4}, {"timestamp": 1}]}`, 0).Nodes["0"].Samples
	wantValues(t, "number of samples, extra in the second", "3 4", got.Len(), got.Column("extra")[1])
}

func TestParsePerfPy_Errors(t *testing.T) {
	for data, want := range map[string]string{
		"":                                      "line 1: the file ends",
		`{"0": [`:                               "line 1: the file ends",
		"{\n\"0\": [\n{\"mem_percent\": NaN}]}": "are not JSON; write null or leave the key out",
		`[]`:                                    "is not an object, and so not a report",
		`3`:                                     "is not an object, and so not a report",
		`null`:                                  "is not an object, and so not a report",
		`{}`:                                    "is an empty object",
		`{} {}`:                                 "line 1",
		`{"0": []} x`:                           "line 1",
		`{"a": []}`:                             `the key "a" is not a node of perf.py's`,
		`{"-1": []}`:                            `the key "-1" is not a node`,
		`{"00": []}`:                            `the key "00" is not a node`,
		`{"1.5": []}`:                           `the key "1.5" is not a node`,
		`{"99999999999999999999": []}`:          "is not a node",
		`{"\u001b[31m": []}`:                    `\\x1b`,
		`{"0": [], "0": []}`:                    "node 0 appears twice",
		`{"0": {}}`:                             "node 0: is not a list",
		`{"0": 1}`:                              "node 0: is not a list",
		`{"0": [1]}`:                            "node 0: sample 1: not an object",
		`{"0": [{}, []]}`:                       "node 0: sample 2: not an object",
		`{"0": [{"mem_percent": "x"}]}`:         `sample 1: "mem_percent" is not a number`,
		`{"0": [{"mem_percent": true}]}`:        `sample 1: "mem_percent" is not a number`,
		`{"0": [{"mem_percent": [1]}]}`:         `sample 1: "mem_percent" is not a number`,
		`{"0": [{"mem_percent": 1e999}]}`:       "1e999",
		`{"0": [{"timestamp": -5}]}`:            "timestamp -5 is not a valid time",
		`{"0": [{"timestamp": 1e18}]}`:          "timestamp 1e+18 is not a valid time",
		`{"0": [` + strings.Repeat("{},", 200000) + `{}]}`: "most of the samples are empty",
	} {
		r, err := reporter.ParsePerfPy([]byte(data), 4)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q in it (report %v)", data, err, want, r)
		} else if words := err.Error(); words != text.Printable(words) || len(words) > 300 {
			t.Errorf("%.60s: error %q, want one printable line of at most 300 bytes", data, words)
		}
	}
}

func TestEncodePerfPy_Layout(t *testing.T) {
	for want, samples := range map[string][]collector.Sample{
		"{\n    \"2\": []\n}": nil,
		"{\n    \"2\": [\n        {\n            \"cpu_pct_per_cpu_avg\": 12.5\n        },\n        {}\n    ]\n}": {
			reportertest.PerfPySample([]float64{12.5}), reportertest.PerfPySample(nil),
		},
	} {
		if got, err := reporter.EncodePerfPy(2, samples); err != nil || string(got) != want {
			t.Errorf("EncodePerfPy returned %s, error %v, want %s", got, err, want)
		}
	}
}

func pythonFloats() []float64 {
	out := []float64{0, math.Copysign(0, -1), 1, 30, 100, 12.5, 0.1, 1.0 / 3, 1e-4, 9.999999999999999e-05, 1e-5, 5e-324, 123456789.125,
		1e15, 9999999999999998, 1e16, 1.5e16, 1e22, 1e23, 1.7976931348623157e308, 1714564800.123, 1714564800.123456, -2.5e-7, 2222.000091552734}
	for i := range 2000 {
		out = append(out, math.Pow(1.37, float64(i-1000))/3, float64(i)/10)
	}
	return out
}

// The encoded keys and numbers are the same as in the output of Python's json.dump, byte for byte.
func TestEncodePerfPy_MatchesPython(t *testing.T) {
	python := testenv.Python(t)
	samples := append(reportertest.PerfPySamples(), reportertest.PerfPySample(nil))
	floats := pythonFloats()
	for len(floats) > 0 {
		n := min(len(floats), collector.NumPerfPyKeys)
		samples = append(samples, reportertest.PerfPySample(floats[:n]))
		floats = floats[n:]
	}
	got, err := reporter.EncodePerfPy(3, samples)
	check.Must(t, err)
	cmd := exec.Command(python, "-c", "import json, sys; json.dump(json.load(sys.stdin), sys.stdout, indent=4)")
	cmd.Stdin = bytes.NewReader(got)
	want, err := cmd.Output()
	check.Must(t, err)
	if !bytes.Equal(got, want) {
		a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("line %d is %q, want %q as written by Python", i+1, a[i], b[i])
			}
		}
		t.Fatalf("%d lines, want %d as written by Python", len(a), len(b))
	}
}

// kept converts columns to samples.
func kept(s reporter.Samples) []collector.Sample {
	out := make([]collector.Sample, s.Len())
	for i := range out {
		out[i] = reportertest.PerfPySample(nil)
		for c := range collector.Column(collector.NumPerfPyKeys) {
			out[i].Values[c] = s.Column(c.Key())[i]
		}
	}
	return out
}

// FuzzPerfPy checks that no input causes a panic or an unprintable error, and that every accepted input results in a
// report that can be encoded, summarized, and encoded in perf.py's format.
func FuzzPerfPy(f *testing.F) {
	f.Add([]byte(reportertest.PerfPyJSON()), 8)
	for _, seed := range []string{
		`{"0": []}`, `{"0": [{}]}`, `{"0": [{"timestamp": NaN}]}`, `{"0":[{"timestamp":1},{"timestamp":2,"x":3}],"1":[]}`, `{`, `[]`,
		`{"0":[{"cpu_pct_per_cpu_avg":1e300,"timestamp":253402300799.9}]}`, `{"0":[{"timestamp":1,"timestamp":null}]}`,
	} {
		f.Add([]byte(seed), 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, cpus int) {
		r, err := reporter.ParsePerfPy(data, cpus)
		if err != nil {
			if words := err.Error(); words != text.Printable(words) {
				t.Errorf("error %q is not printable", words)
			}
			return
		}
		if !json.Valid(data) {
			t.Error("ParsePerfPy accepted data that are not JSON")
		}
		encoded, err := reporter.Encode(r)
		var back reporter.Report
		if err != nil || json.Unmarshal(encoded, &back) != nil || len(back.Nodes) != len(r.Nodes) {
			t.Errorf("cannot decode the encoded report (error of Encode %v):\n%s", err, encoded)
		}
		if err := summary.Write(&bytes.Buffer{}, r, summary.Options{}); err != nil {
			t.Error(err)
		}
		for name, n := range r.Nodes {
			if len(n.Metrics)+len(n.Missing) != 18 {
				t.Errorf("node %s: %d metrics and %d missing, want 18 together", name, len(n.Metrics), len(n.Missing))
			}
			again, err := reporter.EncodePerfPy(0, kept(n.Samples))
			check.Must(t, err)
			second, err := reporter.ParsePerfPy(again, cpus)
			if err != nil {
				t.Fatalf("ParsePerfPy rejects the output of EncodePerfPy: %v in %s", err, again)
			}
			if got := second.Nodes["0"].Metrics; fmt.Sprint(got) != fmt.Sprint(n.Metrics) {
				t.Errorf("node %s: metrics %v, after encoding and parsing %v; want no change", name, n.Metrics, got)
			}
		}
	})
}
