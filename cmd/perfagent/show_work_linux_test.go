package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
)

// The JSON has the numbers of operations and transfers beside the metrics, and nothing else of them.
func TestShow_WorkNumbers(t *testing.T) {
	r := reportertest.Work(reportertest.ThreeNodes())
	o := showIn(t, r, "C", "--json")
	o.Want(t, 0)
	var nodes map[string]map[string]float64
	if err := json.Unmarshal([]byte(o.Out), &nodes); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"op.store.get.count": 1234, "op.store.get.avg_time_ms": 1.24, "op.store.get.p90_time_ms": 2.2, "op.store.get.max_time_ms": 12,
		`op.GET /<script>alert(1)</script>{code="200"}.count`: 10, "counter.rows<b>": 123456, "gauge.queue.mean": 4.5,
		"gauge.queue.max": 9, "value.batch.count": 12, "value.batch.p90": 60, "transfer.nixl.num_successful_transfers": 120,
		"transfer.nixl.throughput_mb_per_second": 7070.707, "transfer.nixl.failed": 2, "wall_seconds": 20,
	} {
		if got, ok := nodes["1"][name]; !ok || got != want {
			t.Errorf("%s is %v, %v, want %v", name, got, ok, want)
		}
	}
	if _, ok := nodes["1"]["op.only.failed.avg_time_ms"]; ok {
		t.Error("an operation that only failed has an average")
	}

	bare := showIn(t, reportertest.ThreeNodes(), "C", "--json")
	if strings.Contains(bare.Out, `"op.`) || strings.Contains(bare.Out, `"transfer.`) {
		t.Errorf("a report without operations has some:\n%s", bare.Out)
	}
}
