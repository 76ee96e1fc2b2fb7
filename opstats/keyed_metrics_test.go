package opstats

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// filled returns a KeyedMetrics with three keys, with operations in different orders.
func filled(t testing.TB) *KeyedMetrics {
	t.Helper()
	l := NewKeyedMetrics(100)
	must(t, l.AddTime("store.put", "k1", 1, unix(10)))
	must(t, l.AddTime("store.get", "k2", 20, unix(11)))
	must(t, l.AddTime("store.get", "k1", 10, unix(11)))
	must(t, l.AddTime("store.put", "k2", 2, unix(9)))
	must(t, l.AddTime("store.put", "k3", 3, unix(8)))
	must(t, l.AddTime("store.get", "k1", 10.5, unix(12)))
	must(t, l.SetSize("store.get", "k1", 219))
	must(t, l.AddCounter("hits", "k1", 2))
	must(t, l.AddCounter("hits", "k1", -0.5))
	must(t, l.AddAttribute("model", "k1", "m7"))
	must(t, l.AddAttribute("model", "k1", "m8"))
	must(t, l.AddAttribute("size", "k1", 5.0))
	must(t, l.AddAttribute("cached", "k3", true))

	return l
}

func TestKeyedMetrics_GetReturnsCopy(t *testing.T) {
	l := filled(t)
	got, ok := l.Get("k1")
	get := TimeStats{Count: 2, Avg: 10.25, Min: 10, Max: 10.5, Last: 10.5, LastAt: 12, SizeBytes: 219, HasSize: true}
	want := Metrics{
		Attributes: map[string]any{"model": "m8", "size": 5.0},
		Counters:   map[string]float64{"hits": 1.5},
		Times: map[string]TimeStats{
			"store.put": {Count: 1, Avg: 1, Min: 1, Max: 1, Last: 1, LastAt: 10},
			"store.get": get,
		},
	}
	same(t, got, want)
	if _, known := l.Get("k4"); !ok || known {
		t.Errorf("k1 known: %v, k4 known: %v; want true, false", ok, known)
	}
	same(t, l.Keys(), []string{"k1", "k2", "k3"})
	if l.Len() != 9 {
		t.Errorf("Len() = %d, want 9", l.Len())
	}

	// Get returns a copy, in both directions.
	got.Times["store.get"] = TimeStats{}
	got.Counters["hits"] = 7
	must(t, l.AddCounter("hits", "k1", 1))
	again, _ := l.Get("k1")
	want.Counters["hits"] = 2.5
	same(t, again, want)
	same(t, got.Attributes, want.Attributes)
}

// Like ProxyStore's test: three keys with 1, 2, 3 and 10, 20, 30.
func TestKeyedMetrics_AggregateTimes(t *testing.T) {
	l := NewKeyedMetrics(6)
	for i, key := range []string{"a", "b", "c"} {
		must(t, l.AddTime("x", key, float64(1+i), unix(5)))
		must(t, l.AddTime("y", key, float64(10+10*i), unix(float64(5-i))))
	}
	same(t, l.AggregateTimes(), map[string]TimeStats{
		"x": {Count: 3, Avg: 2, Min: 1, Max: 3, Last: 3, LastAt: 5},
		"y": {Count: 3, Avg: 20, Min: 10, Max: 30, Last: 10, LastAt: 5},
	})
	same(t, NewKeyedMetrics(1).AggregateTimes(), map[string]TimeStats{})
}

// At the limit known entries continue to count, and rejected numbers take no room.
func TestKeyedMetrics_KnownEntriesCountAtLimit(t *testing.T) {
	l := NewKeyedMetrics(2)
	if err := l.AddTime("get", "k0", -1, unix(1)); !errors.Is(err, ErrNotFinite) || l.Len() != 0 {
		t.Errorf("AddTime(-1): error %v, want %v; %d entries, want 0", err, ErrNotFinite, l.Len())
	}
	must(t, l.AddTime("get", "k1", 1, unix(1)))
	must(t, l.AddCounter("hits", "k2", 1))
	for what, err := range map[string]error{
		"time":      l.AddTime("get", "k3", 1, unix(1)),
		"name":      l.AddTime("put", "k1", 1, unix(1)),
		"counter":   l.AddCounter("get", "k1", 1),
		"attribute": l.AddAttribute("hits", "k2", "x"),
	} {
		if !errors.Is(err, ErrFull) {
			t.Errorf("a new %s at the limit: error %v, want %v", what, err, ErrFull)
		}
	}
	must(t, l.SetSize("put", "k1", 1)) // no such entry: no effect
	must(t, l.AddTime("get", "k1", 3, unix(1)))
	must(t, l.AddCounter("hits", "k2", 1))
	same(t, l.Keys(), []string{"k1", "k2"})
	if m, _ := l.Get("k1"); m.Times["get"].Avg != 2 || len(m.Times) != 1 {
		t.Errorf("k1 has %+v, want only the time get, with the mean 2", m)
	}
	if err := new(KeyedMetrics).AddCounter("a", "b", 1); !errors.Is(err, ErrFull) {
		t.Errorf("a KeyedMetrics with the limit 0: error %v, want %v", err, ErrFull)
	}
}

