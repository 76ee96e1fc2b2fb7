package plainjson

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// bufferSize is how much a Writer to a stream collects before it writes.
const bufferSize = 32 << 10

// A Writer writes JSON in its final form: down to a depth each member has a line of its own, and deeper values stay on
// their line. Its callers say what stands where. A value is written as package json does, without escapes for HTML. The
// zero value is ready to use.
//
// Its methods are not inlined: there are a thousand calls of them, each of which would take more room.
type Writer struct {
	Out   []byte    // what was written is appended to it
	To    io.Writer // where Out goes when it is full; nil = it holds everything
	Depth int       // 0 = everything is on one line
	Err   error     // the first one

	level int
	empty bool // nothing has been written since the innermost brace
}

// Flush writes Out to the stream.
func (w *Writer) Flush() {
	if w.Err == nil {
		_, w.Err = w.To.Write(w.Out)
	}
	w.Out = w.Out[:0]
}

func (w *Writer) fail(err error) {
	if w.Err == nil {
		w.Err = err
	}
}

// Open begins an object or an array with its brace.
//
//go:noinline
func (w *Writer) Open(brace byte) {
	w.Out = append(w.Out, brace)
	w.level++
	w.empty = true
}

// Shut ends an object or an array with its brace.
//
//go:noinline
func (w *Writer) Shut(brace byte) {
	w.level--
	if !w.empty && w.level < w.Depth {
		w.breakLine()
	}
	w.Out = append(w.Out, brace)
	w.empty = false
}

// Item begins an item of an array, and returns the Writer, for its value.
func (w *Writer) Item() *Writer {
	if w.To != nil && len(w.Out) >= bufferSize {
		w.Flush()
	}
	if !w.empty {
		w.Out = append(w.Out, ',')
	}
	w.empty = false
	if w.level <= w.Depth {
		w.breakLine()
	}
	return w
}

// Key begins a member of an object with its name, and returns the Writer, for its value.
func (w *Writer) Key(name string) *Writer {
	w.Item()
	w.Out = AppendString(w.Out, name)
	w.colon()
	return w
}

func (w *Writer) colon() {
	w.Out = append(w.Out, ':')
	if w.level <= w.Depth {
		w.Out = append(w.Out, ' ')
	}
}

func (w *Writer) breakLine() {
	w.Out = append(w.Out, '\n')
	for range w.level {
		w.Out = append(w.Out, ' ', ' ')
	}
}

// Null writes null.
//
//go:noinline
func (w *Writer) Null() { w.Out = append(w.Out, "null"...) }

// Bool writes true or false.
//
//go:noinline
func (w *Writer) Bool(v bool) { w.Out = strconv.AppendBool(w.Out, v) }

// Int writes an integer.
//
//go:noinline
func (w *Writer) Int(v int64) { w.Out = strconv.AppendInt(w.Out, v, 10) }

// String writes a string.
//
//go:noinline
func (w *Writer) String(s string) { w.Out = AppendString(w.Out, s) }

// Float writes a number. One that is not finite is an error.
func (w *Writer) Float(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		w.fail(fmt.Errorf("unsupported value: %v", v))
		return
	}

	out := AppendFloat(w.Out, v)
	if n := len(out); n-len(w.Out) >= 4 && out[n-4] == 'e' && out[n-3] == '-' && out[n-2] == '0' { // e-09 is e-9
		out = append(out[:n-2], out[n-1])
	}
	w.Out = out
}

// Optional writes a number that may be absent: null if it is not finite.
func (w *Writer) Optional(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		w.Null()
		return
	}
	w.Float(v)
}

// Strings writes a list of strings.
func (w *Writer) Strings(list []string) {
	if list == nil {
		w.Null()
		return
	}
	w.Open('[')
	for _, s := range list {
		w.Item().String(s)
	}
	w.Shut(']')
}

// Floats writes a list of numbers.
func (w *Writer) Floats(list []float64) {
	if list == nil {
		w.Null()
		return
	}
	w.Open('[')
	for _, v := range list {
		w.Item().Float(v)
	}
	w.Shut(']')
}

// Base64 writes bytes as a string.
func (w *Writer) Base64(data []byte) {
	if data == nil {
		w.Null()
		return
	}
	w.Out = append(base64.StdEncoding.AppendEncode(append(w.Out, '"'), data), '"')
}

// Time writes a time as package time does.
func (w *Writer) Time(t time.Time) {
	out, err := t.AppendText(append(w.Out, '"'))
	if err != nil {
		w.fail(err)
		return
	}
	w.Out = append(out, '"')
}

// Marshaled writes what a MarshalJSON has returned, which is on one line.
//
//go:noinline
func (w *Writer) Marshaled(data []byte, err error) {
	if err != nil {
		w.fail(err)
		return
	}
	w.Raw(data)
}

// Raw writes a value that is on one line.
func (w *Writer) Raw(value json.RawMessage) {
	switch {
	case value == nil:
		w.Null()
	case w.level >= w.Depth:
		w.Out = append(w.Out, value...)
	default:
		w.rawLines(value)
	}
}

func (w *Writer) rawLines(in []byte) {
	for i := 0; i < len(in); i++ {
		switch c := in[i]; c {
		case '"':
			end := stringEnd(in, i)
			w.Out = append(w.Out, in[i:end]...)
			i = end - 1
		case '{', '[':
			w.Open(c)
			if in[i+1] != c+2 { // its other brace
				w.Item()
			}
		case '}', ']':
			w.Shut(c)
		case ',':
			w.Item()
		case ':':
			w.colon()
		default:
			w.Out = append(w.Out, c)
		}
	}
}

// stringEnd returns the index behind the JSON string that begins at i.
func stringEnd(in []byte, i int) int {
	for i++; in[i] != '"'; i++ {
		if in[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// Any writes a value of any type. Those that evidence has take a short way.
func (w *Writer) Any(value any) {
	switch v := value.(type) {
	case nil:
		w.Null()
	case bool:
		w.Bool(v)
	case int:
		w.Int(int64(v))
	case int64:
		w.Int(v)
	case float64:
		w.Float(v)
	case string:
		w.String(v)
	case []string:
		w.Strings(v)
	case []float64:
		w.Floats(v)
	default:
		w.Marshaled(Marshal(v))
	}
}

// Keys returns the keys of a map in the order in which they are written.
func Keys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
