package opstats

import (
	"cmp"
	"encoding/json"
	"math"
	"time"
)

// TimeStats describes the times of an operation. It corresponds to the class TimeStats of ProxyStore 1.1.0, and has the
// same results, bit for bit, for the same times. The class of ProxyStore 0.4 has a size but no Last and LastAt. The
// zero value is empty and ready to use.
type TimeStats struct {
	Count         float64 // number of times; not whole only with sampling
	Avg, Min, Max float64 // milliseconds
	Last          float64 // the most recent time, in milliseconds
	LastAt        float64 // when Last was recorded, in Unix seconds
	SizeBytes     float64 // size of the object that the operation last handled
	HasSize       bool    // whether SizeBytes is known
}

// Empty reports whether nothing was counted.
func (s TimeStats) Empty() bool { return s.Count == 0 }

// Total returns the sum of all times in milliseconds.
func (s TimeStats) Total() float64 { return s.Avg * s.Count }

// Add counts one time in milliseconds, recorded at the given moment. It returns [ErrNotFinite] for a time that is
// negative or not finite. It does not allocate.
func (s *TimeStats) Add(ms float64, at time.Time) error { return s.AddN(ms, 1, at) }

// AddN counts n equal times. n need not be whole: an event sampled at the rate r stands for n = 1/r events. In addition
// to the errors of Add, it returns ErrNotFinite if n is below 1 or not finite.
func (s *TimeStats) AddN(ms, n float64, at time.Time) error {
	if !isSize(ms) || !(n >= 1 && n <= limit) {
		return ErrNotFinite
	}

	ms = math.Abs(ms) // −0 becomes 0
	if s.Empty() {
		s.Min = ms
	}
	s.Avg = weightedMean(s.Avg, s.Count, ms, n)
	s.Min, s.Max = min(s.Min, ms), max(s.Max, ms)
	s.Last, s.LastAt = ms, unixSeconds(at)
	s.Count = bounded(s.Count + n)

	return nil
}

// SetSize sets the size of the object of the last operation, in bytes. Before the first Add, it changes nothing. It
// returns [ErrNotFinite] for a size that is negative or not finite. The last known size is kept, whereas ProxyStore 0.4
// drops it in a sum and when the next operation has no size.
func (s *TimeStats) SetSize(bytes float64) error {
	switch {
	case !isSize(bytes):
		return ErrNotFinite
	case !s.Empty():
		s.SizeBytes, s.HasSize = math.Abs(bytes), true
	}

	return nil
}

// Merge returns the statistics of s and o together. Last is from the operand with the later LastAt, or from o if both
// are equal. The size is from the same operand or, if its size is unknown, from the other operand.
//
// An empty TimeStats changes nothing. In ProxyStore, the sum of x and an empty TimeStats may differ from x in the last
// bit, because the mean is multiplied and divided by the count, and the sum of two empty TimeStats raises a
// ZeroDivisionError.
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
// multiply-add, so that the result equals Python's bit for bit on every machine.
func weightedMean(a, n, b, m float64) float64 {
	return (float64(a*n) + float64(b*m)) / (n + m)
}

// unixSeconds returns a time in Unix seconds, like Python's time.time().
func unixSeconds(at time.Time) float64 {
	return float64(at.Unix()) + float64(at.Nanosecond())/1e9
}

// timeStatsJSON is the JSON form of a TimeStats, with the names of ProxyStore. Floats have the shortest form that is
// read back as the same bits.
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

// UnmarshalJSON reads the output of MarshalJSON without loss of precision, and the output of ProxyStore's as_dict. As
// in ProxyStore 0.4, "calls" may be the count, and a size of null means unknown. It returns an error for an impossible
// TimeStats, and ignores unknown keys.
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
	slack := max(1e-6*s.Max, 1e-300) // rounding may move the mean slightly outside its range, and products may underflow
	if !isSize(s.Min) || !isSize(s.Max) || s.Min > s.Max || !(s.Avg >= max(0, s.Min-slack)) ||
		!(s.Avg <= s.Max+slack) || !isSize(s.Last) || !inRange(s.LastAt) {
		return TimeStats{}, ErrMalformed
	}
	if w.Size != nil {
		err = s.SetSize(*w.Size)
	}

	return s, err
}
