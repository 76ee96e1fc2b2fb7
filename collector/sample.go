package collector

import (
	"math"
	"strings"
)

// MiB is the unit of every name that ends in _mb: 2^20 bytes, as in perf.py.
const MiB = 1 << 20

// A Sample is one row of the series.
type Sample struct {
	// Values are the values by Column; NaN if not measured.
	Values [MaxColumns]float64
	// Weights are the seconds that each value stands for: the length of its window.
	Weights [MaxColumns]float64
	// JobCPUSeconds is the CPU time of the job since the last sample. If that is unknown, it is 0, and the next sample
	// includes the time. Unlike JobCPU, it needs no window.
	JobCPUSeconds float64
	// MemoryStale reports whether JobMemory is from an earlier sample, and the job may have freed memory since.
	// (Measuring many processes is postponed.)
	MemoryStale bool
	// MemoryLowerBound is the memory that the job certainly had, in MiB; NaN if unknown. JobMemory is larger if it is a
	// sum of resident sizes, which counts shared pages several times.
	MemoryLowerBound float64
	// Sock and HugeTLB are parts of the job's memory that have no column, in MiB; NaN if unknown.
	Sock, HugeTLB float64
}

// valueForRule returns the value of the rule's column. For the job's memory, it returns the lower bound for > and the
// larger number for <, so that the rule holds only if the memory certainly satisfies it.
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

// Has reports whether column c was measured.
func (s *Sample) Has(c Column) bool { return !math.IsNaN(s.Values[c]) }
