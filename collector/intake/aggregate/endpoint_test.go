package aggregate

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/opstats"
)

// scrape adds body to an Aggregator as the newest scrape of an endpoint, and returns the number of accepted samples.
func scrape(t *testing.T, e *Endpoint, b *Aggregator, at float64, body string) int {
	t.Helper()
	return check.Value(apply(e, []byte(body), b, after(at)))(t)
}

// apply reads body and adds it to an Aggregator.
func apply(e *Endpoint, body []byte, b *Aggregator, at time.Time) (int, error) {
	if err := e.Read(bytes.NewReader(body)); err != nil {
		return 0, err
	}
	return e.AddTo(b, at), nil
}

// newServer returns the Endpoint of a server that starts after the job.
func newServer() *Endpoint {
	e := NewEndpoint(start, start)
	e.NoteUnreachable()
	return e
}

// histogram returns the lines of a histogram with the bounds 0.1, 1 and +Inf.
func histogram(name string, cumulative [3]int, sum float64) string {
	var s strings.Builder
	fmt.Fprintf(&s, "# TYPE %s histogram\n", name)
	for i, le := range []string{"0.1", "1.0", "+Inf"} {
		fmt.Fprintf(&s, "%s_bucket{le=%q} %d\n", name, le, cumulative[i])
	}
	fmt.Fprintf(&s, "%s_sum %v\n%s_count %d\n", name, sum, name, cumulative[2])
	return s.String()
}

func counterText(v float64) string { return fmt.Sprintf("# TYPE c_total counter\nc_total %v\n", v) }

