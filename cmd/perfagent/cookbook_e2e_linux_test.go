//go:build e2e

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
)

const (
	cookbookDoc = "../../docs/cookbook.md"
	pythonDoc   = "../../docs/python.md"
)

// recipes maps the titles of the recipes that need more than a shell to functions that test them.
var recipes = map[string]func(t *testing.T, r recipe){
	"Snakemake":                cookSnakemake,
	"Dask":                     cookDask,
	"Jupyter":                  cookJupyter,
	"A message at the end":     cookMessage,
	"pandas over many reports": cookPandas,
	"multiprocessing, joblib, DataLoader: which worker took the memory": cookPool,
}

// testedElsewhere is the recipe that TestE2E_Deploy_GrafanaHasData tests.
const testedElsewhere = "Prometheus and Grafana"

// A recipe is a section of the cookbook.
type recipe struct{ blocks []block }

// The recipes of the cookbook work with the tools that they name. A recipe is marked as tested if and only if a test
// runs it.
func TestE2E_Docs_CookbookRecipesWork(t *testing.T) {
	t.Parallel()
	parts := strings.Split(clitest.Read(t, cookbookDoc), "\n## ")[1:]
	var titles []string
	for _, part := range parts {
		title, text, _ := strings.Cut(part, "\n")
		titles = append(titles, title)
		r := recipe{blocks: blocks(text + "\n")}
		cook := recipes[title]

		commands := slices.ContainsFunc(r.blocks, func(b block) bool { return b.language == "sh" })
		marked := strings.Contains(strings.ToLower(text), "*tested")
		if tested := cook != nil || commands || title == testedElsewhere; marked != tested {
			t.Errorf("recipe %s: marked as tested is %v, but run by a test is %v", title, marked, tested)
		}
		if cook != nil {
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				cook(t, r)
			})
		}
	}
	for title := range recipes {
		if !slices.Contains(titles, title) {
			t.Errorf("the cookbook has no recipe %q", title)
		}
	}
}

// Each Python block in docs/python.md runs as a script.
func TestE2E_Docs_PythonBlocksRun(t *testing.T) {
	t.Parallel()
	python := testenv.Python(t)
	dir := clitest.OpenTemp(t)
	for _, b := range fenced(t, pythonDoc, "python") {
		cmd := withModule(t, clitest.Command(t, python, "-c", b.text))
		cmd.Dir = dir
		if o := clitest.RunCommand(t, cmd); o.Code != 0 || o.Err != "" {
			t.Errorf("block at line %d: exit code %d, stderr %q; want 0 and an empty stderr", b.line, o.Code, o.Err)
		}
	}

	n := reportertest.ReadFile(t, filepath.Join(dir, "perfagent-out/training/node-0.json")).Nodes["0"]
	if len(n.Phases) != 1 || n.Phases[0].Name != "load" || len(n.Marks) != 1 || n.Marks[0].Text != "summed" {
		t.Errorf("phases %+v, marks %+v; want load, summed", n.Phases, n.Marks)
	}
	reportertest.ReadFile(t, filepath.Join(dir, "perfagent-out/notebook/node-0.json"))
}

// block returns the text of the only block in the given language.
func (r recipe) block(t *testing.T, language string) string {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(r.blocks), func(b block) bool { return b.language != language })
	if len(found) != 1 {
		t.Fatalf("%d blocks are fenced as %s, want 1", len(found), language)
	}
	return found[0].text
}

// environmentOf returns the bin directory of a Python environment that scripts/test-tools.sh installs. variable is the
// environment variable that holds its path.
func environmentOf(t *testing.T, variable, tools string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" || !clitest.Exists(filepath.Join(dir, "bin", "python")) {
		testenv.SkipOrFail(t, "needs "+tools+": make e2e installs them and sets "+variable)
	}
	return filepath.Join(dir, "bin")
}

// perform runs a script in the directory of a recipe, with perfagent and a directory of programs on PATH.
func perform(t *testing.T, dir, bin, script string, env ...string) clitest.Outcome {
	t.Helper()
	cmd := clitest.Command(t, "bash", "-eu", "-c", script)
	cmd.Dir = dir
	path := strings.Join([]string{bin, filepath.Dir(clitest.Binary(t)), os.Getenv("PATH")}, ":")
	o := clitest.RunCommand(t, with(cmd, append(env, "HOME="+t.TempDir(), "PATH="+path)...))
	if o.Code != 0 {
		t.Fatalf("exit code of the script = %d, want 0\n%s\nstdout %s\nstderr %s", o.Code, script, o.Out, o.Err)
	}
	return o
}

