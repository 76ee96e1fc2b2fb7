package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

const operationsDoc = "../../docs/operations.md"

// opsProxyStore is a job with two stores that collect metrics, like two workers with the same operations. Each store
// hands over its metrics twice by the documented recipe. The job prints the metrics.
const opsProxyStore = `
import pickle, time
from proxystore.proxy import resolve
from proxystore.connectors.local import LocalConnector
from proxystore.store import Store, register_store
class Slow:
    def __reduce__(self):
        return (time.sleep, (0.02,))
def work(name, n):
    with Store(name, LocalConnector(), metrics=True, cache_size=0) as store:
        register_store(store)
        for i in range(n):
            store.get(store.put([i] * 1000))
            resolve(pickle.loads(pickle.dumps(store.proxy(Slow())))) # as another process does
        hand_over(store, name)
        for i in range(n):
            store.exists(store.put(i))
        hand_over(store, name)
        return {op: dataclasses.asdict(stats) for op, stats in store.metrics.aggregate_times().items()}
print(json.dumps([work('worker-1', 3), work('worker-2', 5)]))
`

// opsOldProxyStore is a similar job for version 0.4, which has statistics by key.
const opsOldProxyStore = `
from proxystore.store.local import LocalStore
store = LocalStore('old', stats=True, cache_size=0)
keys = [store.set([i] * 1000) for i in range(7)]
for key in keys: store.get(key)
hand_over(store, keys, 'old')
times = {}
for key in keys:
    for op, s in store.stats(key).items():
        t = times.setdefault(op, [])
        t.append(s)
print(json.dumps([{op: {'count': sum(s.calls for s in t),
    'avg_time_ms': sum(s.avg_time_ms * s.calls for s in t) / sum(s.calls for s in t),
    'min_time_ms': min(s.min_time_ms for s in t), 'max_time_ms': max(s.max_time_ms for s in t)}
    for op, t in times.items()}]))
`

// The metrics of a ProxyStore are in the report in milliseconds, although some of its times are in nanoseconds.
func TestOperations_ProxyStoreMetricsAreInMilliseconds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		environment, recipe, job string
		operations               []string
	}{
		{"OPS", "python proxystore", opsProxyStore,
			[]string{"store.put", "store.get", "store.exists", "store.proxy", "factory.call", "factory.resolve"}},
		{"OPS_OLD", "python proxystore-0.4", opsOldProxyStore, []string{"set", "get", "set_bytes", "get_bytes"}},
	} {
		t.Run(test.environment, func(t *testing.T) {
			t.Parallel()
			python := opsEnvironment(t, test.environment)
			n, o := opsRun(t, python, "-c", fenced(t, operationsDoc, test.recipe)[0].text+test.job)

			var stores []map[string]map[string]float64
			check.Must(t, json.Unmarshal([]byte(o.Out), &stores))
			for _, name := range test.operations {
				divisor := 1.0
				if strings.HasPrefix(name, "factory.") {
					divisor = 1e6
				}
				count, total, low, high := 0.0, 0.0, math.Inf(1), 0.0
				for _, store := range stores {
					s := store[name]
					count, total = count+s["count"], total+s["count"]*s["avg_time_ms"]/divisor
					low, high = min(low, s["min_time_ms"]/divisor), max(high, s["max_time_ms"]/divisor)
				}
				got := n.Operations.Times[name]
				if count == 0 || got.Count != count || got.Avg == nil {
					t.Errorf("%s: %+v, want a count of %v with an average; the stores have %v", name, got, count, stores)
					continue
				}
				if math.Abs(*got.Avg-total/count) > 1e-9*total/count || *got.Min != low || *got.Max != high || got.P90 != nil {
					t.Errorf("%s: avg %v, %v to %v, P90 %v; want %v, %v to %v, no P90",
						name, *got.Avg, *got.Min, *got.Max, got.P90, total/count, low, high)
				}
			}
			// Each resolve takes 20 ms, so a wrong unit is noticed.
			if r := n.Operations.Times["factory.resolve"]; r.Avg != nil && (*r.Min < 20 || *r.Min > 2000) {
				t.Errorf("factory.resolve: minimum %v ms, want 20 to 2000", *r.Min)
			}
		})
	}
}
