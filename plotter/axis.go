package plotter

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Axis is one axis of a chart. Its labels show values divided by Scale.
type Axis struct {
	Min   float64 // in the unit of the values; 0 unless some are negative
	Max   float64
	Scale float64
	Unit  string    // of the labels
	Ticks []float64 // in the unit of the values
}

// label formats a tick in few characters, because there is little room next to an axis.
func (a Axis) label(v float64) string {
	if math.Abs(v/a.Scale) >= 1e6 {
		return strconv.FormatFloat(v/a.Scale, 'e', 1, 64)
	}

	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v/a.Scale, 'f', 3, 64), "0"), ".")
}

// shortLabel formats v in four digits, with the axis's unit or, if v is small in that, with unit, the unit of the
// values.
func (a Axis) shortLabel(v float64, unit string) string {
	if a.Scale > 1 && v < a.Scale/10 {
		a.Scale, a.Unit = 1, unit
	}
	return strings.TrimRight(short(v/a.Scale)+" "+a.Unit, " ")
}

// short formats v in at most four digits, as the page's script does: halves are rounded away from 0.
func short(v float64) string {
	// A number halfway between two numbers of four digits has exactly five digits, and the last one is 5.
	_, rest, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'e', -1, 64), ".")
	if strings.IndexByte(rest, 'e') == 4 && rest[3] == '5' {
		const digits = 30 // more than such a number has
		_, rest, _ = strings.Cut(strconv.FormatFloat(math.Abs(v), 'e', digits, 64), ".")
		if rest[3:digits] == "5"+strings.Repeat("0", digits-4) {
			v = math.Nextafter(v, math.Copysign(math.Inf(1), v))
		}
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // always a number
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// timeSteps are the distances between two ticks of a time axis, in seconds.
var timeSteps = []float64{
	0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30,
	60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600,
	day, 2 * day, 5 * day, 10 * day, 20 * day, 50 * day, 100 * day, 200 * day, 500 * day, 1000 * day,
	2000 * day, 5000 * day,
}

const day = 24 * 3600.0

// newTimeAxis returns an axis from 0 to length seconds.
func newTimeAxis(length float64, ticks int) Axis {
	if !(length > 0) {
		length = 1
	}

	steps := timeSteps
	step := steps[len(steps)-1]
	for _, s := range steps {
		if length/s <= float64(ticks) {
			step = s
			break
		}
	}

	return Axis{Max: length, Scale: 1, Ticks: multiples(step, length, 2*ticks)}
}

// timeLabel formats the time of a tick as h:min:s, with the decimals that the ticks need.
func (a Axis) timeLabel(v float64) string {
	decimals := 0
	if len(a.Ticks) > 1 {
		for step := a.Ticks[1]; decimals < 3 && step < 0.9999; step *= 10 {
			decimals++
		}
	}
	return clock(v, decimals)
}

// clock formats seconds as h:min:s: 0:01:05.
func clock(seconds float64, decimals int) string {
	unit := math.Pow(10, float64(decimals))
	whole := math.Round(seconds * unit)
	minutes := math.Floor(whole / unit / 60)
	rest := (whole - minutes*60*unit) / unit
	width := len("00")
	if decimals > 0 {
		width += len(".") + decimals
	}
	return fmt.Sprintf("%.0f:%02.0f:%0*.*f", math.Floor(minutes/60), math.Mod(minutes, 60), width, decimals, rest)
}

// multiples returns 0, step, 2 step, … up to end, at most limit values.
func multiples(step, end float64, limit int) []float64 {
	out := []float64{0}
	for i := 1; i < limit && float64(i)*step <= end*(1+1e-9); i++ {
		out = append(out, float64(i)*step)
	}
	return out
}

// valueAxis returns the axis of the chart's values. It begins at 0, or at a round number not above a negative minimum.
// It ends at a round number not below Top and the maximum. A stack's axis ends at exactly the capacity if it shows all
// of the capacity. MiB and MiB/s are converted to a suitable binary unit.
func (c *Chart) valueAxis(ticks int) Axis {
	greatest := max(c.Top, c.top())
	if c.Capacity > 0 && c.stack.restLabel != "" { // higher values are cut off
		greatest = c.Top
	}
	scale, unit := binaryUnit(greatest, c.Unit)
	least := c.bottom()
	if greatest == 0 && least == 0 {
		greatest = scale
	}

	step := niceStep((greatest/float64(ticks)-least/float64(ticks))/scale) * scale
	n := math.Ceil(greatest/step - 1e-9)
	axis := Axis{Max: n * step, Scale: scale, Unit: unit, Ticks: multiples(step, n*step, 20)}
	if greatest == c.Capacity {
		axis.Max, axis.Ticks = greatest, multiples(step, greatest, 20)
	}
	for v := -step; least < 0 && axis.Min > least*(1-1e-9); v -= step {
		axis.Min, axis.Ticks = v, append(axis.Ticks, v)
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
