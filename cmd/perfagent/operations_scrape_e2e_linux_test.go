//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// The growth of a server's counters across a restart equals the result of Prometheus, and the statistics of the
// transfers equal numpy's.
func TestE2E_Operations_ScrapedGrowthEqualsPrometheus(t *testing.T) {
	t.Parallel()
	transfers, numpy := opsTransfers(240), opsEnvironment(t, "OPS")
	python, port := opsPython(t), freePort(t)
	s := opsServe(t, clitest.Perfagent(t, "run", "--interval", "50ms", "--scrape", "http://127.0.0.1:"+port+"/metrics",
		"--scrape-interval", "1s", "--", "sh", "-c", `"$0" server.py `+port+`; "$0" server.py `+port, python), transfers)
	p := listenPrometheus(t, "127.0.0.1:"+port)
	scraped := func(rows float64) { // waits until perfagent and Prometheus have this value
		s.scraped(2, nil)
		clitest.WaitUntil(t, fmt.Sprintf("Prometheus has %v rows", rows), func() bool { v, there := p.query("rows_total"); return there && v == rows })
		s.scraped(2, nil) // perfagent's previous scrape is complete
	}
	scraped(0)
	s.feed(100)
	scraped(100)
	s.tell("exit")
	s.Expect("ready")
	scraped(0)
	s.feed(140)
	scraped(140)
	increase := p.increase("rows_total")
	var failures []float64
	for _, name := range []string{"failed_transfers", "failed_notifications", "kv_expired_reqs"} {
		failures = append(failures, p.increase("vllm:nixl_num_"+name+"_total"))
	}
	xfer90 := p.quantile90("vllm:nixl_xfer_time_seconds_bucket")
	post90 := p.quantile90("vllm:nixl_post_time_seconds_bucket")
	s.tell("exit")
	n := mustEnd(s.Process, 0).Report(t).Nodes["0"]
	if got := n.Operations.Counters["rows_total"]; got != 240 || got != increase {
		t.Errorf("counter rows_total grew by %v, want 240 as in the server, and %v as in Prometheus", got, increase)
	}
	nixl := n.Transfers["nixl"]
	want, sum := numpyReduces(t, numpy, transfers), nixl.Summary // the two values of P90 are estimated
	got := []float64{sum.Transfers, sum.AvgXfer, want[2], sum.AvgPost, want[4], sum.AvgMB, sum.Throughput,
		sum.AvgDescriptors}
	if !slices.Equal(got, want) {
		t.Errorf("statistics %v, want numpy's %v", got, want)
	}
	got = []float64{nixl.FailedTransfers, nixl.FailedNotifications, nixl.KVExpired}
	if !slices.Equal(got, failures) || !slices.Equal(got, []float64{2, 4, 6}) {
		t.Errorf("failures %v, want 2, 4 and 6 as in the server, and %v as in Prometheus", got, failures)
	}
	if math.Abs(nixl.Summary.P90Xfer-xfer90*1000) > 0.00051 || math.Abs(nixl.Summary.P90Post-post90*1000) > 0.00051 ||
		len(nixl.Estimated) != 2 || nixl.Source != "scrape" {
		t.Errorf("transfers %+v, want P90 of %v and %v s as in Prometheus, from scrapes", nixl, xfer90, post90)
	}
	source := n.Operations.Sources[0]
	if source.Kind != "scrape" || source.Failures > 0 && source.Why == "" || *source.Scrapes-source.Failures < 5 {
		t.Errorf("source %+v, want at least 5 good scrapes, and a reason for failed ones", source)
	}
}

// If a server is older than the sidecar, only the growth of its counters is reported.
func TestE2E_Operations_SidecarCountsOnlyGrowthOfOlderServer(t *testing.T) {
	t.Parallel()
	python, port := opsPython(t), freePort(t)
	s := opsServe(t, clitest.Command(t, python, "server.py", port), opsTransfers(100))
	s.feed(70)
	l, path := beside(t, nil, "--scrape", "http://127.0.0.1:"+port+"/metrics", "--scrape-interval", "1s")
	s.scraped(1, nil)
	s.feed(30)
	s.scraped(1, nil)
	s.scraped(1, nil)
	l.Signal(syscall.SIGTERM)
	mustEnd(l, 0)
	n := reportertest.ReadFile(t, path).Nodes["0"]
	if got, nixl := n.Operations.Counters["rows_total"], n.Transfers["nixl"]; got != 30 || nixl.Summary.Transfers != 30 {
		t.Errorf("the counter grew by %v, and there were %v transfers, want 30 of each", got, nixl.Summary.Transfers)
	}
}

// numpyReduces returns the eight statistics of transfers, computed by numpy.
func numpyReduces(t *testing.T, python string, lists map[string][]float64) []float64 {
	t.Helper()
	in, err := json.Marshal([]any{lists})
	check.Must(t, err)
	o := mustExit(t, 0, clitest.Command(t, python, testenv.Repository(t, "opstats/testdata/reduce.py"),
		clitest.Write(t, filepath.Join(t.TempDir(), "in.json"), string(in), 0o600)))
	var out [][]float64
	if err := json.Unmarshal([]byte(o.Out), &out); err != nil || len(out) != 1 || len(out[0]) != 8 {
		t.Fatalf("numpy printed no list of 8 numbers: %v: %s%s", err, o.Out, o.Err)
	}
	return out[0]
}
