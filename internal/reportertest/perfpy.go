package reportertest

import (
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// PerfPyRows holds five samples of perf.py. The values are in the order of perf.py's keys.
var PerfPyRows = [][]float64{
	{10, 0, 30, 40, 70, 1000, 2000, 5, 100, 5, 300, 1000},
	{20, 5, 45, 41.5, 70.1, 1010, 2000.5, 5.5, 101, 5.5, 310, 1001},
	{40, 25, 60, 44.2, 70.1, 1025.5, 2040, 6, 104, 6, 350, 1002},
	{79.9, 60, 100, 55, 70.2, 1030, 2100, 6, 110, 6, 420, 1003},
	{100, 100, 100, 60.3, 70.2, 1030, 2222, 6.25, 111.5, 6.25, 421, 1004},
}

// PerfPySample returns a sample with the values in row; all other values are NaN.
func PerfPySample(row []float64) collector.Sample {
	var s collector.Sample
	for c := range s.Values {
		s.Values[c] = math.NaN()
	}
	copy(s.Values[:], row)
	return s
}

// PerfPySamples returns the samples of PerfPyRows.
func PerfPySamples() []collector.Sample {
	var out []collector.Sample
	for _, row := range PerfPyRows {
		out = append(out, PerfPySample(row))
	}
	return out
}

// PerfPyJSON returns PerfPySamples of node 3 in perf.py's format.
func PerfPyJSON() string {
	data, err := reporter.EncodePerfPy(3, PerfPySamples())
	if err != nil {
		panic(err) // the samples are constant
	}
	return string(data)
}
