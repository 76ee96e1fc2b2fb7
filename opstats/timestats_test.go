package opstats

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

func TestTimeStats_AddComputesSameMeanAsProxyStore(t *testing.T) {
	s := statsOf(t, 1, 3)
	same(t, s, TimeStats{Count: 2, Avg: 2, Min: 1, Max: 3, Last: 3, LastAt: 100})
	if s.Empty() || s.Total() != 4 {
		t.Errorf("Empty() = %v, Total() = %v; want false, 4", s.Empty(), s.Total())
	}

	if tenths := statsOf(t, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1); tenths.Avg != 0.09999999999999999 {
		t.Errorf("mean of ten times 0.1 = %v, want ProxyStore's 0.09999999999999999", tenths.Avg)
	}

	check.Must(t, s.Add(math.Copysign(0, -1), unix(101)))
	if s.Min != 0 || math.Signbit(s.Min) || math.Signbit(s.Last) {
		t.Errorf("after Add(-0): %+v, want Min and Last 0 without a sign", s)
	}
}

// A sampled event stands for several events, and their number need not be whole.
func TestTimeStats_AddNCountsFractions(t *testing.T) {
	var s TimeStats
	check.Must(t, s.AddN(10, 2.5, unix(1)))
	check.Must(t, s.AddN(20, 7.5, unix(2)))
	same(t, s, TimeStats{Count: 10, Avg: 17.5, Min: 10, Max: 20, Last: 20, LastAt: 2})
}

func TestTimeStats_RefusesInvalidTimesSizesAndCounts(t *testing.T) {
	s := statsOf(t, 1)
	before := s
	inf, nan := math.Inf(1), math.NaN()
	for _, ms := range []float64{-1, -1e-300, nan, inf, -inf, 1.1e100} {
		if err := s.Add(ms, unix(1)); !errors.Is(err, ErrNotFinite) || s != before {
			t.Errorf("Add(%v): error %v, %+v; want %v, %+v", ms, err, s, ErrNotFinite, before)
		}
		if err := s.SetSize(ms); !errors.Is(err, ErrNotFinite) || s != before {
			t.Errorf("SetSize(%v): error %v, %+v; want %v, %+v", ms, err, s, ErrNotFinite, before)
		}
	}
	for _, n := range []float64{0, 0.999, -1, nan, inf} {
		if err := s.AddN(1, n, unix(1)); !errors.Is(err, ErrNotFinite) || s != before {
			t.Errorf("AddN(1, %v): error %v, %+v; want %v, %+v", n, err, s, ErrNotFinite, before)
		}
	}
}

// Sums do not overflow, whatever the times and counts are.
func TestTimeStats_StaysFinite(t *testing.T) {
	var s TimeStats
	for range 100 {
		check.Must(t, s.AddN(limit, limit, time.Time{}))
	}
	m := s.Merge(s)
	hostile := TimeStats{Count: sumLimit, Avg: limit, Min: limit, Max: limit}
	m = m.Merge(hostile.Merge(hostile))
	for _, v := range []float64{m.Avg, m.Total(), m.Count, m.LastAt} {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			t.Fatalf("merged TimeStats = %+v, want finite numbers", m)
		}
	}
	reread(t, &m, &TimeStats{})
}

func TestTimeStats_MergeKeepsLaterTimeAsLast(t *testing.T) {
	a, b := statsOf(t, 1, 3), statsOf(t, 6)
	same(t, a.Merge(b), TimeStats{Count: 3, Avg: 10.0 / 3, Min: 1, Max: 6, Last: 6, LastAt: 100})
	same(t, b.Merge(a), TimeStats{Count: 3, Avg: 10.0 / 3, Min: 1, Max: 6, Last: 3, LastAt: 100})

	a.LastAt = 100.5
	if got := a.Merge(b); got.Last != 3 || got.LastAt != 100.5 {
		t.Errorf("a.Merge(b) = %+v, want Last 3 and LastAt 100.5 from a, which is later", got)
	}
	if got := b.Merge(a); got.Last != 3 || got.LastAt != 100.5 {
		t.Errorf("b.Merge(a) = %+v, want Last 3 and LastAt 100.5 from a, which is later", got)
	}
}

