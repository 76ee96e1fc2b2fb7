package reporter_test

import (
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// Ranks are unchanged after encoding and decoding, and RankValues returns their numbers by name.
func TestNode_RankValuesHaveNumbersOfRanks(t *testing.T) {
	data, err := reporter.Encode(reportertest.KilledRank())
	must(t, err)
	r, err := reporter.Decode(data)
	must(t, err)

	got := r.Nodes["0"].RankValues()
	for name, want := range map[string]float64{
		"rank.3.exit_code": 137, "rank.3.job_avg_cpu_cores": 1, "rank.0.job_peak_memory_mb": 512, "rank.0.exit_code": 143,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %v (present: %v), want %v", name, v, ok, want)
		}
	}
	if _, other := got["rank.4.exit_code"]; other {
		t.Error("the values of node 0 contain rank 4, which is on node 1")
	}
	if ranks := r.Nodes["1"].RankList(); len(ranks) != 4 || ranks[0].Rank != 4 || ranks[3].Rank != 7 {
		t.Errorf("node 1 has %d ranks, want 4, from rank 4 to 7: %v", len(ranks), ranks)
	}

	var none *reporter.Node
	if none.HostName() != "" || none.RankList() != nil || r.Nodes["1"].HostName() != "node2" {
		t.Errorf("a nil node has a host name or ranks, or the host name of node 1 is %q, want node2", r.Nodes["1"].HostName())
	}
}
