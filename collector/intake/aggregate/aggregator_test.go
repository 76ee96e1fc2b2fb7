package aggregate

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/opstats"
)

// start is the time at which the runs of the tests begin.
var start = time.Unix(1795357692, 0).UTC()

// after returns the time that is the given number of seconds after the start of the run.
func after(seconds float64) time.Time { return start.Add(time.Duration(seconds * 1e9)) }

func newAggregator(patterns ...string) *Aggregator { return New(Options{Charts: patterns}, start) }

// feed adds lines to an Aggregator in the same way as a socket does.
func feed(b *Aggregator, at time.Time, lines ...string) {
	var e wire.Event
	for _, line := range lines {
		if r := e.Parse([]byte(line), wire.StatsD); r != wire.Accepted {
			b.Drop(r, []byte(line))
			continue
		}
		b.Add(&e, at)
	}
}

// feedMany adds n lines with the numbers from 0 on.
func feedMany(b *Aggregator, n int, format string) {
	for i := range n {
		feed(b, start, fmt.Sprintf(format, i))
	}
}

// asJSON returns v as JSON.
func asJSON(t testing.TB, v any) string {
	t.Helper()
	data := check.Value(json.Marshal(v))(t)
	return string(data)
}

// operations returns the Operations, as JSON, of a run that ends after ten seconds.
func operations(t testing.TB, b *Aggregator) string { return asJSON(t, b.Operations(after(10))) }

