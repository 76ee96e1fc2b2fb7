//go:build e2e

package slurm

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/slurmtest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// A job is a script in examples/ that was submitted to Slurm.
type job struct {
	id  string
	dir string // working directory of the submission
	out string // output of the job and its steps
}

// submit submits an example in a new directory, and waits until the job has ended.
func submit(t *testing.T, c *slurmtest.Cluster, script string, env ...string) job {
	t.Helper()
	j := start(t, c, script, env...)
	j.wait(t, c)
	return j
}

// start submits an example.
func start(t *testing.T, c *slurmtest.Cluster, script string, env ...string) job {
	t.Helper()
	j := job{dir: copied(t, filepath.Dir(script))}
	cmd := c.CommandIn(t, j.dir, "sbatch", "--parsable", "--output=out.%a", filepath.Base(script))
	cmd.Env = append(cmd.Env, env...)
	o := clitest.RunCommand(t, cmd)
	o.Want(t, 0)
	j.id = strings.TrimSpace(o.Out)
	return j
}

// copied returns a copy of a directory of the examples.
func copied(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(testenv.Repository(t, "examples/"+name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// wait waits until Slurm has finished the job.
func (j *job) wait(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	clitest.WaitUntil(t, "the end of job "+j.id, func() bool {
		o := clitest.RunCommand(t, c.Command(t, "squeue", "--noheader", "--jobs="+j.id))
		return o.Code == 0 && strings.TrimSpace(o.Out) == ""
	})
	j.out = j.said(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of job %s:\n%s", j.id, j.out)
		}
	})
}

// said returns the job's output so far.
func (j *job) said(t *testing.T) string {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(j.dir, "out.*"))
	text := ""
	for _, path := range paths {
		text += clitest.Read(t, path)
	}
	return text
}

// reports returns the nodes in the reports of a run below the job's directory, by file name.
func (j *job) reports(t *testing.T, run string) map[string]*reporter.Node {
	t.Helper()
	nodes := make(map[string]*reporter.Node)
	for _, path := range reportertest.InDir(t, filepath.Join(j.dir, "perfagent-out")) {
		if filepath.Dir(path) != run {
			continue
		}
		if filepath.Ext(path) != ".json" {
			t.Errorf("%s still exists, want only reports", path)
			continue
		}
		for _, n := range reportertest.ReadFile(t, filepath.Join(j.dir, "perfagent-out", path)).Nodes {
			nodes[filepath.Base(path)] = n
		}
	}
	return nodes
}

// perfagent runs a subcommand in the job's directory.
func (j *job) perfagent(t *testing.T, c *slurmtest.Cluster, args ...string) string {
	t.Helper()
	o := clitest.RunCommand(t, c.CommandIn(t, j.dir, "perfagent", args...))
	o.Want(t, 0)
	return o.Out + o.Err
}

// A summary is the part of an entry in "perfagent ls --json" that these tests use.
type summary struct {
	ID      string `json:"id"`
	RunID   string `json:"run_id"`
	Nodes   int    `json:"nodes"`
	Ranks   int    `json:"ranks"`
	Code    *int   `json:"exit_code"`
	Verdict string `json:"verdict"`
}

// list returns a line for each launch in "perfagent ls": "ID: NODES x RANKS, exit code N". RANKS is 0 if there is no
// launcher.
func (j *job) list(t *testing.T, c *slurmtest.Cluster) []string {
	t.Helper()
	var entries []summary
	if err := json.Unmarshal([]byte(j.perfagent(t, c, "ls", "--json")), &entries); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range entries {
		code := "none"
		if e.Code != nil {
			code = strconv.Itoa(*e.Code)
		}
		lines = append(lines, fmt.Sprintf("%s: %d x %d, exit code %s", e.ID, e.Nodes, e.Ranks, code))
	}
	return lines
}

