package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// A step simulates the ranks of a Slurm step on one node with plain processes that have Slurm's variables.
type step struct {
	t     testing.TB
	out   string // directory of the run
	id    string
	ranks int
}

func newStep(t testing.TB, ranks int) *step {
	t.Helper()
	name := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	id := fmt.Sprintf("%s-%d-%d", name, os.Getpid(), time.Now().UnixNano())
	return &step{t, filepath.Join(t.TempDir(), "out", id), id, ranks}
}

// command prepares perfagent as one rank.
func (s *step) command(rank int, args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := clitest.Perfagent(s.t, append([]string{"run", "--out", filepath.Dir(s.out), "--no-page=false"}, args...)...)
	cmd.Env = append(cmd.Env,
		"SLURM_JOB_ID="+s.id, "SLURM_STEP_ID=0", "SLURM_NODEID=0", "SLURM_STEP_NUM_NODES=1",
		fmt.Sprint("SLURM_PROCID=", rank), fmt.Sprint("SLURM_LOCALID=", rank),
		fmt.Sprint("SLURM_STEP_NUM_TASKS=", s.ranks), fmt.Sprint("SLURM_STEP_TASKS_PER_NODE=", s.ranks))
	return cmd
}

// A rankProcess is a rank with a job that waits for a line on its stdin.
type rankProcess struct {
	*clitest.Process
	stdin io.WriteCloser
}

// launch starts a rank and waits until its job has printed "up". The job then waits for a line on stdin.
func launch(cmd *exec.Cmd, t testing.TB) rankProcess {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	check.Must(t, err)
	p := rankProcess{clitest.StartProcess(t, cmd), stdin}
	p.Expect("up")
	return p
}

// launch starts a rank with a job that runs script when it is released.
func (s *step) launch(rank int, script string) rankProcess {
	s.t.Helper()
	return launch(s.command(rank, "--interval", "100ms", "--summary", "line", "--", "sh", "-c", "echo up; read go; "+script), s.t)
}

// release lets the job continue.
func (p rankProcess) release() { fmt.Fprintln(p.stdin, "go") }

// finish lets the job continue and waits for the end.
func (p rankProcess) finish() clitest.Outcome {
	p.release()
	o, _ := p.End()
	return o
}

// expect checks that the directory of the run has exactly these files.
func (s *step) expect(names ...string) {
	s.t.Helper()
	expectFiles(s.t, s.out, names...)
}

func expectFiles(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check.Must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		t.Fatalf("the directory has %q, want %q", got, names)
	}
}

// node reads the report of the node.
func (s *step) node() (*reporter.Report, *reporter.Node) {
	s.t.Helper()
	r := readAny(s.t, filepath.Join(s.out, "node-0.json"))
	return r, r.Nodes["0"]
}

// spin is a script that uses CPU time.
const spin = `i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; `

// One rank of a node measures the host, and each rank measures its job. The last rank to end combines the ranks and
// prints the summary line.
func TestRanks_LastRankCombinesNode(t *testing.T) {
	t.Parallel()
	s := newStep(t, 4)
	var ranks []rankProcess
	for rank := range s.ranks {
		ranks = append(ranks, s.launch(rank, spin))
	}
	s.expect("node-0.rank-0.jsonl", "node-0.rank-1.jsonl", "node-0.rank-2.jsonl", "node-0.rank-3.jsonl")

	for i, p := range ranks {
		o := p.finish()
		o.Want(t, 0)
		if last := i == s.ranks-1; strings.Contains(o.Err, "node-0.html") != last || !last && o.Err != "" {
			t.Errorf("rank %d: stderr %q, want the line only from the last of %d", i, o.Err, s.ranks)
		}
	}

	s.expect("node-0.html", "node-0.json")
	_, n := s.node()
	var sum float64
	for rank := range s.ranks {
		r := n.Ranks[strconv.Itoa(rank)]
		if r == nil || r.ExitCode == nil || r.Rank != rank || r.Job.CPUSeconds <= 0 {
			t.Fatalf("rank %d: %+v, want this rank with an exit code and CPU time", rank, r)
		}
		sum += r.Job.CPUSeconds
	}
	if math.Abs(sum-n.Job.CPUSeconds) > 1e-6 || len(n.Ranks) != s.ranks {
		t.Errorf("the node used %v s and its %d ranks %v s; want the same for %d ranks",
			n.Job.CPUSeconds, len(n.Ranks), sum, s.ranks)
	}
	if _, ok := n.Metrics[reporter.MetricMemoryPeak]; !ok || len(n.Sampling.HostSpans) == 0 {
		t.Errorf("no rank measured the host: sampling %+v", n.Sampling)
	}
}

