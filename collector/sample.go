package collector

import (
	"math"
	"strings"
)

// MiB is the unit of every name that ends in _mb: 2^20 bytes, as in perf.py.
const MiB = 1 << 20

// A Sample is one row of the series.
type Sample struct {
	// Values are the values by Column. NaN was not measured.
	Values [MaxColumns]float64
	// Weights are the seconds that each value stands for: the length of the window that it was
	// measured over.
	Weights [MaxColumns]float64
	// JobCPUSeconds is the CPU time that the job has used since the sample before, if that is known;
	// else it is in the next sample. Unlike JobCPU, it needs no window.
	JobCPUSeconds float64
	// MemoryStale reports whether JobMemory was measured for an earlier sample, and the job may have given memory back
	// since: to measure many processes is put off.
	MemoryStale bool
	// MemoryLowerBound is the memory that the job certainly had, in MiB; NaN is not known. JobMemory is more where
	// resident sizes are added up, in which shared pages count several times.
	MemoryLowerBound float64
}

// valueForRule returns the value of a column by which a rule is judged. That the job has much memory has to be proven,
// and so does that it has little.
func (s *Sample) valueForRule(r Rule) float64 {
	v := s.Values[r.Column]
	switch {
	case r.Column != JobMemory || math.IsNaN(s.MemoryLowerBound):
		return v
	case strings.HasPrefix(r.Op, ">"):
		return s.MemoryLowerBound
	}
	return max(v, s.MemoryLowerBound)
}

// Has reports whether a column was measured.
func (s *Sample) Has(c Column) bool { return !math.IsNaN(s.Values[c]) }
