package journal

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// The journal of a killed agent contains the mounts as of a few seconds before, and all columns. The journal of a node
// without optional devices contains none of these.
func TestJournal_KeepsMountsAndColumnsOfOptionalDevices(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		s := reportertest.NewStream(1)
		rec := s.Recording(1000)
		j := createFor(t, head(s, 1000))
		u := series.Unknown()
		for i := range 12 {
			sample := s.Next(s.Recording(2))
			rec.End.Mono, rec.End.Boot = s.Start.Mono+time.Duration(i+1)*time.Second, s.Start.Boot+time.Duration(i+1)*time.Second
			if i >= 4 {
				rec.EnsureColumn(collector.LustreWriteRate)
				for c := collector.CPUTemperature; c < collector.NumColumns; c++ {
					sample.Values[c] = float64(i) * float64(c)
				}
				rec.Mounts = []collector.Mount{{ID: "s-1", Type: "lustre", Source: "s", ReadMB: float64(i),
					Total: collector.MountOp{Calls: 13, Retransmissions: u, Timeouts: u, Queue: u, RTT: u, Execute: 78}}}
				for k := range collector.MaxMountOps + 1 {
					rec.Mounts[0].Ops = append(rec.Mounts[0].Ops, collector.MountOp{Name: string(rune('a' + k)), Calls: 1,
						Retransmissions: u, Timeouts: u, Queue: u, RTT: u, Execute: float64(k)})
				}
			}
			rec.Add(sample)
			if snapshot && i == 11 {
				j.wantSnapshot.Store(true)
			}
			j.Observe(sample, rec)
		}
		n := parsed(t, stopped(t, j)).Nodes["3"]
		want := (&parser{head: head(s, 1000), rec: rec}).report().Nodes["3"]
		same(t, fmt.Sprintf("snapshot %v: metrics", snapshot), n.Metrics, want.Metrics)
		if !snapshot { // lines contain the mounts every 4 s
			want.Mounts[0].ReadMB = n.Mounts[0].ReadMB
			if n.Mounts[0].ReadMB < 11-4 {
				t.Errorf("the mounts were read in second %v, want 7 or later", n.Mounts[0].ReadMB)
			}
		}
		same(t, fmt.Sprintf("snapshot %v: mounts", snapshot), n.Mounts, want.Mounts)
		last := 11 * float64(collector.NodeEnergy)
		if c := n.Samples.Column("node_energy_joules"); len(c) != 12 || !math.IsNaN(c[3]) || c[11] != last {
			t.Errorf("snapshot %v: energy %v, want 12 samples, NaN in sample 3, %v at the end", snapshot, c, last)
		}
	}

	data, _ := portsJournal(t, 5, 5, 0, true)
	for _, word := range []string{"mounts", "nfs", "lustre", "energy", "temperature"} {
		if bytes.Contains(data, []byte(word)) {
			t.Errorf("the journal of a node without optional devices contains %q", word)
		}
	}
}
