// Package text formats numbers, units and counts for people, and makes untrusted text printable. Widths are in terminal
// cells.
package text

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text safe for a terminal and a log. It replaces everything that is not a visible character (control
// characters including ESC, CR, LF and TAB, direction marks, zero-width characters, bytes that are not UTF-8) with its
// Go escape: \x1b, \r, \u202e. It does not escape backslashes, so the result is for reading, not for parsing.
func Printable(s string) string {
	first := 0
	for first < len(s) {
		if c := s[first]; ' ' <= c && c <= '~' { // the most frequent case
			first++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[first:])
		if !visible(r, size) {
			break
		}
		first += size
	}

	if first == len(s) {
		return s
	}

	out := append(make([]byte, 0, len(s)+16), s[:first]...)
	for i := first; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if raw := s[i : i+size]; visible(r, size) {
			out = append(out, raw...)
		} else {
			out = appendEscaped(out, raw, r)
		}
		i += size
	}
	return string(out)
}

// visible reports whether r, which has size bytes, can be shown unescaped. Some letters and marks (fillers, joiners)
// are invisible by default according to Unicode. Variation selectors are shown, because ordinary emoji contain them.
func visible(r rune, size int) bool {
	if r == utf8.RuneError && size == 1 {
		return false
	}
	return strconv.IsPrint(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// Clip shortens s to width terminal cells. A shortened text ends in an ellipsis.
func Clip(s string, width int) string {
	used, keep := 0, 0 // keep is the number of bytes that leave a cell for the ellipsis
	for i, r := range s {
		if used < width {
			keep = i
		}
		if used += cells(r); used > width {
			if width < 1 {
				return ""
			}
			return s[:keep] + "…"
		}
	}
	return s
}

// ClipStart is like Clip, but cuts off the beginning.
func ClipStart(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	used, from := cells('…'), len(s)
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:from])
		if used += cells(r); used > width {
			break
		}
		from -= size
	}
	return Clip("…"+s[from:], width)
}

// Prefix returns the beginning of s as UTF-8: as many whole characters as fit into n bytes.
func Prefix(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Width returns the number of terminal cells that s occupies.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += cells(r)
	}
	return n
}

// wide lists the ranges of characters that terminals show in two cells: East Asian characters and emoji.
var wide = [...][2]rune{
	{0x1100, 0x115f}, {0x231a, 0x231b}, {0x23e9, 0x23f3}, {0x25fd, 0x25fe}, {0x2600, 0x27bf}, {0x2b1b, 0x2b55},
	{0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18aff}, {0x1b000, 0x1b2ff}, {0x1f000, 0x1faff}, {0x20000, 0x3fffd},
}

// cells returns the number of terminal cells that r takes, or one more: it returns 1 for combining marks, and 2 for
// some symbols. A line may be shorter than computed, but must not be longer.
func cells(r rune) int {
	for _, w := range wide {
		if r >= w[0] && r <= w[1] {
			return 2
		}
	}
	return 1
}

// PadRight appends spaces to s, up to width terminal cells.
func PadRight(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Width(s)))
}

// PadLeft prepends spaces to s, up to width terminal cells.
func PadLeft(s string, width int) string {
	return strings.Repeat(" ", max(0, width-Width(s))) + s
}

// Wrap breaks s, at spaces where possible, into at most n lines of width terminal cells. The last line is clipped.
func Wrap(s string, width, n int) []string {
	var out []string
	for len(out) < n-1 && Width(s) > width {
		fits := fitting(s, width)
		if fits == 0 {
			break
		}
		if space := strings.LastIndexByte(s[:fits+1], ' '); space > 0 {
			out = append(out, s[:space])
			s = s[space+1:]
			continue
		}
		out = append(out, s[:fits])
		s = s[fits:]
	}
	return append(out, Clip(s, width))
}

// fitting returns how many bytes of s fit into width terminal cells.
func fitting(s string, width int) int {
	used := 0
	for i, r := range s {
		if used += cells(r); used > width {
			return i
		}
	}
	return len(s)
}

// Absent stands for an unknown value.
const Absent = "–"

// Fixed formats v with the given number of decimals. Values of at least 1e7 have an exponent. If v is not finite, Fixed
// returns Absent.
func Fixed(v float64, decimals int) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Absent
	case math.Abs(v) >= 1e7:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// ThreeDigits rounds v to three significant digits, the precision of most displayed numbers.
func ThreeDigits(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return v
}

// PercentChange returns the change from a to b in percent, computed from their three displayed digits. It is infinite
// or NaN if a is 0.
func PercentChange(a, b float64) float64 {
	return 100 * (ThreeDigits(b) - ThreeDigits(a)) / math.Abs(ThreeDigits(a))
}

// Seconds returns a [Duration] as a string.
func Seconds(s float64) string { return Duration(s).String() }

// SizeText returns a [Size] as a string.
func SizeText(mib float64) string { return Size(mib).String() }

// SpeedText returns a [Speed] as a string.
func SpeedText(v float64) string { return Speed(v).String() }

// Percent returns a [Percentage] as a string.
func Percent(v float64) string { return Percentage(v).String() }

// WholePercent formats v percent without decimals: 36 %, <1 %. Values below 100 are never rounded to 100 %.
func WholePercent(v float64) string {
	switch {
	case v > 0 && v <= 0.5:
		return "<1 %"
	case v >= 99.5 && v < 100:
		return ">99 %"
	}
	return Fixed(v, 0) + " %"
}

// Hours formats CPU hours with three decimals, with fewer if v is at least 100, and with more if v is below 0.01.
func Hours(v float64) string {
	switch a := math.Abs(v); {
	case a == 0 || a >= 100 || math.IsNaN(v):
		return Fixed(v, 1)
	case a >= 0.01:
		return Fixed(v, 3)
	case a >= 1e-6:
		return strconv.FormatFloat(v, 'f', 6, 64)
	}
	return strconv.FormatFloat(v, 'e', 1, 64)
}

// ShortSeconds is like Seconds, but without spaces: 12.3s, 3m20s, 2h05m, 6d23h.
func ShortSeconds(s float64) string { return Duration(s).Narrow() }

// ShortHours formats CPU hours, up to 1e7, in at most seven characters.
func ShortHours(v float64) string {
	switch {
	case v > 0 && v < 0.001:
		return "<0.001"
	case math.Abs(v) < 100:
		return Fixed(v, 3)
	case math.Abs(v) < 1e4:
		return Fixed(v, 1)
	}
	return Fixed(v, 0)
}

// ShellQuote quotes s for a POSIX shell if necessary.
func ShellQuote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
