package wire

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// decimal reads a number as StatsD clients write it: decimal digits, with a sign, a point and an exponent if need be.
func decimal(b []byte) (float64, Reason) {
	v, err := parseNumber(b)
	if err != nil {
		return 0, Malformed
	}
	return v, finite(v)
}

// finite returns NotFinite for a number that does not count.
func finite(v float64) Reason {
	if !(math.Abs(v) <= maxNumber) {
		return NotFinite
	}
	return Accepted
}

// parseNumber reads a number as Prometheus does: as Go does, without hexadecimal digits and underscores. A number that
// is too large is an infinity.
func parseNumber(b []byte) (float64, error) {
	if v, ok := plain(b); ok {
		return v, nil
	}
	for _, c := range b {
		if c == '_' || c == 'x' || c == 'X' {
			return 0, strconv.ErrSyntax
		}
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil
	}
	return v, err
}

// plain reads most numbers in a third of the time of strconv: at most 15 digits with a point among them, perhaps a
// minus. The digits and the power of ten are exact as floats, so their quotient is rounded correctly. It reports false
// for all other numbers and for what is none.
func plain(b []byte) (float64, bool) {
	sign, scale, number, n, point := 1.0, 1.0, int64(0), 0, false
	if len(b) > 0 && b[0] == '-' {
		b, sign = b[1:], -1
	}
	for _, c := range b {
		switch {
		case c == '.' && !point:
			point = true
			continue
		case c < '0' || c > '9':
			return 0, false
		case point:
			scale *= 10
		}
		number = number*10 + int64(c-'0')
		n++
	}

	return sign * float64(number) / scale, n > 0 && n <= 15
}

// Cut is bytes.Cut for a separator of one byte, which is quicker.
func Cut(b []byte, sep byte) (before, after []byte, found bool) {
	if i := bytes.IndexByte(b, sep); i >= 0 {
		return b[:i], b[i+1:], true
	}
	return b, nil, false
}

// digits returns how many digits b begins with.
func digits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}
