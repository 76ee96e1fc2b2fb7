package comparer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/reporter"
)

// several returns n runs with these values, each a little different from run to run.
func several(n int, values reporter.Values) Side {
	s := Side{Name: "x"}
	for i := range n {
		metrics := make(reporter.Values)
		for name, v := range values {
			metrics[name] = v * (1 + 0.001*float64(i))
		}
		run := runAt("x", i, metrics)
		for device := range 2 {
			if _, ok := values[fmt.Sprintf("gpu_%d_avg_utilization_pct", device)]; ok {
				run.Report.Nodes["0"].GPUs = append(run.Report.Nodes["0"].GPUs, reporter.GPU{Index: device})
			}
		}
		s.Reports = append(s.Reports, run)
	}
	return s
}

func TestSentence(t *testing.T) {
	const wall, cpu, memory, gpu = "wall_seconds", "job_cpu_seconds", "job_peak_memory_mb", "gpu_0_avg_utilization_pct"
	for _, test := range []struct {
		runs int
		a, b reporter.Values
		want string
	}{
		{10, reporter.Values{wall: 100, memory: 1000}, reporter.Values{wall: 112, memory: 680},
			"B took 12 % longer (p < 0.001), memory -32 %"},
		{4, reporter.Values{wall: 100}, reporter.Values{wall: 112}, "B took 12 % longer (p 0.03)"},
		{5, reporter.Values{wall: 100}, reporter.Values{wall: 112}, "B took 12 % longer (p 0.008)"},
		{10, reporter.Values{wall: 100}, reporter.Values{wall: 88}, "B took 12 % less time (p < 0.001)"},
		{10, reporter.Values{wall: 100}, reporter.Values{wall: 102}, "B took 2 % longer (p < 0.001)"},
		{10, reporter.Values{wall: 1000}, reporter.Values{wall: 3}, "B took 99.7 % less time (p < 0.001)"},
		{10, reporter.Values{wall: 100}, reporter.Values{wall: 210}, "B took 2.1 × as long (p < 0.001)"},
		{10, reporter.Values{wall: 100}, reporter.Values{wall: 1234}, "B took 12 × as long (p < 0.001)"},
		{10, reporter.Values{wall: 100, cpu: 5}, reporter.Values{wall: 100, cpu: 6}, "B took as long as A (p 1.00), CPU time +20 %"},
		{10, reporter.Values{wall: 100, cpu: 5, memory: 10, gpu: 50}, reporter.Values{wall: 112, cpu: 6, memory: 9, gpu: 25},
			"B took 12 % longer (p < 0.001), CPU time +20 %, memory -10 %, GPU -50 %"},
		{10, reporter.Values{wall: 100, gpu: 50, "gpu_1_avg_utilization_pct": 80}, reporter.Values{wall: 112, gpu: 50, "gpu_1_avg_utilization_pct": 20},
			"B took 12 % longer (p < 0.001), GPU 1 -75 %"},
		{10, reporter.Values{wall: 100, "job_max_rss_mb": 50}, reporter.Values{wall: 112, "job_max_rss_mb": 60},
			"B took 12 % longer (p < 0.001), memory +20 %"},
		{10, reporter.Values{wall: 100, gpu: 0}, reporter.Values{wall: 112, gpu: 50},
			"B took 12 % longer (p < 0.001), GPU from 0 % to 50.225 %"},
		{1, reporter.Values{wall: 100, cpu: 5, memory: 100}, reporter.Values{wall: 112, cpu: 5.1, memory: 68},
			"B took 12 % longer, memory -32 % (one run a side: the noise is unknown)"},
		{1, reporter.Values{wall: 100}, reporter.Values{wall: 100}, "B took as long as A (one run a side: the noise is unknown)"},
		{2, reporter.Values{wall: 100}, reporter.Values{wall: 112}, "B took 12 % longer (too few runs: the noise is unknown)"},
		{1, reporter.Values{wall: 0}, reporter.Values{wall: 2}, "B took 2.0 s, and A 0 s (one run a side: the noise is unknown)"},
		{1, reporter.Values{cpu: 5}, reporter.Values{cpu: 6}, "how long the runs took is not known, CPU time +20 % (one run a side: the noise is unknown)"},
	} {
		if got := Compare(several(test.runs, test.a), several(test.runs, test.b)).Sentence(); got != test.want {
			t.Errorf("%v and %v: sentence\n%s\nwant\n%s", test.a, test.b, got, test.want)
		}
	}
}