// When the rank that measures the host ends, another rank takes over after a gap of at most a few intervals.
func TestRanks_AnotherRankTakesOverTheHost(t *testing.T) {
	t.Parallel()
	s := newStep(t, 2)
	first, second := s.launch(0, ""), s.launch(1, "")
	measuresHost := func(rank int) {
		journal, sample := filepath.Join(s.out, fmt.Sprintf("node-0.rank-%d.jsonl", rank)), regexp.MustCompile(`(?m)^\{"sample":\[\d`)
		clitest.WaitUntil(t, journal+" has samples of the host", func() bool { return len(sample.FindAllString(clitest.Read(t, journal), -1)) > 5 })
	}
	measuresHost(0)
	first.finish().Want(t, 0)
	measuresHost(1)
	second.finish().Want(t, 0)

	_, n := s.node()
	if h := n.Sampling.HostSpans; len(h) != 2 || h[0].Rank != 0 || h[1].Rank != 1 {
		t.Fatalf("the host was measured by %+v, want rank 0 and then rank 1", n.Sampling.HostSpans)
	}
	gap, longest, mean := 0, 0, n.Envelope["cpu_pct_per_cpu_avg"].Mean
	for i := range mean {
		if gap++; !math.IsNaN(float64(mean[i])) || i == 0 {
			gap = 0
		}
		longest = max(longest, gap)
	}
	if missed := int(n.Sampling.MissedTicks); longest > 3+missed {
		t.Errorf("the host was not measured in %d samples in a row, want at most 3 and the %d missed ones: %v", longest, missed, mean)
	}
}

// The rank that failed first determines the exit code of the run, and each rank keeps its exit code.
func TestRanks_FirstFailureDeterminesExitCodeOfRun(t *testing.T) {
	t.Parallel()
	s := newStep(t, 3)
	a, b, c := s.launch(0, "exit 0"), s.launch(1, "exit 7"), s.launch(2, "kill -KILL $$")
	b.finish().Want(t, 7)
	c.finish().Want(t, 137)
	a.finish().Want(t, 0)

	r, n := s.node()
	if r.Run.ExitCode == nil || *r.Run.ExitCode != 7 || n.Verdict == nil || n.Verdict.Evidence["rank"] != 1. {
		t.Errorf("run %+v, verdict %+v; want exit code 7 because of rank 1", r.Run, n.Verdict)
	}
	if n.Ranks["2"].Signal != "SIGKILL" {
		t.Errorf("rank 2: %+v, want SIGKILL", n.Ranks["2"])
	}
}

// If a rank is killed together with its perfagent, its journal and the reports of the other ranks stay.
func TestRanks_KilledRankLeavesJournal(t *testing.T) {
	t.Parallel()
	s := newStep(t, 3)
	ranks := []rankProcess{s.launch(0, "exit 0"), s.launch(1, "exit 0"), s.launch(2, "exit 0")}
	_ = syscall.Kill(-ranks[0].Cmd.Process.Pid, syscall.SIGKILL) // rank 0 measures the host
	ranks[0].End()
	ranks[2].finish().Want(t, 0)
	ranks[1].finish().Want(t, 0)

	s.expect("node-0.rank-0.jsonl", "node-0.rank-1.json", "node-0.rank-2.json")
}

// A rank that starts after the others have ended joins them.
func TestRanks_RankStartedAfterOthersEndedJoinsThem(t *testing.T) {
	t.Parallel()
	s := newStep(t, 2)
	s.launch(1, "exit 0").finish().Want(t, 0)
	s.expect("node-0.rank-1.json")
	s.launch(0, "exit 3").finish().Want(t, 3)
	s.expect("node-0.html", "node-0.json")
}

