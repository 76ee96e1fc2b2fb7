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
	throttled := reportertest.Ranks(3, 2, 30)
	throttled.Nodes["1"].Metrics[reporter.MetricThrottled] = 31
	throttled.Nodes["2"].Metrics[reporter.MetricThrottled] = 2
	swapping := reportertest.Ranks(2, 2, 30)
	swapping.Nodes["0"].Metrics[reporter.MetricSwapOut] = 3000
	killed := reportertest.Ranks(2, 2, 30)
	killed.Nodes["0"].Metrics[reporter.MetricJobOOMKills] = 2
	reportertest.RankOf(killed, 0).Verdict = &reporter.Verdict{Cause: CauseExited, Evidence: map[string]any{"oom_kills": 2.0}}
	killed.Nodes["0"].Metrics[reporter.MetricSwapOut] = 3000
	memory := reportertest.Ranks(1, 4, 30)
	reportertest.RankOf(memory, 0).Metrics[reporter.MetricJobMemoryPeak] = 4000
	late := reportertest.LateRank()
	reportertest.RankOf(late, 7).End.Time = reportertest.RankOf(late, 6).End.Add(-5 * time.Second)
	half := reportertest.UnevenRanks()
	reportertest.RankOf(half, 2).Metrics[reporter.MetricJobCores] = 0.3

	var out bytes.Buffer
	for _, c := range []struct {
		name string
		r    *reporter.Report
	}{
		{"uneven CPU", reportertest.UnevenRanks()}, {"two uneven ranks", half}, {"uneven memory", memory},
		{"a straggler", reportertest.LateRank()}, {"two stragglers", late},
		{"throttled", throttled}, {"swapping", swapping}, {"killed and swapping", killed},
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

// Ordinary differences between ranks cause no finding.
func TestAddPeerFindings_IgnoresOrdinaryDifferences(t *testing.T) {
	cores := func(r *reporter.Report, rank int, v float64) {
		reportertest.RankOf(r, rank).Metrics[reporter.MetricJobCores] = v
	}
	for name, change := range map[string]func() *reporter.Report{
		"equal": func() *reporter.Report { return reportertest.Ranks(2, 4, 60) },
		"two ranks, rank 0 does more": func() *reporter.Report {
			r := reportertest.Ranks(1, 2, 60)
			cores(r, 0, 2)
			reportertest.RankOf(r, 0).Metrics[reporter.MetricJobMemoryPeak] = 1400
			reportertest.EndRank(r, 1, 11*time.Second, 0, "", goodEnd())
			return r
		},
		"nearly idle ranks": func() *reporter.Report {
			r := reportertest.Ranks(1, 4, 60)
			for rank := range 4 {
				cores(r, rank, 0.1*float64(rank))
			}
			return r
		},
		"3 + 1 ranks": func() *reporter.Report {
			r := reportertest.Ranks(2, 3, 60)
			n := r.Nodes["1"]
			rank := n.Ranks["3"].Rank
			n.Identity.Rank, n.Metrics, n.Ranks = &rank, n.Ranks["3"].Metrics, nil
			r.Nodes["0"].Metrics[reporter.MetricJobCores] = 3
			return r
		},
		"short run": func() *reporter.Report {
			r := reportertest.Ranks(2, 4, 4)
			cores(r, 3, 0)
			return r
		},
		"late in a short run": func() *reporter.Report {
			r := reportertest.Ranks(2, 2, 19)
			for rank := range 3 {
				reportertest.EndRank(r, rank, 5*time.Second, 0, "", goodEnd())
			}
			return r
		},
		"late in a run that failed": func() *reporter.Report {
			r := reportertest.LateRank()
			reportertest.EndRank(r, 0, time.Second, 1, "", ends(CauseExited, "exited with code 1"))
			return r
		},
		"late by a tenth of the run": func() *reporter.Report {
			r := reportertest.Ranks(2, 4, 100)
			for rank := range 7 {
				reportertest.EndRank(r, rank, 10*time.Second, 0, "", goodEnd())
			}
			return r
		},
		"ended early, little CPU": func() *reporter.Report {
			r := reportertest.Ranks(2, 4, 100)
			reportertest.EndRank(r, 3, 20*time.Second, 0, "", goodEnd())
			cores(r, 3, 0.1)
			return r
		},
		"all throttled": func() *reporter.Report {
			r := reportertest.Ranks(2, 2, 30)
			r.Nodes["0"].Metrics[reporter.MetricThrottled] = 31
			r.Nodes["1"].Metrics[reporter.MetricThrottled] = 12
			return r
		},
		"one node": func() *reporter.Report {
			r := reportertest.Ranks(1, 2, 30)
			r.Nodes["0"].Metrics[reporter.MetricThrottled] = 31
			return r
		},
	} {
		r := mergedRun(t, change())
		for _, id := range []string{ruleImbalance, Straggler, ruleOddNode} {
			if got := withID(r, id); got != "" {
				t.Errorf("%s: finding %s, want none", name, got)
			}
		}
	}
}

func goodEnd() *reporter.Verdict { return ends(CauseExited, "exited with code 0") }
