package comparer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

// several returns n runs with values that vary slightly from run to run.
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
		{10, reporter.Values{wall: 100, memory: 1000}, reporter.Values{wall: 112, memory: 680}, // medians shown as 100 and 113 s
			"B took 13 % longer than A (p < 0.001): peak memory -32 %."},
		{4, reporter.Values{wall: 100}, reporter.Values{wall: 112}, "B took 12 % longer than A (p 0.029)."},
		{5, reporter.Values{wall: 100}, reporter.Values{wall: 112}, "B took 12 % longer than A (p 0.008)."},
		{10, reporter.Values{wall: 100}, reporter.Values{wall: 88}, "B took 12 % less time than A (p < 0.001)."},
		{10, reporter.Values{wall: 100}, reporter.Values{wall: 102}, "B took 2 % longer than A (p < 0.001)."},
		{10, reporter.Values{wall: 1000}, reporter.Values{wall: 3}, "B took 99.7 % less time than A (p < 0.001)."},
		{10, reporter.Values{wall: 100}, reporter.Values{wall: 210}, "B took 2.1 × as long as A (p < 0.001)."},
		{10, reporter.Values{wall: 100}, reporter.Values{wall: 1234}, "B took 12 × as long as A (p < 0.001)."},
		{10, reporter.Values{wall: 100, cpu: 5}, reporter.Values{wall: 100, cpu: 6}, "B took as long as A (p 1.000): CPU time +20 %."},
		{10, reporter.Values{wall: 100, cpu: 5, memory: 10, gpu: 50}, reporter.Values{wall: 112, cpu: 6, memory: 9, gpu: 25},
			"B took 13 % longer than A (p < 0.001): CPU time +20 %, peak memory -9.6 %, GPU -50 %."},
		{10, reporter.Values{wall: 100, gpu: 50, "gpu_1_avg_utilization_pct": 80}, reporter.Values{wall: 112, gpu: 50, "gpu_1_avg_utilization_pct": 20},
			"B took 13 % longer than A (p < 0.001): GPU 1 -75 %."},
		{10, reporter.Values{wall: 100, "job_max_rss_mb": 50}, reporter.Values{wall: 112, "job_max_rss_mb": 60},
			"B took 13 % longer than A (p < 0.001): peak memory +20 %."},
		{10, reporter.Values{wall: 100, gpu: 0}, reporter.Values{wall: 112, gpu: 50},
			"B took 13 % longer than A (p < 0.001): GPU from 0 % to 50.2 %."},
		{1, reporter.Values{wall: 100, cpu: 5, memory: 100}, reporter.Values{wall: 112, cpu: 5.1, memory: 68},
			"B took 12 % longer than A: peak memory -32 %."},
		{1, reporter.Values{wall: 100}, reporter.Values{wall: 100}, "B took as long as A."},
		{1, reporter.Values{wall: 100}, reporter.Values{wall: 100.02}, "B took as long as A."},
		{1, reporter.Values{wall: 100}, reporter.Values{wall: 101}, "B took 1 % longer than A."},
		{1, reporter.Values{wall: 100}, reporter.Values{wall: 110}, "B took 10 % longer than A."},
		{1, reporter.Values{wall: 100}, reporter.Values{wall: 111}, "B took 11 % longer than A."},
		{1, reporter.Values{wall: 100}, reporter.Values{wall: 90}, "B took 10 % less time than A."},
		{2, reporter.Values{wall: 100}, reporter.Values{wall: 112}, "B took 12 % longer than A."},
		{1, reporter.Values{wall: 0}, reporter.Values{wall: 2}, "B took 2 s, and A 0 s."},
		{1, reporter.Values{cpu: 5}, reporter.Values{cpu: 6}, "How long the runs took is not known. CPU time +20 %."},
	} {
		check.Equal(t, Compare(several(test.runs, test.a), several(test.runs, test.b)).Sentence(), test.want,
			"%v and %v: sentence", test.a, test.b)
	}
}

func TestNoise(t *testing.T) {
	for want, c := range map[string]*Comparison{
		"With one run on each side, this may be noise: repeat each; 4 runs are enough.": Compare(several(1, reporter.Values{"wall_seconds": 1}), several(1, reporter.Values{"wall_seconds": 2})),
		"With so few runs, this may be noise: repeat each; 4 runs are enough.":          Compare(several(3, reporter.Values{"wall_seconds": 1}), several(1, reporter.Values{"wall_seconds": 2})),
		"": Compare(several(4, reporter.Values{"wall_seconds": 1}), several(4, nil)),
	} {
		check.Equal(t, c.Noise(), want, "noise")
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
		check.Equal(t, Compare(test.a, test.b).Commands(), test.want, "commands")
	}
}

