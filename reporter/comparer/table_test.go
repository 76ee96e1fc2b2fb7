package comparer

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a golden file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	reportertest.CompareGolden(t, filepath.Join("testdata", name), []byte(got), *update)
}

// wantNone checks that text has none of the parts.
func wantNone(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s has %q:\n%s", what, part, text)
		}
	}
}

// tableOf returns the table of a comparison.
func tableOf(t testing.TB, c *Comparison, o Options) string {
	t.Helper()
	var out strings.Builder
	check.Must(t, WriteTable(&out, c, o))
	return out.String()
}

// markdownOf returns the Markdown of a comparison.
func markdownOf(t testing.TB, c *Comparison, o Options) string {
	t.Helper()
	var out strings.Builder
	check.Must(t, WriteMarkdown(&out, c, o))
	return out.String()
}

// gateOf returns the gate that text describes.
func gateOf(t testing.TB, text string) Gate {
	t.Helper()
	g, err := ParseGate(text)
	check.Must(t, err)
	return g
}

// wantGate checks whether a gate fires ("null" if that is not known), and for a part of the reason.
func wantGate(t testing.TB, c *Comparison, g Gate, fired, reason string) {
	t.Helper()
	v := c.CheckGate(g)
	if written(v.Fired) != fired || !strings.Contains(v.Reason, reason) || fired == "null" && v.Reason != reason || c.Gates[len(c.Gates)-1] != v {
		t.Errorf("gate %s: fired %s, reason %q; want %s, %q", g, written(v.Fired), v.Reason, fired, reason)
	}
}

// wantMedian checks the median of a metric of A, and that the metric has a unit.
func wantMedian(t testing.TB, c *Comparison, name string, want float64) {
	t.Helper()
	if m, ok := c.Metric(name); !ok || m.A == nil || *m.A != want || m.Unit == "" {
		t.Errorf("metric %s: found %v, unit %q, median %s, want %v", name, ok, m.Unit, written(m.A), want)
	}
}

// wantGates checks that ParseGate accepts the keys of good, with their values as text, and rejects the keys of bad, with
// their values in the error.
func wantGates(t testing.TB, good, bad map[string]string) {
	t.Helper()
	for in, want := range good {
		g, err := ParseGate(in)
		if err != nil || g.String() != want {
			t.Errorf("ParseGate(%q) = %q, %v, want %q", in, g, err, want)
		}
		if again, err := ParseGate(g.String()); err != nil || again != g {
			t.Errorf("gate %q is parsed as %+v (error %v), want %+v", g, again, err, g)
		}
	}
	for in, want := range bad {
		if g, err := ParseGate(in); err == nil || !strings.Contains(err.Error(), want) || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("ParseGate(%q) = %+v, error %q, want a printable error with %q", in, g, err, want)
		}
	}
}

// jobs returns n runs of a job with every metric. The CPU time is multiplied by scale. The noise is the same whenever
// the test runs.
func jobs(name string, n int, scale float64) Side {
	r := rand.New(rand.NewPCG(uint64(n), uint64(len(name))))
	noise := func(v, deviation float64) float64 { return v * (1 + deviation*r.NormFloat64()) }
	s := Side{Name: "perfagent-out/" + name}
	for i := range n {
		cpu := noise(3.2*scale, 0.02)
		wall := noise(2.1*scale, 0.03)
		s.Reports = append(s.Reports, runAt(name, i, reporter.Values{
			"max_t_cpu_pct_per_cpu_avg": 100, "cpu_avg_utilization_pct": noise(76, 0.02), "cpu_avg_utilization_at100_pct": noise(31, 0.2),
			"cpu_avg_utilization_over80_pct": noise(55, 0.1), "cpu_avg_utilization_over40_pct": noise(80, 0.05), "cpu_avg_utilization_over20_pct": 100,
			"max_t_cpu_pct_per_cpu_min": noise(99, 0.01), "max_t_cpu_pct_per_cpu_max": 100,
			"node_cpu_hours": wall * 2 / 3600, "node_unused_cpu_hours": wall * 2 / 3600 * noise(0.24, 0.02),
			"max_t_mem_percent": noise(14.2, 0.01), "max_t_disk_usage_percent": noise(61.3, 0.0001),
			"total_disk_io_read_mb": max(0, noise(0.1, 3)), "total_disk_io_write_mb": noise(1536, 0.01),
			"total_net_io_lo_sent_mb": 0, "total_net_io_ext_sent_mb": noise(0.004, 0.5), "total_net_io_lo_recv_mb": 0, "total_net_io_ext_recv_mb": noise(1234567, 0.1),
			"wall_seconds": wall, "job_cpu_seconds": cpu, "job_max_rss_mb": noise(312, 0.001),
			"boot_total_disk_io_read_mb": 1e6,
		}))
	}
	return s
}

