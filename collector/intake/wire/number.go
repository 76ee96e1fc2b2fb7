package wire

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// validText reports whether b is UTF-8.
func validText(b []byte) bool { return utf8.Valid(b) }

// decimal reads a number as StatsD clients write it: decimal digits, with a sign, a point and an exponent if need be.
func decimal(b []byte) (float64, Reason) {
	if v, ok := plain(b); ok {
		return v, Accepted
	}
	if !isDecimal(b) {
		if isWord(b) {
			return 0, NotFinite
		}
		return 0, Malformed
	}
	return finite(b)
}

// finite reads a number whose grammar was checked.
func finite(b []byte) (float64, Reason) {
	if v, ok := plain(b); ok {
		return v, Accepted
	}
	v, _ := strconv.ParseFloat(string(b), 64) // an overflow gives an infinity
	if !(math.Abs(v) <= maxNumber) {
		return 0, NotFinite
	}
	return v, Accepted
}

// powers has the powers of ten by which the digits of a plain number are divided.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// plain reads most numbers in a third of the time of strconv: at most 15 digits with a point among them, perhaps a
// minus. The digits and the power of ten are exact as floats, so their quotient is rounded correctly. It reports false
// for all other numbers and for what is none.
func plain(b []byte) (float64, bool) {
	if len(b) == 0 || len(b) > 17 {
		return 0, false
	}
	sign := 1.0
	if b[0] == '-' {
		b, sign = b[1:], -1
	}

	number, n, whole := int64(0), 0, -1 // whole: how many digits are before the point
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			number = number*10 + int64(c-'0')
			n++
		case c == '.' && whole < 0:
			whole = n
		default:
			return 0, false
		}
	}
	if n == 0 || n > 15 {
		return 0, false
	}
	if whole < 0 {
		whole = n
	}

	return sign * float64(number) / powers[n-whole], true
}

// isDecimal reports whether b is a decimal number. It may begin or end with its point.
func isDecimal(b []byte) bool {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	whole := digits(b)
	b = b[whole:]
	part := 0
	if len(b) > 0 && b[0] == '.' {
		part = digits(b[1:])
		b = b[1+part:]
	}

	return whole+part > 0 && isExponent(b)
}

// isExponent reports whether b is the exponent of a number, or nothing.
func isExponent(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if b[0] != 'e' && b[0] != 'E' {
		return false
	}
	b = b[1:]
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}

	return len(b) > 0 && digits(b) == len(b)
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

// isWord reports whether b is one of the words for what is no finite number, in any case.
func isWord(b []byte) bool {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	return foldEqual(b, "nan") || foldEqual(b, "inf") || foldEqual(b, "infinity")
}

// foldEqual compares b with a word of small letters, in any case.
func foldEqual(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}
