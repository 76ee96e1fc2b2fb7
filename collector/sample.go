package collector

import "math"

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
	// MemoryHeld reports whether JobMemory was measured for an earlier sample: a scan of many processes is put off.
	MemoryHeld bool
}

// Has reports whether a column was measured.
func (s *Sample) Has(c Column) bool { return !math.IsNaN(s.Values[c]) }
