package marks

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse_AcceptsJSONAndPlainText(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		line string
		want Line
		ok   bool
	}{
		{"", Line{}, false},
		{" \r", Line{}, false},
		{"epoch 3\r", Line{Text: "epoch 3", At: nan}, true},
		{`{"mark":"epoch 3","ts":1795357692.08}`, Line{Text: "epoch 3", At: 1795357692.08}, true},
		{`{"mark":"epoch 3"}`, Line{Text: "epoch 3", At: nan}, true},
		{`{"mark":"epoch 3","ts":null}`, Line{Text: "epoch 3", At: nan}, true},
		{`{"mark":"","ts":1}`, Line{At: 1}, true},
		{`{"phase":"train","ts":2}`, Line{IsPhase: true, Text: "train", At: 2}, true},
		{`{"phase":"train","later":[1,{"a":2}]}`, Line{IsPhase: true, Text: "train", At: nan}, true},
		{`{"phase":null,"ts":2.5}`, Line{IsPhase: true, At: 2.5}, true},
		{`{"phase":""}`, Line{IsPhase: true, At: nan}, true},
		{`{"mark":"a\u001b[2Jb"}`, Line{Text: "a\x1b[2Jb", At: nan}, true},

		// JSON that is neither a mark nor a phase is a mark with the line as its text.
		{`{`, Line{Text: "{", At: nan}, true},
		{`{}`, Line{Text: "{}", At: nan}, true},
		{`{"epoch":3}`, Line{Text: `{"epoch":3}`, At: nan}, true},
		{`{"mark":3}`, Line{Text: `{"mark":3}`, At: nan}, true},
		{`{"phase":3}`, Line{Text: `{"phase":3}`, At: nan}, true},
		{`{"phase":["a"]}`, Line{Text: `{"phase":["a"]}`, At: nan}, true},
		{`{"mark":"a","phase":"b"}`, Line{Text: `{"mark":"a","phase":"b"}`, At: nan}, true},
		{`{"mark":"a","ts":"1"}`, Line{Text: `{"mark":"a","ts":"1"}`, At: nan}, true},
		{`{"mark":"a","ts":1e999}`, Line{Text: `{"mark":"a","ts":1e999}`, At: nan}, true},
		{`{"mark":"a"} tail`, Line{Text: `{"mark":"a"} tail`, At: nan}, true},
		{"\xff\xfe", Line{Text: "\uFFFD", At: nan}, true},
		{strings.Repeat("ä", 150), Line{Text: strings.Repeat("ä", 100), At: nan}, true},
		{"x" + strings.Repeat("ä", 150), Line{Text: "x" + strings.Repeat("ä", 99), At: nan}, true},
	} {
		got, ok := Parse([]byte(test.line))
		if ok != test.ok || !equal(got, test.want) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v, %v", test.line, got, ok, test.want, test.ok)
		}
	}
}

// equal reports whether two lines are equal. Unknown times are equal.
func equal(a, b Line) bool {
	same := a.At == b.At || math.IsNaN(a.At) && math.IsNaN(b.At)
	a.At, b.At = 0, 0
	return same && a == b
}

func TestLine_AppendRoundTrips(t *testing.T) {
	for _, l := range []Line{
		{Text: "epoch 3", At: 1795357692.080001},
		{Text: "no time", At: math.NaN()},
		{Text: "quotes \" and\nline ends \x00 and ünïcode", At: 0.5},
		{IsPhase: true, Text: "train", At: 12},
		{IsPhase: true, At: 12},
	} {
		line := l.Append(nil)
		if n := strings.Count(string(line), "\n"); n != 1 || !strings.HasSuffix(string(line), "\n") {
			t.Errorf("Append = %q with %d line ends, want one line end, at the end", line, n)
		}
		if got, ok := Parse(line); !ok || !equal(got, l) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v, true", line, got, ok, l)
		}
	}
}

// FuzzParse parses any input as at most one line within the limits, which must not change when it is written and parsed
// again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "text", `{"mark":"a","ts":1.5}`, `{"phase":"b"}`, `{"phase":null,"ts":2}`, `{"mark":`, "{\"mark\":\"\xff\"}",
		`{"phase":"` + strings.Repeat("é", 150) + `"}`, `{"mark":"x","ts":-1e300}`, "\x00\x1b]0;title\x07",
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		l, ok := Parse(data)
		if !ok {
			if strings.TrimSpace(string(data)) != "" {
				t.Errorf("Parse(%q) returned false for input that is not blank", data)
			}
			return
		}
		if len(l.Text) > MaxText || !utf8.ValidString(l.Text) || math.IsInf(l.At, 0) {
			t.Fatalf("Parse(%q) = %+v, want a finite time and at most %d bytes of UTF-8", data, l, MaxText)
		}

		if math.Abs(l.At) > 1e9 { // below that, six decimals are exact
			l.At = 1
		}
		again, ok := Parse(l.Append(nil))
		if near := math.Abs(again.At-l.At) < 1e-6; !ok || near != !math.IsNaN(l.At) {
			t.Fatalf("parsed %+v after writing %+v, want the same line", again, l)
		}
		again.At = l.At
		if !equal(again, l) {
			t.Fatalf("parsed %+v after writing %+v, want the same line", again, l)
		}
	})
}
