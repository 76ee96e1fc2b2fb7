package opstats

import (
	"errors"
	"math"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// filled returns a KeyedMetrics with three keys and their operations in different orders.
func filled(t testing.TB) *KeyedMetrics {
	t.Helper()
	l := NewKeyedMetrics(100)
	check.Must(t, l.AddTime("store.put", "k1", 1, unix(10)))
	check.Must(t, l.AddTime("store.get", "k2", 20, unix(11)))
	check.Must(t, l.AddTime("store.get", "k1", 10, unix(11)))
	check.Must(t, l.AddTime("store.put", "k2", 2, unix(9)))
	check.Must(t, l.AddTime("store.put", "k3", 3, unix(8)))
	check.Must(t, l.AddTime("store.get", "k1", 10.5, unix(12)))
	check.Must(t, l.AddCounter("hits", "k1", 2))
	check.Must(t, l.AddCounter("hits", "k1", -0.5))
	check.Must(t, l.AddAttribute("model", "k1", "m7"))
	check.Must(t, l.AddAttribute("model", "k1", "m8"))
	check.Must(t, l.AddAttribute("size", "k1", 5.0))
	check.Must(t, l.AddAttribute("cached", "k3", true))

	return l
}

func TestKeyedMetrics_GetReturnsCopy(t *testing.T) {
	l := filled(t)
	got, ok := l.Get("k1")
	want := Metrics{
		Attributes: map[string]any{"model": "m8", "size": 5.0},
		Counters:   map[string]float64{"hits": 1.5},
		Times: map[string]TimeStats{
			"store.put": {Count: 1, Avg: 1, Min: 1, Max: 1, Last: 1, LastAt: 10},
			"store.get": {Count: 2, Avg: 10.25, Min: 10, Max: 10.5, Last: 10.5, LastAt: 12},
		},
	}
	same(t, got, want)
	if _, known := l.Get("k4"); !ok || known {
		t.Errorf("Get: k1 known = %v, k4 known = %v; want true, false", ok, known)
	}
	same(t, l.Keys(), []string{"k1", "k2", "k3"})

	// Neither a change of the copy nor a change of the original affects the other.
	got.Times["store.get"] = TimeStats{}
	got.Counters["hits"] = 7
	check.Must(t, l.AddCounter("hits", "k1", 1))
	again, _ := l.Get("k1")
	want.Counters["hits"] = 2.5
	same(t, again, want)
}

// The values are from ProxyStore's test: three keys with the times 1, 2, 3 and 10, 20, 30.
func TestKeyedMetrics_AggregateTimesMergesAllKeys(t *testing.T) {
	l := NewKeyedMetrics(6)
	for i, key := range []string{"a", "b", "c"} {
		check.Must(t, l.AddTime("x", key, float64(1+i), unix(5)))
		check.Must(t, l.AddTime("y", key, float64(10+10*i), unix(float64(5-i))))
	}
	same(t, l.AggregateTimes(), map[string]TimeStats{
		"x": {Count: 3, Avg: 2, Min: 1, Max: 3, Last: 3, LastAt: 5},
		"y": {Count: 3, Avg: 20, Min: 10, Max: 30, Last: 10, LastAt: 5},
	})
	same(t, NewKeyedMetrics(1).AggregateTimes(), map[string]TimeStats{})
}

// At the limit, known entries are still updated. Rejected numbers do not create entries.
func TestKeyedMetrics_UpdatesKnownEntriesAtLimit(t *testing.T) {
	l := NewKeyedMetrics(2)
	if err := l.AddTime("get", "k0", -1, unix(1)); !errors.Is(err, ErrNotFinite) {
		t.Errorf("AddTime(-1): error %v, want %v", err, ErrNotFinite)
	}
	check.Must(t, l.AddTime("get", "k1", 1, unix(1)))
	check.Must(t, l.AddCounter("hits", "k2", 1))
	for what, err := range map[string]error{
		"time":       l.AddTime("get", "k3", 1, unix(1)),
		"name":       l.AddTime("put", "k1", 1, unix(1)),
		"counter":    l.AddCounter("get", "k1", 1),
		"attribute":  l.AddAttribute("hits", "k2", "x"),
		"zero value": new(KeyedMetrics).AddCounter("a", "b", 1),
	} {
		if !errors.Is(err, ErrFull) {
			t.Errorf("new entry (%s) at the limit: error %v, want %v", what, err, ErrFull)
		}
	}
	check.Must(t, l.AddTime("get", "k1", 3, unix(1)))
	check.Must(t, l.AddCounter("hits", "k2", 1))
	same(t, l.Keys(), []string{"k1", "k2"})
	if m, _ := l.Get("k1"); m.Times["get"].Avg != 2 || len(m.Times) != 1 {
		t.Errorf("metrics of k1 = %+v, want only the time get with mean 2", m)
	}
}

func TestKeyedMetrics_RefusesInvalidValues(t *testing.T) {
	l := filled(t)
	before, _ := l.Get("k1")
	inf, nan := math.Inf(-1), math.NaN()
	const binary = "\xff\xfe"
	for _, c := range []struct {
		err  error
		want error
	}{
		{l.AddTime("store.get", "k1", nan, unix(1)), ErrNotFinite},
		{l.AddCounter("hits", "k1", inf), ErrNotFinite}, {l.AddCounter("new", "k1", nan), ErrNotFinite},
		{l.AddAttribute("size", "k1", nan), ErrNotFinite}, {l.AddAttribute("size", "k1", 5), ErrMalformed},
		{l.AddAttribute("size", "k1", nil), ErrMalformed},
		{l.AddAttribute("size", "k1", []any{1.0}), ErrMalformed},
		{l.AddAttribute("size", "k1", binary), ErrMalformed}, {l.AddAttribute(binary, "k1", true), ErrMalformed},
		{l.AddCounter("hits", binary, 1), ErrMalformed}, {l.AddTime(binary, "k1", 1, unix(1)), ErrMalformed},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("invalid value: error %v, want %v", c.err, c.want)
		}
	}
	after, _ := l.Get("k1")
	same(t, after, before)
	same(t, l.Keys(), []string{"k1", "k2", "k3"})
}

// A sum of large numbers does not exceed sumLimit.
func TestKeyedMetrics_CountersStayInRange(t *testing.T) {
	l := NewKeyedMetrics(1)
	check.Must(t, l.AddCounter("a", "k", limit))
	l.byKey["k"].Counters["a"] = sumLimit
	check.Must(t, l.AddCounter("a", "k", limit))
	m, _ := l.Get("k")
	same(t, m.Counters, map[string]float64{"a": sumLimit})
}
