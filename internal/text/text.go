package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text safe for a terminal and a log: whatever is not a visible
// character (control characters, ESC, CR, LF and TAB among them, marks that turn
// the direction of text, characters of no width, bytes that are not UTF-8) is
// written as Go escapes it: \x1b, \r, \u202e. Backslashes stay as they are, so
// the result is to be read, not to be parsed.
func Printable(s string) string {
	first := 0
	for first < len(s) {
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
		out = appendVisible(out, s[i:i+size], r)
		i += size
	}
	return string(out)
}

// appendVisible adds one character; raw is its bytes.
func appendVisible(out []byte, raw string, r rune) []byte {
	switch {
	case visible(r, len(raw)):
		return append(out, raw...)
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Appendf(out, `\x%02x`, raw[0])
	}
	quoted := strconv.QuoteRuneToASCII(r)
	return append(out, quoted[1:len(quoted)-1]...)
}

// visible tells whether a rune of size bytes can be shown as it is. Unicode calls
// some letters and marks invisible by default (fillers, joiners); variation
// selectors, which belong to ordinary emoji, are not among them.
func visible(r rune, size int) bool {
	if r == utf8.RuneError && size == 1 {
		return false
	}
	return strconv.IsPrint(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// clip cuts text to a width in terminal cells; what was cut ends in an ellipsis.
func Clip(s string, width int) string {
	used, keep := 0, 0 // keep: bytes that leave a cell for the ellipsis
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

// clipStart is clip that cuts the beginning.
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

// textWidth is how many cells of a terminal the text takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += cells(r)
	}
	return n
}

// wide lists the ranges of characters that terminals show in two cells: East
// Asian ones and emoji.
var wide = [...][2]rune{
	{0x1100, 0x115f}, {0x231a, 0x231b}, {0x23e9, 0x23f3}, {0x25fd, 0x25fe}, {0x2600, 0x27bf}, {0x2b1b, 0x2b55},
	{0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18aff}, {0x1b000, 0x1b2ff}, {0x1f000, 0x1faff}, {0x20000, 0x3fffd},
}

// cells is how many cells of a terminal a rune takes, or one more: marks that
// combine with the letter before them count as one, some symbols as two. Lines
// that come out shorter than thought do no harm, longer ones do.
func cells(r rune) int {
	for _, w := range wide {
		if r >= w[0] && r <= w[1] {
			return 2
		}
	}
	return 1
}

// padRight fills text up to a width in cells.
func PadRight(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Width(s)))
}

// padLeft is padRight on the other side.
func PadLeft(s string, width int) string {
	return strings.Repeat(" ", max(0, width-Width(s))) + s
}

// wrap breaks text at spaces into at most n lines of a width; what does not fit
// is cut.
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

// fitting is how many bytes of a text that is wider than that fit into a width.
func fitting(s string, width int) int {
	used := 0
	for i, r := range s {
		if used += cells(r); used > width {
			return i
		}
	}
	return len(s)
}

// none stands for a value that is absent.
const Absent = "–"

// fixed writes a number with some decimals, absurdly large ones in few digits all
// the same.
func Fixed(v float64, decimals int) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Absent
	case math.Abs(v) >= 1e7:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// seconds writes a duration: 0.05 s, 12.3 s, 3 min 20 s, 2 h 05 min, 6 d 23 h.
// From an hour on it is cut, not rounded: 2 h 05 min have passed in full.
func Seconds(s float64) string {
	whole := math.Floor(s + 0.5)
	switch {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return Absent
	case s < 0:
		return "-" + Seconds(-s)
	case s == 0:
		return "0 s"
	case s < 0.0001:
		return "<0.0001 s"
	case s < 0.0095:
		return Fixed(s, 4) + " s"
	case s < 0.995:
		return Fixed(s, 2) + " s"
	case s < 59.95:
		return Fixed(s, 1) + " s"
	case whole < 3600:
		return fmt.Sprintf("%d min %02d s", int(whole)/60, int(whole)%60)
	case whole < 86400:
		return fmt.Sprintf("%d h %02d min", int(whole)/3600, int(whole)/60%60)
	case whole < 1e9:
		return fmt.Sprintf("%d d %02d h", int(whole)/86400, int(whole)/3600%24)
	}

	return Fixed(s/86400, 0) + " d"
}

// size splits an amount of MiB (2^20 bytes) into a number and its binary unit:
// 0 B, 12 KiB, 1.5 MiB, 312 MiB, 1.5 GiB.
func Size(mib float64) (number, unit string) {
	v := math.Abs(mib) * (1 << 20)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Absent, ""
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

	number = Fixed(v, decimals)
	if mib < 0 && number != "0" {
		number = "-" + number
	}
	return number, units[i]
}

// sizeText is size in one word.
func SizeText(mib float64) string {
	number, unit := Size(mib)
	return strings.TrimRight(number+" "+unit, " ")
}

// rate writes MiB per second.
func Rate(v float64) string {
	switch {
	case v > 0 && v < 0.005:
		return "<0.01 MiB/s"
	case math.Abs(v) < 9.995:
		return Fixed(v, 2) + " MiB/s"
	}
	return Fixed(v, 1) + " MiB/s"
}

// percent writes a percentage with one decimal.
func Percent(v float64) string { return Fixed(v, 1) + " %" }

// hoursText writes CPU hours with at least two digits that tell something.
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

// trimSuffixes takes off the end of a text whichever of some words stands there.
func TrimSuffixes(s string, words ...string) string {
	for _, w := range words {
		s = strings.TrimSuffix(s, w)
	}
	return s
}

// shortSeconds is seconds without spaces: 12.3s, 3m20s, 2h05m, 6d23h.
func ShortSeconds(s float64) string {
	return strings.ReplaceAll(strings.ReplaceAll(Seconds(s), " ", ""), "min", "m")
}

// shortHours writes CPU hours in at most seven characters.
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
