package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// The JSON output has the numbers of operations and transfers next to the metrics, and nothing else about them.
func TestShow_JSONHasNumbersOfOperations(t *testing.T) {
	r := reportertest.AddOperations(reportertest.ThreeNodes())
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
			t.Errorf("%s is %v (present: %v), want %v", name, got, ok, want)
		}
	}
	if _, ok := nodes["1"]["op.only.failed.avg_time_ms"]; ok {
		t.Errorf("op.only.failed.avg_time_ms is %v, want none: every call failed",
			nodes["1"]["op.only.failed.avg_time_ms"])
	}

	bare := showIn(t, reportertest.ThreeNodes(), "C", "--json")
	if strings.Contains(bare.Out, `"op.`) || strings.Contains(bare.Out, `"transfer.`) {
		t.Errorf("show prints operations for a report without operations:\n%s", bare.Out)
	}
}

// show --ops prints all operations. With --key it prints the statistics of one key, even without --ops.
func TestShow_OpsPrintsAllOperations(t *testing.T) {
	r := reportertest.AddOperations(reportertest.ThreeNodes())
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--ops"}, []string{"\nstore.get  ", "\ngunicorn.requests", "\nusers  ", "\nNum successful transfers  ", "\nmodel  "}},
		{[]string{"--ops", "--key", "k1"}, []string{"operation  calls  avg ms  min ms  max ms  size B\nstore.get  3,000     0.6     0.1       3     219\n"}},
		{[]string{"--key", "k1"}, []string{"\nstore.get  3,000 "}},
		{[]string{"--ops", "--format", "text", "--key", "k2"}, []string{"size B\nstore.get    702     0.7     0.2      12       -\n"}},
	} {
		o := showIn(t, r, "C", c.args...)
		o.Want(t, 0)
		for _, want := range c.want {
			if !strings.Contains(o.Out, want) || o.Err != "" {
				t.Errorf("show %q lacks %q, or has stderr %q:\n%s", c.args, want, o.Err, o.Out)
			}
		}
	}
}

// For an unknown key, show prints an empty table and no error.
func TestShow_PrintsEmptyTableForUnknownKey(t *testing.T) {
	r := reportertest.AddOperations(reportertest.ShortJob())
	for _, key := range []string{"other", "", "\x1b[2J"} {
		o := showIn(t, r, "C", "--ops", "--key", key)
		o.Want(t, 0)
		if o.Out != "operation  calls  avg ms  min ms  max ms  size B\n" || o.Err != "" {
			t.Errorf("--key %q: stdout %q, stderr %q; want only the header and no stderr", key, o.Out, o.Err)
		}
	}
	if o := showIn(t, r, "C", "--key", "other", "--json"); o.Code != 0 || o.Out != "{\n  \"0\": {}\n}\n" {
		t.Errorf("--key other --json: exit code %d, stdout %q; want 0 and an empty node", o.Code, o.Out)
	}
}

// The JSON output has the format of the report, with an entry for each node.
func TestShow_OpsJSONHasFormatOfReport(t *testing.T) {
	r := reportertest.AddOperations(reportertest.ThreeNodes())
	o := showIn(t, r, "C", "--ops", "--json")
	o.Want(t, 0)
	for name, n := range r.Nodes {
		var got map[string]map[string]any
		want, err := json.Marshal(map[string]any{"operations": n.Operations, "transfers": n.Transfers})
		if err != nil {
			t.Fatal(err)
		}
		var wanted map[string]any
		if err := errors.Join(json.Unmarshal([]byte(o.Out), &got), json.Unmarshal(want, &wanted)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got[name]); diff != "" || len(got) != 3 {
			t.Errorf("%d nodes, want 3; node %s (-want +got):\n%s", len(got), name, diff)
		}
	}
	if strings.Contains(o.Out, "\x1b") {
		t.Error("--ops --json prints the raw control character ESC")
	}

	o = showIn(t, r, "C", "--key", "k2", "--format", "json")
	o.Want(t, 0)
	var keys map[string]map[string]map[string]float64
	if err := json.Unmarshal([]byte(o.Out), &keys); err != nil || keys["2"]["store.get"]["count"] != 234 || len(keys["2"]) != 1 {
		t.Errorf("--key --json: %v, want only store.get with a count of 234 in node 2: %s", err, o.Out)
	}
}

func TestShow_OpsRefusesIncorrectUsage(t *testing.T) {
	with, without := reportertest.AddOperations(reportertest.ShortJob()), reportertest.ShortJob()
	for _, c := range []struct {
		report *reporter.Report
		args   string
		want   string
	}{
		{without, "--ops", "operations were not recorded: perfagent run --ops on"},
		{without, "--ops --json", "operations were not recorded: perfagent run --ops on"},
		{without, "--key k1", "operations were not recorded: perfagent run --ops on"},
		{with, "--ops --format csv", "--ops and --format csv: operations are printed as text or json"},
		{with, "--key k1 --format md", "--ops and --format md: operations are printed as text or json"},
		{with, "--key", "--key"},
	} {
		o := showIn(t, c.report, "C", strings.Fields(c.args)...)
		o.Want(t, 1)
		o.WantLine(t, c.want)
		if o.Out != "" {
			t.Errorf("%s: stdout %q, want none", c.args, o.Out)
		}
	}
}
