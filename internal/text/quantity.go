package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Quantity is a formatted number with its unit. If the number is unknown, it is Absent.
type Quantity struct{ Number, Unit string }

// String returns the number and the unit, separated by a space.
func (q Quantity) String() string {
	if q.Unit == "" {
		return q.Number
	}
	return q.Number + " " + q.Unit
}

// Normalize returns q, or Absent without a unit if q is unknown.
func (q Quantity) Normalize() Quantity {
	if q.Number == Absent {
		return Quantity{Number: Absent}
	}
	return q
}

// Narrow formats q for a narrow column: 3m20s, 1.5G for GiB, 12.3 for percent.
func (q Quantity) Narrow() string {
	switch {
	case q.Unit == "%":
		return q.Number
	case strings.HasSuffix(q.Unit, "B"):
		return q.Number + q.Unit[:1]
	}
	return strings.ReplaceAll(strings.ReplaceAll(q.String(), " ", ""), "min", "m")
}

// Duration returns s seconds as a duration: 45 ms, 12.3 s, 3 min 20 s, 2 h 05 min, 6 d 23 h. Durations below a second
// have at most three digits. Durations of at least an hour are truncated, not rounded.
func Duration(s float64) Quantity {
	whole := math.Floor(s + 0.5)
	switch {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return Quantity{Number: Absent}
	case s < 0:
		q := Duration(-s)
		return Quantity{"-" + q.Number, q.Unit}
	case s == 0:
		return Quantity{"0", "s"}
	case s < 1e-7:
		return Quantity{"<0.1", "µs"}
	case s < 0.0009995:
		return Quantity{Number(ThreeDigits(s * 1e6)), "µs"}
	case s < 0.9995:
		return Quantity{Number(ThreeDigits(s * 1000)), "ms"}
	case s < 59.95:
		return Quantity{Fixed(s, 1), "s"}
	case whole < 3600:
		return Quantity{fmt.Sprintf("%d min %02d", int(whole)/60, int(whole)%60), "s"}
	case whole < 86400:
		return Quantity{fmt.Sprintf("%d h %02d", int(whole)/3600, int(whole)/60%60), "min"}
	case whole < 1e9:
		return Quantity{fmt.Sprintf("%d d %02d", int(whole)/86400, int(whole)/3600%24), "h"}
	}

	return Quantity{Fixed(s/86400, 0), "d"}
}

// Size returns mib MiB (2^20 bytes) in a suitable binary unit: 0 B, 12 KiB, 1.5 MiB, 312 MiB, 1.5 GiB.
func Size(mib float64) Quantity {
	v := math.Abs(mib) * (1 << 20)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Quantity{Number: Absent}
	}

	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for v >= 1023.5 && i < len(units)-1 {
		v /= 1024
		i++
	}

	decimals := 0
	if i >= 2 && v < 9.95 || i >= 3 && v < 99.95 {
		decimals = 1
	}

	number := Fixed(v, decimals)
	if mib < 0 && number != "0" {
		number = "-" + number
	}
	return Quantity{number, units[i]}
}

// TrimmedSize is like Size, but omits a decimal of 0, and shows two decimals for multiples of 0.25 GiB below 10 GiB: 64
// GiB, 1.25 GiB.
func TrimmedSize(mib float64) Quantity {
	if gib := mib / 1024; gib >= 1 && gib < 10 && gib*4 == math.Trunc(gib*4) {
		return Quantity{strconv.FormatFloat(gib, 'f', -1, 64), "GiB"}
	}
	q := Size(mib)
	q.Number = strings.TrimSuffix(q.Number, ".0")
	return q
}

// Speed returns v MiB per second. Speeds of at least about 1 GiB per second are in a larger unit.
func Speed(v float64) Quantity {
	const unit = "MiB/s"
	switch {
	case math.Abs(v) >= 1023.5 && math.Abs(v) < 1e15:
		q := Size(v)
		return Quantity{q.Number, q.Unit + "/s"}
	case v > 0 && v < 0.005:
		return Quantity{"<0.01", unit}
	case math.Abs(v) < 9.995:
		return Quantity{Fixed(v, 2), unit}
	}
	return Quantity{Fixed(v, 1), unit}
}

// Energy returns an energy in joules in a suitable decimal unit: 0.8 J, 312 J, 1.5 kJ, 36 MJ.
func Energy(joules float64) Quantity {
	v, units := joules, []string{"J", "kJ", "MJ", "GJ"}
	for math.Abs(v) >= 999.5 && len(units) > 1 {
		v, units = v/1000, units[1:]
	}
	decimals := 0
	if math.Abs(v) < 9.95 {
		decimals = 1
	}
	return Quantity{Fixed(v, decimals), units[0]}
}

// Percentage returns v percent with one decimal.
func Percentage(v float64) Quantity { return Quantity{Fixed(v, 1), "%"} }

// Milliseconds formats ms, a time in milliseconds, as a [Duration].
func Milliseconds(ms float64) string { return Seconds(ms / 1000) }

// Number formats v without a unit: 1,234, 4.5, 0.0625. The result has at most three decimals and seven digits. If v is
// below 0.1, it has three significant digits.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Absent
	case a >= 1e15 || a > 0 && a < 1e-6:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}

	decimals := 3
	switch {
	case a >= 1e4:
		decimals = max(0, 6-int(math.Log10(a)))
	case a > 0 && a < 0.1:
		decimals = 2 - int(math.Floor(math.Log10(a)))
	}
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(a, 'f', decimals, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	if v < 0 && whole != "0" {
		whole = "-" + whole
	}

	return whole
}
