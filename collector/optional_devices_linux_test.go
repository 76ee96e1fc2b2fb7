package collector

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/collector/host"
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
