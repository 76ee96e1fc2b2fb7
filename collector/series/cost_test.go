package series

import (
	"math"
	"testing"
)

// stream has as many columns as perfagent: 18, including 5 percentages with a histogram, and 4 thresholds for one of
// the percentages.
type stream struct {
	ring      *Ring
	summaries []*Summary
	rows      []sample
	n         int
}

func newStream() *stream {
	s := &stream{ring: NewRing(1000, 18), rows: samples(1, 1024, 18, 1)}
	s.summaries = append(s.summaries, NewPercentSummary(20, 40, 80, 99.95))
	for range 4 {
		s.summaries = append(s.summaries, NewPercentSummary())
	}
	for range 13 {
		s.summaries = append(s.summaries, NewSummary())
	}
	return s
}

// add adds a sample in the same way as the Sampler.
func (s *stream) add() {
	row := s.rows[s.n%len(s.rows)]
	s.n++
	s.ring.Add(row.values, row.weights)
	for c, sum := range s.summaries {
		sum.Add(row.values[c], row.weights[c])
	}
}

func TestRing_AddDoesNotAllocate(t *testing.T) {
	s := newStream()
	many := func() {
		for range 5000 { // fills the ring and halves it
			s.add()
		}
	}

	// AllocsPerRun rounds the average per run down, so measure a single run of many samples. Take the minimum of
	// several tries, because a garbage collection may allocate, too.
	fewest := math.Inf(1)
	for try := 0; try < 5 && fewest > 0; try++ {
		fewest = min(fewest, testing.AllocsPerRun(1, many))
	}
	if fewest != 0 {
		t.Errorf("got %v allocations for 5000 samples, want 0", fewest)
	}
}

// The budget for one sample is 1 µs and no allocation.
func BenchmarkSampleIntoRingAndSummaries(b *testing.B) {
	s := newStream()
	b.ReportAllocs()
	for b.Loop() {
		s.add()
	}
}

func BenchmarkRingAdd(b *testing.B) {
	s := newStream()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		row := s.rows[i%len(s.rows)]
		s.ring.Add(row.values, row.weights)
	}
}

// BenchmarkRingHalve measures the rare case of a sample for a full ring.
func BenchmarkRingHalve(b *testing.B) {
	s := newStream()
	for range 1000 {
		s.add()
	}
	full := s.ring.Clone()
	for b.Loop() {
		full.used, full.stride = 1000, 1
		full.halve()
	}
}

func BenchmarkSummaryAdd(b *testing.B) {
	for name, s := range map[string]*Summary{"plain": NewSummary(), "percent4": NewPercentSummary(20, 40, 80, 99.95)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Add(float64(i%1000)/10, 1.0003)
			}
		})
	}
}

// sinks keep the compiler from removing the results of benchmarks.
var (
	ringSink    *Ring
	summarySink *Summary
)

func BenchmarkSnapshot(b *testing.B) {
	s := newStream()
	for range 16000 {
		s.add()
	}
	b.ReportAllocs()
	for b.Loop() {
		ringSink = s.ring.Clone()
		for _, sum := range s.summaries {
			summarySink = sum.Clone()
		}
	}
}
