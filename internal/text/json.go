package text

import (
	"bytes"
	encodingjson "encoding/json"
	"io"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// JSON returns v as JSON on one line. It respects the same tags and methods as encoding/json, but does not escape HTML.
// If a number is not finite, JSON returns an error.
func JSON(v any) ([]byte, error) { return json.Marshal(v, jsonOptions()) }

// WriteJSON writes the output of JSON. Only a part of the output is in memory at a time.
func WriteJSON(to io.Writer, v any) error { return json.MarshalWrite(to, v, jsonOptions()) }

var jsonOptions = sync.OnceValue(func() json.Options {
	return json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.AllowDuplicateNames(true),
		json.WithMarshalers(json.MarshalToFunc(writeInvalid)))
})

// writeInvalid writes a string that is not valid UTF-8. It writes \ufffd for each invalid byte.
func writeInvalid(to *jsontext.Encoder, s string) error {
	if utf8.ValidString(s) {
		return json.SkipFunc
	}
	var quoted bytes.Buffer
	as := encodingjson.NewEncoder(&quoted)
	as.SetEscapeHTML(false)
	if err := as.Encode(s); err != nil {
		return err
	}
	return to.WriteValue(quoted.Bytes())
}

// AppendFloat appends the shortest number that reads back as v, or null if v is not finite, which JSON cannot express.
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

// appendDecimal appends v if it has at most 6 decimals and 15 digits, like most numbers; otherwise ok is false. Two
// such numbers never have the same float64, so no shorter number reads back as v. strconv takes 1.5 times as long.
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

// ParseDecimal parses a number of at most 15 digits without an exponent or a plus sign. Nearly all numbers are of this
// form, and ParseDecimal is several times faster than strconv. The digits and the power of ten by which they are
// divided are exact, so the quotient is correctly rounded. ok is false for other numbers and for invalid numbers.
func ParseDecimal(number []byte) (v float64, ok bool) {
	const exact = 15 // number of decimal digits that a float64 represents exactly
	digits, negative := bytes.CutPrefix(number, []byte{'-'})
	n, point, sum := len(digits), -1, uint64(0)
	if n > exact+1 {
		return 0, false
	}
	for i, b := range digits {
		switch d := b - '0'; {
		case d <= 9:
			sum = sum*10 + uint64(d)
		case b == '.' && point < 0:
			point = i
		default:
			return 0, false
		}
	}

	v = float64(sum)
	if point >= 0 {
		n--
		v /= math.Pow10(n - point)
	}
	if negative {
		v = -v
	}
	return v, n > 0 && n <= exact
}

// AppendFloats appends a JSON array of numbers, each written as AppendFloat does.
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

// Round rounds v to n decimals, so that it takes less space in a report.
func Round(v float64, n int) float64 {
	p := math.Pow10(n)
	if r := math.Round(v*p) / p; !math.IsInf(r, 0) {
		return r
	}
	return v
}

// RoundSignificant rounds v to 6 decimals or, if its absolute value is below 1, to 6 significant digits. The values
// that a job reports may all be small, such as a learning rate.
func RoundSignificant(v float64) float64 {
	decimals := 6
	if size := math.Abs(v); size > 0 && size < 1 {
		decimals -= int(math.Floor(math.Log10(size))) + 1
	}
	if decimals > 15 {
		return v
	}
	return Round(v, decimals)
}
