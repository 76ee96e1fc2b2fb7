//go:build e2e

package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
)

// A node that dies leaves a partial report in the store.
func TestE2E_Store_NodeThatDiesLeavesPartialReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := filepath.Join(dir, "store")
	begin := func(id, script string) *clitest.Process {
		cmd := clitest.Perfagent(t, "run", "--out", dir+"/out", "--run-id", id, "--store", address, "--store-every", "10s", "--", "sh", "-c", script)
		return clitest.StartProcess(t, cmd)
	}
	dying, ending := begin("dying", "echo pid $$; exec sleep 600"), begin("ending", "until [ -e go ]; do sleep 0.1; done")
	job := dying.PID("pid")
	partial := func(id string) string { return filepath.Join(address, id, "node-0.partial.json") }
	clitest.WaitUntil(t, "both have a partial report", func() bool { return clitest.Exists(partial("dying")) && clitest.Exists(partial("ending")) })

	dying.Signal(syscall.SIGKILL)
	check.Must(t, syscall.Kill(job, syscall.SIGKILL))
	dying.End()
	clitest.Write(t, filepath.Join(ending.Cmd.Dir, "go"), "", 0o600)
	mustEnd(ending, 0)
	if clitest.Exists(partial("ending")) || !clitest.Exists(filepath.Join(address, "ending", "node-0.json")) {
		t.Error("the final report ending/node-0.json is not there, or the partial report is left; want only the final report")
	}
	metrics := storeState(t, filepath.Join(dir, "out", "ending", "node-0.json"), "0").Metrics
	puts, all := metrics.Keys["ending/node-0.partial.json"].Times["store.put"].Count, metrics.Times["store.put"].Count
	if puts < 1 || all != puts+1 {
		t.Errorf("%v puts of the partial report, %v of all; want at least 1, and one more", puts, all)
	}
	r := readReport(t, partial("dying"))
	if r.Run.Incomplete == "" || r.Nodes["0"].Sampling.Samples < 5 {
		t.Errorf("incomplete %q, %d samples; want a reason and at least 5", r.Run.Incomplete, r.Nodes["0"].Sampling.Samples)
	}
	wantContains(t, wantCall(t, 0, "ls", "file://"+address).Out, "1 (1 partial)")
}

// /metrics has the store's operations and failures while the job runs.
func TestE2E_Store_MetricsHaveOperationsOfStore(t *testing.T) {
	t.Parallel()
	listenTool(t, "promtool")
	for name, address := range map[string]string{
		"perfagent_store_seconds_count{operation=put}": t.TempDir(), "perfagent_store_errors_total{operation=put}": "/dev/full",
	} {
		// The last node of 64 puts its partial report first.
		args := []string{"--interval", "100ms", "--node", "63", "--store-every", "10s", "--store", address}
		l := listenRun(t, append(args, holdOpen...)...)
		clitest.WaitUntil(t, name+" is 1 or more", func() bool { v, there := l.series(name); return there && v >= 1 })
		_, _, text := l.get("/metrics")
		if out, err := promtoolCheck(t, text); err != nil || out != "" {
			t.Errorf("promtool rejects /metrics: %v\n%s\n%s", err, out, text)
		}
		l.finish().Want(t, 7)
	}
}
