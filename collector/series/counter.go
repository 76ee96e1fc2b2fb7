package series

import "math"

// This file is the only place that computes increases of counters. The counter of a device may wrap or be reset
// ([Delta]). The counter of a port may be reset but never wraps ([ResetDelta]). An energy counter wraps at the range of
// its zone ([RangeDelta]). The counter of a CPU may be corrected downwards ([CorrectedDelta]). A sum over processes
// dips when a process ends ([SumCounter]). All other counters only go up ([Counter]).

const (
	// wrapReach is the maximum distance, in bytes, from the end of the range before a fall, and from 0 after the fall,
	// for the fall to be a wrap: 1 GiB. Any other fall means that a device was removed and added again; its traffic
	// between the readings is unknown.
	wrapReach = 1 << 30
	// maxDelta is more bytes than any device transfers between two readings: 1 PiB. A larger jump means a different
	// device or a faulty counter.
	maxDelta = 1 << 50
)

// Delta returns the increase of a device's byte counter between two readings, in counts of unit bytes; a unit of 0
// means 1. It accounts for wraps at 32 and at 64 bits. Any other fall, or a jump of more than 1 PiB, is a reset after
// an unknown increase, for which it returns 0.
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

// ResetDelta is like Delta, for a counter that never wraps: a fall is a reset, and cur is the count since the reset.
func ResetDelta(prev, cur, unit uint64) uint64 {
	if cur < prev {
		prev = 0
	}
	if cur-prev > maxDelta/max(unit, 1) {
		return 0
	}
	return cur - prev
}

// RangeDelta is like Delta, for a counter that wraps from span to 0; a span of 0 means unknown. A fall that would mean
// an increase of more than most is a reset after an unknown increase, for which it returns 0.
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
// time, and the highest value reached. A fall of at most slack is a correction, and the following rise to the highest
// value is not counted twice. A larger fall is a reset, and a rise of more than most is an error; for both, the
// increase is 0.
func CorrectedDelta(reached, cur, slack, most float64) (delta, nowReached float64) {
	switch d := cur - reached; {
	case d >= 0 && d <= most:
		return d, cur
	case d < 0 && d >= -slack:
		return 0, reached
	}
	return 0, cur
}

// A Counter measures the increase, since its first known reading, of a counter that only goes up. The zero value has no
// reading.
type Counter struct {
	base  float64
	begun bool
}

// Increase records the reading v and returns the increase since the first reading. The increase is never negative, and
// unknown if v is NaN.
func (c *Counter) Increase(v float64) Optional {
	if !c.begun && !math.IsNaN(v) {
		c.base, c.begun = v, true
	}
	if !c.begun {
		return Unknown()
	}
	return Optional(max(0, v-c.base))
}

// Rebase switches to another counter with the current value v, and keeps the given increase so far. Only later
// increases of the new counter are added.
func (c *Counter) Rebase(increase Optional, v float64) {
	if !increase.Known() {
		increase = 0
	}
	*c = Counter{base: v - float64(increase), begun: !math.IsNaN(v)}
}

// A SumCounter adds up the increase of a counter that is itself a sum over processes. The counter may fall for a
// moment, when a process ends while others are being read, or permanently, when the kernel drops the CPU time of a
// process because its parent ignores SIGCHLD. After a momentary fall, the recovery is not counted as an increase.
type SumCounter struct {
	total, last float64
	low         float64 // value of the last reading, if it fell
	begun       bool
	fallen      bool
}

// Add records the reading v of the counter; NaN changes nothing.
func (c *SumCounter) Add(v float64) {
	switch {
	case math.IsNaN(v):
	case !c.begun:
		c.last, c.begun = v, true
	case v >= c.last:
		c.total, c.last, c.fallen = c.total+v-c.last, v, false
	case c.fallen: // a second low reading: parents are read before their children, so it is complete
		c.total, c.last, c.fallen = c.total+max(0, v-c.low), v, false
	default:
		c.low, c.fallen = v, true
	}
}

// Total returns the increase since the first reading.
func (c *SumCounter) Total() float64 { return c.total }