func TestEndpoint_AddsEachMetricType(t *testing.T) {
	b, e := newAggregator(), newServer()
	body := counterText(3) + "# TYPE g gauge\ng{x=\"y\"} 2.5\nu 7\n" +
		histogram("h_seconds", [3]int{8, 9, 10}, 1.5) + histogram("h_bytes", [3]int{0, 10, 10}, 4) +
		"# TYPE s_seconds summary\ns_seconds{quantile=\"0.5\"} 9\ns_seconds_sum 3\ns_seconds_count 2\n" +
		"# TYPE ms_milliseconds summary\nms_milliseconds_sum 3\nms_milliseconds_count 2\n" +
		"# TYPE s summary\ns_sum 3\ns_count 2\n" +
		"# TYPE c_created gauge\nc_created 1.7e9\ngo_goroutines 5\npython_info 1\nprocess_cpu_seconds_total 4\npromhttp_x 1\nperfagent_x 1\n" +
		"nan NaN\n# TYPE empty_seconds histogram\nempty_seconds_bucket{le=\"+Inf\"} 0\nempty_seconds_sum 0\nempty_seconds_count 0\n"
	if n := scrape(t, e, b, 1, body); n != 22 {
		t.Errorf("accepted %d samples, want 22", n)
	}

	want := `{"sources":[],"times":{"h_seconds":{"count":10,"avg_time_ms":150,"total_time_ms":1500,"p50_time_ms":62.5,` +
		`"p90_time_ms":1000,"p99_time_ms":1000,"estimated":["p50_time_ms","p90_time_ms","p99_time_ms"]},` +
		`"ms_milliseconds":{"count":2,"avg_time_ms":1.5,"total_time_ms":3},"s_seconds":{"count":2,"avg_time_ms":1500,"total_time_ms":3000}},` +
		`"counters":{"c_total":3},"gauges":{"g{x=\"y\"}":{"last":2.5,"min":2.5,"mean":2.5,"max":2.5,"count":1},` +
		`"u":{"last":7,"min":7,"mean":7,"max":7,"count":1}},"values":{"h_bytes":{"count":10,"avg":0.4,"p50":0.55,"p90":0.91,"p99":0.991,` +
		`"estimated":["p50","p90","p99"]},"s":{"count":2,"avg":1.5}}}`
	if diff := cmp.Diff(want, operations(t, b)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// The growth over several scrapes is computed like Prometheus' increase: counts from before a restart are kept.
func TestEndpoint_CountsGrowthAcrossRestarts(t *testing.T) {
	const process = "process_start_time_seconds %v\n"
	at := func(seconds float64) string { return fmt.Sprintf(process, unixSeconds(after(seconds))) }
	for name, tt := range map[string]struct {
		absent bool
		bodies []string
		want   float64
	}{
		"server missing at first":             {true, []string{counterText(5), counterText(8)}, 8},
		"server already running":              {false, []string{counterText(5), counterText(8)}, 3},
		"started after the job":               {false, []string{at(0.5) + counterText(5), at(0.5) + counterText(8)}, 8},
		"started before the job":              {false, []string{at(-100) + counterText(5), at(-100) + counterText(8)}, 3},
		"started before the job, but missing": {true, []string{at(-100) + counterText(5), at(-100) + counterText(8)}, 3},
		"restart with a lower count":          {false, []string{counterText(5), counterText(8), counterText(2), counterText(3)}, 6},
		"restart with a higher count":         {true, []string{at(1) + counterText(5), at(4) + counterText(6)}, 11},
		"restart, counter missing at first":   {true, []string{at(1) + counterText(5), at(4), at(4) + counterText(6)}, 11},
		"counter appears late":                {false, []string{"x 1\n", counterText(4), counterText(6)}, 6},
		"counter disappears and reappears":    {true, []string{counterText(5), "x 1\n", counterText(7)}, 7},
		"NaN between two values":              {true, []string{counterText(5), counterText(math.NaN()), counterText(7)}, 7},
		"negative count between two values":   {true, []string{counterText(5), counterText(-1), counterText(7)}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			b, e := newAggregator(), NewEndpoint(start, start)
			if tt.absent {
				e.NoteUnreachable()
			}
			for i, body := range tt.bodies {
				scrape(t, e, b, float64(i+1), body)
			}
			if got := b.Operations(after(10)).Counters["c_total"]; got != tt.want {
				t.Errorf("counter c_total = %v, want %v", got, tt.want)
			}
		})
	}
}

// Clients report the start of a server with different errors. In the test, the machine was booted 0.75 s after a full
// second.
func TestEndpoint_DetectsServerOlderThanJob(t *testing.T) {
	booted := after(-1000.25) // the kernel reports -1001
	job := after(0.123)       // in ticks, it is 1000.37 s after boot, which the kernel reports as -0.63
	for name, tt := range map[string]struct {
		start float64 // process start that the server reports, in seconds since start
		older bool
	}{
		"in ticks, 0.9 s older":    {-1001 + 999.47, true},
		"in ticks, 0.1 s older":    {-1001 + 1000.27, true},
		"in ticks, a tick older":   {-1001 + 1000.36, true},
		"in ticks, the job itself": {-1001 + 1000.37, false},
		"in ticks, newer":          {-1001 + 1000.62, false},
		"in ms, 0.1 s older":       {0.0234, true},
		"in ms, newer":             {0.1245, false},
		"in s, 0.1 s older":        {0, true},
		"in s, newer":              {1, false},
		"an hour older":            {-5000.5, true},
	} {
		t.Run(name, func(t *testing.T) {
			b, e := newAggregator(), NewEndpoint(job, booted)
			process := fmt.Sprintf("process_start_time_seconds %v\n", unixSeconds(start)+tt.start)
			scrape(t, e, b, 1, process+counterText(7000))
			scrape(t, e, b, 2, process+counterText(7003))
			want := 7003.0
			if tt.older {
				want = 3
			}
			if got := b.Operations(after(10)).Counters["c_total"]; got != want {
				t.Errorf("counter c_total = %v, want %v", got, want)
			}
		})
	}
}

// A sidecar did not start the job, so growth counts from the first scrape, whenever the server's process started.
func TestEndpoint_SidecarCountsFromFirstScrape(t *testing.T) {
	b, e := newAggregator(), NewEndpoint(time.Time{}, time.Time{})
	e.NoteUnreachable()
	scrape(t, e, b, 1, "process_start_time_seconds 9e9\n"+counterText(5))
	scrape(t, e, b, 2, "process_start_time_seconds 9e9\n"+counterText(6))
	if got := b.Operations(after(10)).Counters["c_total"]; got != 1 {
		t.Errorf("counter c_total = %v, want 1, the growth since the first scrape", got)
	}
}

func TestEndpoint_FallingBucketIsRestart(t *testing.T) {
	b, e := newAggregator(), NewEndpoint(start, start)
	scrape(t, e, b, 1, histogram("h_seconds", [3]int{5, 5, 5}, 0.25))
	scrape(t, e, b, 2, histogram("h_seconds", [3]int{5, 9, 9}, 2.25))
	scrape(t, e, b, 3, histogram("h_seconds", [3]int{4, 10, 10}, 3)) // a bucket fell, but the count did not
	if got := b.Operations(after(10)).Times["h_seconds"]; got.Count != 14 || *got.Avg != 5000.0/14 || *got.P50 != 370 {
		t.Errorf("time = %s, want 14 times, mean %v ms, median 370 ms", asJSON(t, got), 5000.0/14)
	}
}

// Times and transfers are never negative, so a lower sum means a restart, unless the fall is only a rounding error.
func TestEndpoint_FallingSumIsRestartUnlessRounding(t *testing.T) {
	b, e := newAggregator(), newServer()
	body := func(n int, sum float64) string {
		return histogram("h_seconds", [3]int{0, n, n}, sum) + histogram("vllm:nixl_xfer_time_seconds", [3]int{0, n, n}, sum)
	}
	scrape(t, e, b, 1, body(4, 2))
	scrape(t, e, b, 2, body(4, math.Nextafter(2, 0)))
	scrape(t, e, b, 3, body(5, 1.5)) // a restart, although the count is higher
	ops, nixl := b.Operations(after(10)), b.Transfers()["nixl"]
	if h := ops.Times["h_seconds"]; h.Count != 9 || h.Total != 3500 || nixl.Summary.Transfers != 9 || nixl.Seconds != 3.5 {
		t.Errorf("time %s, transfers %s (%v s); want 9 times with a total of 3500 ms, 9 transfers with a total of 3.5 s", asJSON(t, h), asJSON(t, nixl),
			nixl.Seconds)
	}
}

// Impossible histograms are rejected, so that a report contains no negative or infinite numbers.
func TestEndpoint_RejectsImpossibleHistogram(t *testing.T) {
	for _, sumAndCount := range [][2]string{{"1e100", "1e-300"}, {"1", "0.5"}, {"-1", "2"}, {"1", "-2"}, {"1e200", "2"}, {"NaN", "2"}} {
		b, e := newAggregator(), newServer()
		for _, name := range []string{"h_seconds", "vllm:nixl_xfer_time_seconds", "vllm:nixl_bytes_transferred"} {
			body := "# TYPE %[1]s histogram\n%[1]s_bucket{le=\"+Inf\"} %[3]s\n%[1]s_sum %[2]s\n%[1]s_count %[3]s\n"
			scrape(t, e, b, 1, fmt.Sprintf(body, name, sumAndCount[0], sumAndCount[1]))
		}
		if ops := b.Operations(after(10)); len(ops.Times) != 0 || len(b.Transfers()) != 0 || ops.Dropped.NotFinite != 3 {
			t.Errorf("sum and count %v: report %s, transfers %v; want no times or transfers, and 3 dropped as not finite", sumAndCount, asJSON(t, ops),
				b.Transfers())
		}
	}
}

// Without buckets, a P90 is unknown and is not listed as estimated.
func TestEndpoint_NIXLWithoutBucketsHasNoP90(t *testing.T) {
	b, e := newAggregator(), newServer()
	scrape(t, e, b, 1, histogram("vllm:nixl_xfer_time_seconds", [3]int{0, 4, 4}, 2)+
		"# TYPE vllm:nixl_post_time_seconds histogram\nvllm:nixl_post_time_seconds_sum 1\nvllm:nixl_post_time_seconds_count 4\n")
	got := b.Transfers()["nixl"]
	if !math.IsNaN(got.Summary.P90Post) || got.Summary.P90Xfer <= 0 || !slices.Equal(got.Estimated, []string{opstats.P90XferName}) {
		t.Errorf("transfers %s, want only the P90 of the transfer time, as an estimate", asJSON(t, got))
	}
}

// A histogram with changed buckets has no quantiles, but keeps its count and mean.
func TestEndpoint_DropsQuantilesIfBucketsChange(t *testing.T) {
	b, e, f := newAggregator(), newServer(), newServer()
	scrape(t, e, b, 1, histogram("h_seconds", [3]int{1, 2, 3}, 3))
	scrape(t, f, b, 1, histogram("h_seconds", [3]int{1, 2, 3}, 3))
	if got := b.Operations(after(10)).Times["h_seconds"]; got.Count != 6 || got.P50 == nil {
		t.Errorf("same buckets from two endpoints: got %s, want 6 times with quantiles", asJSON(t, got))
	}
	scrape(t, f, b, 2, strings.ReplaceAll(histogram("h_seconds", [3]int{1, 2, 4}, 4), `"0.1"`, `"0.2"`))
	if got := b.Operations(after(10)).Times["h_seconds"]; got.Count != 7 || *got.Avg != 1000 || got.P50 != nil || got.Estimated != nil {
		t.Errorf("after the buckets changed: got %s, want 7 times, mean 1000 ms, no quantiles", asJSON(t, got))
	}
}

// A body with an invalid line does not change the report.
func TestEndpoint_BadBodyChangesNothing(t *testing.T) {
	b, e := newAggregator(), newServer()
	scrape(t, e, b, 1, counterText(3)+histogram("h_seconds", [3]int{1, 2, 3}, 3))
	want := operations(t, b)
	if _, err := apply(e, []byte(counterText(9)+histogram("h_seconds", [3]int{4, 5, 6}, 3)+"oops\n"), b, after(2)); err == nil {
		t.Fatal("Read of a body with an invalid line returned no error")
	}
	if got := operations(t, b); got != want {
		t.Errorf("report after a bad body = %s, want %s", got, want)
	}
	scrape(t, e, b, 3, counterText(5)+histogram("h_seconds", [3]int{1, 2, 4}, 4))
	if ops := b.Operations(after(10)); ops.Counters["c_total"] != 5 || ops.Times["h_seconds"].Count != 4 {
		t.Errorf("report after another scrape = %s, want counter c_total 5 and 4 times", asJSON(t, ops))
	}
}

// A histogram without its sum or its count is rejected, because its mean would be wrong.
func TestEndpoint_RejectsIncompleteHistogram(t *testing.T) {
	for _, lacking := range []string{"_sum", "_count"} {
		b, e := newAggregator(), newServer()
		var body strings.Builder
		for line := range strings.Lines(histogram("h_seconds", [3]int{1, 2, 3}, 3)) {
			if !strings.Contains(line, lacking) {
				body.WriteString(line)
			}
		}
		scrape(t, e, b, 1, body.String())
		if ops := b.Operations(after(10)); len(ops.Times) != 0 || ops.Dropped.NotFinite != 1 {
			t.Errorf("histogram without %s: report %s, want no times and 1 dropped as not finite", lacking, asJSON(t, ops))
		}
	}
}

// If two endpoints have the same series, their counters are added, and a gauge has the newest value.
func TestEndpoint_AddsSameSeriesOfTwoEndpoints(t *testing.T) {
	b, e, f := newAggregator(), newServer(), newServer()
	scrape(t, e, b, 1, counterText(3)+"g 1\n")
	scrape(t, f, b, 2, counterText(4)+"g 2\n")
	if ops := b.Operations(after(10)); ops.Counters["c_total"] != 7 || ops.Gauges["g"].Last != 2 {
		t.Errorf("report of two endpoints = %s, want counter c_total 7 and gauge g 2", asJSON(t, ops))
	}
}

// A series that is both recorded and scraped has only the fields that are known for both.
func TestEndpoint_MergesScrapedAndRecordedSeries(t *testing.T) {
	b, e := newAggregator(), newServer()
	feed(b, start, "h_seconds:5000|ms")
	scrape(t, e, b, 1, histogram("h_seconds", [3]int{1, 2, 3}, 3))
	got := b.Operations(after(10)).Times["h_seconds"]
	if got.Count != 4 || *got.Avg != 2000 || got.Min != nil || got.P50 != nil || got.Last != nil {
		t.Errorf("time = %s, want 4 times, mean 2000 ms, and no minimum, last time or quantiles", asJSON(t, got))
	}
}

func TestEndpoint_EnforcesLimits(t *testing.T) {
	b, e := newAggregator(), NewEndpoint(start, start)
	var body strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&body, "a%d 1\n", i)
	}
	body.WriteString("x{y=\"" + strings.Repeat("z", 300) + "\"} 1\n")
	scrape(t, e, b, 1, body.String())
	if ops := b.Operations(after(10)); len(ops.Gauges) != MaxSeries || ops.Dropped.Series != 2000-MaxSeries || ops.Dropped.TooLong != 1 {
		t.Errorf("got %d gauges, dropped %+v; want %d gauges, %d series dropped and 1 too long", len(ops.Gauges), ops.Dropped, MaxSeries,
			2000-MaxSeries)
	}

	e, b = newServer(), newAggregator()
	body.Reset()
	body.WriteString("# TYPE h histogram\n")
	for i := range 1000 {
		fmt.Fprintf(&body, "h_bucket{le=\"%d\"} 1\n", i)
	}
	body.WriteString("h_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 3\n")
	scrape(t, e, b, 1, body.String())
	if got := b.Operations(after(10)).Values["h"]; got.Count != 2 || got.Avg != 1.5 || got.P50 != nil {
		t.Errorf("histogram of 1000 buckets = %s, want count 2, mean 1.5, no quantiles", asJSON(t, got))
	}
}