// The tables have the changed metrics and the gated metrics: first the wall time, then the metrics of the job, the GPUs
// and the node.
func TestWriteTable_ShowsChangedAndGatedMetrics(t *testing.T) {
	a := reporter.Values{"max_t_mem_percent": 10, "gpu_0_avg_utilization_pct": 50, "job_cpu_seconds": 5, "wall_seconds": 100,
		"max_t_limit_memory_pct": 50, "job_max_rss_mb": 7, "cpu_avg_utilization_pct": 40, "max_t_job_threads": 4, "total_job_io_read_mb": 0.2,
		"total_job_io_write_mb": 9}
	b := reporter.Values{"max_t_mem_percent": 20, "gpu_0_avg_utilization_pct": 60, "job_cpu_seconds": 6, "wall_seconds": 112,
		"max_t_limit_memory_pct": 60, "job_max_rss_mb": 7, "cpu_avg_utilization_pct": 90, "max_t_job_threads": 4, "total_job_io_read_mb": 0.2}
	short := []string{"wall time", "CPU time", "largest process", "memory limit reached", "GPU 0 busy"}
	whole := []string{"wall time", "CPU time", "largest process", "threads", "disk read", "disk written", "memory limit reached", "GPU 0 busy",
		"mean node CPU", "peak node memory"}
	for _, c := range []struct {
		runs int
		all  bool
		want []string
		also []string
	}{
		{10, false, short, []string{"No significant change (p > 0.05): threads, disk read.", "Only in A: disk written.", "perfagent diff --all."}},
		{10, true, whole, nil},
		{1, false, short, []string{"The same, or differing by less than 5 %, 1 MiB or 50 ms: threads, disk read."}},
	} {
		compared := judged(t, several(c.runs, a), several(c.runs, b), "job_max_rss_mb > +10%")
		for format, out := range map[string]string{"table": tableOf(t, compared, Options{All: c.all}), "markdown": markdownOf(t, compared, Options{All: c.all})} {
			var got []string
			for line := range strings.Lines(out) {
				for _, label := range whole {
					if strings.HasPrefix(strings.TrimPrefix(line, "| "), label+" ") {
						got = append(got, label)
					}
				}
			}
			check.Equal(t, got, c.want, "%d runs, all %v, %s: metrics", c.runs, c.all, format)
			flat := strings.Join(strings.Fields(strings.ReplaceAll(out, "\\", "")), " ")
			check.Contains(t, fmt.Sprintf("%d runs, all %v, %s: output", c.runs, c.all, format), flat, c.also...)
		}
	}
}

// Time, CPU time and peak memory are always in the first table, together with the changed metrics of the job.
func TestRows_SeparatesChangedMetricsFromTheRest(t *testing.T) {
	values := func(wall, threads float64) reporter.Values {
		return reporter.Values{"wall_seconds": wall, "job_cpu_seconds": 5, "job_peak_memory_mb": 9,
			reporter.MetricJobThreads: threads, reporter.MetricJobProcesses: 2, "max_t_mem_percent": wall}
	}
	c := Compare(several(10, values(100, 3)), several(10, values(80, 4)))
	changed, rest := c.Rows()
	names := func(rows []Row) (out []string) {
		for _, r := range rows {
			out = append(out, r.Name+" "+r.Change)
		}
		return out
	}
	want := "[wall_seconds -20 % job_cpu_seconds ~ job_peak_memory_mb ~ " + reporter.MetricJobThreads + " +34 %] [" +
		reporter.MetricJobProcesses + " ~ max_t_mem_percent -20 %]"
	check.Equal(t, fmt.Sprint(names(changed), names(rest)), want, "metrics")
	if !changed[0].Changed || fmt.Sprintf("%.0f", changed[0].ChangePct) != "-20" || changed[1].ChangePct != 0 {
		t.Errorf("first rows %+v, want a change of wall_seconds by -20 %%, and no change of the CPU time", changed[:2])
	}
}

// If nothing changed, the sentence mentions that, and the table has the wall time.
func TestWriteTable_ShowsWallTimeWithoutChanges(t *testing.T) {
	same := several(10, reporter.Values{"wall_seconds": 100})
	out := tableOf(t, Compare(same, same), Options{})
	if !strings.HasPrefix(out, "B took as long as A (p 1.000).\n\nA: 10 runs, x\n") || !strings.Contains(out, "\nwall time   ") {
		t.Errorf("output lacks the sentence that B took as long as A, or the wall time:\n%s", out)
	}
}
