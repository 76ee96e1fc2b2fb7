package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/opstats"
	"github.com/perfagent/perfagent/reporter"
)

// opsPython returns the interpreter of .tools/venv, which has clients of StatsD and Prometheus, and gunicorn.
func opsPython(t testing.TB) string {
	t.Helper()
	path := os.Getenv("PERFAGENT_TEST_PYTHON")
	if path == "" || exec.Command(path, "-c", "import statsd, datadog, prometheus_client, gunicorn").Run() != nil {
		testenv.SkipOrFail(t, "needs Python with statsd, datadog, prometheus_client and gunicorn: make test installs them, "+
			"PERFAGENT_TEST_PYTHON names it")
	}
	return path
}

// opsEnvironment returns the interpreter of an environment with ProxyStore and numpy: OPS has the newest version,
// OPS_OLD 0.4.
func opsEnvironment(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("PERFAGENT_TEST_" + name)
	path := filepath.Join(dir, "bin", "python")
	if dir == "" || !clitest.Exists(path) {
		testenv.SkipOrFail(t, "needs ProxyStore and numpy: make test installs them, PERFAGENT_TEST_"+name+" names the environment")
	}
	return path
}

// opsRun runs a job that may send operations, and returns its node of the report.
func opsRun(t testing.TB, job ...string) (*reporter.Node, clitest.Outcome) {
	t.Helper()
	o := clitest.Run(t, append([]string{"run", "--ops", "on", "--interval", "50ms", "--"}, job...)...)
	o.Want(t, 0)
	n := o.Report(t).Nodes["0"]
	if n.Operations == nil {
		t.Fatalf("the report has no operations, want the job's; missing %v", n.Missing)
	}

	return n, o
}

// numpyReduces returns the eight statistics of transfers as numpy computes them.
func numpyReduces(t *testing.T, python string, lists map[string][]float64) []float64 {
	t.Helper()
	in, err := json.Marshal([]any{lists})
	if err != nil {
		t.Fatal(err)
	}
	script := testenv.Repository(t, "opstats/testdata/reduce.py")
	cmd := clitest.Command(t, python, script, clitest.Write(t, filepath.Join(t.TempDir(), "in.json"), string(in), 0o600))
	o := clitest.RunCommand(t, cmd)
	o.Want(t, 0)

	var out [][]float64
	if err := json.Unmarshal([]byte(o.Out), &out); err != nil || len(out) != 1 || len(out[0]) != 8 {
		t.Fatalf("numpy printed no list of 8 numbers: %v: %s%s", err, o.Out, o.Err)
	}
	return out[0]
}

// wantReduced compares the statistics of transfers in a report with numpy's. A scrape has two estimated P90, which are
// not compared.
func wantReduced(t *testing.T, got opstats.TransferSummary, want []float64, scraped bool) {
	t.Helper()
	for i, v := range []float64{got.Transfers, got.AvgXfer, got.P90Xfer, got.AvgPost, got.P90Post, got.AvgMB,
		got.Throughput, got.AvgDescriptors} {
		if p90 := i == 2 || i == 4; v != want[i] && !(scraped && p90) {
			t.Errorf("figure %d is %v, want numpy's %v", i, v, want[i])
		}
	}
}
		place++
	}
}