// Merging with an empty TimeStats changes nothing, not even the last bit of the mean, or a last time from 1969.
func TestTimeStats_MergeWithEmptyChangesNothing(t *testing.T) {
	var empty TimeStats
	same(t, empty.Merge(empty), empty)
	of1969 := TimeStats{Count: 1, Avg: 2, Min: 2, Max: 2, Last: 2, LastAt: -1}
	for _, s := range []TimeStats{statsOf(t, 0.1, 0.1, 0.1), statsOf(t, 0), of1969} {
		same(t, s.Merge(empty), s)
		same(t, empty.Merge(s), s)
	}
}

// The last known size is kept after an operation without a size, and in a sum with a TimeStats without a size.
func TestTimeStats_KeepsLastKnownSize(t *testing.T) {
	var s TimeStats
	check.Must(t, s.SetSize(3)) // there is no operation yet
	same(t, s, TimeStats{})

	for _, size := range []float64{5, -1, 7} {
		check.Must(t, s.Add(1, unix(100)))
		if size >= 0 {
			check.Must(t, s.SetSize(size))
		}
		if want := max(size, 5); s.SizeBytes != want || !s.HasSize {
			t.Errorf("SizeBytes = %v, HasSize = %v; want %v, true", s.SizeBytes, s.HasSize, want)
		}
	}

	none, zero := statsOf(t, 1), statsOf(t, 1)
	check.Must(t, zero.SetSize(0))
	for _, c := range []struct {
		a, b  TimeStats
		size  float64
		sized bool
	}{{s, none, 7, true}, {none, s, 7, true}, {s, zero, 0, true}, {zero, s, 7, true}, {none, none, 0, false}} {
		if m := c.a.Merge(c.b); m.SizeBytes != c.size || m.HasSize != c.sized {
			t.Errorf("%+v merged with %+v = %+v, want SizeBytes %v, HasSize %v", c.a, c.b, m, c.size, c.sized)
		}
	}
}

func TestTimeStats_JSONRoundTrips(t *testing.T) {
	s := statsOf(t, 0.1, 0.2, 0.4)
	check.Must(t, s.SetSize(219))
	sampled := TimeStats{}
	check.Must(t, sampled.AddN(1, 10.0/3, unix(1795357692.08)))
	for want, s := range map[string]TimeStats{
		`{"count":0}`: {},
		`{"count":3,"avg_time_ms":0.23333333333333336,"min_time_ms":0.1,"max_time_ms":0.4,` +
			`"last_time_ms":0.4,"last_timestamp":100,"size_bytes":219}`: s,
		`{"count":3.3333333333333335,"avg_time_ms":1,"min_time_ms":1,"max_time_ms":1,` +
			`"last_time_ms":1,"last_timestamp":1795357692.08}`: sampled,
	} {
		if got := jsonOf(t, s); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		same(t, *reread(t, &s, &TimeStats{}), s)
	}
}

// The TimeStats of ProxyStore 0.4 has different fields, and a size that may be null.
func TestTimeStats_ReadsJSONOfProxyStore04(t *testing.T) {
	var s TimeStats
	check.Must(t, json.Unmarshal([]byte(`{"calls":2,"avg_time_ms":2,"min_time_ms":1,"max_time_ms":3,"size_bytes":null}`), &s))
	same(t, s, TimeStats{Count: 2, Avg: 2, Min: 1, Max: 3})
}

// A timestamp that was converted from a float64 is the same float64 in LastAt.
func TestTimeStats_KeepsTimestampsExactly(t *testing.T) {
	for i := range 100000 {
		want := 1.7e9 + float64(i)*1234.567891
		var s TimeStats
		check.Must(t, s.Add(1, unix(want)))
		if s.LastAt != want {
			t.Fatalf("LastAt = %v, want %v", s.LastAt, want)
		}
	}
}
