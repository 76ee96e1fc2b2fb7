package aggregate

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"testing"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
)

// FuzzAggregator adds arbitrary lines to an Aggregator. Its report must be valid JSON, and a restored state must have
// the same report.
func FuzzAggregator(f *testing.F) {
	for _, lines := range []string{
		"a:1|c\nb:2:3|ms|@0.5\ng:1|g\ng:-1|g\nv:-1e-300|h\nv:1e100|h\ns:x|s",
		"{\"op\":\"a\",\"ms\":1,\"key\":\"k\",\"bytes\":5}\n{\"transfer\":\"n\",\"xfer_us\":1}\n{\"transfers\":\"n\",\"data\":{}}",
		`{"proxystore":"0.6.0","metrics":{"counters":{"a":1e150},"times":{"t":{"count":1,"avg_time_ms":1,"min_time_ms":1,"max_time_ms":1}}}}`,
		"a:1e100|c|@1e-99\na:1e100|ms|@1e-50\ng:1e100|g\ng:+1e100|g",
	} {
		f.Add([]byte(lines), 1.5)
	}
	f.Fuzz(func(t *testing.T, lines []byte, seconds float64) {
		if !(seconds >= 0 && seconds < 1e6) {
			return
		}
		b := newAggregator("*")
		for i, line := range bytes.Split(lines, []byte("\n")) {
			feed(b, after(seconds*float64(i%7)), string(line))
		}
		checkFigures(t, b.Collect(after(1), nil))
		checkRestores(t, b)
		checkFigures(t, b.Collect(after(2), nil))
	})
}

// checkFigures fails the test if a Stat cannot be shown in a chart.
func checkFigures(t *testing.T, stats []series.Stat) {
	t.Helper()
	for _, s := range stats {
		ordered := s.Min <= s.Mean() && s.Mean() <= s.Max && !math.IsInf(s.Min, 0) && !math.IsInf(s.Max, 0)
		if !ordered && s != (series.Stat{}) || !(s.Weight >= 0) {
			t.Errorf("stat = %+v, want finite Min <= Mean <= Max and a weight of at least 0, or an empty Stat", s)
		}
	}
}

// checkRestores fails the test unless the state of an Aggregator can be written and restored without a change of the
// report.
func checkRestores(t *testing.T, b *Aggregator) {
	t.Helper()
	restored := check.Value(Restore(stateOf(t, b)))(t)
	if got, want := operations(t, restored), operations(t, b); got != want {
		t.Errorf("restored report = %s, want %s", got, want)
	}
	if got, want := asJSON(t, restored.Transfers()), asJSON(t, b.Transfers()); got != want {
		t.Errorf("restored transfers = %s, want %s", got, want)
	}
}

// FuzzRestore reads arbitrary input as the JSON of a state. It must not panic, and the report of an accepted state must
// be valid JSON.
func FuzzRestore(f *testing.F) {
	packed := check.Value(gzip.NewReader(bytes.NewReader(stateOf(f, small(f)))))(f)
	data := check.Value(io.ReadAll(packed))(f)
	f.Add(data)
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"times":{"a":{"scraped":{"count":1,"buckets":[1,2,3]}}},"engines":{"":{"parts":[{"buckets":[1,2,3]}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := Restore(data); err == nil {
			operations(t, b)
			asJSON(t, b.Transfers())
			b.Clone()
		}
	})
}

// FuzzEndpoint adds two arbitrary bodies, and then the first one again, as scrapes of an endpoint.
func FuzzEndpoint(f *testing.F) {
	f.Add([]byte(counterText(5)+histogram("h_seconds", [3]int{1, 2, 3}, 3)), []byte(counterText(3)+histogram("h_seconds", [3]int{1, 2, 2}, 1)))
	f.Add([]byte("process_start_time_seconds 1\na 1\n"), []byte("process_start_time_seconds 2\na -1\n"))
	f.Add([]byte("# TYPE s summary\ns_count 1\ns_sum NaN\n"), []byte("# TYPE vllm:nixl_bytes_transferred histogram\nvllm:nixl_bytes_transferred_bucket{le=\"+Inf\"} 1e300\n"))
	huge := "# TYPE h_seconds histogram\nh_seconds_bucket{le=\"1e306\"} 1\nh_seconds_bucket{le=\"+Inf\"} 1\nh_seconds_sum 1\nh_seconds_count "
	f.Add([]byte(huge+"1\n"), []byte(huge+"2\n"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		b, e := newAggregator("*"), NewEndpoint(start, start)
		for i, body := range [][]byte{first, second, first} {
			if _, err := apply(e, body, b, after(float64(i+1))); err != nil {
				continue
			}
			checkFigures(t, b.Collect(after(float64(i)+1.5), nil))
		}
		checkRestores(t, b)
	})
}
