package text

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"time"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	type fields struct {
		Wait  time.Duration
		Floor float64 `json:"floor,omitempty"`
		Names []string
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{map[string]string{"b": "\x1b\u2028", "a": "<b> & c"}, `{"a":"<b> & c","b":"\u001b\u2028"}`},
		{"a\xffé\ufffd", `"a\ufffdé` + "\ufffd" + `"`},
		{[]float64{1e-9, 1234567.5, 1e20, 1e21}, `[1e-9,1234567.5,100000000000000000000,1e+21]`},
		{fields{Wait: time.Second}, `{"Wait":1000000000,"Names":null}`},
	} {
		if data, err := JSON(c.v); err != nil || string(data) != c.want {
			t.Errorf("JSON(%v) = %s, want %s (error %v)", c.v, data, c.want, err)
		}
	}
	if _, err := JSON(math.NaN()); err == nil {
		t.Error("JSON(NaN) succeeded, want an error")
	}
}

// Every finite number becomes the shortest text that reads back as the same number. Other numbers become null.
func FuzzAppendFloat(f *testing.F) {
	for _, v := range []float64{
		0, math.Copysign(0, -1), 1, -1.5, 0.1, 33.3, 1e-7, 1e-6, 1.000001, 999999999.999999, 1e9 - 1e-6, 1e15, 1e15 + 0.5, 1e20, 1e21, 1e300,
		math.MaxFloat64, math.SmallestNonzeroFloat64,
	} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		text := AppendFloats(nil, []float64{v, math.NaN(), math.Inf(1), math.Inf(-1)})
		var back []*float64
		if err := json.Unmarshal(text, &back); err != nil || len(back) != 4 {
			t.Fatalf("AppendFloats wrote %s, want four values (error %v)", text, err)
		}
		finite := !math.IsNaN(v) && !math.IsInf(v, 0)
		if finite != (back[0] != nil) || finite && *back[0] != v {
			t.Errorf("AppendFloats wrote %s, want the first number to read back as %v, or null if that is not finite",
				text, v)
		}
		for scale := 1.0; scale < 1e12 && finite; scale *= 10 { // numbers with few decimals
			v := math.Round(v*scale) / scale
			if a := math.Abs(v); a != 0 && a < 1e-6 || !(a < 1e21) {
				continue
			}
			if got, want := string(AppendFloat(nil, v)), strconv.FormatFloat(v, 'f', -1, 64); got != want {
				t.Errorf("AppendFloat = %s, want %s", got, want)
			}
		}
		if back[1] != nil || back[2] != nil || back[3] != nil {
			t.Errorf("AppendFloats wrote %s, want null for NaN and infinities", text)
		}
	})
}

func TestRound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    float64
		n    int
		want float64
	}{{1.25, 1, 1.3}, {-1.25, 1, -1.3}, {0.1234567, 6, 0.123457}, {1e300, 9, 1e300}, {math.MaxFloat64, 3, math.MaxFloat64}} {
		if got := Round(c.v, c.n); got != c.want {
			t.Errorf("Round(%v, %d) = %v, want %v", c.v, c.n, got, c.want)
		}
	}
}

func TestRoundSignificant(t *testing.T) {
	t.Parallel()
	for in, want := range map[float64]float64{
		0: 0, 1.23456789: 1.234568, -1234.56789012: -1234.56789, 0.123456789: 0.123457, 0.000123456789: 0.000123457,
		-1.23456789e-8: -1.23457e-8, 1.23456789e-12: 1.23456789e-12, 5e-324: 5e-324, 1e308: 1e308,
	} {
		if got := RoundSignificant(in); math.Abs(got-want) > 1e-15*math.Abs(want) {
			t.Errorf("RoundSignificant(%v) = %v, want %v", in, got, want)
		}
	}
	if got := RoundSignificant(math.NaN()); !math.IsNaN(got) {
		t.Errorf("RoundSignificant(NaN) = %v, want NaN", got)
	}
}

// BenchmarkAppendFloat appends numbers that are typical of reports.
func BenchmarkAppendFloat(b *testing.B) {
	list, out := []float64{0, 33.3, 1795357692.523, 0.015625, 12.345678, 1.0 / 3, 4096, 100}, []byte(nil)
	for b.Loop() {
		out = AppendFloats(out[:0], list)
	}
}

func TestParseDecimal_AgreesWithParseFloat(t *testing.T) {
	for _, number := range []string{
		"0", "-0", "1", "-1", "0.1", "9.862", "123456789012345", "0.00000000000001", "12345678.9012345", "99999.9999999999", "1.",
		".5", "-.5", "000000000000001", "0.30000000000000", "1795357692.08",
	} {
		v, ok := ParseDecimal([]byte(number))
		want, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || math.Float64bits(v) != math.Float64bits(want) {
			t.Errorf("ParseDecimal(%s) = %v (%t), want %v", number, v, ok, want)
		}
	}
	for _, number := range []string{"", "-", ".", "-.", "1.2.3", "1e5", "+1", "1234567890123456", "nan", " 1"} {
		if v, ok := ParseDecimal([]byte(number)); ok {
			t.Errorf("ParseDecimal(%q) = %v, true; want false", number, v)
		}
	}
}
