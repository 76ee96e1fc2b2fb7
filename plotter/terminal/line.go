package terminal

import (
	"regexp"
	"strings"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
)

// line is a line of a screen. If there is no room, the lines with the highest priority numbers are omitted first.
type line struct {
	priority int
	style    table.Style
	text     string
	ink      table.Style // style of the bars and sparklines in text
}

// render returns the line, shortened to the screen's width, with its style.
func (l line) render(o Options) string {
	words := l.text
	if o.ASCII {
		words = text.ASCII(words)
	}
	words = strings.TrimRight(clip(words, o.Width), " ")
	if o.ASCII { // a shortened line has an ellipsis, which is not ASCII
		words = text.ASCII(words)
	}
	switch {
	case !o.Color:
		return words
	case l.ink != table.Plain:
		return drawing.ReplaceAllStringFunc(words, l.ink.Color)
	}
	return l.style.Color(words)
}

// drawing matches bars and sparklines.
var drawing = regexp.MustCompile("[▁-█▉-▏·]+")

// clip shortens words to width. It never splits a number or separates it from its unit, because the rest would look
// like another number.
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
