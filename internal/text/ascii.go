package text

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"
)

// ASCII returns s in ASCII, for terminals that show only ASCII. A sign from perfagent's own texts becomes the most
// similar ASCII character, with the same width if possible. Any other character becomes its Go escape: \u00e9.
func ASCII(s string) string { return string(appendASCII(make([]byte, 0, len(s)), []byte(s))) }

func appendASCII(out, s []byte) []byte {
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		switch sign := ownSign(r); {
		case r < utf8.RuneSelf:
			out = append(out, s[0])
		case sign != "":
			out = append(out, sign...)
		default:
			out = appendEscaped(out, string(s[:size]), r)
		}
		s = s[size:]
	}

	return out
}

// ownSign returns the ASCII replacement of a sign in perfagent's own texts, or "" for any other character.
func ownSign(r rune) string {
	switch r {
	case '…', '≈':
		return "~"
	case '–', '—', '−':
		return "-"
	case '×':
		return "x"
	case '·', '▏', '▎', '▍': // includes the empty part of a bar
		return "."
	case '█', '▉', '▊', '▋', '▌':
		return "#"
	case 'µ', 'μ':
		return "u"
	case '±':
		return "+-"
	case '≥':
		return ">="
	case '≤':
		return "<="
	case '→':
		return "->"
	case '°':
		return "deg"
	}

	return ""
}

// ASCIIWriter writes text to another writer, converted by [ASCII]. A character may be split between two writes. It is
// safe for concurrent use.
type ASCIIWriter struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // incomplete character
}

// NewASCIIWriter returns an ASCIIWriter that writes to the given writer.
func NewASCIIWriter(to io.Writer) *ASCIIWriter { return &ASCIIWriter{to: to} }

// Unwrap returns the underlying writer, for text that must not be converted.
func (w *ASCIIWriter) Unwrap() io.Writer { return w.to }

// Write writes p, except for an incomplete character at its end, in one write to the underlying writer.
func (w *ASCIIWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	data := append(w.rest, p...)
	whole := len(data)
	for back := 1; back < utf8.UTFMax && back <= len(data); back++ {
		if start := len(data) - back; utf8.RuneStart(data[start]) {
			if !utf8.FullRune(data[start:]) {
				whole = start
			}
			break
		}
	}

	w.rest = append([]byte(nil), data[whole:]...)
	if _, err := w.to.Write(appendASCII(nil, data[:whole])); err != nil {
		return 0, err
	}

	return len(p), nil
}

// appendEscaped appends the Go escape of one character; raw is its bytes.
func appendEscaped(out []byte, raw string, r rune) []byte {
	if r == utf8.RuneError && len(raw) == 1 {
		return fmt.Appendf(out, `\x%02x`, raw[0])
	}

	quoted := strconv.QuoteRuneToASCII(r)
	return append(out, quoted[1:len(quoted)-1]...)
}
