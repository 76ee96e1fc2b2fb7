package opstats

import (
	"fmt"
	"math"
	"time"
)

// span is the time from the start of the first transfer to the end of the last one, of those whose end is known.
// Nanoseconds since 1970 are exact, as Unix seconds in a float64 would not be.
type span struct {
	first, last int64
	n           int64 // how many transfers it has
}

// The end of a transfer lies in the years 1970 to 2199. No two nanoseconds are then too far apart for an int64, even
// if a long duration is subtracted from one.
const (
	endOfTimes = 7258118400           // Unix seconds
	longest    = 30 * 365 * 24 * 3600 // seconds; what took longer counts as that long
)

// plausible reports whether a transfer may have ended at this moment.
func plausible(end time.Time) bool { return end.Unix() >= 0 && end.Unix() < endOfTimes }

// add makes the span contain a transfer that ended at a plausible moment and took so many seconds.
func (s *span) add(end time.Time, seconds float64) {
	last := end.UnixNano()
	s.merge(span{last - int64(math.Round(min(seconds, longest)*1e9)), last, 1})
}

// check returns an error if a span from outside is impossible.
func (s span) check() error {
	if s.first > s.last || s.first < -longest*1e9 || s.last < 0 || s.last >= endOfTimes*1e9 {
		return fmt.Errorf("the span from %d to %d is out of range", s.first, s.last)
	}
	return nil
}

// merge makes the span contain another one.
func (s *span) merge(o span) {
	switch {
	case o.n == 0:
		return
	case s.n == 0:
		*s = o
		return
	}
	*s = span{min(s.first, o.first), max(s.last, o.last), s.n + o.n}
}

// Span returns the start of the first transfer and the end of the last one. It reports false unless the end of each
// transfer is known, so after data of vLLM's class was aggregated, too.
func (t *Transfers) Span() (first, last time.Time, ok bool) {
	if t.times.n == 0 || t.times.n != t.Len() {
		return time.Time{}, time.Time{}, false
	}
	return time.Unix(0, t.times.first).UTC(), time.Unix(0, t.times.last).UTC(), true
}

// WallThroughput returns the MiB that were transferred per second of the span, in which transfers may overlap. It
// reports false if there is no span or it has no length. The throughput of Reduce divides by the sum of all durations
// instead, which understates what transfers at the same time achieve.
func (t *Transfers) WallThroughput() (mbPerSecond float64, ok bool) {
	if _, _, known := t.Span(); !known || t.times.first == t.times.last {
		return 0, false
	}

	_, bytes := t.Sum(BytesTransferred)
	seconds := float64(t.times.last-t.times.first) / 1e9
	return bytes / (1 << 20) / seconds, true
}
