package text

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain text, 100 % – ≥ ü 日本語 🚀": "plain text, 100 % – ≥ ü 日本語 🚀", `C:\dir\new`: `C:\dir\new`,
		"\x1b[31m": `\x1b[31m`, "a\rb\nc\td": `a\rb\nc\td`, "\a\b\f\v\x00": `\a\b\f\v\x00`, "\x7f": `\x7f`,
		"\u0085\u009b": `\u0085\u009b`, "\u202e\u2066\u200f\u061c": `\u202e\u2066\u200f\u061c`, "\u200b\u200d\ufeff\u2060": `\u200b\u200d\ufeff\u2060`,
		"\u2028\u2029": `\u2028\u2029`, "\u3164\u115f\u034f": `\u3164\u115f\u034f`, "\U000e0041": `\U000e0041`, "\ue000": `\ue000`,
		"\xff\xc3": `\xff\xc3`, "ok\xe2\x82": `ok\xe2\x82`, "\ufffd": "\ufffd", "\xed\xa0\x80": `\xed\xa0\x80`, "\u00a0": `\u00a0`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("plain", 10)
	f.Add(hostileText, 17)
	f.Add("日本語🚀\u0301", 3)
	f.Fuzz(func(t *testing.T, s string, width int) {
		shown := Printable(s)
		for _, r := range shown {
			if !unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) || unicode.IsControl(r) {
				t.Fatalf("Printable(%q) contains the invisible character %U", s, r)
			}
		}
		if !utf8.ValidString(shown) || Printable(shown) != shown {
			t.Fatalf("Printable(%q) = %q, which is not valid or not printable", s, shown)
		}
		width %= 200
		for _, cut := range []string{Clip(shown, width), ClipStart(shown, width)} {
			if Width(cut) > max(width, 0) || !utf8.ValidString(cut) || Width(shown) <= width && cut != shown {
				t.Fatalf("Clip(%q, %d) = %q, want at most that width, and no change if the text fits", shown, width, cut)
			}
		}
		if width < 1 {
			return
		}
		parts := Wrap(shown, width, 3)
		for _, part := range parts {
			if Width(part) > width {
				t.Fatalf("Wrap(%q, %d) has the line %q, which is too wide", shown, width, part)
			}
		}
		if len(parts) > 3 || !strings.HasSuffix(parts[len(parts)-1], "…") && letters(strings.Join(parts, "")) != letters(shown) {
			t.Fatalf("Wrap(%q) = %q, want at most 3 lines, and all letters unless the last line is truncated", shown, parts)
		}
	})
}

func letters(s string) string { return strings.ReplaceAll(s, " ", "") }

