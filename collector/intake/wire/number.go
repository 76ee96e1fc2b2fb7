package wire

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/perfagent/perfagent/internal/text"
)

// parseDecimal parses a number from a StatsD client: decimal digits, optionally with a sign, a decimal point and an
// exponent.
func parseDecimal(b []byte) (float64, Reason) {
	v, err := parseNumber(b)
	if err != nil {
		return 0, Malformed
	}
	return v, checkFinite(v)
}

// checkFinite returns NotFinite for NaN and numbers beyond ±maxNumber.
func checkFinite(v float64) Reason {
	if !(math.Abs(v) <= maxNumber) {
		return NotFinite
	}
	return Accepted
}

// parseNumber parses a number as Prometheus does: in Go's syntax, but without hexadecimal digits and underscores. A
// number that is too large becomes an infinity.
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

// Cut is like bytes.Cut for a separator of one byte, but faster.
func Cut(b []byte, sep byte) (before, after []byte, found bool) {
	if i := bytes.IndexByte(b, sep); i >= 0 {
		return b[:i], b[i+1:], true
	}
	return b, nil, false
}

// digits returns the number of leading digits of b.
func digits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}
