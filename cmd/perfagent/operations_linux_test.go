package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// opsPython returns the Python interpreter of .tools/venv, which has clients for StatsD and Prometheus, and gunicorn.
func opsPython(t testing.TB) string {
	t.Helper()
	path := os.Getenv("PERFAGENT_TEST_PYTHON")
	if path == "" || exec.Command(path, "-c", "import statsd, datadog, prometheus_client, gunicorn").Run() != nil {
		testenv.SkipOrFail(t, "needs Python with statsd, datadog, prometheus_client and gunicorn: make test installs them, "+
			"PERFAGENT_TEST_PYTHON names it")
	}
	return path
}

// opsEnvironment returns the Python interpreter of an environment with ProxyStore and numpy. The environment OPS has
// the newest version of ProxyStore, and OPS_OLD has version 0.4.
func opsEnvironment(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("PERFAGENT_TEST_" + name)
	path := filepath.Join(dir, "bin", "python")
	if dir == "" || !clitest.Exists(path) {
		testenv.SkipOrFail(t, "needs ProxyStore and numpy: make test installs them, PERFAGENT_TEST_"+name+" names the environment")
	}
	return path
}

// opsRun runs a job that may send operations, and returns the node in its report.
func opsRun(t testing.TB, job ...string) (*reporter.Node, clitest.Outcome) {
	t.Helper()
	o := mustRun(t, 0, append([]string{"run", "--ops", "on", "--interval", "50ms", "--"}, job...)...)
	n := o.Report(t).Nodes["0"]
	if n.Operations == nil {
		t.Fatalf("the report has no operations, want the job's; missing %v", n.Missing)
	}

	return n, o
}

// lostAndFound returns the number of datagrams that a node has read, and the number that it has reported as lost.
func lostAndFound(n *reporter.Node) (read, lost int64) {
	for _, s := range n.Operations.Sources {
		if s.Datagrams != nil {
			read += *s.Datagrams
		}
	}
	return read, n.Operations.Dropped.Kernel + n.Operations.Dropped.RateLimited
}
