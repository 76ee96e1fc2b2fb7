package opstats

import (
	"cmp"
	"encoding/json"
	"math"
	"time"
)

// TimeStats describes the times of an operation. It is the class TimeStats of ProxyStore 1.1.0, and gives the same bits
// for the same times. The class of ProxyStore 0.4 computes the same, without Last and LastAt, but with a size. The zero
// value is empty and ready to use.
type TimeStats struct {
	Count         float64 // number of times; a fraction only with sampling
	Avg, Min, Max float64 // milliseconds
	Last          float64 // milliseconds; the most recent time
	LastAt        float64 // Unix seconds of Last
	SizeBytes     float64 // of the object that the operation last handled
	HasSize       bool    // whether SizeBytes is known
}

// Empty reports whether nothing was counted.
func (s TimeStats) Empty() bool { return s.Count == 0 }

// Total returns the sum of all times in milliseconds.
func (s TimeStats) Total() float64 { return s.Avg * s.Count }

// Add counts one time in milliseconds, recorded at the given moment. It returns [ErrNotFinite] for a time that is
// negative or not finite. It does not allocate.
func (s *TimeStats) Add(ms float64, at time.Time) error { return s.AddN(ms, 1, at) }

// AddN counts n equal times. A sampled event with the rate r stands for n = 1/r events, which need not be whole.
// Besides the errors of Add, it returns ErrNotFinite if n is below 1 or not finite.
func (s *TimeStats) AddN(ms, n float64, at time.Time) error {
	if !isSize(ms) || !(n >= 1 && n <= limit) {
		return ErrNotFinite
	}

	ms = math.Abs(ms) // −0 is 0
	if s.Empty() {
		s.Min = ms
	}
	s.Avg = weightedMean(s.Avg, s.Count, ms, n)
	s.Min, s.Max = min(s.Min, ms), max(s.Max, ms)
	s.Last, s.LastAt = ms, unixSeconds(at)
	s.Count = bounded(s.Count + n)

	return nil
}

// SetSize sets the size of the object of the last operation; before the first Add it changes nothing. It returns
// [ErrNotFinite] for a size that is negative or not finite. ProxyStore 0.4 drops the size when the next operation has
// none, and in a sum. Here the last known size stays.
func (s *TimeStats) SetSize(bytes float64) error {
	switch {
	case !isSize(bytes):
		return ErrNotFinite
	case !s.Empty():
		s.SizeBytes, s.HasSize = math.Abs(bytes), true
	}

	return nil
}

// Merge returns the statistics of s and o together. Last is from the operand with the later LastAt, or from o if they
// are equal. The size is from the same operand or, if that has none, from the other operand.
//
// An empty TimeStats changes nothing. ProxyStore's own sum of x and an empty TimeStats may differ from x in the last
// bit, because it multiplies and divides by the count, and its sum of two empty TimeStats is a ZeroDivisionError.
func (s TimeStats) Merge(o TimeStats) TimeStats {
	switch {
	case s.Empty():
		return o
	case o.Empty():
		return s
	}

	earlier, later := s, o
	if s.LastAt > o.LastAt {
		earlier, later = o, s
	}
	if !later.HasSize {
		later.SizeBytes, later.HasSize = earlier.SizeBytes, earlier.HasSize
	}
	later.Count = bounded(s.Count + o.Count)
	later.Avg = weightedMean(s.Avg, s.Count, o.Avg, o.Count)
	later.Min, later.Max = min(s.Min, o.Min), max(s.Max, o.Max)

	return later
}

// weightedMean returns the mean of n values with mean a and m values with mean b. float64() prevents fused
// multiply-add: the bits must be Python's on every machine.
func weightedMean(a, n, b, m float64) float64 {
	return (float64(a*n) + float64(b*m)) / (n + m)
}

// unixSeconds returns a time like Python's time.time().
func unixSeconds(at time.Time) float64 {
	return float64(at.Unix()) + float64(at.Nanosecond())/1e9
}

// timeStatsJSON is a TimeStats with the names of ProxyStore. Floats have the shortest form that reads back to the same
// bits.
type timeStatsJSON struct {
	Count  *float64 `json:"count,omitempty"`
	Calls  *float64 `json:"calls,omitempty"` // the count in ProxyStore 0.4
	Avg    *float64 `json:"avg_time_ms,omitempty"`
	Min    *float64 `json:"min_time_ms,omitempty"`
	Max    *float64 `json:"max_time_ms,omitempty"`
	Last   float64  `json:"last_time_ms,omitzero"`
	LastAt float64  `json:"last_timestamp,omitzero"`
	Size   *float64 `json:"size_bytes,omitempty"`
}

// MarshalJSON writes the fields with ProxyStore's names: count, avg_time_ms, min_time_ms, max_time_ms, last_time_ms,
// last_timestamp, and size_bytes if the size is known. An empty TimeStats has only a count of 0.
func (s TimeStats) MarshalJSON() ([]byte, error) {
	w := timeStatsJSON{Count: &s.Count, Last: s.Last, LastAt: s.LastAt}
	if !s.Empty() {
		w.Avg, w.Min, w.Max = &s.Avg, &s.Min, &s.Max
	}
	if s.HasSize {
		w.Size = &s.SizeBytes
	}

	return json.Marshal(w)
}

// UnmarshalJSON reads the output of MarshalJSON, bit for bit, and of ProxyStore's as_dict: "calls" is the count, as in
// version 0.4, and a size of null is unknown. An impossible TimeStats is an error. Unknown keys are ignored.
func (s *TimeStats) UnmarshalJSON(data []byte) error {
	return readJSON("time stats", data, s, timeStatsJSON.timeStats)
}

// timeStats checks the JSON form and returns it as a TimeStats.
func (w timeStatsJSON) timeStats() (s TimeStats, err error) {
	count := cmp.Or(w.Count, w.Calls)
	switch {
	case count != nil && *count == 0:
		return s, nil
	case count == nil || !(*count >= 1 && *count <= sumLimit) || w.Avg == nil || w.Min == nil || w.Max == nil:
		return s, ErrMalformed
	}

	s = TimeStats{Count: *count, Avg: *w.Avg, Min: *w.Min, Max: *w.Max, Last: w.Last, LastAt: w.LastAt}
	slack := max(1e-6*s.Max, 1e-300) // rounding may put a mean slightly outside its range; products may underflow
	if !isSize(s.Min) || !isSize(s.Max) || s.Min > s.Max || !(s.Avg >= max(0, s.Min-slack)) ||
		!(s.Avg <= s.Max+slack) || !isSize(s.Last) || !inRange(s.LastAt) {
		return TimeStats{}, ErrMalformed
	}
	if w.Size != nil {
		err = s.SetSize(*w.Size)
	}

	return s, err
}
