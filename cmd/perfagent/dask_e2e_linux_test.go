//go:build e2e

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// daskDoc runs parts of docs/dask.md, with a temporary directory in place of /shared.
type daskDoc struct {
	bin, dir string
	words    *strings.Replacer
}

// block returns the first block of the document that is fenced as name, with directories and ports of the test.
func (d *daskDoc) block(t *testing.T, name string) string {
	t.Helper()
	return d.words.Replace(fenced(t, "../../docs/dask.md", name)[0].text)
}

// python runs a program of the document and returns its output.
func (d *daskDoc) python(t *testing.T, name string) string {
	t.Helper()
	return d.run(t, clitest.Write(t, filepath.Join(d.dir, name), d.block(t, "python "+name), 0o600))
}

// run runs Python with the given arguments and returns its output.
func (d *daskDoc) run(t *testing.T, args ...string) string {
	t.Helper()
	return mustExit(t, 0, d.prepare(clitest.Command(t, filepath.Join(d.bin, "python"), args...))).Out
}

// patientDask gives connections on a busy machine more time.
var patientDask = []string{"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT=2m", "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP=2m"}

// prepare sets the directory and the environment of cmd.
func (d *daskDoc) prepare(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = d.dir
	return with(with(cmd, patientDask...), "PATH="+d.bin+":"+os.Getenv("PATH"), "PYTHONPATH="+d.dir, "HOME="+d.dir)
}

// sh starts text as a shell script, with perfagent on PATH.
func (d *daskDoc) sh(t *testing.T, text string) *clitest.Process {
	t.Helper()
	return clitest.StartProcess(t, d.prepare(clitest.Script(t, "sh", `PATH=${P%/*}:$PATH; `+text)))
}

func newDaskDoc(t *testing.T) *daskDoc {
	t.Helper()
	bin := environmentOf(t, "PERFAGENT_TEST_WORKFLOWS", "Dask and ProxyStore")
	dir := t.TempDir()
	port := freePort(t)
	return &daskDoc{bin, dir, strings.NewReplacer("/shared", dir, "head:8786", "127.0.0.1:"+port, "8786", port)}
}

// The commands and programs of docs/dask.md for one machine work.
func TestE2E_Docs_DaskOnOneMachineWorks(t *testing.T) {
	t.Parallel()
	d := newDaskDoc(t)
	clitest.Write(t, filepath.Join(d.dir, "job.py"), d.block(t, "python job.py"), 0o600)
	out := mustEnd(d.sh(t, d.block(t, "sh one")), 0).Out
	if !strings.Contains(out, "799999960000000") || !strings.Contains(out, "python job.py") {
		t.Errorf("output lacks the sum 799999960000000 or \"python job.py\":\n%s", out)
	}
	n := readReport(t, filepath.Join(d.dir, "perfagent-out", "one", "node-0.json")).Nodes["0"]
	if cpu := clitest.Metric(t, n, "job_cpu_seconds"); len(n.Processes) < 3 || cpu < 0.5 { // the program and two workers
		t.Errorf("%d processes, %v s of CPU time; want at least 3 (the program and two workers) and 0.5 s",
			len(n.Processes), cpu)
	}

	script := d.run(t, "-c", d.block(t, "python jobqueue")+"\nprint(cluster.job_script())\n")
	job := regexp.MustCompile(`(?m)^export PERFAGENT_RUN_ID=job-8 PERFAGENT_STORE=.*\nperfagent run --node \$SLURM_JOB_ID -- python3 -m distributed\.cli\.dask_worker `)
	if !job.MatchString(script) {
		t.Errorf("script of a Dask job does not match %v:\n%s", job, script)
	}
}

// The commands in docs/dask.md for a cluster started by hand, with each perfagent on its own machine, produce one page.
// The programs that read the reports by reference work, and the counters of ProxyStore match.
func TestE2E_Docs_DaskClusterGivesOnePage(t *testing.T) {
	t.Parallel()
	testenv.NeedsRoot(t, "to simulate machines with namespaces")
	d := newDaskDoc(t)
	machine := func(i int, script string) *clitest.Process {
		script = strings.Replace(script, "--node 1 ", fmt.Sprintf("--node %d ", i), 1)
		script = strings.Replace(script, "perfagent run", fmt.Sprintf("exec perfagent run --out out%d", i), 1)
		namespaces := fmt.Sprintf("hostname node%d && mount -t tmpfs tmpfs /dev/shm; %s", i, script)
		return d.sh(t, "export PATH; exec unshare --mount --uts sh -c '"+namespaces+"'")
	}
	head := machine(0, d.block(t, "sh scheduler"))
	workers := []*clitest.Process{machine(1, d.block(t, "sh worker")), machine(2, d.block(t, "sh worker"))}

	clitest.Write(t, filepath.Join(d.dir, "work.py"), d.words.Replace(`
from dask.distributed import Client
if __name__ == "__main__":
    client = Client("tcp://127.0.0.1:8786")
    client.wait_for_workers(2, timeout=120)
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    client.gather([client.submit(lambda n: sum(range(n)), 6_000_000, workers=[w], pure=False) for w in workers])
`), 0o600)
	d.run(t, "work.py")
	for _, p := range append(workers, head) {
		p.Signal(syscall.SIGTERM)
		if o, _ := p.End(); o.Code != 0 && o.Code != 128+int(syscall.SIGTERM) {
			t.Errorf("exit code %d, want 0 or 143: %s", o.Code, o.Err)
		}
	}

	mustEnd(d.sh(t, d.block(t, "sh merge")), 0)
	r := readReport(t, filepath.Join(d.dir, "job-7.json"))
	if len(r.Nodes) != 3 || r.Run.Gather.NodesFound != 3 || !strings.Contains(clitest.Read(t, filepath.Join(d.dir, "job-7.html")), "node2") {
		t.Errorf("%d nodes, gathered %+v; want 3 nodes, and node2 on the page", len(r.Nodes), r.Run.Gather)
	}
	for _, worker := range []string{"1", "2"} {
		if cpu := clitest.Metric(t, r.Nodes[worker], "job_cpu_seconds"); cpu < 0.2 {
			t.Errorf("worker %s used %v s of CPU time, want at least 0.2", worker, cpu)
		}
	}

	clitest.Write(t, filepath.Join(d.dir, "reports.py"), d.block(t, "python reports.py"), 0o600)
	out := d.python(t, "refer.py")
	if !regexp.MustCompile(`^job CPU [\d.]+ s\ngets: tasks \[1, 1, 1\] client 0\nbytes a task: \d{3}\n$`).MatchString(out) {
		t.Errorf("refer.py printed %q, want CPU seconds of the job, one get per task and the bytes per task", out)
	}
	if out := d.python(t, "proxies.py"); out != "gets: client 4\n" {
		t.Errorf("proxies.py printed %q, want \"gets: client 4\\n\"", out)
	}
}
