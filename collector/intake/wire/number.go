package wire

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/perfagent/perfagent/internal/text"
)

// parseDecimal reads a number as StatsD clients write it: decimal digits, with a sign, a point and an exponent if need
// be.
func parseDecimal(b []byte) (float64, Reason) {
	v, err := parseNumber(b)
	if err != nil {
		return 0, Malformed
	}
	return v, checkFinite(v)
}

// checkFinite returns NotFinite for a number that does not count.
func checkFinite(v float64) Reason {
	if !(math.Abs(v) <= maxNumber) {
		return NotFinite
	}
	return Accepted
}

// parseNumber reads a number as Prometheus does: as Go does, without hexadecimal digits and underscores. A number that
// is too large is an infinity.
func parseNumber(b []byte) (float64, error) {
	if v, ok := text.ParseDecimal(b); ok {
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
