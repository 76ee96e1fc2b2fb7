package reportertest

import (
	"encoding/json"
	"math"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/reporter"
)

// AddOperations adds operations and transfers with various names, and the timelines of some, to each node of a report.
// The values depend on the position of the node.
func AddOperations(r *reporter.Report) *reporter.Report {
	for i, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil {
			continue
		}

		n.Operations = new(aggregate.Operations)
		if err := json.Unmarshal([]byte(operationsJSON), n.Operations); err != nil {
			panic(err) // the JSON is constant
		}
		get := n.Operations.Times["store.get"]
		get.Avg, get.P90 = new(*get.Avg*float64(i+1)), new(*get.P90*float64(i+1))
		n.Operations.Times["store.get"] = get
		if err := json.Unmarshal([]byte(transfersJSON), &n.Transfers); err != nil {
			panic(err)
		}
		drawWork(n)
	}

	return r
}

// drawWork adds timelines with values that begin after a third of the samples.
func drawWork(n *reporter.Node) {
	length := n.Samples.Len()
	for place, key := range []string{
		"op:store.get:time_ms", "op:store.get:per_second", "counter:rows<b>:per_second", "gauge:queue",
		"transfer:nixl:mb_per_second", "transfer:nixl:time_ms",
	} {
		b := reporter.Band{}
		for i := range length {
			v := math.NaN()
			if i >= length/3 {
				v = float64(place+1) * (2 + math.Sin(float64(i)/3))
			}
			b.Min, b.Mean, b.Max = append(b.Min, v*0.5), append(b.Mean, v), append(b.Max, v*2)
		}
		n.Envelope[key] = b
	}
}

const operationsJSON = `{
 "sources": [
  {"kind": "statsd", "address": "127.0.0.1:43121", "events": 2400, "datagrams": 1200, "first": 1795357692.5, "last": 1795357699.5},
  {"kind": "dogstatsd", "address": "127.0.0.1:43122", "events": 0, "datagrams": 0},
  {"kind": "scrape", "address": "http://127.0.0.1:8000/metrics", "events": 90, "scrapes": 3, "failures": 1,
   "first": 1795357693, "last": 1795357698, "seconds_before_end": 1.5, "why": "connection refused"}
 ],
 "times": {
  "store.get": {"count": 1234, "avg_time_ms": 0.62, "min_time_ms": 0.1, "max_time_ms": 12, "last_time_ms": 0.5,
   "last_timestamp": 1795357699, "total_time_ms": 765.08, "p50_time_ms": 0.55, "p90_time_ms": 1.1, "p99_time_ms": 4,
   "size_bytes": 219, "total_bytes": 270246, "errors": 3},
  "GET /<script>alert(1)</script>{code=\"200\"}": {"count": 10, "avg_time_ms": 900, "min_time_ms": 800, "max_time_ms": 1200,
   "last_time_ms": 850, "last_timestamp": 1795357698, "total_time_ms": 9000, "p50_time_ms": 890, "p90_time_ms": 1100,
   "p99_time_ms": 1200},
  "vllm:time_to_first_token_seconds": {"count": 40, "avg_time_ms": 55, "total_time_ms": 2200, "p50_time_ms": 50,
   "p90_time_ms": 80, "p99_time_ms": 95, "estimated": ["p50_time_ms", "p90_time_ms", "p99_time_ms"]},
  "only.failed": {"count": 0, "total_time_ms": 0, "errors": 2}
 },
 "counters": {"rows<b>": 123456, "gunicorn.requests": 2000},
 "gauges": {"queue": {"last": 3, "min": -1, "mean": 4.5, "max": 9, "count": 20}},
 "values": {"batch": {"count": 12, "avg": 31.5, "min": 1, "max": 64, "last": 32, "p50": 32, "p90": 60, "p99": 64, "unit": "rows"}},
 "sets": {"users": {"count": 17}},
 "attributes": {"model": "m7 \u001b[31m", "layers": 32, "eager": true},
 "keys": {"store.get": {
  "k1": {"count": 1000, "avg_time_ms": 0.6, "min_time_ms": 0.1, "max_time_ms": 3, "last_time_ms": 0.5, "last_timestamp": 1795357699, "size_bytes": 219},
  "k2": {"count": 234, "avg_time_ms": 0.7, "min_time_ms": 0.2, "max_time_ms": 12, "last_time_ms": 0.9, "last_timestamp": 1795357698}}},
 "dropped": {"kernel": 42, "malformed": 2, "ignored": 7},
 "examples": [{"line": "hello", "why": "malformed"}]
}`

const transfersJSON = `{"nixl": {
 "reduced": {"Num successful transfers": 120, "Avg xfer time (ms)": 9.9, "P90 xfer time (ms)": 15, "Avg post time (ms)": 1.2,
  "P90 post time (ms)": 2.5, "Avg MB per transfer": 70, "Throughput (MB/s)": 7070.707, "Avg number of descriptors": 56},
 "total_mb": 8400, "wall_throughput_mb_per_second": 850, "failed_transfers": 2, "failed_notifications": 1,
 "kv_expired_reqs": 0, "ranks": 2, "first": 1795357692.1, "last": 1795357699.1, "source": "records"}}`
