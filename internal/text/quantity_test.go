package text

import (
	"math"
	"testing"
)

func TestQuantity_KeepsNumberAndUnitApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want Quantity }{
		{Duration(200), Quantity{"3 min 20", "s"}},
		{Duration(7500), Quantity{"2 h 05", "min"}},
		{Duration(-0.5), Quantity{"-0.50", "s"}},
		{Size(1536), Quantity{"1.5", "GiB"}},
		{Whole(1280), Quantity{"1.25", "GiB"}},
		{Whole(65536), Quantity{"64", "GiB"}},
		{Whole(math.NaN()), Quantity{Absent, ""}},
		{Speed(0.001), Quantity{"<0.01", "MiB/s"}},
		{Percentage(54.25), Quantity{"54.2", "%"}},
		{Percentage(math.NaN()), Quantity{Absent, "%"}},
		{Percentage(math.NaN()).Known(), Quantity{Absent, ""}},
		{Percentage(1).Known(), Quantity{"1.0", "%"}},
	} {
		if c.got != c.want {
			t.Errorf("%+v, want %+v", c.got, c.want)
		}
	}

	for q, want := range map[Quantity]string{{"1.5", "GiB"}: "1.5 GiB", {"7", ""}: "7", {}: ""} {
		if got := q.String(); got != want {
			t.Errorf("%+v is %q, want %q", q, got, want)
		}
	}
}
