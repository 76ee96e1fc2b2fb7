package reporter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

func TestParseTimelineKey(t *testing.T) {
	t.Parallel()
	type line = reporter.OperationTimeline
	for key, want := range map[string]line{
		"op:store.get:time_ms":        {Kind: reporter.OpKind, Series: "store.get", Number: "time_ms"},
		"op:store.get:per_second":     {Kind: reporter.OpKind, Series: "store.get", Number: "per_second"},
		"op:a:time_ms:per_second":     {Kind: reporter.OpKind, Series: "a:time_ms", Number: "per_second"},
		"op:vllm:x{a=\":\"}:time_ms":  {Kind: reporter.OpKind, Series: "vllm:x{a=\":\"}", Number: "time_ms"},
		"counter:rows:per_second":     {Kind: reporter.CounterKind, Series: "rows", Number: "per_second"},
		"gauge:queue":                 {Kind: reporter.GaugeKind, Series: "queue"},
		"gauge:queue:time_ms":         {Kind: reporter.GaugeKind, Series: "queue:time_ms"},
		"transfer:nixl:mb_per_second": {Kind: reporter.TransferKind, Series: "nixl", Number: "mb_per_second"},
		"transfer:nixl:time_ms":       {Kind: reporter.TransferKind, Series: "nixl", Number: "time_ms"},
	} {
		got, ok := reporter.ParseTimelineKey(key)
		unit := map[string]string{"time_ms": "ms", "per_second": "1/s", "mb_per_second": "MiB/s"}[want.Number]
		wantValues(t, fmt.Sprintf("ParseTimelineKey(%q), its unit and key", key), fmt.Sprintln(want, true, unit, key),
			got, ok, got.Unit(), got.Key())
	}
	for _, key := range []string{
		"", "op:", "op:time_ms", "op::time_ms", "gauge:", "gauge", "counter:rows", "counter:rows:time_ms", "value:batch", "cpu_pct_per_cpu_avg",
		"disk_io_read_mb_per_second", "Op:store.get:time_ms", "transfer:nixl:per_second", "op:store.get:time_ms ", "op:store.get.time_ms",
		"transfer:mb_per_second:time_m",
	} {
		if got, ok := reporter.ParseTimelineKey(key); ok || got != (line{}) || got.Unit() != "" {
			t.Errorf("ParseTimelineKey(%q) = %+v, %v, unit %q; want none", key, got, ok, got.Unit())
		}
	}
}

func TestNode_TimelinesAreOrderedByKind(t *testing.T) {
	t.Parallel()
	r := reporter.New(reportertest.Input(0, 3, 0, ""))
	if lines := r.Nodes["0"].Timelines(); lines != nil {
		t.Errorf("without operations: timelines %v, want none", lines)
	}

	var keys []string
	for _, l := range reportertest.AddOperations(r).Nodes["0"].Timelines() {
		keys = append(keys, l.Key())
	}
	want := []string{
		"op:store.get:per_second", "op:store.get:time_ms", "counter:rows<b>:per_second", "gauge:queue",
		"transfer:nixl:mb_per_second", "transfer:nixl:time_ms",
	}
	check.Equal(t, keys, want, "timelines")
}

// If only the timelines of operations are selected, Scan reads no other columns.
func TestScan_ReadsOnlySelectedTimelines(t *testing.T) {
	t.Parallel()
	r := reportertest.AddOperations(reporter.New(reportertest.Input(0, 3, 0, "")))
	got, _, err := streamAll(t, encodedReport(t, r), reporter.ColumnFilter{Timelines: true})
	check.Must(t, err)
	check.Equal(t, len(got.Nodes["0"].Envelope), len(r.Nodes["0"].Timelines()), "number of bands")
}

// Every recorded timeline is in the table of timelines. Otherwise it would not be drawn and would have no unit.
func TestParseTimelineKey_AcceptsAllRecordedKeys(t *testing.T) {
	t.Parallel()
	b := aggregate.New(aggregate.Options{}, time.Unix(0, 0))
	var e wire.Event
	for _, line := range []string{"a.time_ms:10|ms", "b{c:1|c", "g:-2|g", `{"op":"x","s":1,"tags":{"k":":per_second"}}`, `{"transfer":"n","xfer_us":5000}`} {
		if reason := e.Parse([]byte(line), wire.DogStatsD); reason != wire.Accepted || !b.Add(&e, time.Unix(1, 0)) {
			t.Fatalf("%s: reason %v, want it accepted and added", line, reason)
		}
	}

	keys := b.TimelineKeys()
	if len(keys) < 8 {
		t.Errorf("the recorded keys are %q, want at least 8", keys)
	}
	for _, key := range keys {
		if l, ok := reporter.ParseTimelineKey(key); !ok || l.Key() != key {
			t.Errorf("ParseTimelineKey(%q) = %+v, %v, want a timeline with that key", key, l, ok)
		}
	}
}
