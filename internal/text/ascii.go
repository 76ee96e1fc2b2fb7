package text

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"
)

// ASCII returns s for a terminal that has nothing but ASCII. The signs of perfagent's own texts become the ASCII
// character that is most like them, of the same width where there is one. Every other character outside of ASCII
// becomes its escape in Go: \u00e9.
func ASCII(s string) string { return string(appendASCII(make([]byte, 0, len(s)), []byte(s))) }

func appendASCII(out, s []byte) []byte {
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		switch own := ownSign(r); {
		case r < utf8.RuneSelf:
			out = append(out, s[0])
		case own != "":
			out = append(out, own...)
		default:
			out = appendEscaped(out, string(s[:size]), r)
		}
		s = s[size:]
	}

	return out
}

// ownSign returns the ASCII text for a sign that perfagent's own texts use, or "" for any other character.
func ownSign(r rune) string {
	switch r {
	case '…', '≈':
		return "~"
	case '–', '—', '−':
		return "-"
	case '×':
		return "x"
	case '·', '▏', '▎', '▍': // also the empty part of a bar
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

// An ASCIIWriter writes text to another writer as [ASCII] returns it. A character may be split between two writes.
// It is safe for concurrent use.
type ASCIIWriter struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // the beginning of a character
}

// NewASCIIWriter returns a writer of plain ASCII to another writer.
func NewASCIIWriter(to io.Writer) *ASCIIWriter { return &ASCIIWriter{to: to} }

// Unwrap returns the writer below, which takes text as it is.
func (w *ASCIIWriter) Unwrap() io.Writer { return w.to }

// Write writes p, but for the beginning of a character at its end. It is one write to the writer below.
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

// appendEscaped adds the escape of one character; raw is its bytes.
func appendEscaped(out []byte, raw string, r rune) []byte {
	if r == utf8.RuneError && len(raw) == 1 {
		return fmt.Appendf(out, `\x%02x`, raw[0])
	}

	quoted := strconv.QuoteRuneToASCII(r)
	return append(out, quoted[1:len(quoted)-1]...)
}
