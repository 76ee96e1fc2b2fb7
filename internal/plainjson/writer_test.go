package plainjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// FuzzWriter_Raw breaks lines as the function of before did, at each depth.
func FuzzWriter_Raw(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, `{"a":{},"b":[],"c":[{}],"d":{"e":[1,[2,{"f":"\"{,:"}]]}}`, `"{"`, `[null,{"a":-1e5}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var in bytes.Buffer
		if json.Compact(&in, []byte(s)) != nil {
			t.Skip("no JSON")
		}
		for depth := range 6 {
			w := Writer{Depth: depth}
			if w.Raw(in.Bytes()); w.Err != nil {
				t.Fatal(w.Err)
			}
			if got, want := string(w.Out)+"\n", string(indent(in.Bytes(), depth)); got != want {
				t.Errorf("depth %d: got %s, want %s", depth, got, want)
			}
		}
	})
}

// indent breaks compact JSON into lines down to a depth. Deeper values stay on
// their line.
func indent(in []byte, depth int) []byte {
	w := indenter{out: make([]byte, 0, len(in)+len(in)/16), depth: depth}
	for i := 0; i < len(in); i++ {
		if in[i] == '"' {
			end := stringEnd(in, i)
			w.out = append(w.out, in[i:end]...)
			i = end - 1
			continue
		}
		empty := i+1 < len(in) && in[i+1] == in[i]+2 // {} or []
		if empty && (in[i] == '{' || in[i] == '[') {
			w.out = append(w.out, in[i], in[i+1])
			i++
			continue
		}
		w.put(in[i])
	}
	return append(w.out, '\n')
}

// indenter is the state of indent.
type indenter struct {
	out          []byte
	level, depth int
}

// put writes one byte outside strings, with the line break that belongs to it.
func (w *indenter) put(c byte) {
	switch c {
	case '{', '[':
		w.level++
		w.out = append(w.out, c)
		w.newline()
	case '}', ']':
		w.level--
		if w.level < w.depth {
			w.breakLine()
		}
		w.out = append(w.out, c)
	case ',':
		w.out = append(w.out, c)
		w.newline()
	case ':':
		w.out = append(w.out, c)
		if w.level <= w.depth {
			w.out = append(w.out, ' ')
		}
	default:
		w.out = append(w.out, c)
	}
}

// newline breaks the line unless what follows is too deep.
func (w *indenter) newline() {
	if w.level <= w.depth {
		w.breakLine()
	}
}

func (w *indenter) breakLine() {
	w.out = append(w.out, '\n')
	for range w.level {
		w.out = append(w.out, ' ', ' ')
	}
}

// What a Writer writes is what package json does.
func TestWriter_Values(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 3, 4, 5, 678900000, time.FixedZone("", -3600))
	for _, v := range []any{
		nil, true, false, 0, -7, int64(math.MaxInt64), 1.5, 1e-7, 1e-10, 1e21, 1e-300, math.Copysign(0, -1),
		"", "a\"\\\x00\xff\u2028<&>é", []string(nil), []string{}, []string{"a", "b"}, []float64(nil), []float64{1},
		map[string]any{"b": 1, "a": []any{}}, json.Number("1e5"), uint8(3), at, json.RawMessage(`{"a":[]}`),
		[]byte("\x00abc"),
	} {
		want, err := Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var w Writer
		switch v := v.(type) {
		case time.Time:
			w.Time(v)
		case json.RawMessage:
			w.Raw(v)
		case []byte:
			w.Base64(v)
		default:
			w.Any(v)
		}
		if string(w.Out) != string(want) || w.Err != nil {
			t.Errorf("%v: %s (%v), want %s", v, w.Out, w.Err, want)
		}
	}

	var absent Writer
	absent.Base64(nil)
	absent.Raw(nil)
	absent.Optional(math.NaN())
	absent.Optional(math.Inf(-1))
	absent.Optional(1e-9)
	if got := string(absent.Out); got != "nullnullnullnull1e-9" {
		t.Error(got)
	}
}

func TestWriter_Errors(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, write := range map[string]func(w *Writer){
		"NaN":           func(w *Writer) { w.Float(math.NaN()) },
		"infinite":      func(w *Writer) { w.Any(math.Inf(1)) },
		"a channel":     func(w *Writer) { w.Any(make(chan int)) },
		"a year":        func(w *Writer) { w.Time(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)) },
		"a MarshalJSON": func(w *Writer) { w.Marshaled(nil, failed) },
		"a stream":      func(w *Writer) { w.To = refusing{}; w.Int(1); w.Flush() },
	} {
		var w Writer
		write(&w)
		first := w.Err
		w.fail(failed)
		if w.Int(2); first == nil || w.Err != first {
			t.Errorf("%s: %v, then %v", name, first, w.Err)
		}
	}
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errors.New("refused") }

// A Writer to a stream writes the same, and holds little of it.
func TestWriter_Stream(t *testing.T) {
	t.Parallel()
	var whole, part Writer
	var out bytes.Buffer
	part.To = &out
	for _, w := range []*Writer{&whole, &part} {
		w.Open('[')
		for range 20000 {
			w.Item().String(strings.Repeat("a", 50))
		}
		w.Shut(']')
	}
	if cap(part.Out) > 2*bufferSize {
		t.Errorf("it holds %d bytes", cap(part.Out))
	}
	if part.Flush(); part.Err != nil || !bytes.Equal(out.Bytes(), whole.Out) || !json.Valid(whole.Out) {
		t.Errorf("%d bytes, want %d (%v)", out.Len(), len(whole.Out), part.Err)
	}
}
