package main

import (
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

func TestSampling_JobOf50MillisecondsHasAllMetrics(t *testing.T) {
	t.Parallel()
	o := mustRun(t, 0, "run", "--", "sleep", "0.05")
	r := o.Report(t)
	n := r.Nodes["0"]
	reportertest.WantEveryMetric(t, n)
	for _, m := range n.Missing {
		if reportertest.WentWrong(m) {
			t.Errorf("a source failed: %s: %s", m.What, m.Why)
		}
	}
	for _, name := range []string{"cpu_avg_utilization_pct", "max_t_mem_percent", "job_cpu_seconds", "job_max_rss_mb", "job_avg_cpu_cores", "limit_cpu_utilization_pct"} {
		if _, there := n.Metrics[name]; !there {
			t.Errorf("metric %s is missing: %v", name, n.Missing)
		}
	}
	if w := r.Run.WallSeconds; w < 0.05 || w > 600 || n.Sampling.Samples != 1 && w < 0.5 { // the machine may have stalled
		t.Errorf("the run took %v s with %d samples, want 0.05 to 600 s, and 1 sample below 0.5 s", w, n.Sampling.Samples)
	}
}

// A job of one syscall has a complete report. Values that need more time are listed as missing with that reason.
func TestSampling_JobOfOneSyscallHasCompleteReport(t *testing.T) {
	o := wantInside(t, 0, "run", "--", "true")
	r := o.Report(t)
	n := r.Nodes["0"]
	reportertest.WantEveryMetric(t, n)
	for _, name := range []string{"node_cpu_hours", "max_t_mem_percent", "max_t_disk_usage_percent", "total_disk_io_read_mb",
		"total_net_io_lo_sent_mb", "wall_seconds", "job_cpu_seconds", "job_max_rss_mb"} {
		if _, there := n.Metrics[name]; !there {
			t.Errorf("metric %s is missing: %v", name, n.Missing)
		}
	}
	short := r.Run.WallSeconds < 0.5 // unless the machine stalled
	if n.Samples.Len() < 1 || n.Host == nil || n.Host.CPUs == 0 || n.Host.Hostname == "" || n.Job == nil || n.Job.PID == 0 ||
		n.Sampling.Samples != 1 && short || n.Agent.Version == "" || r.Run.ID == "" || len(r.Run.Command) != 1 || r.Run.End.Before(r.Run.Start.Time) {
		t.Errorf("the report lacks parts of the run, the host, the job or the agent: run %+v, node %+v", r.Run, n)
	}
}

// The number of kept samples is bounded, and all samples are counted.
func TestSampling_KeptSamplesAreBounded(t *testing.T) {
	testenv.SkipIfShort(t, "seconds for its samples")
	var n *reporter.Node
	for _, seconds := range []string{"2", "20", "100"} { // until there are enough samples
		n = wantInside(t, 0, "run", "--interval", "10ms", "--max-length", "7", "--", "sleep", seconds).Report(t).Nodes["0"]
		if n.Sampling.Samples >= 10 {
			break
		}
	}
	s := n.Sampling
	if s.MaxLength != 8 || n.Samples.Len() > 8 || n.Samples.Len() < 4 || s.Samples < 10 || s.Stride < 2 ||
		s.Samples+s.MissedTicks < 190 || int64(n.Samples.Len()) != (s.Samples+s.Stride-1)/s.Stride {
		t.Errorf("%d samples kept, sampling %+v; want 4 to 8 of at least 10, one per stride", n.Samples.Len(), s)
	}
}
