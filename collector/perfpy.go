package collector

import (
	"math"

	"github.com/perfagent/perfagent/collector/host"
)

// perfpySample returns the sample that perf.py would have taken: CPU percentages over a window of any length (psutil
// returns 0.0 if the clock did not move), and byte counters since boot over all devices.
func perfpySample(prevCPU []host.CPUTimes, r *host.Reading, timestamp float64) Sample {
	var s Sample
	for c := range s.Values {
		s.Values[c] = math.NaN()
	}
	s.Values[Timestamp] = timestamp

	if r.CPU != nil && prevCPU != nil {
		avg, least, most, ok := cpuSpread(prevCPU, r.CPU)
		if !ok {
			avg, least, most = 0, 0, 0
		}
		s.Values[CPUAvg], s.Values[CPUMin], s.Values[CPUMax] = avg, least, most
	}
	if r.Memory != nil {
		s.Values[MemPercent] = r.Memory.Percent()
	}
	if len(r.Disk) > 0 {
		s.Values[DiskPercent] = r.Disk[0].Percent()
	}
	for i := range deviceCounters {
		c := &deviceCounters[i]
		s.Values[c.total] = c.bootTotal(r, true)
	}
	return s
}
