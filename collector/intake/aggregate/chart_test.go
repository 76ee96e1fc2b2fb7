package aggregate

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// line is the Stat of a timeline: min, mean, max and weight.
type line [4]float64

// take ends an interval at the given time, and returns its lines by key.
func take(b *Aggregator, at float64) map[string]line {
	stats := b.Collect(after(at), nil)
	byKey := map[string]line{}
	for i, key := range b.TimelineKeys() {
		byKey[key] = line{stats[i].Min, stats[i].Mean(), stats[i].Max, stats[i].Weight}
	}
	if len(b.TimelineKeys()) != len(stats) {
		panic("columns and stats differ")
	}
	return byKey
}

func TestAggregator_CollectReturnsMeansOfInterval(t *testing.T) {
	b := newAggregator()
	feed(b, after(0.5), "a:10|ms", "a:20|ms", "c:4|c", "c:1|c|@0.5", "g:2|g", `{"transfer":"n","xfer_us":5000,"bytes":2097152}`, "v:1|h", "s:x|s")
	feed(b, after(1), "g:6|g")
	if len(b.Clone().TimelineKeys()) != 0 {
		t.Errorf("timelines of a clone = %q, want none", b.Clone().TimelineKeys())
	}
	got := take(b, 2)
	want := map[string]line{
		"op:a:time_ms": {10, 15, 20, 2}, "op:a:per_second": {1, 1, 1, 2}, "counter:c:per_second": {3, 3, 3, 2},
		"gauge:g": {2, (0.5*2 + 1*6) / 1.5, 6, 1.5}, "transfer:n:mb_per_second": {1, 1, 1, 2}, "transfer:n:time_ms": {5, 5, 5, 1},
	}
	for key, want := range want {
		if got[key] != want {
			t.Errorf("timeline %s = %v, want %v", key, got[key], want)
		}
	}

	// In an empty interval, a time is missing, a rate is 0, and a gauge keeps its value.
	got = take(b, 4)
	for key, want := range map[string]line{"op:a:per_second": {0, 0, 0, 2}, "counter:c:per_second": {0, 0, 0, 2}, "gauge:g": {6, 6, 6, 2}} {
		if got[key] != want {
			t.Errorf("empty interval: timeline %s = %v, want %v", key, got[key], want)
		}
	}
	if f := got["op:a:time_ms"]; !math.IsNaN(f[1]) || f[3] != 0 {
		t.Errorf("empty interval: timeline op:a:time_ms = %v, want NaN with weight 0", f)
	}

	feed(b, after(5), "g:8|g")
	if got := take(b, 6)["gauge:g"]; got != (line{6, 7, 8, 2}) {
		t.Errorf("last interval: timeline gauge:g = %v, want {6 7 8 2}", got)
	}
}

// Without patterns, the first twelve series have a timeline, but only some of vLLM's series.
func TestAggregator_ChartsFirstSeriesByDefault(t *testing.T) {
	b := newAggregator()
	feed(b, start, "vllm:other:1|c")
	feed(b, start, `{"counter":"vllm:other","add":1}`, `{"gauge":"vllm:num_requests_running","value":1,"tags":{"engine":"0"}}`)
	for i := range 20 {
		feed(b, start, fmt.Sprintf("c%d:1|c", i))
	}
	columns := b.TimelineKeys()
	if len(columns) != DefaultCharts || columns[0] != `gauge:vllm:num_requests_running{engine="0"}` || columns[11] != "counter:c10:per_second" {
		t.Errorf("timelines = %q, want %d, from num_requests_running to c10", columns, DefaultCharts)
	}
}

func TestAggregator_ChartsMatchingSeries(t *testing.T) {
	b := newAggregator("a*", "nixl")
	feed(b, start, "a1:1|c", "b1:1|c", "a2:1|ms", `{"transfer":"nixl","xfer_us":1}`)
	want := []string{"counter:a1:per_second", "op:a2:time_ms", "op:a2:per_second", "transfer:nixl:mb_per_second", "transfer:nixl:time_ms"}
	if got := b.TimelineKeys(); !slices.Equal(got, want) {
		t.Errorf("timelines = %q, want %q", got, want)
	}

	all := newAggregator("*")
	for i := range 200 {
		feed(all, start, fmt.Sprintf("c%d:1|c", i))
	}
	if len(all.TimelineKeys()) != MaxCharts {
		t.Errorf("got %d timelines, want %d", len(all.TimelineKeys()), MaxCharts)
	}
}
