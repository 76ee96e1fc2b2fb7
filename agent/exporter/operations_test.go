package exporter

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/store"
)

// aggregatorOf returns the aggregator of a job that sent the given lines.
func aggregatorOf(lines ...string) *aggregate.Aggregator {
	at := time.Unix(1_767_225_600, 0)
	b := aggregate.New(aggregate.Options{}, at)
	var e wire.Event
	taken := int64(0)
	for _, line := range lines {
		if r := e.Parse([]byte(line), wire.StatsD); r != wire.Accepted {
			b.Drop(r, []byte(line))
		} else if b.Add(&e, at) {
			taken++
		}
	}
	b.AddReceived(b.AddSource("statsd", "127.0.0.1:43121"), int64(len(lines)), taken, at)
	b.AddSource("dogstatsd", "127.0.0.1:43122")
	b.AddScrape(b.AddSource("scrape", "http://127.0.0.1:1/metrics"), 9, "", at)
	b.AddScrape(b.AddSource("scrape", "http://127.0.0.1:2/metrics"), 8, "", at)
	b.DropDatagrams(3, 0)
	return b
}

// operationLines are lines of a job with all kinds of names.
var operationLines = []string{
	`{"op":"get","ms":10}`, `{"op":"get","ms":20}`, `{"op":"get","ms":30}`, `{"op":"get","ok":false}`, `{"op":"put","ok":false}`,
	`{"op":"GET","us":0.5,"tags":{"path":"/a\\b\"c\nd</script>"}}`,
	`{"proxystore":"1.1.0","id":"w","metrics":{"times":{"handed":{"count":4,"avg_time_ms":2,"min_time_ms":1,"max_time_ms":3}}}}`,
	"rows:-5|c", "rate:1e-12|g", "queue:7|g", "queue:-3|g", "users:joe|s", "size:5|h", "nonsense",
	`{"transfer":"nixl","xfer_us":0.5,"bytes":1048576}`, `{"transfer":"nixl","xfer_us":0.25,"bytes":1}`,
	`{"transfer":"nixl","failed":"kv_expired"}`, `{"transfer":"nixl","failed":"transfer"}`,
}

func TestMetrics_HaveOperations(t *testing.T) {
	f := listenFeed(time.Second)
	f.options.Operations = func() *aggregate.Aggregator { return aggregatorOf(operationLines...) }
	text := string(f.metrics())
	text = text[strings.Index(text, "# HELP perfagent_operation_seconds"):]
	wantGolden(t, "work.txt", text)

	got := parsed(t, text)
	for name, want := range map[string]float64{
		"perfagent_operation_seconds{operation=get,quantile=0.5}": 0.02, "perfagent_operation_seconds_sum{operation=get}": 0.06,
		"perfagent_operation_seconds_count{operation=get}": 3, "perfagent_operation_seconds_count{operation=put}": 0,
		"perfagent_operation_seconds_sum{operation=handed}": 0.008, "perfagent_operation_seconds_count{operation=handed}": 4,
		"perfagent_operation_errors_total{operation=get}": 1, "perfagent_operation_errors_total{operation=put}": 1,
		"perfagent_job_value{kind=counter,series=rows}": -5, "perfagent_job_value{kind=gauge,series=queue}": 4,
		"perfagent_job_value{kind=gauge,series=rate}":                      1e-12,
		"perfagent_transfer_seconds_sum{transfer=nixl}":                    0.75e-6, // the reduced averages have 3 decimals of a millisecond
		"perfagent_transfer_seconds_count{transfer=nixl}":                  2,
		"perfagent_transfer_bytes_total{transfer=nixl}":                    1048577,
		"perfagent_transfer_failures_total{transfer=nixl,kind=kv_expired}": 1,
		"perfagent_intake_events_total{source=statsd}":                     17,
		"perfagent_intake_events_total{source=dogstatsd}":                  0,
		"perfagent_intake_events_total{source=scrape}":                     17,
		"perfagent_intake_dropped_total{reason=kernel}":                    3,
		"perfagent_intake_dropped_total{reason=malformed}":                 1,
		"perfagent_intake_dropped_total{reason=rate}":                      0,
	} {
		slack := 1e-9 * math.Abs(want)
		if strings.Contains(name, "quantile") {
			slack = 0.01 * want
		}
		if v, there := got[name]; !there || math.Abs(v-want) > slack {
			t.Errorf("%s is %v (present: %v), want %v", name, v, there, want)
		}
	}
	for name := range got {
		if strings.Contains(name, "operation=handed,quantile") || strings.Contains(name, "operation=put,quantile") {
			t.Errorf("%s has a line, want none for an unknown quantile", name)
		}
	}
	for _, m := range operationMetrics() {
		if !strings.Contains(text, "\n# TYPE "+m.Name+" "+m.Type+"\n") || m.Help == "" {
			t.Errorf("no TYPE line with %s for %s, or no help (%q)", m.Type, m.Name, m.Help)
		}
	}
}

// Recorded operations change no other metric, and a run without them has no operation metrics.
func TestMetrics_OperationsChangeNoOtherMetric(t *testing.T) {
	f := wideFeed(time.Second)
	f.sample()
	before := string(f.metrics())
	f.options.Operations = func() *aggregate.Aggregator { return aggregatorOf() }
	after := string(f.metrics())
	if !strings.HasPrefix(after, before) || strings.Contains(before, "_intake_") {
		t.Errorf("operations changed other metrics, or exist without (-without +with):\n%s", cmp.Diff(before, after))
	}
}

// The aggregator is copied once, regardless of the number of clients.
func TestOperationsCache_IsCopiedOnce(t *testing.T) {
	var n operationsCache
	copies := 0
	ask := func() *aggregate.Aggregator { copies++; return aggregatorOf("rows:5|c") }
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			if w := n.get(ask); w.Counters["rows"] != 5 {
				t.Errorf("copy %+v, want 5 rows", w)
			}
		})
	}
	clients.Wait()
	if copies != 1 {
		t.Errorf("%d copies for 20 clients, want 1", copies)
	}
	n.made = n.made.Add(-maxOperationsAge)
	if n.get(ask); copies != 2 {
		t.Errorf("%d copies after the first copy expired, want 2", copies)
	}
}

// perfagent's operations on a store have times and failures. Without a store, there are no such metrics.
func TestMetrics_StoreOperationsAreCounted(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir, store.Options{Metrics: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := s.Put(t.Context(), fmt.Sprintf("job/node-%d", i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(t.Context(), "no name", nil); err == nil {
		t.Fatal("Put with an invalid name returned nil, want an error")
	}

	f := listenFeed(time.Second)
	if text := string(f.metrics()); strings.Contains(text, "perfagent_store") {
		t.Errorf("store metrics of a run without a store: %s, want none", text)
	}
	f.options.Store = s.Metrics
	got := parsed(t, string(f.metrics()))
	for name, want := range map[string]float64{
		"perfagent_store_seconds_count{operation=put}": 3, "perfagent_store_seconds_count{operation=put.connector}": 3,
		"perfagent_store_errors_total{operation=put}": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if sum := got["perfagent_store_seconds_sum{operation=put}"]; sum <= 0 || sum > 60 {
		t.Errorf("the puts took %v s, want 0 to 60", sum)
	}
}