func TestKeyedMetrics_RefusesInvalidValues(t *testing.T) {
	l := filled(t)
	before := jsonOf(t, l)
	inf, nan := math.Inf(-1), math.NaN()
	const binary = "\xff\xfe"
	for _, c := range []struct {
		err  error
		want error
	}{
		{l.AddTime("store.get", "k1", nan, unix(1)), ErrNotFinite},
		{l.AddCounter("hits", "k1", inf), ErrNotFinite},
		{l.AddCounter("new", "k1", nan), ErrNotFinite},
		{l.SetSize("store.get", "k1", -1), ErrNotFinite},
		{l.AddAttribute("size", "k1", nan), ErrNotFinite},
		{l.AddAttribute("size", "k1", 5), ErrMalformed},
		{l.AddAttribute("size", "k1", nil), ErrMalformed},
		{l.AddAttribute("size", "k1", []any{1.0}), ErrMalformed},
		{l.AddAttribute("size", "k1", binary), ErrMalformed},
		{l.AddAttribute(binary, "k1", true), ErrMalformed},
		{l.AddCounter("hits", binary, 1), ErrMalformed},
		{l.AddTime(binary, "k1", 1, unix(1)), ErrMalformed},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("invalid value: error %v, want %v", c.err, c.want)
		}
	}
	if after := jsonOf(t, l); after != before {
		t.Errorf("refused values changed %s to %s", before, after)
	}
}

// A sum that only hostile input can reach can be written and read.
func TestKeyedMetrics_CountersStayInRange(t *testing.T) {
	l := NewKeyedMetrics(1)
	must(t, json.Unmarshal([]byte(`[{"key":"k","metrics":{"counters":{"a":1e150}}}]`), l))
	for range 100 {
		must(t, l.AddCounter("a", "k", limit))
	}
	reread(t, l, NewKeyedMetrics(1))
	m, _ := l.Get("k")
	same(t, m.Counters, map[string]float64{"a": sumLimit})
}

// Names may be views of a reused buffer.
func TestKeyedMetrics_CopiesNamesKeysAndTexts(t *testing.T) {
	l := NewKeyedMetrics(10)
	buffer := strings.Repeat("name-key-text", 1)
	must(t, l.AddAttribute(buffer[:4], buffer[5:8], buffer[9:]))
	kept := l.byKey[l.keys[0]].attributes[0]
	for _, s := range []string{kept.name, l.keys[0], kept.value.(string)} {
		if strings.Contains(buffer, s) && sharesMemory(buffer, s) {
			t.Errorf("%q shares memory with the caller's buffer, want a copy", s)
		}
	}
}

func TestKeyedMetrics_CloneIsIndependent(t *testing.T) {
	l := filled(t)
	before := jsonOf(t, l)
	c := l.Clone()
	must(t, c.AddTime("store.get", "k1", 1, unix(1)))
	must(t, c.AddCounter("misses", "k9", 1))
	if got := jsonOf(t, l); got != before {
		t.Errorf("the original changed with the clone from %s to %s", before, got)
	}
	must(t, l.AddCounter("misses", "k8", 1))
	if m, ok := c.Get("k8"); ok || c.Len() != 10 {
		t.Errorf("the clone has %v for k8 (%v) and %d entries, want none and 10", m, ok, c.Len())
	}
}

func TestKeyedMetrics_JSONRoundTrips(t *testing.T) {
	l := NewKeyedMetrics(4)
	must(t, l.AddTime("get", "k2", 1, unix(3)))
	must(t, l.AddCounter("hits", "k1", 2))
	must(t, l.AddAttribute("model", "k2", "m<7>"))
	const want = `[{"key":"k2","metrics":{"attributes":{"model":"m\u003c7\u003e"},"counters":{},"times":{"get":` +
		`{"count":1,"avg_time_ms":1,"min_time_ms":1,"max_time_ms":1,"last_time_ms":1,"last_timestamp":3}}}},` +
		`{"key":"k1","metrics":{"attributes":{},"counters":{"hits":2},"times":{}}}]`
	if got := jsonOf(t, l); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	back := reread(t, l, NewKeyedMetrics(4))
	same(t, back.AggregateTimes(), l.AggregateTimes())
	must(t, back.AddTime("get", "k2", 3, unix(4)))
	must(t, back.AddTime("get", "k3", 3, unix(4)))
	if err := back.AddTime("get", "k4", 3, unix(4)); !errors.Is(err, ErrFull) {
		t.Errorf("after reading, a new entry beyond the limit: error %v, want %v", err, ErrFull)
	}
	big := filled(t)
	reread(t, big, NewKeyedMetrics(100))
	reread(t, NewKeyedMetrics(0), new(KeyedMetrics))
}

// A thousand keys take a few hundred bytes each.
func TestKeyedMetrics_FitsItsMemoryBudget(t *testing.T) {
	const keys = 1000
	l := NewKeyedMetrics(keys)
	bytes := heapOf(t, func() any {
		for i := range keys + 100 {
			_ = l.AddTime("store.get", fmt.Sprintf("object-%09d", i), 1, unix(1))
		}
		return l
	})
	t.Logf("%d entries in %d keys: %d bytes", l.Len(), len(slices.Compact(l.Keys())), bytes)
	if bytes > 400*keys {
		t.Errorf("%d bytes for %d keys, want at most %d", bytes, keys, 400*keys)
	}
}
