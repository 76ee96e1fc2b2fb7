package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// The JSON output has the numbers of operations and transfers next to the metrics, and nothing else about them.
func TestShow_JSONHasNumbersOfOperations(t *testing.T) {
	r := reportertest.AddOperations(reportertest.ThreeNodes())
	nodes := decoded[map[string]map[string]float64](t, showIn(t, 0, r, "C", "--json").Out)
	for name, want := range map[string]float64{
		"op.store.get.count": 1234, "op.store.get.avg_time_ms": 1.24, "op.store.get.p90_time_ms": 2.2, "op.store.get.max_time_ms": 12,
		`op.GET /<script>alert(1)</script>{code="200"}.count`: 10, "counter.rows<b>": 123456, "gauge.queue.mean": 4.5,
		"gauge.queue.max": 9, "value.batch.count": 12, "value.batch.p90": 60, "transfer.nixl.num_successful_transfers": 120,
		"transfer.nixl.throughput_mb_per_second": 7070.707, "transfer.nixl.failed": 2, "wall_seconds": 20,
	} {
		if got, ok := nodes["1"][name]; !ok || got != want {
			t.Errorf("%s is %v (present: %v), want %v", name, got, ok, want)
		}
	}
	if mean, ok := nodes["1"]["op.only.failed.avg_time_ms"]; ok {
		t.Errorf("op.only.failed.avg_time_ms is %v, want none: every call failed", mean)
	}

	bare := showIn(t, 0, reportertest.ThreeNodes(), "C", "--json")
	if strings.Contains(bare.Out, `"op.`) || strings.Contains(bare.Out, `"transfer.`) {
		t.Errorf("show prints operations for a report without operations:\n%s", bare.Out)
	}
}

// show --ops prints all operations. With --key it prints the statistics of one key, even without --ops.
func TestShow_OpsPrintsAllOperations(t *testing.T) {
	r := reportertest.AddOperations(reportertest.ThreeNodes())
	for args, want := range map[string][]string{
		"--ops":                        {"\nstore.get  ", "\ngunicorn.requests", "\nusers  ", "\nNum successful transfers  ", "\nmodel  "},
		"--ops --key k1":               {"operation  calls  avg ms  min ms  max ms  size B\nstore.get  3,000     0.6     0.1       3     219\n"},
		"--key k1":                     {"\nstore.get  3,000 "},
		"--ops --format text --key k2": {"size B\nstore.get    702     0.7     0.2      12       -\n"},
	} {
		o := showIn(t, 0, r, "C", strings.Fields(args)...)
		wantContains(t, o.Out, want...)
		if o.Err != "" {
			t.Errorf("show %s: stderr %q, want none", args, o.Err)
		}
	}
}

// For an unknown key, show prints an empty table and no error.
func TestShow_PrintsEmptyTableForUnknownKey(t *testing.T) {
	r := reportertest.AddOperations(reportertest.ShortJob())
	for _, key := range []string{"other", "", "\x1b[2J"} {
		o := showIn(t, 0, r, "C", "--ops", "--key", key)
		if o.Out != "operation  calls  avg ms  min ms  max ms  size B\n" || o.Err != "" {
			t.Errorf("--key %q: stdout %q, stderr %q; want only the header and no stderr", key, o.Out, o.Err)
		}
	}
	if o := showIn(t, 0, r, "C", "--key", "other", "--json"); o.Out != "{\n  \"0\": {}\n}\n" {
		t.Errorf("--key other --json: stdout %q, want an empty node", o.Out)
	}
}

// The JSON output has the format of the report, with an entry for each node.
func TestShow_OpsJSONHasFormatOfReport(t *testing.T) {
	r := reportertest.AddOperations(reportertest.ThreeNodes())
	o := showIn(t, 0, r, "C", "--ops", "--json")
	want := make(map[string]any)
	for name, n := range r.Nodes {
		want[name] = map[string]any{"operations": n.Operations, "transfers": n.Transfers}
	}
	wanted, err := json.Marshal(want)
	check.Must(t, err)
	if diff := cmp.Diff(decoded[any](t, string(wanted)), decoded[any](t, o.Out)); diff != "" || len(want) != 3 {
		t.Errorf("operations of %d nodes, want 3 (-want +got):\n%s", len(want), diff)
	}
	if strings.Contains(o.Out, "\x1b") {
		t.Error("--ops --json prints the raw control character ESC")
	}

	o = showIn(t, 0, r, "C", "--key", "k2", "--format", "json")
	keys := decoded[map[string]map[string]map[string]float64](t, o.Out)
	if keys["2"]["store.get"]["count"] != 234 || len(keys["2"]) != 1 {
		t.Errorf("--key --json prints %s, want only store.get with a count of 234 in node 2", o.Out)
	}
}

func TestShow_OpsRefusesIncorrectUsage(t *testing.T) {
	with, without := reportertest.AddOperations(reportertest.ShortJob()), reportertest.ShortJob()
	for _, c := range []struct {
		report     *reporter.Report
		args, want string
	}{
		{without, "--ops", "operations were not recorded: perfagent run --ops on"},
		{without, "--ops --json", "operations were not recorded: perfagent run --ops on"},
		{without, "--key k1", "operations were not recorded: perfagent run --ops on"},
		{with, "--ops --format csv", "--ops and --format csv: operations are printed as text or json"},
		{with, "--key k1 --format md", "--ops and --format md: operations are printed as text or json"},
		{with, "--key", "--key"},
	} {
		wantError(t, showIn(t, 1, c.report, "C", strings.Fields(c.args)...), 1, c.want)
	}
}
