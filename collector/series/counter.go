package series

import "math"

// This file is the only place that computes increases of counters. A device's counter wraps and is reset ([Delta]), a
// port's is reset and never wraps ([ResetDelta]), an energy counter wraps at a range of its zone ([RangeDelta]), a
// CPU's is corrected downwards ([CorrectedDelta]), a sum over processes dips when a process ends ([SumCounter]), and
// all other counters only go up ([Counter]).

const (
	// wrapReach is how near to the end of its range a counter must have been before a fall, and how near to 0 it must be
	// afterwards, if the fall is to be a wrap: 1 GiB. Any other fall comes from a device that was removed and came back;
	// its traffic in between is unknown.
	wrapReach = 1 << 30
	// maxDelta is more than any device moves between two readings: 1 PiB. A larger jump comes from another device or a bad
	// counter.
	maxDelta = 1 << 50
)

// Delta returns the increase of a device's byte counter between two readings, in counts of unit bytes; a unit of 0 is
// taken as 1. It undoes wraps at 32 and at 64 bits. Any other fall, and a jump of more than 1 PiB, is a reset after an
// unknown increase: it returns 0.
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
		return cur - prev // unsigned arithmetic wraps like the counter
	}
	return 0
}

// ResetDelta is Delta for a counter that never wraps: a fall is a reset, and cur is the count since then.
func ResetDelta(prev, cur, unit uint64) uint64 {
	if cur < prev {
		prev = 0
	}
	if cur-prev > maxDelta/max(unit, 1) {
		return 0
	}
	return cur - prev
}

// RangeDelta is Delta for a counter that starts again at 0 after span; a span of 0 means unknown. A fall that would
// mean an increase of more than most is a reset after an unknown increase: it returns 0.
func RangeDelta(prev, cur, span, most uint64) uint64 {
	switch {
	case cur >= prev:
		return cur - prev
	case span < prev || span-prev > most || cur > most-(span-prev):
		return 0
	}
	return span - prev + cur
}

// CorrectedDelta returns the increase of a counter that the kernel sometimes corrects downwards, such as a CPU's idle
// time, and the highest value reached. A fall of at most slack is a correction: the counter's way back up does not
// count again. A larger fall is a reset, and a rise of more than most is an error; both count nothing.
func CorrectedDelta(reached, cur, slack, most float64) (delta, nowReached float64) {
	switch d := cur - reached; {
	case d >= 0 && d <= most:
		return d, cur
	case d < 0 && d >= -slack:
		return 0, reached
	}
	return 0, cur
}

// A Counter measures a counter that only goes up, relative to its first known reading. The zero value has no reading.
type Counter struct {
	base  float64
	begun bool
}

// Increase takes a reading of the counter and returns the increase since the first reading: never negative, and unknown
// if the reading is NaN.
func (c *Counter) Increase(v float64) Optional {
	if !c.begun && !math.IsNaN(v) {
		c.base, c.begun = v, true
	}
	if !c.begun {
		return Unknown()
	}
	return Optional(max(0, v-c.base))
}

// Rebase switches to another counter with the present value v. What that counted before does not count. The increase so
// far is kept.
func (c *Counter) Rebase(increase Optional, v float64) {
	if !increase.Known() {
		increase = 0
	}
	*c = Counter{base: v - float64(increase), begun: !math.IsNaN(v)}
}

// A SumCounter adds up the increase of a counter that is itself a sum over processes. It may fall: for a moment when a
// process ends while the others are being read, and for good when the kernel drops the CPU time of a process because
// its parent ignores SIGCHLD. A momentary fall is not counted again when the sum recovers.
type SumCounter struct {
	total, last float64
	low         float64 // value of the last reading, if it fell
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
	case c.fallen: // for good: parents are read before their children, so this reading is complete
		c.total, c.last, c.fallen = c.total+max(0, v-c.low), v, false
	default:
		c.low, c.fallen = v, true
	}
}

// Total returns the increase since the first reading.
func (c *SumCounter) Total() float64 { return c.total }
