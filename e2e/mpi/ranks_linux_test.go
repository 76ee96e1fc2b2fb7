//go:build e2e

package mpi

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/hosttest"
	"github.com/perfagent/perfagent/internal/mpitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// quiet disables the crash traces of the libraries and their search for network hardware.
var quiet = []string{"UCX_HANDLE_ERRORS=none", "OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,vader,tcp"}

// script prepares a shell command with an engine, in a new directory.
func script(t *testing.T, e mpitest.Engine, line string) *exec.Cmd {
	t.Helper()
	cmd := clitest.Command(t, "sh", "-c", line)
	cmd.Env = e.Environ(append(quiet, "TMPDIR="+cmd.Dir)...)

	return cmd
}

// reports returns the reports below a directory, by file name.
func reports(t *testing.T, dir string) map[string]*reporter.Report {
	t.Helper()
	all := make(map[string]*reporter.Report)
	out := filepath.Join(dir, "perfagent-out")
	for _, path := range reportertest.InDir(t, out) {
		if filepath.Ext(path) == ".json" {
			all[filepath.Base(path)] = reportertest.ReadFile(t, filepath.Join(out, path))
		}
	}

	return all
}

// A failure is a way in which rank 1 of three ranks ends, with the consequences.
type failure struct {
	how     string
	signal  string
	code    int   // exit code of the rank, unless a signal killed it
	wrapped int   // the launcher's exit code
	chance  []int // the launcher's possible exit codes with and without perfagent, if timing decides
}

// returns reports whether the launcher may return the given exit code.
func (f failure) returns(code int) bool {
	return slices.Contains(f.chance, code) || len(f.chance) == 0 && code == f.wrapped
}

// wantFailures makes a rank fail in each of the given ways, without and with perfagent, and checks the consequences.
func wantFailures(t *testing.T, e mpitest.Engine, failures []failure) {
	t.Helper()
	for _, f := range failures {
		t.Run(f.how, func(t *testing.T) {
			program := "python3 " + testenv.Repository(t, "e2e/mpi/testdata/fail.py") + " 1 " + f.how
			bare := clitest.RunCommand(t, script(t, e, e.Launcher+" -n 3 "+program))
			if !f.returns(bare.Code) {
				t.Errorf("exit code %d without perfagent, want a code that the engine returns after this failure",
					bare.Code)
			}

			o := clitest.RunCommand(t, script(t, e, e.Launcher+" -n 3 perfagent run -- "+program))
			if !f.returns(o.Code) {
				t.Errorf("exit code %d with perfagent, want a code that the engine returns after this failure: %s",
					o.Code, o.Err)
			}
			if met := strings.Count(o.Out, "has met the others"); met != 3 {
				t.Errorf("%d ranks have met the others, want 3: %s", met, o.Out)
			}

			wantFailedRank(t, o.Dir, f)
		})
	}
}

// wantFailedRank checks the files of a launch in which rank 1 failed. Its report must be complete, and each other rank
// must have at least a journal. All files must be in one run.
func wantFailedRank(t *testing.T, dir string, f failure) {
	t.Helper()
	r := reports(t, dir)["node-0.rank-1.json"]
	if r == nil { // the failed rank ended last, and so wrote the report of the node
		r = reports(t, dir)["node-0.json"]
	}
	if r == nil {
		t.Fatalf("failed rank has no report: %q", reportertest.InDir(t, filepath.Join(dir, "perfagent-out")))
	}
	rank := r.Nodes["0"].Ranks["1"]
	if rank == nil || rank.Signal != f.signal || rank.ExitCode == nil || f.signal == "" && *rank.ExitCode != f.code {
		t.Errorf("rank 1 is %+v, want exit code %d, signal %q", rank, f.code, f.signal)
	}

	seen := map[string]bool{}
	runs, _ := filepath.Glob(filepath.Join(dir, "perfagent-out/[^.]*"))
	for _, path := range reportertest.InDir(t, filepath.Join(dir, "perfagent-out")) {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), "l"), ".json")
		seen[strings.TrimPrefix(name, "node-0.")] = true
	}
	for name := range r.Nodes["0"].Ranks {
		seen["rank-"+name] = true
	}
	for _, rank := range []string{"rank-0", "rank-1", "rank-2"} {
		if !seen[rank] {
			t.Errorf("%s has no report or journal, only %q have", rank, slices.Sorted(maps.Keys(seen)))
		}
	}
	if len(runs) != 1 {
		t.Errorf("runs %q, want exactly one", runs)
	}
}

