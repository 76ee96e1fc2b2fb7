package reporter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// portsReport returns the report of a node with RDMA ports that received 3 and sent 2 MiB in each second.
func portsReport() *reporter.Report {
	const received, sent = 3., 2.
	in := reportertest.JobInput(0, 0, 0, "")
	rec := reportertest.Recording(0)
	rec.EnsureColumn(collector.NetIBSent)
	const n = 5
	for i := range n {
		s := reportertest.Sample(i, n)
		moved := float64(i + 1)
		s.Values[collector.NetIBRecv], s.Values[collector.NetIBRecvRate] = moved*received, received
		s.Values[collector.NetIBSent], s.Values[collector.NetIBSentRate] = moved*sent, sent
		rec.Add(&s)
	}
	in.Recording = rec
	return reporter.New(in)
}

// missingOf returns the Missing of RDMA ports.
func missingOf(n *reporter.Node) []reporter.Missing {
	return slices.DeleteFunc(slices.Clone(n.Missing), func(m reporter.Missing) bool {
		source, _ := reporter.SourceOf(m.What)
		return source != host.SourceInfiniBand
	})
}

func TestNew_CountsTrafficOfRDMAPorts(t *testing.T) {
	n := portsReport().Nodes["0"]
	wantMetrics(t, n.Metrics, map[string]float64{"total_net_ib_recv_mb": 15, "total_net_ib_sent_mb": 10})
	for _, key := range []string{"net_ib_recv_mb", "net_ib_sent_mb"} {
		if n.Samples.Column(key) == nil || n.Envelope[key].Max == nil || n.Envelope[key+"_per_second"].Max == nil {
			t.Errorf("the report has no samples, envelope or rate of %s", key)
		}
	}
	check.Equal(t, missingOf(n), []reporter.Missing{}, "missing of RDMA ports")
}

// If ports cannot be read, or a counter is at the end of its range, the values are missing with the reason.
func TestNew_GivesReasonForMissingRDMAPorts(t *testing.T) {
	const ports = host.SourceInfiniBand
	for _, c := range []struct {
		name   string
		change func(*collector.Recording)
		want   []reporter.Missing
	}{
		{"unreadable", func(rec *collector.Recording) {
			rec.Failures = append(rec.Failures, collector.Failure{Source: ports, Why: "it is broken", Count: 3})
		}, []reporter.Missing{
			{What: ports, Code: reporter.Unreadable, Why: "it is broken (3 of 21 readings)", Count: 3, Total: 21},
			{What: "total_net_ib_recv_mb", Code: reporter.Unreadable, Why: "it is broken"},
			{What: "total_net_ib_sent_mb", Code: reporter.Unreadable, Why: "it is broken"},
		}},
		{"full counter", func(rec *collector.Recording) {
			rec.Missing = append(rec.Missing, series.Missing{What: "net_ib_recv_mb", Code: collector.CounterFull, Why: "full"})
		}, []reporter.Missing{
			{What: "net_ib_recv_mb", Code: collector.CounterFull, Why: "full"},
			{What: "total_net_ib_recv_mb", Code: collector.CounterFull, Why: "full"},
		}},
	} {
		in := reportertest.JobInput(0, 20, 0, "")
		c.change(in.Recording)
		check.Equal(t, missingOf(reporter.New(in).Nodes["0"]), c.want, "%s: missing", c.name)
	}

	in := reportertest.JobInput(0, 20, 0, "")
	in.Recording.LateStarts = map[string]time.Duration{ports: 4 * time.Second}
	n := reporter.New(in).Nodes["0"]
	onlyMissing(t, n, ports, reporter.CountedLate)
	check.Equal(t, len(missingOf(n)), 1, "number of entries for ports that were found late")
}