// cookPandas tabulates two runs.
func cookPandas(t *testing.T, r recipe) {
	bin := environmentOf(t, "PERFAGENT_TEST_MLFLOW3", "pandas")
	dir := clitest.OpenTemp(t)
	clitest.Write(t, filepath.Join(dir, "table.py"), r.block(t, "python"), 0o644)
	o := perform(t, dir, bin, "for id in a b; do perfagent run --run-id $id -- sleep 0.1; done; python table.py")
	if !regexp.MustCompile(`(?m)^count +2\.0+ +2\.0+$`).MatchString(o.Out) || !strings.Contains(o.Out, "job_cpu_seconds") {
		t.Errorf("pandas printed %q, want a count of 2 and job_cpu_seconds", o.Out)
	}
}

// cookSnakemake runs a workflow with one rule.
func cookSnakemake(t *testing.T, r recipe) {
	bin := environmentOf(t, "PERFAGENT_TEST_WORKFLOWS", "Snakemake and Dask")
	dir := clitest.OpenTemp(t)
	clitest.Write(t, filepath.Join(dir, "Snakefile"), r.block(t, "python"), 0o644)
	clitest.Write(t, filepath.Join(dir, "train.py"), "import sys; open(sys.argv[1], 'w').write('model')", 0o644)
	perform(t, dir, bin, "snakemake --cores 1")
	clitest.Read(t, filepath.Join(dir, "model.bin"))
	if run := reportertest.ReadFile(t, filepath.Join(dir, "perfagent-out/train-0/node-0.json")).Run; run.Tags["rule"] != "train" {
		t.Errorf("tags %v, want rule train", run.Tags)
	}
}

// daskWork is a program that runs a task on a Dask worker and shuts down the cluster.
const daskWork = `
from dask.distributed import Client
if __name__ == "__main__":
    client = Client("tcp://127.0.0.1:8786")
    assert client.submit(lambda n: sum(range(n)), 3_000_000).result() == 4499998500000
    client.shutdown()
`

// cookDask runs a task on a worker.
func cookDask(t *testing.T, r recipe) {
	bin := environmentOf(t, "PERFAGENT_TEST_WORKFLOWS", "Snakemake and Dask")
	dir := clitest.OpenTemp(t)
	port := strings.NewReplacer("8786", freePort(t))
	clitest.Write(t, filepath.Join(dir, "work.py"), port.Replace(daskWork), 0o644)
	o := perform(t, dir, bin, port.Replace(r.block(t, "bash")), patientDask...)
	report := reportertest.ReadFile(t, filepath.Join(dir, "perfagent-out/worker-1/node-0.json"))
	if n := report.Nodes["0"]; exited(report) != 0 || clitest.Metric(t, n, "job_cpu_seconds") < 0.1 {
		t.Errorf("exit code %d, want 0; processes %+v, want at least 0.1 s of CPU time", exited(report), n.Processes)
	}
	if !strings.Contains(o.Out, "dask worker tcp://") {
		t.Errorf("show prints %q, want a line with \"dask worker tcp://\"", o.Out)
	}
}

// kernelSession starts the kernel named measured and runs a calculation in it.
const kernelSession = `
import jupyter_client
manager = jupyter_client.KernelManager(kernel_name="measured", shutdown_wait_time=60)
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)
assert client.execute_interactive("sum(range(1000000))", timeout=60)["content"]["status"] == "ok"
client.stop_channels()
manager.shutdown_kernel()
`

// cookJupyter measures a kernel from its start to its end.
func cookJupyter(t *testing.T, r recipe) {
	bin := environmentOf(t, "PERFAGENT_TEST_JUPYTER", "Jupyter's kernel")
	dir := clitest.OpenTemp(t)
	kernel := filepath.Join(dir, "kernels", "measured")
	check.Must(t, os.MkdirAll(kernel, 0o755))
	clitest.Write(t, filepath.Join(kernel, "kernel.json"), r.block(t, "json"), 0o644)
	clitest.Write(t, filepath.Join(dir, "session.py"), kernelSession, 0o644)
	perform(t, dir, bin, "python session.py", "JUPYTER_PLATFORM_DIRS=1", "JUPYTER_PATH="+dir, "PERFAGENT_RUN_ID=kernel")
	report := reportertest.ReadFile(t, filepath.Join(dir, "perfagent-out/kernel/node-0.json"))
	if exited(report) != 0 || !slices.Contains(report.Run.Command, "ipykernel_launcher") {
		t.Errorf("run %+v; want exit code 0 and the command ipykernel_launcher", report.Run)
	}
}

