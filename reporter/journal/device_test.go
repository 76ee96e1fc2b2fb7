package journal

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// portsJournal returns the journal of a run of n seconds with RDMA ports that are found after found seconds, and the
// report of the same run. GPUs are found before the ports.
func portsJournal(t *testing.T, n, found, gpus int, snapshot bool) (data []byte, want *reporter.Report) {
	t.Helper()
	s := reportertest.NewStream(1)
	rec := s.Recording(1000)
	j := createFor(t, head(s, 1000))
	rec.EnsureGPUColumns(gpus)
	for i := range n {
		sample := s.Next(s.Recording(2))
		rec.End.Mono, rec.End.Boot = s.Start.Mono+time.Duration(i+1)*time.Second, s.Start.Boot+time.Duration(i+1)*time.Second
		for k := range gpus {
			sample.Values[collector.GPUColumn(k, collector.GPUPower)] = 100
		}
		if i >= found {
			rec.EnsureColumn(collector.NetIBSent)
			sample.Values[collector.NetIBRecv], sample.Values[collector.NetIBSent] = float64(i-found), float64(2*(i-found))
			sample.Values[collector.NetIBRecvRate] = 1
			rec.BootMB = append(rec.BootMB[:6:6], 1000+float64(i), 2000)
		}
		rec.Add(sample)
		if snapshot && i == n-1 {
			j.wantSnapshot.Store(true)
		}
		j.Observe(sample, rec)
	}
	return stopped(t, j), (&parser{head: head(s, 1000), rec: rec}).report()
}

// A journal contains the ports' columns from their discovery on, and its metrics equal the Recording's.
func TestJournal_KeepsColumnsOfPortsFoundLater(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		data, want := portsJournal(t, 12, 5, 2, snapshot)
		got := parsed(t, data)
		same(t, "MiB sent in the recording", want.Nodes["3"].Metrics["total_net_ib_sent_mb"], 12.0)
		same(t, fmt.Sprintf("snapshot %v: metrics", snapshot), got.Nodes["3"].Metrics, want.Nodes["3"].Metrics)
		column := got.Nodes["3"].Samples.Column("net_ib_recv_mb")
		if len(column) != 12 || !math.IsNaN(column[4]) || column[11] != 6 {
			t.Errorf("snapshot %v: received %v, want 12 samples, NaN in sample 4, 6 at the end", snapshot, column)
		}
	}
}

// The journal of a node without ports does not mention them, even if it has GPUs.
func TestJournal_OmitsMissingRDMAPorts(t *testing.T) {
	for _, gpus := range []int{0, 2} {
		data, _ := portsJournal(t, 5, 5, gpus, true)
		if bytes.Contains(data, []byte("net_ib")) {
			t.Errorf("the journal of a node with %d GPUs and without RDMA ports mentions ports", gpus)
		}
	}
}
