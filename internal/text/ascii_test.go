package text

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestASCII(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "",
		"plain\ttext\x1b[1m\n": "plain\ttext\x1b[1m\n",
		"0.2 CPU·h, 3 × 5 µs … – −1 ± 2 ≥ 4": "0.2 CPU.h, 3 x 5 us ~ - -1 +- 2 >= 4",
		"███▌······":                         "####......",
		"█████████▎":                         "#########.",
		"café 日本 🚀":                          `caf\u00e9 \u65e5\u672c \U0001f680`,
		"a\xffb\x01":                         `a\xffb` + "\x01",
		"\xe2\x82":                           `\xe2\x82`,
	} {
		if got := ASCII(in); got != want {
			t.Errorf("ASCII(%q) = %q, want %q", in, got, want)
		}
	}
}

// The output does not depend on how the text is split into writes.
func TestASCIIWriter_AcceptsSplitCharacters(t *testing.T) {
	const in = "µ – 日本 🚀 x"
	for size := 1; size <= len(in); size++ {
		var out bytes.Buffer
		w := NewASCIIWriter(&out)
		for rest := []byte(in); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			part := rest[:min(size, len(rest))]
			if n, err := w.Write(part); n != len(part) || err != nil {
				t.Fatalf("Write(%q) = %d, %v, want %d, nil", part, n, err, len(part))
			}
		}
		if out.String() != ASCII(in) {
			t.Errorf("output for parts of %d bytes = %q, want %q", size, out.String(), ASCII(in))
		}
	}
}

func TestASCIIWriter_ReturnsWriteErrors(t *testing.T) {
	bad := errors.New("full")
	r, pipe := io.Pipe()
	r.CloseWithError(bad)
	if _, err := NewASCIIWriter(pipe).Write([]byte("x")); !errors.Is(err, bad) {
		t.Error(err)
	}
}

func FuzzASCII(f *testing.F) {
	f.Add("plain … 日本\xff")
	f.Fuzz(func(t *testing.T, s string) {
		plain := ASCII(s)
		for i := range len(plain) {
			if plain[i] >= utf8.RuneSelf {
				t.Fatalf("ASCII(%q) = %q, which is not ASCII", s, plain)
			}
		}
		if ASCII(plain) != plain {
			t.Fatalf("ASCII(%q) = %q, which is not a fixed point: ASCII changes it to %q", s, plain, ASCII(plain))
		}

		var out bytes.Buffer
		if _, err := io.Copy(NewASCIIWriter(&out), iotest.OneByteReader(bytes.NewReader([]byte(s)))); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(s) && out.String() != plain {
			t.Fatalf("ASCIIWriter writes %q as %q, want %q", s, out.String(), plain)
		}
	})
}

func TestNearest(t *testing.T) {
	words := []string{"run", "sidecar", "show", "watch", "metrics", "op", "--interval", "PERFAGENT_INTERVAL"}
	for typed, want := range map[string]string{
		"rnu": "run", "rin": "run", "Run": "run", "shwo": "show", "sho": "show", "sh": "show", "metrcs": "metrics", "wacth": "watch",
		"--interva": "--interval", "PERFAGENT_INTERVALL": "PERFAGENT_INTERVAL",
		"": "", "x": "", "r": "", "sleep": "", "recrding": "", "python3": "", "日本": "",
	} {
		if got := Nearest(typed, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	if got, want := DidYouMean("interval", "--%s", "no idea"), "did you mean --interval?"; got != want {
		t.Errorf("DidYouMean = %q, want %q", got, want)
	}
	if got, want := DidYouMean("", "--%s", "no idea"), "no idea"; got != want {
		t.Errorf("DidYouMean without a word = %q, want %q", got, want)
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("rnu", "run")
	f.Fuzz(func(t *testing.T, a, b string) {
		if Nearest(a, nil) != "" {
			t.Errorf("Nearest(%q) without words = %q, want none", a, Nearest(a, nil))
		}
		if got := Nearest(a, []string{b}); got != "" && got != b {
			t.Errorf("Nearest(%q) = %q, want %q or none", a, got, b)
		}
		if len(a) > 100 || len(b) > 100 {
			return
		}
		if d := editDistance(a, b); d != editDistance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Errorf("editDistance(%q, %q) = %d, with swapped arguments %d; want the same, 0 only for equal words, and at most the longer length", a, b, d, editDistance(b, a))
		}
	})
}
