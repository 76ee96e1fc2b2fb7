package plotter

import (
	"bytes"
	"encoding/base64"
	"image/color"
	"io"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// A markup is a part of a page that is ours. Only literals and embedded files are: text from reports is a string, which
// the compiler does not take for a markup.
type markup string

// An htmlWriter writes HTML, SVG and the data of scripts, in pieces. What is ours goes out by ours, as it is. All that
// comes from reports goes out by one of the others, which escape it for where it stands.
type htmlWriter struct {
	to  io.Writer
	out []byte // not yet written
	err error  // the first of to
}

const (
	pieceBytes = 8 << 10 // are written at once
	spareBytes = 4 << 10 // of what makes a piece longer
	largeBytes = 4 << 10 // of ours are written without being copied
)

func newHTMLWriter(to io.Writer) *htmlWriter {
	return &htmlWriter{to: to, out: make([]byte, 0, pieceBytes+spareBytes)}
}

// flush writes what has not been written, and returns the first error of all writing.
func (w *htmlWriter) flush() error {
	if w.err == nil && len(w.out) > 0 {
		_, w.err = w.to.Write(w.out)
	}
	w.out = w.out[:0]

	return w.err
}

// filled writes the piece if it is long enough.
func (w *htmlWriter) filled() *htmlWriter {
	if len(w.out) >= pieceBytes {
		_ = w.flush() // whoever flushes last gets the error
	}
	return w
}

// ours writes our own markup. Of a large one no copy is made, if to takes strings.
func (w *htmlWriter) ours(m markup) *htmlWriter {
	if len(m) < largeBytes {
		w.out = append(w.out, m...)
		return w.filled()
	}

	if w.flush() == nil {
		_, w.err = io.WriteString(w.to, string(m))
	}
	return w
}

// when writes our own markup on a condition.
func (w *htmlWriter) when(condition bool, m markup) *htmlWriter {
	if condition {
		w.ours(m)
	}
	return w
}

// nth writes what separates part i of several from the one before it: a comma, or begin before the first.
func (w *htmlWriter) nth(i int, begin markup) *htmlWriter {
	if i > 0 {
		begin = ","
	}
	return w.ours(begin)
}

// text writes text into an element, or into an attribute between double quotes that is not an address.
func (w *htmlWriter) text(s string) *htmlWriter {
	written := 0
	for i := range len(s) {
		if s[i] > '>' { // most are
			continue
		}
		if escape := escapeOf(s[i]); escape != "" {
			w.out = append(append(w.out, s[written:i]...), escape...)
			written = i + 1
		}
	}
	w.out = append(w.out, s[written:]...)

	return w.filled()
}

// escapeOf returns what stands for a byte in HTML and XML; "" is the byte itself.
func escapeOf(c byte) string {
	switch c {
	case '&':
		return "&amp;"
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '"':
		return "&#34;"
	case '\'':
		return "&#39;"
	case 0:
		return "\ufffd"
	}
	return ""
}

// color writes a color, without its transparency.
func (w *htmlWriter) color(c color.NRGBA) *htmlWriter {
	w.out = append(w.out, '#')
	for _, part := range [...]uint8{c.R, c.G, c.B} {
		w.out = append(w.out, hex[part>>4], hex[part&15])
	}
	return w
}

const hex = "0123456789abcdef"

// base64 writes bytes that a script or a browser decodes.
func (w *htmlWriter) base64(data []byte) *htmlWriter {
	w.out = base64.StdEncoding.AppendEncode(w.out, data)
	return w.filled()
}

// link writes a relative address, of a file or of a place in the page, in an attribute between double quotes. One with a
// scheme, such as javascript:, leads nowhere.
func (w *htmlWriter) link(address string) *htmlWriter {
	if start, _, found := strings.Cut(address, ":"); found && !strings.Contains(start, "/") {
		address = "#"
	}

	for i := range len(address) {
		switch c := address[i]; {
		case c == '&':
			w.out = append(w.out, "&amp;"...)
		case inAddress(c), c == '%' && escaped(address[i:]):
			w.out = append(w.out, c)
		default:
			w.out = append(w.out, '%', hex[c>>4], hex[c&15])
		}
	}

	return w.filled()
}

// inAddress reports whether an address may have a byte as it is.
func inAddress(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.IndexByte("-._~!#$*+,/:;=?@[]", c) >= 0
}

// escaped reports whether an address begins with an escaped byte.
func escaped(address string) bool {
	return len(address) > 2 && strings.Trim(address[1:3], "0123456789abcdefABCDEF") == ""
}

// whole writes a whole number.
func (w *htmlWriter) whole(n int) *htmlWriter {
	w.out = strconv.AppendInt(w.out, int64(n), 10)
	return w
}

// number writes a number with as many digits as it has: as text, or as data of a script, in which one that is not finite
// is null.
func (w *htmlWriter) number(v float64) *htmlWriter {
	w.out = text.AppendFloat(w.out, v)
	return w.filled()
}

// numbers writes numbers as data of a script: an array of JSON.
func (w *htmlWriter) numbers(list []float64) *htmlWriter {
	w.out = append(w.out, '[')
	for i, v := range list {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.number(v)
	}
	w.out = append(w.out, ']')
	return w
}

// fixed writes a number with so many decimals; −1 are as many as it has.
func (w *htmlWriter) fixed(v float64, decimals int) *htmlWriter {
	w.out = strconv.AppendFloat(w.out, v, 'f', decimals, 64)
	return w
}

// quoted writes text as data of a script: a string of JSON in which nothing looks like markup.
func (w *htmlWriter) quoted(s string) *htmlWriter {
	from := len(w.out)
	data, _ := text.JSON(s) // every string has a form in JSON
	w.out = append(w.out, data...)
	if bytes.ContainsAny(w.out[from:], "<>&") {
		json := string(w.out[from:])
		w.out = w.out[:from]
		for i := range len(json) {
			switch c := json[i]; c {
			case '<':
				w.out = append(w.out, `\u003c`...)
			case '>':
				w.out = append(w.out, `\u003e`...)
			case '&':
				w.out = append(w.out, `\u0026`...)
			default:
				w.out = append(w.out, c)
			}
		}
	}

	return w.filled()
}

// strings writes texts as data of a script: an array of JSON.
func (w *htmlWriter) strings(list ...string) *htmlWriter {
	w.ours("[")
	for i, s := range list {
		w.nth(i, "").quoted(s)
	}
	return w.ours("]")
}
