package terminal

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/text"
)

// line is a line of a screen. If there is no room, lines of the highest rank are left out first.
type line struct {
	rank  int
	style string // as in SGR (ECMA-48), "" = plain
	text  string
}

// render cuts a line to the screen and dresses it.
func (l line) render(o Options) string {
	words := l.text
	if o.ASCII {
		words = toASCII(words)
	}
	words = strings.TrimRight(clip(words, o.Width), " ")
	if o.ASCII {
		words = strings.ReplaceAll(words, "…", "~")
	}
	if o.Color && l.style != "" && words != "" {
		return "\x1b[" + l.style + "m" + words + "\x1b[0m"
	}
	return words
}

// clip cuts text to a width. It does not cut a number in two or off from its unit, because
// the rest would look like another number.
func clip(words string, width int) string {
	if text.Width(words) <= width {
		return words
	}
	kept := strings.TrimSuffix(text.Clip(words, width), "…")
	whole, rest := strings.TrimRight(kept, " "), strings.TrimLeft(words[len(kept):], " ")
	const digits = "0123456789."
	less := strings.TrimRight(whole, digits)
	if less != whole && rest != "" {
		next, lower := rest[0], rest[0]|0x20
		if strings.ContainsRune(digits+"%", rune(next)) || lower >= 'a' && lower <= 'z' {
			kept = less
		}
	}
	return text.Clip(kept+"…", width)
}

// toASCII replaces our own signs by ASCII, and other characters outside of ASCII by escapes.
func toASCII(s string) string {
	var out strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			out.WriteRune(r)
		case r == '–':
			out.WriteByte('-')
		case r == '×':
			out.WriteByte('x')
		case r == '…':
			out.WriteByte('~')
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}

	return out.String()
}