func TestCommands(t *testing.T) {
	side := func(commands ...string) Side {
		s := several(len(commands), reporter.Values{"wall_seconds": 1})
		for i, words := range commands {
			s.Reports[i].Report.Run.Command = strings.Fields(words)
		}
		return s
	}
	long := "python train.py --data " + strings.Repeat("/dir", 20)
	for _, test := range []struct {
		a, b Side
		want string
	}{
		{side("sleep 1"), side("sleep 1"), ""},
		{side("sleep 1", "sleep 2"), side("sleep 2", "sleep 1"), ""},
		{side(""), side("sleep 1"), ""},
		{side("python a.py"), side("sleep 1"), "the commands differ: A python a.py | B sleep 1"},
		{side("sleep 1", "sleep 2", "sleep 3"), side("sleep 1"), "the commands differ: A sleep 1 and 2 more | B sleep 1"},
		{side("a\x1b[31m"), side("b"), `the commands differ: A a\x1b[31m | B b`},
		{side(long + " --lr 0.1"), side(long + " --lr 0.2"), "the commands differ: A … 0.1 | B … 0.2"},
		{side(strings.Repeat("x", 500)), side("y"), "the commands differ: A " + strings.Repeat("x", 79) + "… | B y"},
	} {
		if got := Compare(test.a, test.b).Commands(); got != test.want {
			t.Errorf("commands %q, want %q", got, test.want)
		}
	}
}

// The tables have the changes: the wall time first, then the job's, the GPUs' and the node's metrics. They also have
// gated metrics.
func TestWriteTable_ShowsChangedAndGatedMetrics(t *testing.T) {
	a := reporter.Values{"max_t_mem_percent": 10, "gpu_0_avg_utilization_pct": 50, "job_cpu_seconds": 5, "wall_seconds": 100,
		"max_t_limit_memory_pct": 50, "job_max_rss_mb": 7, "cpu_avg_utilization_pct": 40, "total_disk_io_read_mb": 0}
	b := reporter.Values{"max_t_mem_percent": 20, "gpu_0_avg_utilization_pct": 60, "job_cpu_seconds": 6, "wall_seconds": 112,
		"max_t_limit_memory_pct": 60, "job_max_rss_mb": 7, "cpu_avg_utilization_pct": 40, "total_disk_io_read_mb": 0}
	for runs, layouts := range map[int]map[bool][]string{
		10: {
			false: {"wall_seconds", "job_cpu_seconds", "job_max_rss_mb", "max_t_limit_memory_pct", "gpu_0_avg_utilization_pct", "max_t_mem_percent"},
			true: {"wall_seconds", "job_cpu_seconds", "job_max_rss_mb", "max_t_limit_memory_pct", "gpu_0_avg_utilization_pct",
				"cpu_avg_utilization_pct", "max_t_mem_percent", "total_disk_io_read_mb"},
		},
		1: {
			false: {"wall_seconds", "job_cpu_seconds", "job_max_rss_mb", "max_t_limit_memory_pct", "gpu_0_avg_utilization_pct", "max_t_mem_percent"},
		},
	} {
		for all, want := range layouts {
			c := judged(t, several(runs, a), several(runs, b), "job_max_rss_mb > +10%")
			for format, write := range map[string]func(*bytes.Buffer) error{
				"table":    func(w *bytes.Buffer) error { return WriteTable(w, c, Options{All: all}) },
				"markdown": func(w *bytes.Buffer) error { return WriteMarkdown(w, c, Options{All: all}) },
			} {
				var out bytes.Buffer
				if err := write(&out); err != nil {
					t.Fatal(err)
				}
				var got []string
				for line := range strings.Lines(out.String()) {
					name, _, _ := strings.Cut(strings.TrimPrefix(strings.ReplaceAll(line, "`", ""), "| "), " ")
					if slices.Contains(MetricNames(), name) || strings.HasPrefix(name, "gpu_0") {
						got = append(got, name)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%d runs, all %v, %s: metrics (-want +got):\n%s\n%s", runs, all, format, diff,
						out.String())
				}
				if hidden := strings.Contains(out.String(), "not shown: "); hidden == all {
					t.Errorf("%d runs, all %v, %s: hidden metrics are mentioned: %v, want %v:\n%s", runs, all, format,
						hidden, !all, out.String())
				}
			}
		}
	}
}

func TestRows_SeparatesChangedMetricsFromTheRest(t *testing.T) {
	c := Compare(several(10, reporter.Values{"wall_seconds": 100, "job_cpu_seconds": 5}), several(10, reporter.Values{"wall_seconds": 80, "job_cpu_seconds": 5}))
	changed, rest := c.Rows()
	if len(changed) != 1 || changed[0].Name != "wall_seconds" || !changed[0].Changed || fmt.Sprintf("%.0f", changed[0].ChangePct) != "-20" {
		t.Errorf("changed metrics %+v, want only wall_seconds, by -20 %%", changed)
	}
	if len(rest) != 1 || rest[0].Name != "job_cpu_seconds" || rest[0].ChangePct != 0 || rest[0].Change != "~" {
		t.Errorf("other metrics %+v, want only job_cpu_seconds, unchanged", rest)
	}
}

// Without a change the sentence reports that, and there is no empty table.
func TestWriteTable_WithoutChangeHasNoEmptyTable(t *testing.T) {
	same := several(10, reporter.Values{"wall_seconds": 100})
	var out bytes.Buffer
	if err := WriteTable(&out, Compare(same, same), Options{}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "B took as long as A (p 1.00)\n\nA: 10 runs, x\n") || strings.Contains(out.String(), "metric  ") {
		t.Errorf("want the sentence that B took as long as A, and no table:\n%s", out.String())
	}
}