// vLLM's seven NIXL metrics are reported as transfers, for each engine and in total.
func TestEndpoint_NIXLMetricsBecomeTransfers(t *testing.T) {
	body := check.Value(os.ReadFile("../wire/testdata/vllm.txt"))(t)
	b, e := newAggregator(), newServer()
	scrape(t, e, b, 1, string(body))

	all := b.Transfers()
	if len(all) != 4 {
		t.Fatalf("got %d transfers, want 4: for 3 engines and in total", len(all))
	}
	var mb, n, failed float64
	for _, name := range []string{"0", "1", "2"} {
		engine := all[engineName(name)]
		mb, n, failed = mb+engine.TotalMB, n+engine.Summary.Transfers, failed+engine.FailedTransfers
	}
	pooled := all["nixl"]
	if n != 600 || pooled.Summary.Transfers != 600 || pooled.TotalMB != mb || pooled.FailedTransfers != failed || failed == 0 ||
		pooled.Source != "scrape" || len(pooled.Estimated) != 2 || pooled.WallThroughput != nil || pooled.Summary.P90Xfer <= 0 {
		t.Errorf("transfers %s, want a total of 600 from scrapes, with the sums of the engines and 2 estimates", asJSON(t, all))
	}
	for name := range b.Operations(after(10)).Times {
		if strings.Contains(name, "nixl") {
			t.Errorf("%s is reported as a time, want only a transfer", name)
		}
	}

	feed(b, start, `{"transfer":"nixl","xfer_us":1}`)
	if got := b.Transfers()["nixl"]; got.Source != "records" || got.Summary.Transfers != 1 {
		t.Errorf("transfers with a record = %s, want 1 transfer from records", asJSON(t, got))
	}
}