// wantList compares the lines from list with want, in which JOB stands for the number of the job.
func (j *job) wantList(t *testing.T, c *slurmtest.Cluster, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "JOB", j.id)
	}
	if got := j.list(t, c); !slices.Equal(got, want) {
		t.Errorf("launches in perfagent ls:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// took matches the output of the ranks of rank.py.
var took = regexp.MustCompile(`(?m)^rank (\d+) on (\S+) took (\S+) s$`)

// exampleRanks checks that eight ranks on two nodes are one run with two nodes.
func exampleRanks(t *testing.T, c *slurmtest.Cluster) {
	j := submit(t, c, "slurm/ranks.sh")
	nodes := j.reports(t, j.id)
	if len(nodes) != 2 {
		t.Errorf("reports %v, want two", nodes)
	}
	said := took.FindAllStringSubmatch(j.out, -1)
	if len(said) != 8 {
		t.Fatalf("%d ranks printed a line, want 8", len(said))
	}
	for _, words := range said {
		n := nodes[map[string]string{"node1": "node-0.json", "node2": "node-1.json"}[words[2]]]
		if n == nil || n.Ranks[words[1]] == nil {
			t.Fatalf("rank %s of %s is missing: %v", words[1], words[2], n)
		}
		seconds, _ := strconv.ParseFloat(words[3], 64)
		if got := n.Ranks[words[1]].Job.CPUSeconds; got < seconds-0.01 || got > seconds+0.3 { // Python ends later
			t.Errorf("rank %s: CPU time = %v s, want %v s", words[1], got, seconds)
		}
	}
	j.wantList(t, c, "JOB: 2 x 8, exit code 0")
}

// exampleSteps checks that two steps are two launches of one run.
func exampleSteps(t *testing.T, c *slurmtest.Cluster) {
	j := submit(t, c, "slurm/steps.sh")
	nodes := j.reports(t, j.id)
	for name, want := range map[string]string{
		"node-0.json": "step-0", "node-1.json": "step-0", "node-0.2.json": "step-1", "node-1.2.json": "step-1",
	} {
		if n := nodes[name]; n == nil || n.Identity.Launch != want {
			t.Errorf("%s is %+v, want a node of launch %s", name, n, want)
		}
	}
	j.wantList(t, c, "JOB@2: 2 x 2, exit code 0", "JOB@1: 2 x 4, exit code 0")
	if said := j.perfagent(t, c, "show", "--all", j.id+"@1"); !strings.Contains(said, "rank.py 0.2") {
		t.Errorf("output of show for the first launch lacks rank.py 0.2: %s", said)
	}
	if said := j.perfagent(t, c, "show", "--all", j.id); !strings.Contains(said, "rank.py 0.3") || !strings.Contains(said, j.id+"@1") {
		t.Errorf("output of show for the run lacks its newest launch, rank.py 0.3, or the name of the first: %s", said)
	}
}

// exampleWrapped checks the recording of the script and the overlapping recording of its step.
func exampleWrapped(t *testing.T, c *slurmtest.Cluster) {
	j := submit(t, c, "slurm/wrapped.sh")
	names := map[string]int{} // number of ranks by "launch, node index"
	for _, n := range j.reports(t, j.id) {
		names[fmt.Sprintf("%q %d", n.Identity.Launch, *n.Identity.Node)] = len(n.Ranks)
	}
	want := map[string]int{`"" 0`: 0, `"step-0" 0`: 2, `"step-0" 1`: 2}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("number of ranks by launch and node = %v, want %v", names, want)
	}
	j.wantList(t, c, "JOB@2: 2 x 4, exit code 0", "JOB@1: 1 x 0, exit code 0")
}

// exampleArray checks that each task of an array is a run.
func exampleArray(t *testing.T, c *slurmtest.Cluster) {
	j := submit(t, c, "slurm/array.sh")
	for _, run := range []string{j.id + "_1", j.id + "_2"} {
		nodes := j.reports(t, run)
		if n := nodes["node-0.json"]; len(nodes) != 1 || n == nil || len(n.Ranks) != 2 {
			t.Errorf("run %s has the nodes %v, want one node with two ranks", run, nodes)
		}
	}
	lines := j.list(t, c)
	if slices.Sort(lines); fmt.Sprint(lines) != fmt.Sprintf("[%[1]s_1: 1 x 2, exit code 0 %[1]s_2: 1 x 2, exit code 0]", j.id) {
		t.Errorf("perfagent ls: %q, want both tasks of the array with exit code 0", lines)
	}
}

// exampleHetero checks that the two programs of a step are one launch.
func exampleHetero(t *testing.T, c *slurmtest.Cluster) {
	j := job{dir: copied(t, "slurm")}
	o := clitest.RunCommand(t, c.CommandIn(t, j.dir, "sh", "hetero.sh"))
	o.Want(t, 0)
	files := reportertest.InDir(t, filepath.Join(j.dir, "perfagent-out"))
	if len(files) != 2 {
		t.Fatalf("files %q, want two reports; stdout %s, stderr %s", files, o.Out, o.Err)
	}
	j.id = filepath.Dir(files[0])
	nodes := j.reports(t, j.id)
	for i, want := range []int{1, 2} {
		n := nodes[fmt.Sprintf("node-%d.json", i)]
		if n == nil || len(n.Ranks) != want || n.Identity.NodeName != fmt.Sprintf("node%d", i+1) || n.Identity.WorldSize != 3 {
			t.Errorf("node %d: %+v, want %d of 3 ranks", i, n, want)
		}
	}
	j.wantList(t, c, "JOB: 2 x 3, exit code 0")
}

// mpiFlags makes Open MPI run as root, and use the cluster's network, so that it accepts two nodes on one kernel.
const mpiFlags = "--allow-run-as-root --mca btl tcp,self --mca btl_tcp_if_include 10.99.0.0/24 --mca oob_tcp_if_include 10.99.0.0/24"

// exampleMPI checks an mpirun in a batch script. Slurm has little information about it, and sets misleading variables.
// The ranks must be from Open MPI, and the nodes from Slurm.
func exampleMPI(t *testing.T, c *slurmtest.Cluster) {
	c.NeedOpenMPI(t)
	j := submit(t, c, "slurm/mpi.sh", "MPI_FLAGS="+mpiFlags)
	nodes := j.reports(t, j.id)
	for i := range 2 {
		n := nodes[fmt.Sprintf("node-%d.json", i)]
		if n == nil || n.Identity.NodeName != fmt.Sprintf("node%d", i+1) || !strings.HasPrefix(n.Identity.Launch, "openmpi-") {
			t.Fatalf("node %d: %+v, want a node of the launch by Open MPI", i, n)
		}
		if len(n.Ranks) != 2 || n.Ranks[strconv.Itoa(2*i)] == nil || n.Ranks[strconv.Itoa(2*i+1)] == nil {
			t.Errorf("node %d has the ranks %v, want %d and %d", i, n.Ranks, 2*i, 2*i+1)
		}
	}
	j.wantList(t, c, "JOB: 2 x 4, exit code 0")
}

// exampleRequeue checks that a requeued job is one run with two launches.
func exampleRequeue(t *testing.T, c *slurmtest.Cluster) {
	j := start(t, c, "slurm/requeue.sh")
	clitest.WaitUntil(t, "both ranks", func() bool { return strings.Count(j.said(t), "started\n") == 2 })
	clitest.RunCommand(t, c.Command(t, "scontrol", "requeue", j.id)).Want(t, 0)
	j.wait(t, c)

	nodes := j.reports(t, j.id)
	for name, want := range map[string]int{"node-0.json": 0, "node-1.json": 0, "node-0.2.json": 1, "node-1.2.json": 1} {
		n := nodes[name]
		if n == nil || n.Identity.Restart != want || n.Identity.Launch != "step-0" {
			t.Errorf("%s: %+v, want restart %d", name, n, want)
		}
	}
	j.wantList(t, c, "JOB@2: 2 x 2, exit code 0", "JOB@1: 2 x 2, exit code 143")
}

// exampleOOM checks that, if the kernel kills one of eight ranks on two nodes, every output names this rank and the
// cause.
func exampleOOM(t *testing.T, c *slurmtest.Cluster) {
	server := mlflowtest.Start(t, mlflowtest.Options{})
	j := submit(t, c, "slurm/oom.sh", "MLFLOW_TRACKING_URI="+c.Forward(t, server.URL), "PERFAGENT_PUSH_TIMEOUT=10m")
	nodes := j.reports(t, j.id)
	for i := range 2 {
		if n := nodes[fmt.Sprintf("node-%d.json", i)]; n == nil || len(n.Ranks) != 4 {
			t.Errorf("node %d: %+v, want four ranks", i, n)
		}
	}

	const first = "Out of memory: rank 3 on node1 was killed at the limit of 400 MiB after "
	for where, text := range map[string]string{"the job": j.out, slurmDoc: kept(t, "slurm-oom", "text", j.out)} {
		said := strings.Join(strings.Fields(text), " ") // undo the wrapping of lines
		for _, want := range []string{first, "7 others were ended by SIGTERM of the launcher within"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s lacks %q", where, want)
			}
		}
	}
	j.wantList(t, c, "JOB: 2 x 8, exit code 137")
	j.perfagent(t, c, "plot", j.id, "--to", "run.html")
	_, sentence, _ := strings.Cut(first, ": ") // the page has markup before the colon
	page := strings.ReplaceAll(clitest.Read(t, filepath.Join(j.dir, "run.html")), "\u00a0", " ")
	if !strings.Contains(page, sentence) {
		t.Errorf("page lacks the rank that failed first: %q", sentence)
	}
	wantOneRun(t, server, j)
}

