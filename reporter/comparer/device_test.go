package comparer

import (
	"slices"
	"testing"

	"github.com/perfagent/perfagent/reporter"
)

// Metrics of RDMA ports are compared only if a node has them.
func TestCompare_OmitsRDMAPortsThatNoNodeHas(t *testing.T) {
	const name = "total_net_ib_recv_mb"
	gate := Gate{Metric: name, Op: ">", Value: 10, Percent: true}
	c := Compare(sideOf("a", cpuMetric, 1), sideOf("b", cpuMetric, 1))
	if _, ok := c.Metric(name); ok {
		t.Errorf("%s is compared, but no node has the device", name)
	}
	wantGate(t, c, gate, "null", "no node of A or B has that device")

	c = Compare(sideOf("a", name, 100), sideOf("b", name, 150))
	m, ok := c.Metric(name)
	if !ok || *m.ChangePct != 50 || m.Unit.Symbol() != "MiB" {
		t.Errorf("%s: %+v, want a change of 50 %% in MiB", name, m)
	}
	wantGate(t, c, gate, "true", "")
	if !slices.Contains(MetricNames(), name) {
		t.Errorf("MetricNames lacks %s", name)
	}

	two := runAt("a", 0, reporter.Values{name: 100}) // the bytes of two nodes add up
	two.Report.Nodes["1"] = runAt("a", 0, reporter.Values{name: 11}).Report.Nodes["0"]
	c = Compare(Side{Name: "a", Reports: []reporter.SourceReport{two}}, sideOf("b", name, 1))
	wantMedian(t, c, name, 111)
}
