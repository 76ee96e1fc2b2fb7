package reporter

import (
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
)

// MemoryParts are the parts of a job's memory at one moment.
type MemoryParts = collector.MemoryParts

// KnownParts returns p with the given source, unless it is from processes. It returns nil if p is zero.
func KnownParts(p MemoryParts, source string) *MemoryParts {
	switch {
	case p.Timestamp == 0:
		return nil
	case p.Source != host.JobFromTree: // a journal may have learned the source after p
		p.Source = source
	}
	return &p
}

// PeakParts returns the parts of the job's memory at its peak; nil if they are unknown.
func (n *Node) PeakParts() *MemoryParts {
	if n.Job != nil {
		return n.Job.MemoryAtPeak
	}
	return n.MemoryAtPeak
}

// memoryOfRanks returns the sums of the parts over all ranks, in the kept sample with the most memory; nil if no sample
// has the parts. The source is "" if the ranks have different ones.
func (n *Node) memoryOfRanks() *MemoryParts {
	var best MemoryParts
	most, source := 0.0, ""
	if n.Job != nil {
		source = n.Job.Source
	}
	for i := range n.Samples.Len() {
		s := &collector.Sample{Sock: math.NaN(), HugeTLB: math.NaN()}
		for _, c := range collector.MemoryColumns() {
			s.Values[c] = math.NaN()
			if list := n.Samples.Column(c.Key()); list != nil {
				s.Values[c] = list[i]
			}
		}
		if p, mb := collector.NewMemoryParts(s, source); mb > most {
			best, most = p, mb
		}
	}
	return KnownParts(best, source)
}

// memoryMissing returns why parts of the job's memory are unknown, although the job's memory is known.
func memoryMissing(rec *collector.Recording) []Missing {
	measured := func(c collector.Column) bool { return rec.Summaries[c].Count() > 0 }
	switch kernel := collector.JobMemoryKernel; {
	case !measured(collector.JobMemory):
	case !measured(collector.JobMemoryAnon):
		return []Missing{NewMissing(collector.JobMemoryAnon.Key(), NoMemoryParts)}
	case !measured(kernel):
		return []Missing{newMissingMetric(kernel.Key(), whyMissing(rec, kernel))}
	}
	return nil
}