// The commands of each pipeline in docs/ci.md work in the given order. The installation is not run.
func TestE2E_Docs_PipelinesWork(t *testing.T) {
	t.Parallel()
	testenv.NeedsTool(t, "make", "apt-get install make")
	for _, test := range []struct {
		title    string
		commands *regexp.Regexp
		summary  string // the file that the last command writes; "" is stdout
	}{
		{"GitHub Actions", regexp.MustCompile(`(?m)^ +(?:- )?run: (.*)$`), "summary.md"},
		{"GitLab CI", regexp.MustCompile(`(?m)^ {4}- ((?:pip|perfagent) .*)$`), "perfagent.md"},
		{"Jenkins", regexp.MustCompile(`(?m)^ +sh '(.*)'$`), ""},
	} {
		t.Run(test.title, func(t *testing.T) {
			t.Parallel()
			_, section, _ := strings.Cut(clitest.Read(t, "../../docs/ci.md"), "\n## "+test.title+"\n")
			_, pipeline, _ := strings.Cut(section, "\n```")
			pipeline, _, _ = strings.Cut(pipeline, "\n```")
			var commands []string
			for _, m := range test.commands.FindAllStringSubmatch(pipeline, -1) {
				commands = append(commands, strings.ReplaceAll(m[1], ".env/bin/", ""))
			}
			if len(commands) != 3 || !strings.Contains(commands[0], "pip install ") {
				t.Fatalf("commands of the pipeline: %q, want 3 that begin with pip install", commands)
			}

			dir := clitest.OpenTemp(t)
			clitest.Write(t, filepath.Join(dir, "Makefile"), "test:\n\tsleep 0.2\n", 0o644)
			o := perform(t, dir, "", strings.Join(commands[1:], "\n"), "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary.md"))
			text := o.Out
			if test.summary != "" {
				text = clitest.Read(t, filepath.Join(dir, test.summary))
			}
			if !strings.Contains(text, "make test") {
				t.Errorf("summary %q does not name make test", text)
			}
		})
	}
}

// cookMessage sends the summary of a run to a server.
func cookMessage(t *testing.T, r recipe) {
	testenv.NeedsTool(t, "curl", "apt-get install curl")
	bodies := make(chan []byte, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		bodies <- body
	}))
	defer s.Close()

	dir := clitest.OpenTemp(t)
	clitest.Write(t, filepath.Join(dir, "train.py"), "print(1)", 0o644)
	script := strings.NewReplacer("https://example.org", s.URL, "python ", testenv.Python(t)+" ").Replace(r.block(t, "bash"))
	perform(t, dir, "", script, "NO_PROXY=*")
	select {
	case body := <-bodies:
		var summary struct {
			Schema   string `json:"schema"`
			ExitCode *int   `json:"exit_code"`
		}
		if err := json.Unmarshal(body, &summary); err != nil || summary.Schema != "perfagent.summary/1" || summary.ExitCode == nil {
			t.Errorf("the server received %s (%v), want a perfagent.summary/1 with an exit code", body, err)
		}
	default:
		t.Error("the server received no request, want the summary of the run")
	}
}

// poolWork is a program with three workers. It prints the process ID of the worker that takes 200 MiB.
const poolWork = `
import multiprocessing, os, time
def work(size):
    data = b"x" * (size << 20)
    time.sleep(3)
    return os.getpid()
if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        print("large", pool.map(work, [10, 200, 20], chunksize=1)[1])
`

// cookPool finds the worker that takes the most memory.
func cookPool(t *testing.T, r recipe) {
	dir := clitest.OpenTemp(t)
	clitest.Write(t, filepath.Join(dir, "train.py"), poolWork, 0o644)
	o := perform(t, dir, "", strings.ReplaceAll(r.block(t, "bash"), "-- python ", "-- "+testenv.Python(t)+" "))
	pid := regexp.MustCompile(`(?m)^large (\d+)$`).FindStringSubmatch(o.Out)
	if pid == nil {
		t.Fatalf("the pool printed %q, want the ID of the process that grew", o.Out)
	}
	if !regexp.MustCompile(`(?m)^` + pid[1] + ` .* 2\d\d MiB `).MatchString(o.Out) {
		t.Errorf("no line with about 200 MiB for process %s in:\n%s", pid[1], o.Out)
	}
}