// A rank never combines a report from another directory.
func TestRanks_ReportInAnotherDirectoryIsNotCombined(t *testing.T) {
	t.Parallel()
	s := newStep(t, 2)
	elsewhere := filepath.Join(t.TempDir(), "out")
	a := s.launch(0, "exit 0")
	b := launch(s.command(1, "--out", elsewhere, "--", "sh", "-c", "echo up; read go; exit 3"), t)
	a.finish().Want(t, 0)
	b.finish().Want(t, 3)

	s.expect("node-0.rank-0.json")
	expectFiles(t, filepath.Join(elsewhere, s.id), "node-0.rank-1.json")
}

// If the job of a rank cannot be started, the reports of the other ranks stay separate, because the node is incomplete.
// Nothing is left in shared memory.
func TestRanks_RankThatCannotStartLeavesReportsSeparate(t *testing.T) {
	t.Parallel()
	s := newStep(t, 2)
	a := s.launch(0, "exit 0")
	rosters := openRosters(t, a.Cmd.Process.Pid)
	script := clitest.Write(t, filepath.Join(t.TempDir(), "script"), "#!/nonexistent/interpreter\n", 0o777)
	clitest.RunCommand(t, s.command(1, "--", script)).Want(t, 127)
	a.finish().Want(t, 0)

	s.expect("node-0.rank-0.json")
	for _, path := range rosters {
		if clitest.Exists(path) {
			t.Errorf("%s is left, want nothing in shared memory", path)
		}
	}
}

// openRosters returns the open shared memory files of a perfagent.
func openRosters(t *testing.T, pid int) (paths []string) {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	check.Must(t, err)
	for _, link := range links {
		path, _ := os.Readlink(link)
		if strings.HasPrefix(filepath.Base(path), fmt.Sprintf("perfagent-%d-", os.Geteuid())) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Fatalf("perfagent %d has no roster in shared memory open", pid)
	}

	return paths
}

// Without a launcher, overlapping perfagents with the same run ID are ranks in order of arrival. Perfagents that do not
// overlap make separate recordings.
func TestRanks_WithoutLauncher_OverlappingPerfagentsAreRanks(t *testing.T) {
	t.Parallel()
	s := newStep(t, 0)
	rank := func() rankProcess {
		return launch(clitest.Perfagent(t, "run", "--out", filepath.Dir(s.out), "--run-id", s.id, "--no-page=false", "--", "sh", "-c", "echo up; read go"), t)
	}
	first, second := rank(), rank()
	s.expect("node-0.jsonl", "node-0.rank-1.jsonl")
	first.finish().Want(t, 0)
	s.expect("node-0.rank-0.json", "node-0.rank-1.jsonl")
	second.finish().Want(t, 0)
	s.expect("node-0.html", "node-0.json")

	rank().finish().Want(t, 0)
	s.expect("node-0.2.html", "node-0.2.json", "node-0.html", "node-0.json")
	if ranks := readAny(t, filepath.Join(s.out, "node-0.2.json")).Nodes["0"].Ranks; ranks != nil {
		t.Errorf("node-0.2.json has the ranks %+v, want none", ranks)
	}
}

// Without a launcher, runs with the same ID in two directories are independent.
func TestRanks_WithoutLauncher_DirectoriesAreIndependent(t *testing.T) {
	t.Parallel()
	s := newStep(t, 0)
	rank := func(out string) rankProcess {
		return launch(clitest.Perfagent(t, "run", "--out", out, "--run-id", s.id, "--summary", "line", "--no-page=false", "--",
			"sh", "-c", "echo up; read go"), t)
	}
	other := filepath.Join(t.TempDir(), "out")
	first, second := rank(filepath.Dir(s.out)), rank(other)
	for _, p := range []rankProcess{first, second} {
		if o := p.finish(); o.Code != 0 || !strings.Contains(o.Err, "node-0.html") {
			t.Errorf("exit code %d, stderr %q; want 0 and the line with node-0.html", o.Code, o.Err)
		}
	}

	s.expect("node-0.html", "node-0.json")
	expectFiles(t, filepath.Join(other, s.id), "node-0.html", "node-0.json")
}

// A perfagent in the job of a rank makes a separate recording.
func TestRanks_NestedPerfagentRecordsSeparately(t *testing.T) {
	t.Parallel()
	s := newStep(t, 2)
	inner := fmt.Sprintf("%s run --out %s --no-page=false -- true", clitest.Binary(t), filepath.Dir(s.out))
	a, b := s.launch(0, inner), s.launch(1, "exit 0")
	a.finish().Want(t, 0)
	s.expect("node-0.html", "node-0.json", "node-0.rank-0.json", "node-0.rank-1.jsonl")
	b.finish().Want(t, 0)
	s.expect("node-0.2.html", "node-0.2.json", "node-0.html", "node-0.json")
}

