package diagnosis

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// withID returns the findings with the given ID, as lines of the form "NODE: TEXT".
func withID(r *reporter.Report, id string) string {
	var lines []string
	for _, name := range r.NodeNames() {
		for _, f := range r.Nodes[name].Findings {
			if f.ID == id {
				lines = append(lines, name+": "+f.Text)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// The findings from comparing ranks and nodes match a golden file.
func TestAddPeerFindings_TextsMatchGoldenFile(t *testing.T) {
	throttled := ranksWith(3, 2, 30, nodeMetric("1", reporter.MetricThrottled, 31), nodeMetric("2", reporter.MetricThrottled, 2))
	swaps := nodeMetric("0", reporter.MetricSwapOut, 3000)
	killed := ranksWith(2, 2, 30, swaps, nodeMetric("0", reporter.MetricJobOOMKills, 2))
	reportertest.RankOf(killed, 0).Verdict = &reporter.Verdict{Cause: CauseExited, Evidence: map[string]any{"oom_kills": 2.0}}
	memory := reportertest.Ranks(1, 4, 30)
	reportertest.RankOf(memory, 0).Metrics[reporter.MetricJobMemoryPeak] = 4000
	late := reportertest.LateRank()
	reportertest.RankOf(late, 7).End.Time = reportertest.RankOf(late, 6).End.Add(-5 * time.Second)
	half := reportertest.UnevenRanks()
	rankCores(2, 0.3)(half)

	var out bytes.Buffer
	for _, c := range []struct {
		name string
		r    *reporter.Report
	}{
		{"uneven CPU", reportertest.UnevenRanks()}, {"two uneven ranks", half}, {"uneven memory", memory},
		{"a straggler", reportertest.LateRank()}, {"two stragglers", late},
		{"throttled", throttled}, {"swapping", ranksWith(2, 2, 30, swaps)}, {"killed and swapping", killed},
	} {
		merged := mergedRun(t, c.r)
		for _, name := range merged.NodeNames() {
			for _, f := range merged.Nodes[name].Findings {
				if f.ID == ruleImbalance || f.ID == Straggler || f.ID == ruleOddNode {
					fmt.Fprintf(&out, "%s: %s, node %s (%s)\n  %s\n  %v\n", c.name, f.ID, name, f.Severity, f.Text, f.Evidence)
				}
			}
		}
	}
	reportertest.CompareGolden(t, filepath.Join("testdata", "across.txt"), out.Bytes(), *update)
}

// ranksWith returns reportertest.Ranks after changes.
func ranksWith(nodes, perNode, seconds int, changes ...func(*reporter.Report)) *reporter.Report {
	r := reportertest.Ranks(nodes, perNode, seconds)
	all(changes...)(r)
	return r
}

// rankCores sets how many CPUs a rank used.
func rankCores(rank int, v float64) func(*reporter.Report) {
	return func(r *reporter.Report) { reportertest.RankOf(r, rank).Metrics[reporter.MetricJobCores] = v }
}

// endBefore lets ranks exit with code 0 before the end.
func endBefore(before time.Duration, ranks ...int) func(*reporter.Report) {
	return func(r *reporter.Report) {
		for _, rank := range ranks {
			reportertest.EndRank(r, rank, before, 0, "", ends(CauseExited, "exited with code 0"))
		}
	}
}

// nodeMetric sets a metric of a node.
func nodeMetric(node, metric string, v float64) func(*reporter.Report) {
	return func(r *reporter.Report) { r.Nodes[node].Metrics[metric] = v }
}

// Ordinary differences between ranks cause no finding.
func TestAddPeerFindings_IgnoresOrdinaryDifferences(t *testing.T) {
	failed := reportertest.LateRank()
	reportertest.EndRank(failed, 0, time.Second, 1, "", ends(CauseExited, "exited with code 1"))
	for name, r := range map[string]*reporter.Report{
		"equal": ranksWith(2, 4, 60),
		"two ranks, rank 0 does more": ranksWith(1, 2, 60, rankCores(0, 2), endBefore(11*time.Second, 1), func(r *reporter.Report) {
			reportertest.RankOf(r, 0).Metrics[reporter.MetricJobMemoryPeak] = 1400
		}),
		"nearly idle ranks": ranksWith(1, 4, 60, rankCores(0, 0), rankCores(1, 0.1), rankCores(2, 0.2), rankCores(3, 0.3)),
		"3 + 1 ranks": ranksWith(2, 3, 60, nodeMetric("0", reporter.MetricJobCores, 3), func(r *reporter.Report) {
			n, rank := r.Nodes["1"], r.Nodes["1"].Ranks["3"]
			n.Identity.Rank, n.Metrics, n.Ranks = &rank.Rank, rank.Metrics, nil
		}),
		"short run":                  ranksWith(2, 4, 4, rankCores(3, 0)),
		"late in a short run":        ranksWith(2, 2, 19, endBefore(5*time.Second, 0, 1, 2)),
		"late in a run that failed":  failed,
		"late by a tenth of the run": ranksWith(2, 4, 100, endBefore(10*time.Second, 0, 1, 2, 3, 4, 5, 6)),
		"ended early, little CPU":    ranksWith(2, 4, 100, endBefore(20*time.Second, 3), rankCores(3, 0.1)),
		"all throttled":              ranksWith(2, 2, 30, nodeMetric("0", reporter.MetricThrottled, 31), nodeMetric("1", reporter.MetricThrottled, 12)),
		"one node":                   ranksWith(1, 2, 30, nodeMetric("0", reporter.MetricThrottled, 31)),
	} {
		merged := mergedRun(t, r)
		for _, id := range []string{ruleImbalance, Straggler, ruleOddNode} {
			if got := withID(merged, id); got != "" {
				t.Errorf("%s: finding %s, want none", name, got)
			}
		}
	}
}
