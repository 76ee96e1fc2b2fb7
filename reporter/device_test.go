package reporter_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// portsReport returns the report of a node with RDMA ports that received and sent the given MiB in each second.
func portsReport(t *testing.T, change func(*collector.Recording), received, sent float64) *reporter.Report {
	t.Helper()
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
	change(rec)
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
	n := portsReport(t, func(*collector.Recording) {}, 3, 2).Nodes["0"]
	for name, want := range map[string]float64{"total_net_ib_recv_mb": 15, "total_net_ib_sent_mb": 10} {
		wantEqual(t, n.Metric(name), want, "%s", name)
	}
	for _, key := range []string{"net_ib_recv_mb", "net_ib_sent_mb"} {
		if n.Samples.Column(key) == nil || n.Envelope[key].Max == nil || n.Envelope[key+"_per_second"].Max == nil {
			t.Errorf("the report has no samples, envelope or rate of %s", key)
		}
	}
	if missing := missingOf(n); len(missing) > 0 {
		t.Errorf("missing %v, want no entry for RDMA ports", missing)
	}
}

// The report and the CSV of a node without RDMA ports do not mention such ports.
func TestNew_OmitsRDMAPortsIfThereAreNone(t *testing.T) {
	r := reporter.New(reportertest.JobInput(0, 20, 0, ""))
	data, err := reporter.Encode(r)
	must(t, err)
	var csv bytes.Buffer
	must(t, reporter.WriteCSV(&csv, r))
	for what, text := range map[string]string{"report": string(data), "CSV": csv.String()} {
		if strings.Contains(text, "_ib_") || strings.Contains(text, "infiniband") {
			t.Errorf("the %s of a node without RDMA ports mentions them", what)
		}
	}
}

// If ports cannot be read, or a counter is at the end of its range, the values are missing with the reason.
func TestNew_GivesReasonForMissingRDMAPorts(t *testing.T) {
	in := reportertest.JobInput(0, 20, 0, "")
	in.Recording.Failures = append(in.Recording.Failures,
		collector.Failure{Source: host.SourceInfiniBand, Why: "it is broken", Count: 3})
	n := reporter.New(in).Nodes["0"]
	want := []reporter.Missing{
		{What: host.SourceInfiniBand, Code: reporter.Unreadable, Why: "it is broken (3 of 21 readings)", Count: 3, Total: 21},
		{What: "total_net_ib_recv_mb", Code: reporter.Unreadable, Why: "it is broken"},
		{What: "total_net_ib_sent_mb", Code: reporter.Unreadable, Why: "it is broken"},
	}
	wantEqual(t, missingOf(n), want, "missing")

	in = reportertest.JobInput(0, 20, 0, "")
	in.Recording.LateStarts = map[string]time.Duration{host.SourceInfiniBand: 4 * time.Second}
	if got := missingOf(reporter.New(in).Nodes["0"]); len(got) != 1 || got[0].Code != reporter.CountedLate {
		t.Errorf("missing %v, want one entry with the code %s", got, reporter.CountedLate)
	}

	in = reportertest.JobInput(0, 20, 0, "")
	in.Recording.Missing = append(in.Recording.Missing, series.Missing{What: "net_ib_recv_mb", Code: collector.CounterFull, Why: "full"})
	n = reporter.New(in).Nodes["0"]
	want = []reporter.Missing{
		{What: "net_ib_recv_mb", Code: collector.CounterFull, Why: "full"},
		{What: "total_net_ib_recv_mb", Code: collector.CounterFull, Why: "full"},
	}
	wantEqual(t, missingOf(n), want, "missing")
}