func TestAggregator_ReportsEachKind(t *testing.T) {
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"no lines": {nil, `{"sources":[]}`},
		"counters": {[]string{"a:1|c", "a:2:3|c", "a:1|c|@0.1", "b:-5|c", `{"counter":"a","add":0.5}`},
			`{"sources":[],"counters":{"a":16.5,"b":-5}}`},
		"gauges": {[]string{"g:0|g", "g:-7|g", "h:+5|g", "h:-2|g", `{"gauge":"i","value":-3}`},
			`{"sources":[],"gauges":{"g":{"last":-7,"min":-7,"mean":-7,"max":0,"count":2},` +
				`"h":{"last":3,"min":3,"mean":3,"max":5,"count":2},"i":{"last":-3,"min":-3,"mean":-3,"max":-3,"count":1}}}`},
		"sets": {[]string{"s:a|s", "s:b|s", "s:a|s"}, `{"sources":[],"sets":{"s":{"count":2}}}`},
		"attributes": {[]string{`{"attribute":"m","value":"x"}`, `{"attribute":"m","value":"y"}`, `{"attribute":"n","value":7}`,
			`{"attribute":"o","value":true}`}, `{"sources":[],"attributes":{"m":"y","n":7,"o":true}}`},
		"times": {[]string{`{"op":"a","ms":1,"ts":1795357692}`, `{"op":"a","ms":3,"ts":1795357693,"bytes":5}`, `{"op":"a","ok":false}`},
			`{"sources":[],"times":{"a":{"count":2,"avg_time_ms":2,"min_time_ms":1,"max_time_ms":3,"last_time_ms":3,` +
				`"last_timestamp":1795357693,"total_time_ms":4,"std_time_ms":1,"p50_time_ms":1,"p90_time_ms":3,"p99_time_ms":3,` +
				`"size_bytes":5,"total_bytes":5,"errors":1}}}`},
		"sampled times": {[]string{"a:10|ms|@0.3"},
			`{"sources":[],"times":{"a":{"count":3,"avg_time_ms":10,"min_time_ms":10,"max_time_ms":10,"last_time_ms":10,` +
				`"last_timestamp":1795357692,"total_time_ms":33.333333333333336,"std_time_ms":0,"p50_time_ms":10,"p90_time_ms":10,"p99_time_ms":10}}}`},
		"one sampled time": {[]string{"a:7|ms|@0.9"},
			`{"sources":[],"times":{"a":{"count":1,"avg_time_ms":7,"min_time_ms":7,"max_time_ms":7,"last_time_ms":7,` +
				`"last_timestamp":1795357692,"total_time_ms":7.777777777777779,"p50_time_ms":7,"p90_time_ms":7,"p99_time_ms":7}}}`},
		"equal times": {slices.Repeat([]string{"a:0.1|ms"}, 300),
			`{"sources":[],"times":{"a":{"count":300,"avg_time_ms":0.1000000000000005,"min_time_ms":0.1,"max_time_ms":0.1,"last_time_ms":0.1,` +
				`"last_timestamp":1795357692,"total_time_ms":30.000000000000153,"std_time_ms":0,"p50_time_ms":0.1,"p90_time_ms":0.1,"p99_time_ms":0.1}}}`},
		"only failed times": {[]string{`{"op":"a","ok":false}`}, `{"sources":[],"times":{"a":{"count":0,"total_time_ms":0,"errors":1}}}`},
		"values": {[]string{"v:1|h", "v:-3|d", `{"observe":"v","value":5,"unit":"rows"}`},
			`{"sources":[],"values":{"v":{"count":3,"avg":1,"min":-3,"max":5,"last":5,"p50":` + p50(1) + `,"p90":5,"p99":5,"unit":"rows"}}}`},
		"keys": {[]string{`{"op":"a","ms":1,"key":"k","ts":1795357692}`, `{"op":"a","ms":2,"key":"k","bytes":219,"ts":1795357693}`},
			`{"sources":[],"times":{"a":{"count":2,"avg_time_ms":1.5,"min_time_ms":1,"max_time_ms":2,"last_time_ms":2,` +
				`"last_timestamp":1795357693,"total_time_ms":3,"std_time_ms":0.5,"p50_time_ms":1,"p90_time_ms":2,"p99_time_ms":2,"size_bytes":219,"total_bytes":219}},` +
				`"keys":{"a":{"k":{"count":2,"avg_time_ms":1.5,"min_time_ms":1,"max_time_ms":2,"last_time_ms":2,"last_timestamp":1795357693,"size_bytes":219}}}}`},
		"two kinds with the same name": {[]string{"a:1|c", "a:1|g"}, `{"sources":[],"counters":{"a":1},"gauges":{"a":{"last":1,"min":1,"mean":1,"max":1,"count":1}}}`},
		"dropped lines": {[]string{"a:x|c", "a:inf|c", strings.Repeat("x", 9000), "datadog.dogstatsd.client.x:1|c", "a:x|c", "\x1b[31m:1|y"},
			`{"sources":[],"dropped":{"malformed":3,"too_long":1,"not_finite":1,"ignored":1},"examples":[` +
				`{"line":"a:x|c","why":"malformed"},{"line":"a:inf|c","why":"not_finite"},{"line":"` + strings.Repeat("x", 64) +
				`","why":"too_long"},{"line":"\\x1b[31m:1|y","why":"malformed"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newAggregator()
			feed(b, start, tt.lines...)
			if diff := cmp.Diff(tt.want, operations(t, b)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

// p50 returns the median that a Sketch estimates for the values −3, v and 5.
func p50(v float64) string {
	var q quantiles
	for i, x := range []float64{-3, v, 5} {
		q.add(x, float64(i), float64(i+1), &usage{})
	}
	median, _ := q.Sketch.Quantile(0.5)
	return fmt.Sprint(median)
}

// The mean of a gauge is weighted by time, from the first value to the end.
func TestAggregator_GaugeMeanIsWeightedByTime(t *testing.T) {
	b := newAggregator()
	feed(b, after(2), "g:10|g")
	feed(b, after(4), "g:20|g")
	feed(b, after(3), "g:20|g") // its time is before the last value's, so the last value's time counts
	feed(b, after(8), "g:0|g")
	if g := b.Operations(after(10)).Gauges["g"]; g.Mean != (2*10+4*20)/8.0 || g.Min != 0 || g.Max != 20 || g.Count != 4 {
		t.Errorf("gauge = %+v, want mean %v, min 0, max 20, count 4", g, (2*10+4*20)/8.0)
	}
}

func TestAggregator_CountersStayFinite(t *testing.T) {
	b := newAggregator()
	feed(b, start, "a:1e100|c|@1e-60", "b:1e100|c|@1e-49")
	for range 20 {
		feed(b, start, "b:1e100|c|@1e-49")
	}
	ops := b.Operations(after(1))
	if _, there := ops.Counters["a"]; there || !isFinite(ops.Counters["b"]) || ops.Dropped.NotFinite == 0 {
		t.Errorf("report %s, want no counter a, a finite counter b, and lines dropped as not finite", asJSON(t, ops))
	}
}

func TestAggregator_EnforcesLimits(t *testing.T) {
	b := newAggregator()
	for i := range 2000 {
		feed(b, start, fmt.Sprintf("a%d:1|c", i), fmt.Sprintf("a%d:1|g", i%10))
	}
	feed(b, start, "a0:1|c", "new:1|ms")
	ops := b.Operations(after(1))
	if n := len(ops.Counters) + len(ops.Gauges); n != MaxSeries || ops.Counters["a0"] != 2 {
		t.Errorf("%d series, counter a0 = %v; want %d, 2", n, ops.Counters["a0"], MaxSeries)
	}
	if want := int64(2000 + 1 - (MaxSeries - 10)); ops.Dropped.Series != want || len(ops.Examples) != MaxExamples {
		t.Errorf("dropped %d, examples %v; want %d and %d examples", ops.Dropped.Series, ops.Examples, want, MaxExamples)
	}

	b = newAggregator()
	feedMany(b, 1500, `{"op":"a","ms":1,"key":"k%d"}`)
	ops = b.Operations(after(1))
	if len(ops.Keys["a"]) != MaxKeys || ops.Dropped.Keys != 500 || ops.Times["a"].Count != 1500 {
		t.Errorf("got %d keys, dropped %d, count %v; want %d keys, dropped 500, count 1500", len(ops.Keys["a"]), ops.Dropped.Keys,
			ops.Times["a"].Count, MaxKeys)
	}

	b = newAggregator()
	feedMany(b, 100, `{"transfer":"t%d","xfer_us":1}`)
	if n := len(b.Transfers()); n != MaxTransfers || b.Dropped.Series != 36 {
		t.Errorf("got %d transfers, dropped %d; want %d, 36", n, b.Dropped.Series, MaxTransfers)
	}

	b = newAggregator()
	feedMany(b, 1000, "s:%d|s")
	if s := b.Operations(after(1)).Sets["s"]; s != (Set{1000, false}) {
		t.Errorf("set of 1000 members = %+v, want {1000 false}", s)
	}
	feed(b, start, "s:more|s")
	if s := b.Operations(after(1)).Sets["s"]; s != (Set{1000, true}) {
		t.Errorf("set of 1001 members = %+v, want {1000 true}", s)
	}

	b = newAggregator()
	feedMany(b, 1500, `{"proxystore":"1.1.0","id":"w%d","metrics":{"counters":{"a":1}}}`)
	if ops := b.Operations(after(1)); ops.Counters["a"] != MaxProxyStoreValues || ops.Dropped.Keys != 500 {
		t.Errorf("report %s, want counter a %d and 500 keys dropped", asJSON(t, ops), MaxProxyStoreValues)
	}
}

// The quantiles of times with a sampling rate are within 1 % of the exact ones.
func TestAggregator_QuantilesOfSampledTimesAreAccurate(t *testing.T) {
	b := newAggregator()
	for i := range 1000 {
		feed(b, start, fmt.Sprintf("a:%d|ms|@0.5", i+1))
	}
	got := b.Operations(after(1)).Times["a"]
	for _, q := range []struct {
		got  *float64
		want float64
	}{{got.P50, 500}, {got.P90, 900}, {got.P99, 990}} {
		if math.Abs(*q.got-q.want) > 0.01*q.want {
			t.Errorf("quantile = %v, want %v within 1 %%", *q.got, q.want)
		}
	}
	if got.Count != 2000 || *got.Avg != 500.5 {
		t.Errorf("time = %+v, want count 2000, mean 500.5", got)
	}
}

// A Sketch that exceeds the shared memory limit is discarded, and the earlier ones are kept.
func TestAggregator_DiscardsSketchesBeyondMemoryLimit(t *testing.T) {
	b := newAggregator()
	for _, exponent := range []int{-90, 0, 90} {
		for i := range 200 {
			feed(b, start, fmt.Sprintf("t%03d:1e%d|h", i, exponent), fmt.Sprintf("t%03d:-1e%d|h", i, exponent))
		}
		if b.used.sketchBytes > maxSketchBytes {
			t.Fatalf("size of sketches = %d bytes, want at most %d", b.used.sketchBytes, maxSketchBytes)
		}
	}

	lost, bytes := 0, 0
	for _, v := range b.Values {
		bytes += v.Quantiles.Sketch.Bytes()
		if v.Quantiles.Discarded {
			lost++
		}
	}
	if lost == 0 || lost == len(b.Values) {
		t.Errorf("%d of %d sketches were discarded, want some but not all", lost, len(b.Values))
	}
	if bytes != b.used.sketchBytes {
		t.Errorf("counted size of sketches = %d bytes, want %d", b.used.sketchBytes, bytes)
	}
}

func TestAggregator_ConvertsProxyStoreUnitsByVersion(t *testing.T) {
	const times = `{"count":2,"avg_time_ms":3000,"min_time_ms":2000,"max_time_ms":4000,"last_time_ms":4000,"last_timestamp":5}`
	for _, tt := range []struct {
		version, name string
		want          float64 // mean in milliseconds
	}{
		{"0.4.1", "store.get", 3000}, {"0.5.0", "store.get", 3}, {"0.6.4", "factory.call", 3}, {"0.6.5", "store.get", 3000},
		{"0.6.5", "factory.call", 0.003}, {"1.1.0", "factory.resolve", 0.003}, {"1.1.0", "factory.polling_resolve", 0.003},
		{"1.1.0", "factory.other", 3000}, {"2.0.0", "store.get", 3000},
	} {
		b := newAggregator()
		feed(b, start, fmt.Sprintf(`{"proxystore":%q,"metrics":{"times":{%q:%s}}}`, tt.version, tt.name, times))
		got := b.Operations(after(1)).Times[tt.name]
		if got.Avg == nil || math.Abs(*got.Avg-tt.want) > 1e-12 || got.Count != 2 || got.P50 != nil || *got.Max != tt.want*4/3 {
			t.Errorf("%s of ProxyStore %s = %s, want 2 times, mean %v ms, max %v ms, no quantiles", tt.name, tt.version,
				asJSON(t, got), tt.want, tt.want*4/3)
		}
	}
}

// A later record replaces an earlier record with the same id. Records with different ids are merged.
func TestAggregator_LaterProxyStoreRecordReplacesEarlier(t *testing.T) {
	b := newAggregator()
	feed(b, start,
		`{"proxystore":"1.1.0","id":"a","metrics":{"counters":{"n":5,"gone":1},"times":{"t":{"count":1,"avg_time_ms":1,"min_time_ms":1,"max_time_ms":1}}}}`,
		`{"proxystore":"1.1.0","id":"b","metrics":{"counters":{"n":7},"attributes":{"x":"y","z":3}}}`,
		`{"proxystore":"1.1.0","id":"a","metrics":{"counters":{"n":6},"times":{"t":{"count":3,"avg_time_ms":2,"min_time_ms":1,"max_time_ms":3}}}}`,
		`{"proxystore":"0.4.1","id":"c","metrics":{"times":{"t":{"calls":1,"avg_time_ms":6,"min_time_ms":6,"max_time_ms":6,"size_bytes":5}}}}`,
		"t:9|ms")
	ops := b.Operations(after(1))
	if ops.Counters["n"] != 13 || ops.Counters["gone"] != 0 || ops.Attributes["x"] != "y" || ops.Attributes["z"] != 3.0 {
		t.Errorf("report %s, want counter n 13, no counter gone, attributes x \"y\" and z 3", asJSON(t, ops))
	}
	if got := ops.Times["t"]; got.Count != 5 || *got.Avg != (3*2+6+9)/5.0 || *got.Min != 1 || *got.Max != 9 || got.P50 != nil || *got.SizeBytes != 5 {
		t.Errorf("time t = %s, want 5 times from 1 to 9 ms, mean 4.2 ms, size 5, no quantiles", asJSON(t, got))
	}

	feed(b, start, `{"proxystore":"1.1.0","id":"a","metrics":{"times":{"t":{"count":-1}}}}`)
	if b.Dropped.Malformed != 1 || b.Operations(after(1)).Counters["n"] != 13 {
		t.Errorf("after malformed metrics: dropped %+v, counter n = %v; want 1 malformed, 13", b.Dropped,
			b.Operations(after(1)).Counters["n"])
	}
}

// Transfers are reported with the figures of vLLM's class, together with failures, ranks and unknown lists.
func TestAggregator_ReportsTransfers(t *testing.T) {
	b := newAggregator()
	feed(b, after(1), `{"transfer":"nixl","xfer_us":9862,"post_us":5693,"bytes":73400320,"descriptors":56,"rank":0}`)
	const one = `{"nixl":{"reduced":{"Num successful transfers":1,"Avg xfer time (ms)":9.862,"P90 xfer time (ms)":9.862,` +
		`"Avg post time (ms)":5.693,"P90 post time (ms)":5.693,"Avg MB per transfer":70,"Throughput (MB/s)":7097.952,` +
		`"Avg number of descriptors":56},"total_mb":70,"wall_throughput_mb_per_second":7097.95173392821,"failed_transfers":0,` +
		`"failed_notifications":0,"kv_expired_reqs":0,"ranks":1,"first":1795357692.990138,"last":1795357693,"source":"records"}}`
	if diff := cmp.Diff(one, asJSON(t, b.Transfers())); diff != "" {
		t.Errorf("transfers (-want +got):\n%s", diff)
	}

	feed(b, after(2), `{"transfer":"nixl","failed":"transfer"}`, `{"transfer":"nixl","failed":"notification"}`,
		`{"transfer":"nixl","failed":"kv_expired","rank":7}`,
		`{"transfers":"nixl","data":{"transfer_duration":[0.1],"post_duration":[0.1],"bytes_transferred":[0],"num_descriptors":[1],"odd":[1,2]},"rank":7}`,
		`{"transfers":"nixl","data":{"transfer_duration":[0.1]}}`, `{"transfer":"nixl","xfer_us":1,"descriptors":4294967296}`)
	n := b.Transfers()["nixl"]
	if n.Summary.Transfers != 2 || n.FailedTransfers != 1 || n.FailedNotifications != 1 || n.KVExpired != 1 || n.Ranks != 2 ||
		n.WallThroughput != nil || n.Other["odd"] != (TransferList{2, 3}) || b.Dropped.Malformed != 2 {
		t.Errorf("transfers %s, dropped %+v; want 2 transfers, 1 of each failure, 2 ranks, list odd with 2 values and sum 3, "+
			"no wall throughput; 2 malformed", asJSON(t, n), b.Dropped)
	}
}

// The transfers of all names are kept in lists up to a limit. Beyond it, the longest list is condensed, and its sums
// remain exact.
func TestAggregator_CondensesLongestTransfers(t *testing.T) {
	b := newAggregator()
	var e wire.Event
	for i := range opstats.MaxUncondensed + 1 {
		line := fmt.Sprintf(`{"transfer":"%s","xfer_us":%d,"bytes":1048576}`, []string{"a", "b", "b"}[i%3], i%1000+1)
		if r := e.Parse([]byte(line), wire.StatsD); r != wire.Accepted || !b.Add(&e, after(1)) {
			t.Fatalf("line %s was not added (reason %v)", line, r)
		}
	}
	all := b.Transfers()
	if all["a"].Estimated != nil || len(all["b"].Estimated) != 2 || all["a"].TotalMB+all["b"].TotalMB != opstats.MaxUncondensed+1 {
		t.Errorf("transfers %s, want estimates only for b, and %d MiB in total", asJSON(t, all), opstats.MaxUncondensed+1)
	}
	if got := all["b"].Summary.P90Xfer; math.Abs(got-0.9) > 0.01 {
		t.Errorf("P90 of b = %v ms, want 0.9", got)
	}
}

func TestMatches_ComparesWholeText(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*", "a/b{c=\"d\"}", true}, {"a*c", "abbc", true}, {"a*c", "abbcd", false},
		{"?b", "ab", true}, {"?", "", false}, {"*a*a*", "banana", true}, {"vllm:*seconds{*", `vllm:x_seconds{a="b"}`, true}, {"", "", true}, {"", "a", false},
	} {
		if got := matches(tt.pattern, tt.text); got != tt.want {
			t.Errorf("matches(%q, %q) = %t, want %t", tt.pattern, tt.text, got, tt.want)
		}
	}
}

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
	feedMany(b, 20, "c%d:1|c")
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
	feedMany(all, 200, "c%d:1|c")
	if len(all.TimelineKeys()) != MaxCharts {
		t.Errorf("got %d timelines, want %d", len(all.TimelineKeys()), MaxCharts)
	}
}
