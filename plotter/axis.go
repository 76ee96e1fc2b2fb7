package plotter

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Axis is one axis of a chart. Its labels show values divided by Scale.
type Axis struct {
	Min   float64 // in the unit of the values; 0 unless some are negative
	Max   float64
	Scale float64
	Unit  string    // unit of the labels
	Ticks []float64 // in the unit of the values
}

// label formats the value of a tick in few characters, because there is little room next to an axis.
func (a Axis) label(v float64) string {
	if math.Abs(v/a.Scale) >= 1e6 {
		return strconv.FormatFloat(v/a.Scale, 'e', 1, 64)
	}

	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v/a.Scale, 'f', 3, 64), "0"), ".")
}

// short formats v in at most four digits. Halves are rounded away from 0.
func short(v float64) string {
	// A number halfway between two numbers of four digits has exactly five digits, and the last one is 5.
	_, rest, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'e', -1, 64), ".")
	if strings.IndexByte(rest, 'e') == 4 && rest[3] == '5' {
		const digits = 30 // more than a five-digit number can need
		_, rest, _ = strings.Cut(strconv.FormatFloat(math.Abs(v), 'e', digits, 64), ".")
		if rest[3:digits] == "5"+strings.Repeat("0", digits-4) {
			v = math.Nextafter(v, math.Copysign(math.Inf(1), v))
		}
	}
	return exact(rounded(v))
}

// The units of a time axis, in seconds.
const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

// newTimeAxis returns an axis from 0 to length seconds, with about the given number of ticks. Its unit is s, min, h or
// d.
func newTimeAxis(length float64, ticks int) Axis {
	if !(length > 0) {
		length = 1
	}
	a := Axis{Max: length, Scale: 1, Unit: "s"}
	steps := []float64{1, 2, 5, 10, 20, 30, 50, 60}
	switch {
	case length > 3*day:
		a.Scale, a.Unit = day, "d"
		steps = []float64{1, 2, 5}
	case length > 3*hour:
		a.Scale, a.Unit = hour, "h"
		steps = []float64{1, 2, 3, 6, 12, 24}
	case length > 3*minute:
		a.Scale, a.Unit = minute, "min"
		steps = []float64{1, 2, 5, 10, 15, 20, 30, 60}
	case length < 5:
		steps = nil
	}
	step := niceStep(length/float64(ticks)/a.Scale) * a.Scale
	if k := slices.IndexFunc(steps, func(s float64) bool { return s*a.Scale*float64(ticks) >= length }); k >= 0 {
		step = steps[k] * a.Scale
	}
	a.Ticks = multiples(step, length, 2*ticks)
	return a
}

// multiples returns the multiples of step from 0 to end, but at most limit values.
func multiples(step, end float64, limit int) []float64 {
	out := []float64{0}
	for i := 1; i < limit && float64(i)*step <= end*(1+1e-9); i++ {
		out = append(out, float64(i)*step)
	}
	return out
}

// valueAxis returns an axis from 0 to greatest with about the given number of ticks. If least is negative, the axis
// begins at a round number at or below least. Unless exact is set, the axis extends a little above greatest. MiB and
// MiB/s are converted to a suitable binary unit.
func valueAxis(unit string, least, greatest float64, exact bool, ticks int) Axis {
	scale, name := binaryUnit(greatest, unit)
	if greatest == 0 && least == 0 {
		greatest = scale
	}
	if end := greatest * axisRoom; !exact {
		greatest = min(end, maxAxis)
	}
	step := niceStep((greatest/float64(ticks)-least/float64(ticks))/scale) * scale
	axis := Axis{Max: greatest, Scale: scale, Unit: name, Ticks: multiples(step, greatest, 20)}
	for v := -step; least < 0 && axis.Min > least*(1-1e-9); v -= step {
		axis.Min, axis.Ticks = v, append(axis.Ticks, v)
	}
	if greatest == 0 { // all values are negative
		axis.Max = 0
	}

	return axis
}

// binaryUnit returns the name of the unit for an axis in MiB up to greatest, and the size of that unit in MiB.
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
