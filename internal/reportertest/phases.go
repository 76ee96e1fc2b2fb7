package reportertest

import "github.com/perfagent/perfagent/reporter"

// AddMarks adds marks and phases to each node of a report. The run must begin at RunStart. The phases have various
// names, and one is interrupted by another.
func AddMarks(r *reporter.Report) *reporter.Report {
	start := float64(RunStart.Unix())
	for _, n := range r.Nodes {
		n.Marks = []reporter.Mark{{Timestamp: start + 20, Text: "epoch 1"}, {Timestamp: start + 40, Text: "epoch 2"}}
		n.Phases = []reporter.Phase{
			{
				Name: "load", Start: start, Seconds: 10, Count: 1, Spans: []reporter.PhaseSpan{{start, 10}},
				Metrics: reporter.Values{reporter.MetricJobCores: 0.25, reporter.MetricJobMemoryPeak: 100,
					reporter.MetricJobCPU: 2.5, reporter.MetricCPUMean: 12},
			},
			{
				Name: "train <b>&\x1b[31m", Start: start + 10, Seconds: 40, Count: 2,
				Spans: []reporter.PhaseSpan{{start + 10, 20}, {start + 35, 20}},
				Metrics: reporter.Values{reporter.MetricJobCores: 7.5, reporter.MetricJobMemoryPeak: 3000,
					reporter.MetricJobCPU: 300, reporter.MetricCPUMean: 95},
			},
			{
				Name: "save", Start: start + 30, Seconds: 5, Count: 1, Spans: []reporter.PhaseSpan{{start + 30, 5}},
				Metrics: reporter.Values{reporter.MetricCPUMean: 3},
			},
		}
	}

	return r
}