// If the perfagents of a node cannot find each other, each measures the host and reports the reason.
func TestRanks_UnseenPerfagentsEachMeasureTheHost(t *testing.T) {
	t.Parallel()
	for why, temporary := range map[string]func(*testing.T) string{
		"no such file or directory": func(*testing.T) string { return "/nonexistent" },
		"no response within 5s":     hangingDir,
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := newStep(t, 2)
			for rank := range s.ranks {
				cmd := s.command(rank, "--", "true")
				cmd.Args = append([]string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"`, "sh"}, cmd.Args...)
				cmd.Env = append(cmd.Env, "TMPDIR="+temporary(t))
				cmd.Path = testenv.NeedsTool(t, "unshare", "apt-get install util-linux")
				clitest.RunCommand(t, cmd).Want(t, 0)
			}
			s.expectUnseen(why)
		})
	}
}

// expectUnseen checks that both ranks have measured the host and report why.
func (s *step) expectUnseen(why string) {
	s.t.Helper()
	s.expect("node-0.rank-0.json", "node-0.rank-1.json")
	n := readAny(s.t, filepath.Join(s.out, "node-0.rank-1.json")).Nodes["0"]
	said := slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool {
		return m.Code == reporter.RanksUnseen && strings.Contains(m.Why, why) && !strings.Contains(m.Why, "\n")
	})
	if _, host := n.Metrics[reporter.MetricMemoryPeak]; !host || !said {
		s.t.Errorf("measured the host %v, missing %v; want true, and the reason %q", host, n.Missing, why)
	}
}

// If each of several nodes has only one rank, the rank writes the report of its node immediately, and the report lists
// the rank.
func TestRanks_OnlyRankOfNodeWritesReportOfNode(t *testing.T) {
	t.Parallel()
	s := newStep(t, 2)
	for node := range 2 {
		cmd := s.command(node, "--interval", "100ms", "--", "sh", "-c", "echo up; read go")
		cmd.Env = append(cmd.Env, fmt.Sprint("SLURM_NODEID=", node), "SLURM_STEP_TASKS_PER_NODE=1(x2)",
			"SLURM_STEP_NUM_NODES=2", "SLURM_LOCALID=0")
		launch(cmd, t).finish().Want(t, 0)
	}

	s.expect("node-0.html", "node-0.json", "node-1.html", "node-1.json")
	for node := range 2 {
		r := readAny(t, filepath.Join(s.out, fmt.Sprintf("node-%d.json", node)))
		if n := r.Nodes[strconv.Itoa(node)]; len(n.Ranks) != 1 || n.Ranks[strconv.Itoa(node)] == nil {
			t.Errorf("node %d has the ranks %v, want only rank %[1]d", node, n.Ranks)
		}
	}
}

// Ranks that a launcher starts in the job of another perfagent have separate nodes: the node index that the outer
// perfagent sets does not apply to them.
func TestRanks_InWrappedBatchScriptHaveSeparateNodes(t *testing.T) {
	t.Parallel()
	s := newStep(t, 2)
	inner := func(node int) string {
		return fmt.Sprintf("SLURM_STEP_ID=0 SLURM_NODEID=%d SLURM_PROCID=%d SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=2 "+
			"SLURM_STEP_NUM_NODES=2 SLURM_STEP_TASKS_PER_NODE='1(x2)' %s run --out %s -- true\n",
			node, node, clitest.Binary(t), filepath.Dir(s.out))
	}
	cmd := clitest.Perfagent(t, "run", "--out", filepath.Dir(s.out), "--", "sh", "-c", inner(0)+inner(1))
	cmd.Env = append(cmd.Env, "PERFAGENT_NO_PAGE=0", "SLURM_JOB_ID="+s.id, "SLURM_NODEID=0", "SLURM_PROCID=0", "SLURM_NTASKS=2")
	clitest.RunCommand(t, cmd).Want(t, 0)

	s.expect("node-0.2.html", "node-0.2.json", "node-0.html", "node-0.json", "node-1.html", "node-1.json")
}