// wantSignalsOnce sends signals to the launcher, and checks that each rank receives each signal once, as without
// perfagent. SIGTERM ends the ranks.
func wantSignalsOnce(t *testing.T, e mpitest.Engine, signals ...syscall.Signal) {
	t.Helper()
	const ranks = 2
	for _, agent := range []string{"", "perfagent run -- "} {
		cmd := script(t, e, "exec "+e.Launcher+" -n 2 "+agent+os.Args[0])
		cmd.Env = append(cmd.Env, clitest.HelperEnv("counter"))
		l := clitest.StartProcess(t, cmd)
		for range ranks {
			l.PID("ready")
		}

		for _, sig := range signals {
			l.Signal(sig)
			name := unix.SignalName(sig)
			for range ranks {
				if got := next(l); got != name {
					t.Errorf("%sline %q, want %s", agent, got, name)
				}
			}
		}

		l.Signal(syscall.SIGTERM)
		_, rest := l.End()
		terms := 0
		for _, line := range rest {
			switch line {
			case "SIGTERM":
				terms++
			case "SIGCONT", "": // Open MPI sends SIGCONT first
			default:
				if strings.HasPrefix(line, "SIG") {
					t.Errorf("%sranks received another signal at the end: %q", agent, rest)
				}
			}
		}
		if terms < 1 || terms > ranks { // Open MPI kills the other ranks as soon as one has ended
			t.Errorf("%sranks received SIGTERM %d times in all, want 1 to %d: %q", agent, terms, ranks, rest)
		}
	}
}

// next returns the next line that a rank prints.
func next(l *clitest.Process) string {
	for {
		if line := l.Next(); strings.HasPrefix(line, "SIG") {
			return line
		}
	}
}

// examples is the folder with the scripts in docs/mpi.md.
const examples = "examples/mpi"

// wantOneHost checks that four ranks on one host are one run with one node.
func wantOneHost(t *testing.T, hosts []*hosttest.Host, e mpitest.Engine, name string) {
	t.Helper()
	o, dir := onHosts(t, hosts, e, examples, "sh", name+"-ranks.sh")
	o.Want(t, 0)

	all := reports(t, dir)
	if len(all) != 1 || all["node-0.json"] == nil {
		t.Fatalf("reports %q, want one of node 0", slices.Sorted(maps.Keys(all)))
	}
	if ranks := all["node-0.json"].Nodes["0"].Ranks; len(ranks) != 4 {
		t.Errorf("%d ranks, want 4", len(ranks))
	}
}

// wantTwoHosts checks that four ranks on two hosts, two on each, are one run with two nodes.
func wantTwoHosts(t *testing.T, hosts []*hosttest.Host, e mpitest.Engine, name string) {
	t.Helper()
	o, dir := onHosts(t, hosts, e, examples, "sh", name+"-hosts.sh")
	o.Want(t, 0)
	if !strings.Contains(o.Out, "by 4 ranks") {
		t.Errorf("output lacks \"by 4 ranks\": %q", o.Out)
	}

	all := reports(t, dir)
	if names := slices.Sorted(maps.Keys(all)); !slices.Equal(names, []string{"node-node1.json", "node-node2.json"}) {
		t.Fatalf("reports %q, want one for each host", names)
	}
	if runs, _ := filepath.Glob(filepath.Join(dir, "perfagent-out/[^.]*")); len(runs) != 1 {
		t.Errorf("runs %q, want exactly one", runs)
	}
	for file, ranks := range map[string][]string{"node-node1.json": {"0", "1"}, "node-node2.json": {"2", "3"}} {
		for _, n := range all[file].Nodes {
			if got := slices.Sorted(maps.Keys(n.Ranks)); !slices.Equal(got, ranks) {
				t.Errorf("%s has the ranks %q, want %q", file, got, ranks)
			}
			if host := strings.TrimSuffix(strings.TrimPrefix(file, "node-"), ".json"); n.Host.Hostname != host {
				t.Errorf("host in %s = %s, want %s", file, n.Host.Hostname, host)
			}
		}
	}

	o = clitest.RunCommand(t, hosts[0].Command(t, dir, e.Bin+"/perfagent", "show", filepath.Base(only(t, dir))))
	o.Want(t, 0)
	if !strings.Contains(o.Out, "node1") || !strings.Contains(o.Out, "node2") {
		t.Errorf("output of show lacks node1 or node2:\n%s%s", o.Out, o.Err)
	}
}

// only returns the directory of the only run.
func only(t *testing.T, dir string) string {
	t.Helper()
	runs, _ := filepath.Glob(filepath.Join(dir, "perfagent-out/[^.]*"))
	if len(runs) != 1 {
		t.Fatalf("runs %q, want one", runs)
	}
	return runs[0]
}

// wantAbort makes a rank call MPI_Abort, after which Hydra immediately kills all ranks. The launcher must return the
// same code with and without perfagent, and each rank must have at least a journal.
func wantAbort(t *testing.T, e mpitest.Engine) {
	t.Helper()
	program := "python3 " + testenv.Repository(t, "e2e/mpi/testdata/fail.py") + " 1 abort"
	bare := clitest.RunCommand(t, script(t, e, e.Launcher+" -n 3 "+program))
	o := clitest.RunCommand(t, script(t, e, e.Launcher+" -n 3 perfagent run -- "+program))
	if bare.Code != 5 || o.Code != bare.Code {
		t.Errorf("exit code %d without perfagent, %d with perfagent; want 5: %s", bare.Code, o.Code, o.Err)
	}
	if files := reportertest.InDir(t, filepath.Join(o.Dir, "perfagent-out")); len(files) != 3 {
		t.Errorf("files %q, want one for each of 3 ranks", files)
	}
}