// judged returns the comparison of a and b, with the results of the gates.
func judged(t *testing.T, a, b Side, gates ...string) *Comparison {
	t.Helper()
	c := Compare(a, b)
	for _, text := range gates {
		c.CheckGate(gateOf(t, text))
	}
	return c
}

const hostile = "a\x1b[31mred\x1b]0;title\a\rb\n\tc\u202ed\xff|x`<script>alert(1)</script>[l](http://e) *b* @you https://e.e www.e.e"

// mixed returns sides with many missing, odd or hostile values.
func mixed() (a, b Side) {
	a, b = sideOf("a", cpuMetric, 0, 0, 0, 0, 0, 0), sideOf("b", cpuMetric, 1, 1, 2, 2, 1, 1)
	a.Name, b.Name = hostile, strings.Repeat("long/", 100)
	for i, src := range b.Reports {
		n := src.Report.Nodes["0"]
		n.Metrics["total_disk_io_read_mb"] = 3
		n.Metrics["wall_seconds"] = 1e12
		n.Missing = []reporter.Missing{{What: "max_t_mem_percent", Why: hostile}, {What: "max_t_disk_usage_percent", Why: strings.Repeat("x", 1<<20)}}
		if i < 4 {
			delete(n.Metrics, cpuMetric)
		}
		a.Reports[i].Report.Nodes["0"].Metrics["wall_seconds"] = 1e-9 * float64(i)
		a.Reports[i].Report.Nodes["0"].Metrics["job_max_rss_mb"] = []float64{0, 0, 0, 0, 0, 7}[i]
		n.Metrics["job_max_rss_mb"] = []float64{0, 0, 0, 0, 5, 7}[i]
	}
	b.Reports[3].Path = hostile
	b.Reports[3].Report.Run.Incomplete = hostile
	return a, b
}

// cases returns the comparisons of the golden files.
func cases(t *testing.T) map[string]*Comparison {
	one := sideOf("before.json", cpuMetric, 3.1)
	mixedA, mixedB := mixed()
	return map[string]*Comparison{
		"slower":  judged(t, jobs("before", 10, 1), jobs("after", 10, 1.2), "job_cpu_seconds > +10%", "max_t_mem_percent > 90"),
		"equal":   judged(t, jobs("before", 10, 1), jobs("again", 10, 1), "job_cpu_seconds > +10%"),
		"four":    judged(t, sideOf("before", cpuMetric, 1, 2, 3, 4), sideOf("after", cpuMetric, 5, 6, 7, 8), "job_cpu_seconds > +10%", "job_cpu_seconds < 1"),
		"same":    judged(t, jobs("before", 10, 1), jobs("before", 10, 1)),
		"few":     judged(t, jobs("before", 2, 1), jobs("after", 3, 1.2), "job_cpu_seconds > +10%"),
		"one":     judged(t, one, sideOf("after.json", cpuMetric, 3.9), "job_cpu_seconds > +10%", "wall_seconds > +10%"),
		"hostile": judged(t, mixedA, mixedB, "job_cpu_seconds > +10%", "max_t_mem_percent > 1"),
	}
}

func TestWriteTable_MatchesGoldenFiles(t *testing.T) {
	for name, c := range cases(t) {
		out := tableOf(t, c, Options{All: true})
		golden(t, name+".txt", out)
		_, rest, _ := strings.Cut(out, "\n\n") // the lines before the table are not wrapped
		for line := range strings.Lines(rest) {
			// The limit is 82 instead of 80, because some numbers have seven digits, which is unusual.
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 82 && name != "hostile" {
				t.Errorf("%s: line of %d characters, want at most 82: %s", name, n, line)
			}
		}
		wantHarmless(t, name, out)
	}
}