// wantOneRun checks the run of eight ranks in MLflow.
func wantOneRun(t *testing.T, server *mlflowtest.Server, j job) {
	t.Helper()
	runs := server.Runs(t, "Default")
	if len(runs) != 1 {
		t.Fatalf("%d runs in MLflow, want one", len(runs))
	}
	run := runs[0]
	if run.Info.Status != "KILLED" || run.Tags["perfagent.exit_code"] != "137" ||
		run.Tags["perfagent.node.0.host"] != "node1" || run.Tags["perfagent.node.1.host"] != "node2" {
		t.Errorf("run in MLflow: status %s, tags %v; want KILLED, exit code 137, hosts node1 and node2",
			run.Info.Status, run.Tags)
	}
	var files []string
	for _, a := range run.Artifacts {
		files = append(files, a.Path)
	}
	for _, want := range []string{"perfagent/node-0.json", "perfagent/node-1.json"} {
		if !slices.Contains(files, want) {
			t.Errorf("artifacts %q lack %s", files, want)
		}
	}
	if note := run.Tags["mlflow.note.content"]; !strings.HasPrefix(note, "Out of memory: rank 3 was killed at the limit of 400 MiB") {
		t.Errorf("description in MLflow = %q, want the verdict on the rank that failed first", note)
	}
	for i := range 8 {
		for _, name := range []string{"job_cpu_seconds", "job_peak_memory_mb", "exit_code"} {
			if points := run.Metrics[fmt.Sprintf("rank/%d/%s", i, name)]; len(points) != 1 {
				t.Errorf("points of rank/%d/%s = %v, want one", i, name, points)
			}
		}
	}
	for _, name := range []string{"system/0/cpu_utilization_percentage", "system/1/cpu_utilization_percentage"} {
		if len(run.Metrics[name]) == 0 {
			t.Errorf("run in MLflow lacks the series %s", name)
		}
	}
	if t.Failed() {
		t.Logf("job %s in MLflow: tags %v, metrics %v", j.id, run.Tags, slices.Sorted(maps.Keys(run.Metrics)))
	}
}
