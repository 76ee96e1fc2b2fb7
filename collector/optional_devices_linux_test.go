package collector

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// In the shortest run on a host of testdata/optional, the counters of the host's optional devices begin at 0, and all
// others are missing. On a busy machine the run may be long enough for rates, which are also 0.
func TestSampler_OptionalCountersBeginAtZero(t *testing.T) {
	for name, want := range map[string][]Column{
		"nfs-bound": {NFSRead, NFSWrite}, "lustre-2.10": {LustreRead, LustreWrite}, "intel-four": {NodeEnergy}, "amd": nil,
	} {
		proc, sys := collectortest.OptionalDevices(t, name)
		var rec *Recording
		// With the clock of synctest, no reading times out.
		synctest.Test(t, func(t *testing.T) {
			s := NewSampler(openTree(t, proc, sys), Options{Interval: time.Hour})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			rec = s.Run(ctx)
		})

		var got []Column
		for c := NetIBRecv; c < rec.NumColumns(); c++ {
			if rec.Summaries[c].Count() > 0 {
				if c.Info().Kind != Rate {
					got = append(got, c)
				}
				same(t, name+": "+c.Key(), summaryOf(rec, c).Max, 0.)
			}
		}
		same(t, name+": measured optional columns", got, want)
		for _, source := range []string{host.SourceNFS, host.SourceLustre, host.SourceEnergy, host.SourceThermal} {
			same(t, name+": failures of "+source, failuresOf(rec, source), 0)
		}
		same(t, name+": number of late starts, mounts and missing parts", len(rec.LateStarts)+len(rec.Mounts)+len(rec.Missing), 0)
	}
}

// sampledPorts samples a healthy host with the RDMA ports of a tree: the baseline and one Reading. begin is the number
// of columns before the first sample.
func sampledPorts(t *testing.T, tree string) (rec *Recording, begin Column) {
	t.Helper()
	proc, _ := collectortest.Tree(t, "healthy")
	reader := host.NewReader(host.Options{Proc: proc, Sys: filepath.Join(collectortest.Root(t), "testdata", "sys", tree),
		DiskPaths: []string{t.TempDir()}})
	s := NewSampler(reader, Options{Interval: time.Hour, Begin: func(rec *Recording) { begin = rec.NumColumns() }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return s.Run(ctx), begin
}

// The columns of ports exist from the beginning, so that /metrics serves their counters from 0 on.
func TestSampler_RDMAPortsHaveColumnsFromTheBeginning(t *testing.T) {
	rec, begin := sampledPorts(t, "infiniband")
	same(t, "columns at the beginning", begin, NetIBSentRate+1)
	same(t, "since boot", []float64{rec.SinceBoot(NetIBRecv), rec.SinceBoot(NetIBSent)}, []float64{7<<20 + 3, 5<<10 + 2})
	same(t, "received", summaryOf(rec, NetIBRecv).Max, 0.)
	same(t, "missing parts", rec.Missing, []series.Missing(nil))
	same(t, "failures of ports", failuresOf(rec, host.SourceInfiniBand), 0)
}

func TestSampler_ReportsFullAndDamagedRDMAPorts(t *testing.T) {
	rec, begin := sampledPorts(t, "healthy")
	same(t, "columns without ports", []Column{begin, rec.NumColumns()}, []Column{NetIBRecv, NetIBRecv})
	same(t, "missing parts without ports", rec.Missing, []series.Missing(nil))
	same(t, "failures without ports", failuresOf(rec, host.SourceInfiniBand), 0)

	rec, _ = sampledPorts(t, "infiniband-saturated") // the other port still counts
	same(t, "received", summaryOf(rec, NetIBRecv).Max, 0.)
	same(t, "missing parts", rec.Missing, []series.Missing{{What: "net_ib_recv_mb", Code: CounterFull,
		Why: "the counter of mlx4_0/1 is at the end of its 32-bit range: later traffic is not counted"}})

	rec, _ = sampledPorts(t, "infiniband-damaged")
	same(t, "bytes sent by the undamaged port", summaryOf(rec, NetIBSent).Max, 0.)
	same(t, "failures of the damaged port", failuresOf(rec, host.SourceInfiniBand), 2)
}

// countedPorts returns the total received since the start, in MiB, after each Reading of a port with the given counts.
// NaN means unknown.
func countedPorts(t *testing.T, wide bool, counts ...uint64) (received []float64) {
	t.Helper()
	proc, _ := collectortest.Tree(t, "healthy")
	sys, counters := t.TempDir(), "class/infiniband/mlx_0/ports/1/counters/"
	set := func(n uint64) {
		write(t, sys, counters+"port_rcv_data", strconv.AppendUint(nil, n, 10))
		write(t, sys, counters+"port_xmit_data", []byte("0\n"))
	}
	if wide {
		write(t, sys, counters+"unicast_rcv_packets", []byte("0\n"))
	}

	reader := openTree(t, proc, sys)
	set(counts[0])
	p, s := NewCounterState(reader.Baseline()), Sample{}
	for _, n := range counts[1:] {
		set(n)
		p, s = p.Next(reader.Read(), 0)
		received = append(received, s.Values[NetIBRecv])
	}
	return received
}

// Bytes of a port count until its counter reaches the end of the range.
func TestCounterState_PortCountsUntilItsCounterIsFull(t *testing.T) {
	const full = 1<<32 - 1
	got := countedPorts(t, false, full-3<<18, full-1<<18, full, full)
	same(t, "received", got, []float64{2, 3, absent})
	same(t, "received in one step", countedPorts(t, false, 4000000000, full), []float64{294967295 * 4. / MiB})
	same(t, "received by a port with wide counters", countedPorts(t, true, full-1<<18, full, full+1<<18), []float64{1, 1 + 1})
}

// A counter of a port that fell was reset, even if it was near the end of 32 bits. Its new value counts from 0.
func TestCounterState_ResetPortCountsFromZero(t *testing.T) {
	same(t, "received by a port with wide counters after a reset to 0", countedPorts(t, true, 4100000000, 0), []float64{0})
	same(t, "received by a port with narrow counters after a reset", countedPorts(t, false, 4100000000, 200000000), []float64{200000000 * 4. / MiB})
	same(t, "received by a port with a full counter after a reset", countedPorts(t, false, 1<<32-1, 5<<18, 6<<18), []float64{5, 6})
}

// failuresOf counts the Readings in which a source failed.
func failuresOf(rec *Recording, source string) int {
	n := int64(0)
	for _, f := range rec.Failures {
		if f.Source == source {
			n += f.Count
		}
	}
	return int(n)
}
