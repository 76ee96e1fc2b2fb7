package reporter_test

import (
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// Ranks are unchanged after encoding and decoding, and RankValues returns their numbers by name.
func TestNode_RankValuesHaveNumbersOfRanks(t *testing.T) {
	r := readBack(t, encodedReport(t, reportertest.KilledRank()))
	got := r.Nodes["0"].RankValues()
	wantMetrics(t, got, map[string]float64{
		"rank.3.exit_code": 137, "rank.3.job_avg_cpu_cores": 1, "rank.0.job_peak_memory_mb": 512, "rank.0.exit_code": 143,
	})
	if _, other := got["rank.4.exit_code"]; other {
		t.Error("the values of node 0 contain rank 4, which is on node 1")
	}
	ranks := r.Nodes["1"].RankList()
	wantValues(t, "number of ranks of node 1, first and last", "4 4 7", len(ranks), ranks[0].Rank, ranks[3].Rank)
	var none *reporter.Node
	wantValues(t, "name and ranks of no node, name of node 1", " [] node2", none.HostName(), none.RankList(),
		r.Nodes["1"].HostName())
}