// Quantiles follow the rules in the documentation and tests of Prometheus' histogram_quantile.
func TestDistribution_QuantileFollowsPrometheus(t *testing.T) {
	for name, tt := range map[string]struct {
		bounds, buckets []float64
		q, want         float64
		ok              bool
	}{
		"within a bucket":      {[]float64{1, 2, 4}, []float64{1, 2, 4, 4}, 0.75, 3, true},
		"first bucket":         {[]float64{1, 2}, []float64{4, 4, 4}, 0.5, 0.5, true},
		"first bound 0":        {[]float64{0, 2}, []float64{4, 4, 4}, 0.5, 0, true},
		"negative bounds":      {[]float64{-2, -1}, []float64{4, 4, 4}, 0.5, -2, true},
		"above the last bound": {[]float64{1, 5}, []float64{1, 1, 4}, 0.9, 5, true},
		"not monotonic":        {[]float64{1, 2}, []float64{2, 1, 4}, 0.5, 1, true},
		"no observations":      {[]float64{1, 2}, []float64{0, 0, 0}, 0.5, 0, false},
		"no buckets":           {nil, nil, 0.5, 0, false},
		"only infinite bucket": {nil, []float64{4}, 0.5, 0, false},
		"empty first bucket":   {[]float64{1, 2, 3}, []float64{0, 4, 4, 4}, 0.5, 1.5, true},
	} {
		d := distribution{Bounds: tt.bounds, Buckets: tt.buckets}
		if got, ok := d.quantile(tt.q); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: quantile = %v, %t; want %v, %t", name, got, ok, tt.want, tt.ok)
		}
	}
}
