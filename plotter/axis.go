package plotter

import (
	"math"
	"strconv"
)

// An Axis is one axis of a chart. Its labels show values divided by Scale.
type Axis struct {
	Min   float64 // in the unit of the values; 0 unless some are below
	Max   float64
	Scale float64
	Unit  string    // of the labels
	Ticks []float64 // in the unit of the values
}

// label formats a tick in few characters: there is little room beside an axis.
func (a Axis) label(v float64) string {
	if math.Abs(v/a.Scale) >= 1e6 {
		return strconv.FormatFloat(v/a.Scale, 'e', 1, 64)
	}

	text := strconv.FormatFloat(v/a.Scale, 'f', 3, 64)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}

	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}

	return text
}

// A timeUnit is a unit of the time axis and the range of lengths that use it.
type timeUnit struct {
	name    string
	seconds float64
	below   float64   // the lengths that use it are shorter, s
	steps   []float64 // between ticks, in the unit
}

func timeUnits() []timeUnit {
	decimal := []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500}
	return []timeUnit{
		{"ms", 1e-3, 0.5, decimal},
		{"s", 1, 150, []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}},
		{"min", 60, 9000, []float64{0.5, 1, 2, 5, 10, 15, 30}},
		{"h", 3600, 3.5 * 86400, []float64{0.5, 1, 2, 3, 6, 12, 24}},
		{"d", 86400, math.Inf(1), []float64{0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}},
	}
}

// newTimeAxis returns the axis of the seconds since the start.
func newTimeAxis(length float64, ticks int) Axis {
	if !(length > 0) {
		length = 1
	}

	var u timeUnit
	for _, u = range timeUnits() {
		if length < u.below {
			break
		}
	}

	step := u.steps[len(u.steps)-1]
	for _, s := range u.steps {
		if length/(s*u.seconds) <= float64(ticks) {
			step = s
			break
		}
	}

	return Axis{Max: length, Scale: u.seconds, Unit: u.name, Ticks: multiples(step*u.seconds, length, 2*ticks)}
}

// multiples returns 0, step, 2 step, … up to end, but no more than limit of them.
func multiples(step, end float64, limit int) []float64 {
	out := []float64{0}
	for i := 1; i < limit && float64(i)*step <= end*(1+1e-9); i++ {
		out = append(out, float64(i)*step)
	}
	return out
}

// valueAxis returns the axis of a chart's values. It begins at 0, or at a round number not above a
// minimum below 0. It ends at Top, or at a round number not below the maximum. MiB and MiB/s are
// converted to a suitable binary unit.
func (c *Chart) valueAxis(ticks int) Axis {
	greatest, scale, unit := c.Top, 1.0, c.Unit
	if greatest == 0 {
		greatest = c.top()
		scale, unit = binaryUnit(greatest, unit)
	}

	greatest = max(greatest, c.top())
	least := c.bottom()
	if greatest == 0 && least == 0 {
		greatest = scale
	}

	step := niceStep((greatest/float64(ticks)-least/float64(ticks))/scale) * scale
	n := math.Ceil(greatest/step - 1e-9)
	axis := Axis{Max: n * step, Scale: scale, Unit: unit, Ticks: multiples(step, n*step, 20)}
	for v := -step; least < 0 && axis.Min > least*(1-1e-9); v -= step {
		axis.Min, axis.Ticks = v, append(axis.Ticks, v)
	}

	return axis
}

// binaryUnit returns the unit for an axis in MiB up to a value.
func binaryUnit(greatest float64, unit string) (scale float64, name string) {
	if len(unit) < 3 || unit[:3] != "MiB" {
		return 1, unit
	}

	per := unit[3:]
	for _, u := range []struct {
		mib  float64
		name string
	}{{1 << 20, "TiB"}, {1 << 10, "GiB"}, {1, "MiB"}, {1.0 / (1 << 10), "KiB"}} {
		if greatest >= u.mib {
			return u.mib, u.name + per
		}
	}

	if greatest > 0 {
		return 1.0 / (1 << 20), "B" + per
	}

	return 1, unit
}

// niceStep returns the smallest 1, 2, 2.5 or 5 × 10^k that is not below v.
func niceStep(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}

	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}

	return 10 * power
}