func TestWriteMarkdown_MatchesGoldenFiles(t *testing.T) {
	for name, c := range cases(t) {
		out := markdownOf(t, c, Options{All: true})
		golden(t, name+".md", out)
		wantHarmless(t, name, out)
		if bad := regexp.MustCompile("(?m)[^\\\\](<script|\\[l|\\*b|@you|://|`<)|www\\.|^[^-|*\n]").FindString(out); bad != "" {
			t.Errorf("%s: %q is not escaped in the Markdown", name, bad)
		}
	}
}

// wantHarmless checks that text has no terminal control sequences and no invalid numbers.
func wantHarmless(t *testing.T, name, text string) {
	t.Helper()
	wantNone(t, name+": output", text, "\x1b", "\r", "\a", "\t", "\u202e", "NaN", "Inf", "∞")
	if !utf8.ValidString(text) {
		t.Errorf("%s: output is not UTF-8: %q", name, text)
	}
}

func TestComparison_JSONGolden(t *testing.T) {
	for name, c := range cases(t) {
		data, err := json.MarshalIndent(c, "", "  ")
		check.Must(t, err)
		if name == "four" || name == "one" {
			golden(t, name+".json", string(data)+"\n")
		}
		var back struct {
			Metrics []map[string]any
		}
		if err := json.Unmarshal(data, &back); err != nil || len(back.Metrics) != len(everywhere()) {
			t.Fatalf("%s: JSON has %d metrics, want %d (error %v)", name, len(back.Metrics), len(everywhere()), err)
		}
		for _, m := range back.Metrics {
			for _, key := range []string{"name", "unit", "a", "b", "change_pct", "p_value", "changed", "n_a", "n_b"} {
				if _, ok := m[key]; !ok {
					t.Errorf("%s: metric %v lacks the key %s", name, m["name"], key)
				}
			}
			if (m["changed"] == nil) != (m["p_value"] == nil) || m["a"] == nil && m["why"] == nil {
				t.Errorf("%s: metric %v: want changed if and only if there is a p_value, and why if a is null", name, m)
			}
		}
	}
}

// No line is wider than the terminal, whatever the names, and the medians and the change are always shown.
func TestWriteTable_FitsTheTerminal(t *testing.T) {
	t.Parallel()
	defaults := judged(t, sideOf("20261127-015653-4f3734", cpuMetric, 3.1), sideOf("20261127-015641-142851", cpuMetric, 3.9))
	for name, c := range map[string]*Comparison{"slower": cases(t)["slower"], "few": cases(t)["few"], "default names": defaults} {
		for _, width := range []int{120, 80, 60, 40} {
			for _, everything := range []bool{true, false} {
				out := tableOf(t, c, Options{All: everything, Width: width})
				for line := range strings.Lines(out) {
					if text.Width(strings.TrimSuffix(line, "\n")) > width {
						t.Errorf("%s: line wider than %d cells: %s", name, width, line)
					}
				}
				row := regexp.MustCompile(`(?m)^CPU time\s+\d\S* s.* \d\S* s.*\+\d+ %( .*)?$`)
				whole := row.FindString(out)
				if whole == "" || width >= 80 && c != defaults && !strings.Contains(whole, "±") {
					t.Errorf("%s, %d cells: output lacks the medians, the change or the noise of the CPU time:\n%s", name, width, out)
				}
			}
		}
	}
}

