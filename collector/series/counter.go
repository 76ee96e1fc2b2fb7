package series

import "math"

// This file is the one place that says by how much a counter went up. What may go wrong with a counter differs: a
// device's wraps and is reset ([Delta]), a port's is reset and never wraps ([ResetDelta]), that of energy wraps at an
// end of its own ([RangeDelta]), a CPU's is corrected ([CorrectedDelta]), a sum over processes dips when one of them
// ends ([SumCounter]), and the rest only ever go up ([Counter]).

const (
	// wrapReach is how near to the end of its range a counter must have been, and how near to 0 it must be, for
	// a fall to be a wrap: 1 GiB. Any other fall is a device that was taken away and came back; what it moved
	// in between is unknown.
	wrapReach = 1 << 30
	// maxDelta is more than any device can move between two readings: 1 PiB. A counter that leaps further is another
	// device's, or a wrong one.
	maxDelta = 1 << 50
)

// Delta returns by how many counts a device's counter of bytes went up between two readings; unit is the bytes
// of one count, and 0 is taken as 1. It undoes wraps at 32 and at 64 bits, and treats any other fall, and a leap of
// more than 1 PiB, as a reset after which the increase is unknown: it returns 0.
func Delta(prev, cur, unit uint64) uint64 {
	unit = max(unit, 1)
	reach := uint64(wrapReach) / unit
	switch {
	case cur >= prev && cur-prev <= maxDelta/unit:
		return cur - prev
	case cur >= reach:
		return 0
	case prev <= math.MaxUint32 && prev > math.MaxUint32-reach:
		return cur + (math.MaxUint32 - prev) + 1
	case prev > math.MaxUint64-reach:
		return cur - prev // unsigned arithmetic wraps as the counter did
	}
	return 0
}

// ResetDelta is Delta for a counter that never starts again from 0 by itself: any fall is a reset, and what it shows
// then is what it has counted since.
func ResetDelta(prev, cur, unit uint64) uint64 {
	if cur < prev {
		prev = 0
	}
	if cur-prev > maxDelta/max(unit, 1) {
		return 0
	}
	return cur - prev
}

// RangeDelta is Delta for a counter that starts again at 0 after span. A fall that would then be an increase of more
// than most is a reset, after which the increase is unknown: it returns 0. A span of 0 is not known.
func RangeDelta(prev, cur, span, most uint64) uint64 {
	switch {
	case cur >= prev:
		return cur - prev
	case span < prev || span-prev > most || cur > most-(span-prev):
		return 0
	}
	return span - prev + cur
}

// CorrectedDelta returns the increase of a counter that the kernel now and then corrects downwards, such as a
// CPU's idle time, and the highest value that it has reached. A fall of at most slack is a correction: what the
// counter takes to get back to where it was is not counted again. A further fall is a reset, and a rise of more
// than most is an error; both count nothing.
func CorrectedDelta(reached, cur, slack, most float64) (delta, nowReached float64) {
	switch d := cur - reached; {
	case d >= 0 && d <= most:
		return d, cur
	case d < 0 && d >= -slack:
		return 0, reached
	}
	return 0, cur
}

// A Counter is a counter that only goes up, held against its first known reading. The zero value has none yet.
type Counter struct {
	base  float64
	begun bool
}

// Increase takes a reading of the counter and returns how far it has come since the first one: never below 0,
// and absent where the reading is.
func (c *Counter) Increase(v float64) Optional {
	if !c.begun && !math.IsNaN(v) {
		c.base, c.begun = v, true
	}
	if !c.begun {
		return Unknown()
	}
	return Optional(max(0, v-c.base))
}

// Rebase goes over to another counter, which is at v and whose earlier readings do not count: what had been counted
// until now, increase, stays.
func (c *Counter) Rebase(increase Optional, v float64) {
	if !increase.Known() {
		increase = 0
	}
	*c = Counter{base: v - float64(increase), begun: !math.IsNaN(v)}
}

// A SumCounter adds up the increase of a counter that is itself a sum over processes. It may fall: for a moment
// when a process ends while the others are being read, and for good when the kernel drops the account of one that
// ends, because its parent ignores SIGCHLD. What fell for a moment is not counted again when it comes back.
type SumCounter struct {
	total, last float64
	low         float64 // what it fell to at the reading before, if it fell
	begun       bool
	fallen      bool
}

// Add takes a reading of the counter; NaN changes nothing.
func (c *SumCounter) Add(v float64) {
	switch {
	case math.IsNaN(v):
	case !c.begun:
		c.last, c.begun = v, true
	case v >= c.last:
		c.total, c.last, c.fallen = c.total+v-c.last, v, false
	case c.fallen: // for good: parents are read before their children, so this reading has what the last one lacked
		c.total, c.last, c.fallen = c.total+max(0, v-c.low), v, false
	default:
		c.low, c.fallen = v, true
	}
}

// Total returns the increase since the first reading.
func (c *SumCounter) Total() float64 { return c.total }
