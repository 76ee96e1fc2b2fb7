package text

import (
	"math"
	"testing"
)

func TestQuantity_SeparatesNumberAndUnit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want Quantity }{
		{Duration(200), Quantity{"3 min 20", "s"}},
		{Duration(7500), Quantity{"2 h 05", "min"}},
		{Duration(-0.5), Quantity{"-500", "ms"}},
		{Size(1536), Quantity{"1.5", "GiB"}},
		{TrimmedSize(1280), Quantity{"1.25", "GiB"}},
		{TrimmedSize(65536), Quantity{"64", "GiB"}},
		{TrimmedSize(math.NaN()), Quantity{Absent, ""}},
		{Speed(0.001), Quantity{"<0.01", "MiB/s"}},
		{Percentage(54.25), Quantity{"54.2", "%"}},
		{Percentage(math.NaN()), Quantity{Absent, "%"}},
		{Percentage(math.NaN()).Normalize(), Quantity{Absent, ""}},
		{Percentage(1).Normalize(), Quantity{"1.0", "%"}},
	} {
		if c.got != c.want {
			t.Errorf("quantity = %+v, want %+v", c.got, c.want)
		}
	}

	for q, want := range map[Quantity]string{{"1.5", "GiB"}: "1.5 GiB", {"7", ""}: "7", {}: ""} {
		if got := q.String(); got != want {
			t.Errorf("String of %+v = %q, want %q", q, got, want)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	t.Parallel()
	for ms, want := range map[float64]string{
		0: "0 s", 0.62: "620 µs", 1.1: "1.1 ms", 12: "12 ms", 9.966: "9.97 ms", 999: "999 ms", 999.6: "1.0 s", 90_000: "1 min 30 s",
		0.0003: "0.3 µs", 0.00001: "<0.1 µs", -3: "-3 ms",
		math.NaN(): Absent, math.Inf(1): Absent,
	} {
		if got := Milliseconds(ms); got != want {
			t.Errorf("Milliseconds(%v) = %q, want %q", ms, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 5: "5", 999: "999", 1234: "1,234", 1234567.5: "1,234,568", 12345.678: "12,345.68", 9999.9999: "10,000", -1234: "-1,234", 4.5: "4.5", 0.62: "0.62", 7070.707: "7,070.707",
		1.0 / 3: "0.333", 0.0625: "0.0625", 0.00012345: "0.000123", -0.0001: "-0.0001", 1e-9: "1e-09", 1e15: "1e+15", 1e300: "1e+300",
		999999999999999: "999,999,999,999,999", math.Copysign(0, -1): "0", math.NaN(): Absent, math.Inf(-1): Absent,
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestEnergy(t *testing.T) {
	for joules, want := range map[float64]string{0: "0.0 J", 0.84: "0.8 J", 9.96: "10 J", 312: "312 J", 999.4: "999 J", 999.6: "1.0 kJ", 1500: "1.5 kJ",
		36e6: "36 MJ", 7.25e9: "7.2 GJ", 5e13: "50000 GJ", math.Inf(1): "– GJ", math.NaN(): "– J"} {
		if got := Energy(joules).String(); got != want {
			t.Errorf("Energy(%v J) = %q, want %q", joules, got, want)
		}
	}
}