// Colors are applied to whole lines. Apart from them, the output is the same.
func TestWriteTable_ColorsEncloseWholeLines(t *testing.T) {
	c := cases(t)["slower"]
	bare, colored := tableOf(t, c, Options{All: true}), tableOf(t, c, Options{All: true, Color: true})
	check.Equal(t, strings.NewReplacer("\x1b[1m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(colored), bare,
		"table without its colors")
	_, rest, _ := strings.Cut(colored, "\n\n")
	for line := range strings.Lines(rest) {
		if bold := strings.HasPrefix(line, "\x1b[1m"); bold != (strings.Contains(line, "+") && strings.Contains(line, "<.001")) && !strings.Contains(line, "gate") {
			t.Errorf("bold = %v, want only lines with significant changes to be bold: %q", bold, line)
		}
	}
}

func TestChangeText(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want string
	}{
		{5, 5, "0 %"}, {14.1, 16.3, "+16 %"}, {14.149, 16.251, "+16 %"}, {100, 95, "-5 %"}, {100, 102.3, "+2 %"}, {61.306, 61.295, "-<0.1 %"},
		{1e-9, 1, "+1.0e+11 %"}, {-2, -1, "+50 %"}, {1, 1e7, "+1.0e+09 %"}, {2, 0, "-100 %"},
	} {
		check.Equal(t, changeText(c.a, c.b, change(c.a, c.b)), c.want, "changeText(%v, %v)", c.a, c.b)
	}
	for pct, want := range map[float64]string{0: "0 %", 20.26: "+20.26 %", -5: "-5.00 %", 0.04: "+0.04 %", 1234.5: "+1234 %", 0.00001: "+1.0e-05 %", 5e7: "+5.0e+07 %"} {
		check.Equal(t, gateChangeText(pct), want, "gateChangeText(%v)", pct)
	}
	for _, c := range []struct {
		v    float64
		unit collector.Unit
		want string
	}{
		{14.149, collector.Seconds, "14.1 s"}, {0.4021, collector.Seconds, "402 ms"}, {252, collector.Seconds, "4 min 12 s"},
		{0.506, collector.Mebibytes, "518 KiB"}, {243.24, collector.Mebibytes, "243 MiB"}, {1536.4, collector.Mebibytes, "1.5 GiB"},
		{0, collector.Mebibytes, "0 B"}, {0.000946, collector.Mebibytes, "992 B"}, {3, collector.Processes, "3"}, {1868.25, collector.Times, "1,868"}, {42.377, collector.Percent, "42.4 %"},
		{3.333, collector.PercentOfPeriods, "3.33 %"}, {1.8313, collector.CPUs, "1.83 CPUs"}, {math.NaN(), collector.Seconds, "–"},
	} {
		check.Equal(t, shownAmount(c.v, c.unit), c.want, "shownAmount(%v, %s)", c.v, c.unit)
	}
	for p, want := range map[float64]string{1: "1.000", 0.0281: "0.028", 0.0005: "0.001", 0.0004: "<.001", 0: "<.001"} {
		check.Equal(t, pValueCell(p), want, "pValueCell(%v)", p)
	}
}

func TestSpread(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	for _, test := range []struct {
		centre, low, high *float64
		n                 int
		want              string
	}{
		{f(10), f(9), f(12), 6, "±20%"}, {f(10), f(10), f(10), 6, "±0%"}, {f(10), f(9.99), f(10), 6, "±<1%"}, {f(-10), f(-12), f(-9), 6, "±20%"},
		{f(0), f(0), f(5), 6, "±5"}, {f(0), f(0), f(0.00781), 6, "±0.008"}, {f(0), f(-2.7e-6), f(0), 6, "±3e-06"}, {f(0), f(0), f(16.7), 6, "±17"}, {f(0), f(0), f(0), 6, "±0%"}, {f(1), f(0), f(100), 6, "±>999%"}, {f(1), nil, nil, 5, "±?"}, {f(1), nil, nil, 1, ""}, {nil, nil, nil, 0, ""},
	} {
		check.Equal(t, spread(test.centre, test.low, test.high, test.n), test.want, "spread of %s from %s to %s",
			written(test.centre), written(test.low), written(test.high))
	}
}

func TestWrapped(t *testing.T) {
	path := strings.Repeat("/dir", 30)
	got := wrapped(strings.Repeat("word ", 20)+path+" end", 80)
	for _, line := range got {
		if utf8.RuneCountInString(line) > 80 && !strings.Contains(line, path) {
			t.Errorf("line of %d characters, want at most 80: %q", utf8.RuneCountInString(line), line)
		}
	}
	if strings.Join(strings.Fields(strings.Join(got, " ")), " ") != strings.Repeat("word ", 20)+path+" end" {
		t.Errorf("wrapped lines %q do not have the same words as the text", got)
	}
}

// WriteTable and WriteMarkdown return the error of a failing writer.
func TestWriteTable_ReturnsWriteErrors(t *testing.T) {
	c := cases(t)["one"]
	for name, err := range map[string]error{"table": WriteTable(broken{}, c, Options{All: true}), "markdown": WriteMarkdown(broken{}, c, Options{All: true})} {
		if err == nil || !strings.Contains(err.Error(), "write the comparison") {
			t.Errorf("%s: error %v, want one containing: write the comparison", name, err)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, fmt.Errorf("no: %w", io.ErrClosedPipe) }
