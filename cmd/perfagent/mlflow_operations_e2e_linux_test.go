//go:build e2e

package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// worker is a job that sends operations. Some of their names are invalid as MLflow keys, or are prefixes of other
// names.
const worker = `
import json, os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((os.environ['PERFAGENT_OPS_HOST'], int(os.environ['PERFAGENT_OPS_PORT'])))
def send(**record): s.send(json.dumps(record).encode())
for i in range(10):
    for name in ['get', 'a:b', 'a_b', 'store', 'store/count', 'GET /<b>', '../..']:
        send(op=name, ms=i)
    send(op='get', ms=1000, tags={'code': '"200"'})
    for name in ['queue', 'queue/size']:
        send(gauge=name, value=i)
    send(counter='rows', add=5)
    send(transfer='nixl', xfer_us=1000, post_us=500, bytes=1 << 20, descriptors=4)
    time.sleep(0.15)
send(transfer='nixl', failed='transfer')
`

// The operations of a job are in its run, under names that every server accepts.
func testWork(t *testing.T, s *mlflowtest.Server) {
	experiment := study(t)
	cmd := tracked(t, s, experiment, "run", "--interval", "100ms", "--ops", "on", "--", testenv.Python(t), "-c", worker)
	o := mustExit(t, 0, cmd)

	run, n := onlyRun(t, s, experiment), o.Report(t).Nodes["0"]
	nixl := n.Transfers["nixl"]
	for key, want := range map[string]float64{
		"op/get/count": 10, "op/get/avg_time_ms": 4.5, "op/get/p90_time_ms": *n.Operations.Times["get"].P90, "op/get/max_time_ms": 9,
		"op/get_code____200____/max_time_ms": 1000, "op/a_b/count": 10, "op/a_b_2/count": 10, "op/store/count": 10,
		"op/store_count/count": 10, "op/GET_/_b_/count": 10, "op/_____/count": 10,
		"transfer/nixl/num_successful_transfers": 10, "transfer/nixl/avg_xfer_time_ms": 1, "transfer/nixl/p90_xfer_time_ms": nixl.Summary.P90Xfer,
		"transfer/nixl/avg_post_time_ms": 0.5, "transfer/nixl/p90_post_time_ms": nixl.Summary.P90Post,
		"transfer/nixl/avg_mb_per_transfer": 1, "transfer/nixl/throughput_mb_per_second": 1000,
		"transfer/nixl/avg_number_of_descriptors": 4, "transfer/nixl/failed": 1,
	} {
		if got := run.Metrics[key]; len(got) != 1 || got[0].Value != want || got[0].Step != 0 {
			t.Errorf("points of %s: %v, want one of %v at step 0", key, got, want)
		}
	}
	for key, most := range map[string]float64{
		"op/get/time_ms": 9, "op/get/per_second": 100, "counter/rows/per_second": 500, "gauge/queue": 9, "gauge/queue_size": 9,
		"transfer/nixl/mb_per_second": 100, "transfer/nixl/time_ms": 1,
	} {
		points := run.Metrics["system/0/"+key]
		if len(points) == 0 || points[0].Value <= 0 || points[len(points)-1].Value > most {
			t.Errorf("system/0/%s: points %v, want some, above 0 and at most %v", key, points, most)
		}
		for _, p := range points {
			if !slices.Contains(steps(run, 0), p.Step) {
				t.Errorf("system/0/%s: points %v, want their steps among %v", key, points, steps(run, 0))
			}
		}
	}

	pushNow(t, s, experiment, theReport(t, o))
	before, after := slices.Sorted(maps.Keys(run.Metrics)), slices.Sorted(maps.Keys(onlyRun(t, s, experiment).Metrics))
	if !slices.Equal(before, after) {
		t.Errorf("metrics after a second push %q, want the same as before: %q", after, before)
	}
}

func TestE2E_MLflow_PushesOperations(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]mlflowtest.Options{
		"version 3": {Version: 3}, "version 2": {Version: 2}, "version 2 with a file store": {Version: 2, FileStore: true},
	} {
		onServer(t, options, serverCases{name: testWork})
	}
}
