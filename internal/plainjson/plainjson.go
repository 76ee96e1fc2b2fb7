// Package plainjson writes JSON that is no larger than it must be: without the escapes that
// only HTML needs, and with numbers in their shortest form.
package plainjson

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Marshal is json.Marshal without escapes for HTML.
func Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// AppendFloat appends the shortest number that reads back as v. A value that is not finite
// becomes null, because JSON has no word for it.
func AppendFloat(out []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(out, "null"...)
	}
	if out, short := appendDecimal(out, v); short {
		return out
	}
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(out, v, format, -1, 64)
}

// appendDecimal appends a number of at most 6 decimals and 15 digits, as most are. No two of these are the same
// float64, so that no shorter one reads back as v. strconv takes half as long again.
func appendDecimal(out []byte, v float64) (_ []byte, ok bool) {
	const decimals, unit = 6, 1e6
	millionths := math.RoundToEven(v * unit)
	if !(math.Abs(millionths) < 1e15) || millionths/unit != v {
		return out, false
	}

	if math.Signbit(v) {
		out, millionths = append(out, '-'), -millionths
	}
	whole, rest := uint64(millionths)/unit, uint64(millionths)%unit
	out = strconv.AppendUint(out, whole, 10)
	if rest == 0 {
		return out, true
	}

	fraction := [1 + decimals]byte{'.'}
	end := 0
	for i := decimals; i > 0; i-- {
		digit := byte(rest % 10)
		if rest /= 10; digit != 0 {
			end = max(end, i)
		}
		fraction[i] = '0' + digit
	}
	return append(out, fraction[:end+1]...), true
}

// AppendFloats appends an array of numbers, each as AppendFloat does.
func AppendFloats(out []byte, list []float64) []byte {
	out = append(out, '[')
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = AppendFloat(out, v)
	}
	return append(out, ']')
}

// AppendString appends a string in quotes, with the escapes that Marshal uses. strconv.AppendQuote will not do: JSON
// has no \x1b.
func AppendString(out []byte, s string) []byte {
	out = append(out, '"')
	for done := 0; ; {
		at := done
		for at < len(s) && s[at] >= ' ' && s[at] < utf8.RuneSelf && s[at] != '"' && s[at] != '\\' {
			at++
		}
		out = append(out, s[done:at]...)
		if at == len(s) {
			return append(out, '"')
		}
		r, size := utf8.DecodeRuneInString(s[at:])
		out = appendRune(out, r, s[at:at+size])
		done = at + size
	}
}

// appendRune appends a character that may need an escape. text is its bytes, which need not be UTF-8.
func appendRune(out []byte, r rune, text string) []byte {
	switch i := strings.IndexRune("\"\\\b\f\n\r\t", r); {
	case i >= 0:
		return append(out, '\\', `"\bfnrt`[i])
	case r == utf8.RuneError && len(text) == 1:
		return append(out, `\ufffd`...)
	case r < ' ', r == '\u2028', r == '\u2029': // JavaScript took the last two for line breaks
		const hex = "0123456789abcdef"
		return append(out, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
	}
	return append(out, text...)
}

// Round rounds v to n decimals, so that it takes less room.
func Round(v float64, n int) float64 {
	p := math.Pow10(n)
	if r := math.Round(v*p) / p; !math.IsInf(r, 0) {
		return r
	}
	return v
}

// RoundFigure rounds v to 6 decimals or, if its size is below 1, to 6 digits: what a job measures may be small
// throughout, such as a learning rate.
func RoundFigure(v float64) float64 {
	decimals := 6
	if size := math.Abs(v); size > 0 && size < 1 {
		decimals -= int(math.Floor(math.Log10(size))) + 1
	}
	if decimals > 15 {
		return v
	}
	return Round(v, decimals)
}