func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"hello", 5, "hello"}, {"hello", 4, "hell"}, {"hello", 0, ""}, {"", 0, ""},
		{"日本語", 9, "日本語"}, {"日本語", 8, "日本"}, {"日本語", 6, "日本"}, {"日本語", 2, ""}, {"a\xffb", 4, "a\uFFFD"},
	} {
		if got := Prefix(c.in, c.n); got != c.want {
			t.Errorf("Prefix(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		in          string
		width       int
		want, start string
	}{
		{"hello", 5, "hello", "hello"}, {"hello", 4, "hel…", "…llo"}, {"hello", 1, "…", "…"}, {"hello", 0, "", ""}, {"hello", -1, "", ""}, {"", 0, "", ""},
		{"日本語", 6, "日本語", "日本語"}, {"日本語", 5, "日本…", "…本語"}, {"日本語", 4, "日…", "…語"}, {"日本語", 2, "…", "…"}, {"a日", 2, "a…", "…"},
	} {
		if got := Clip(c.in, c.width); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
		if got := ClipStart(c.in, c.width); got != c.start {
			t.Errorf("ClipStart(%q, %d) = %q, want %q", c.in, c.width, got, c.start)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"short", []string{"short"}}, {"", []string{""}}, {"two words here", []string{"two words", "here"}},
		{"abcdefghijklmnop", []string{"abcdefghij", "klmnop"}}, {"one two three four five six", []string{"one two", "three fou…"}},
	} {
		if got := Wrap(c.in, 10, 2); !slices.Equal(got, c.want) {
			t.Errorf("Wrap(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestFormats_IncludeUnit(t *testing.T) {
	type row struct {
		v    float64
		want string
	}
	nan, inf := math.NaN(), math.Inf(1)
	for name, c := range map[string]struct {
		write func(float64) string
		rows  []row
	}{
		"seconds": {Seconds, []row{{0, "0 s"}, {1e-8, "<0.1 µs"}, {0.0000625, "62.5 µs"}, {0.0009994, "999 µs"}, {0.0009996, "1 ms"}, {0.0031, "3.1 ms"}, {0.045, "45 ms"},
			{0.04518, "45.2 ms"}, {0.996, "996 ms"}, {0.9996, "1.0 s"}, {12.34, "12.3 s"}, {59.94, "59.9 s"}, {59.96, "1 min 00 s"}, {200, "3 min 20 s"}, {3599.4, "59 min 59 s"}, {3599.6, "1 h 00 min"},
			{7500, "2 h 05 min"}, {86399, "23 h 59 min"}, {6*86400 + 23*3600, "6 d 23 h"}, {6*86400 + 3*3600, "6 d 03 h"}, {1e12, "1.16e+07 d"}, {-5, "-5.0 s"}, {nan, Absent}, {inf, Absent}}},
		"size": {SizeText, []row{{0, "0 B"}, {1.0 / (1 << 20), "1 B"}, {12.0 / 1024, "12 KiB"}, {1023.4 / 1024, "1023 KiB"}, {1023.9 / 1024, "1.0 MiB"}, {4.25, "4.2 MiB"},
			{9.96, "10 MiB"}, {312, "312 MiB"}, {1536, "1.5 GiB"}, {15.6 * 1024, "15.6 GiB"}, {125 * 1024, "125 GiB"}, {2.3 * 1024 * 1024, "2.3 TiB"}, {-1536, "-1.5 GiB"}, {nan, Absent}, {inf, Absent}}},
		"rate":    {SpeedText, []row{{0, "0.00 MiB/s"}, {0.001, "<0.01 MiB/s"}, {0.5, "0.50 MiB/s"}, {9.99, "9.99 MiB/s"}, {74, "74.0 MiB/s"}, {1e300, "1e+300 MiB/s"}}},
		"percent": {Percent, []row{{0, "0.0 %"}, {49.98, "50.0 %"}, {100, "100.0 %"}}},
		"hours":   {Hours, []row{{0, "0.0"}, {0.0000001, "1.0e-07"}, {0.000123, "0.000123"}, {0.0133, "0.013"}, {8, "8.000"}, {1234.56, "1234.6"}, {nan, Absent}}},
		"short":   {ShortSeconds, []row{{0.05, "50ms"}, {200, "3m20s"}, {7500, "2h05m"}, {600000, "6d22h"}, {nan, Absent}}},
		"CPUs":    {CPUs, []row{{2, "2"}, {1.5, "1.5"}, {0.256, "0.26"}, {1e8, "1e+08"}, {nan, Absent}}},
		"whole":   {TrimmedSizeText, []row{{64 * 1024, "64 GiB"}, {1280, "1.25 GiB"}, {1.3 * 1024, "1.3 GiB"}, {312, "312 MiB"}, {nan, Absent}}},
		"nodes":   {ShortHours, []row{{0, "0.000"}, {0.0001, "<0.001"}, {12.3456, "12.346"}, {123.4, "123.4"}, {98765.4, "98765"}}},
	} {
		for _, r := range c.rows {
			if got := c.write(r.v); got != r.want {
				t.Errorf("%s(%v) = %q, want %q", name, r.v, got, r.want)
			}
		}
	}
}

func TestCount(t *testing.T) {
	for v, want := range map[float64]string{0: "0 processes", 1: "1 process", 3: "3 processes"} {
		if got := Count(v, "process", "processes"); got != want {
			t.Errorf("Count(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestList(t *testing.T) {
	words := []string{"a", "b", "c"}
	for n, want := range map[int]string{3: "a, b, c", 5: "a, b, c", 1: "a and 2 more"} {
		if got := List(words, n); got != want {
			t.Errorf("List of the first %d words = %q, want %q", n, got, want)
		}
	}
}

// hostileText contains characters that must never be sent to a terminal.
const hostileText = "a\x1b[31mred\x1b]0;title\a\rb\n\tc\u202ed\u200be\u2028f\xffg\x7fh\u009b2Ji \\ \u65e5\u672c\u8a9e"

// Only 100 is shown as 100 %, and only 0 is shown as 0 %.
func TestWholePercent(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0 %", 0.2: "<1 %", 1.4: "1 %", 99.4: "99 %", 99.6: ">99 %", 99.999: ">99 %", 100: "100 %", 156.2: "156 %"} {
		if got := WholePercent(v); got != want {
			t.Errorf("WholePercent(%v) = %q, want %q", v, got, want)
		}
	}
}
