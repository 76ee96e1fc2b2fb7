package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// needsConnector skips the test unless the kernel reports the ends of all processes.
func needsConnector(t *testing.T, r *reporter.Report) {
	t.Helper()
	if why := deathsMissing(r); why != "" {
		t.Skipf("%s: run the tests outside of containers, on Linux 6.6 or newer", why)
	}
}

// deathsMissing returns the reason for which deaths may be missing.
func deathsMissing(r *reporter.Report) string {
	for _, m := range r.Nodes["0"].Missing {
		if m.What == "deaths" && m.Code == reporter.NoExitStatus {
			return m.Why
		}
	}
	return ""
}

// died returns the deaths as "SIGNAL or code", in order.
func died(r *reporter.Report) (out []string) {
	for _, d := range r.Nodes["0"].Deaths {
		switch {
		case d.Signal != "":
			out = append(out, d.Signal)
		case d.ExitCode != nil:
			out = append(out, strconv.Itoa(*d.ExitCode))
		default:
			out = append(out, d.How)
		}
	}
	return out
}

// runReported runs sh in perfagent until the report has n failed processes, at most five times: of a process that its
// parent reaps at once, the kernel sometimes reports no parent.
func runReported(t *testing.T, code int, n int64, args ...string) (clitest.Outcome, *reporter.Report) {
	t.Helper()
	for try := 1; ; try++ {
		o := clitest.Run(t, append([]string{"run", "--", "sh"}, args...)...)
		o.Want(t, code)
		r := o.Report(t)
		needsConnector(t, r)
		if node := r.Nodes["0"]; int64(len(node.Deaths))+node.QuietExits == n || try == 5 {
			return o, r
		}
	}
}

// The crash of a child of a shell explains why the shell failed. A signal that another process may have sent does so
// only if the exit code shows it.
func TestDeaths_ChildOfShell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal, then string
		code         int
		cause, text  string
	}{
		{"SEGV", "exit 1", 1, "child_died", "exited with code 1 after "},
		{"BUS", "exit 1", 1, "child_died", " was killed by SIGBUS: it used memory that is not there"},
		{"ABRT", "exit 7", 7, "child_died", " was killed by SIGABRT"},
		{"KILL", "exit 1", 1, "exited", "exited with code 1"},
		{"TERM", "exit 1", 1, "exited", "exited with code 1"},
		{"KILL", "exit $?", 137, "child_died", " was killed by SIGKILL; the kernel does not say who sent it"},
		{"TERM", "exit $?", 143, "child_died", " was killed by SIGTERM"},
		{"FPE", "exit $?", 136, "child_died", " was killed by SIGFPE"},
		{"SEGV", "no-such-command", 127, "exited", "exited with code 127"},
		{"SEGV", "true", 0, "exited", "exited with code 0"},
		{"PIPE", "exit $?", 141, "exited", "as a shell does when SIGPIPE ended its command"},
	} {
		t.Run(c.signal+" "+c.then, func(t *testing.T) {
			t.Parallel()
			script := fmt.Sprintf(`sh -c 'echo $$; kill -%s $$'; %s`, c.signal, c.then)
			o, r := runReported(t, c.code, 1, "-c", script)
			pid := check.Value(strconv.Atoi(strings.TrimSpace(o.Out)))(t)
			n := r.Nodes["0"]
			v := reportertest.WantVerdict(t, r, c.cause, c.text)
			switch {
			case c.signal == "PIPE":
				check.True(t, len(n.Deaths) == 0 && n.QuietExits == 1, "deaths %+v, %d quiet; want only 1 quiet", n.Deaths, n.QuietExits)
				return
			case len(n.Deaths) != 1 || n.Deaths[0].PID != pid || n.Deaths[0].Signal != "SIG"+c.signal || n.Deaths[0].How != "connector":
				t.Fatalf("deaths %+v, want SIG%s of process %d from the connector", n.Deaths, c.signal, pid)
			}
			if c.cause == "child_died" {
				reportertest.WantEvidence(t, v, map[string]any{"pid": pid, "signal": "SIG" + c.signal, "exit_code": c.code})
				check.True(t, len(v.Beside) == 0, "beside %q, want nothing", v.Beside)
			} else if c.code != 0 {
				check.True(t, len(v.Beside) == 1 && strings.Contains(v.Beside[0], fmt.Sprintf("process %d", pid)), "beside %q, want process %d", v.Beside, pid)
			}
			found := slices.ContainsFunc(n.Findings, func(f reporter.Finding) bool {
				return f.ID == "children_died" && f.Severity == "info" && f.Evidence["signal"] == "SIG"+c.signal
			})
			check.True(t, found == (c.code == 0), "finding children_died: %v, exit code %d", found, c.code)
		})
	}
}

// A job in which nothing unusual happens has no deaths.
func TestDeaths_NormalFailuresAreQuiet(t *testing.T) {
	t.Parallel()
	_, r := runReported(t, 0, 4, "-c", `sh -c 'exit 1'; grep x </dev/null; yes | head -1; sh -c 'exit 2'; true`)
	n := r.Nodes["0"]
	check.True(t, len(n.Deaths) == 0 && n.QuietExits == 4 && len(n.Verdict.Beside) == 0 && len(n.Findings) == 0,
		"deaths %+v, %d quiet, findings %+v; want only 4 quiet", n.Deaths, n.QuietExits, n.Findings)

	_, r = runReported(t, 5, 2, "-ec", `sh -c 'exit 1' || sh -c 'exit 5'`)
	n = r.Nodes["0"]
	if len(n.Deaths) != 1 || *n.Deaths[0].ExitCode != 5 || n.QuietExits != 1 || n.Verdict.Cause != "exited" {
		t.Errorf("deaths %+v, %d quiet, cause %s; want the last failure, 1 quiet, exited", n.Deaths, n.QuietExits, n.Verdict.Cause)
	}
}

// In a pool, the crash of a worker is the cause, whichever message comes first. A worker that was killed is not.
func TestDeaths_PoolOfWorkers(t *testing.T) {
	t.Parallel()
	for signal, cause := range map[string]string{"SIGSEGV": "child_died", "SIGBUS": "child_died", "SIGABRT": "child_died", "SIGKILL": "exited"} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			job := clitest.Python(t, "import os, signal", "from concurrent.futures import ProcessPoolExecutor",
				"def crash():", "    print(os.getpid(), flush=True)", "    os.kill(os.getpid(), signal."+signal+")",
				"def work(): return 1",
				"if __name__ == '__main__':", "    with ProcessPoolExecutor(4) as pool:",
				"        for _ in range(8): pool.submit(work).result()", "        pool.submit(crash).result()")
			o := clitest.Run(t, append([]string{"run", "--"}, job...)...)
			o.Want(t, 1)
			r := o.Report(t)
			needsConnector(t, r)
			pid := check.Value(strconv.Atoi(strings.TrimSpace(o.Out)))(t)
			v := reportertest.WantVerdict(t, r, cause, "exited with code 1")
			at := slices.IndexFunc(r.Nodes["0"].Deaths, func(d reporter.Death) bool { return d.PID == pid && d.Signal == signal })
			if at < 0 || cause == "child_died" && v.Evidence["pid"] != float64(pid) {
				t.Errorf("deaths %v, evidence %v; want %s of process %d", died(r), v.Evidence, signal, pid)
			}
		})
	}
}

// A grandchild that no sample met is found by its parents, which still run. A process of another job is not listed.
func TestDeaths_GrandchildIsFoundAndNeighbourIsNot(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--interval", "1h", "--", "sh", "-c",
		`sh -c "sh -c 'echo pid \$\$; read -r go; kill -SEGV \$\$'; echo crashed; read -r go; exit 3"; exit 4`)
	input, say := clitest.Pipe(t)
	cmd.Stdin = input
	l := clitest.StartProcess(t, cmd)
	pid := l.PID("pid")
	other := clitest.StartProcess(t, clitest.Command(t, "sh", "-c", "echo pid $$; kill -SEGV $$"))
	foreign := other.PID("pid")
	other.End()
	fmt.Fprintln(say, "go")
	l.Expect("crashed")
	fmt.Fprintln(say, "go")
	r := wantCause(t, mustEnd(l, 4), "child_died", map[string]any{"pid": pid, "signal": "SIGSEGV"}, "exited with code 4 after ")
	needsConnector(t, r)
	for _, d := range r.Nodes["0"].Deaths {
		check.True(t, d.PID != foreign, "process %d of another job is listed", foreign)
	}
}

// All of 2,000 deaths are counted, and the last explains the exit code.
func TestDeaths_ThousandsAreCounted(t *testing.T) {
	t.Parallel()
	job := clitest.Python(t, "import os, signal, sys, time",
		"for i in range(2000):", "    pid = os.fork()", "    if pid == 0: signal.pause()",
		"    os.kill(pid, signal.SIGKILL)",
		"    if i == 1999: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT); time.sleep(0.2)", // until it is reported
		"    os.waitpid(pid, 0)",
		"for i in range(500):", "    if os.fork() == 0: os._exit(3)", "    os.wait()",
		"print(pid); sys.exit(137)")
	o := clitest.Run(t, append([]string{"run", "--"}, job...)...)
	o.Want(t, 137)
	r := o.Report(t)
	needsConnector(t, r)
	n := r.Nodes["0"]
	pid := check.Value(strconv.Atoi(strings.TrimSpace(o.Out)))(t)
	reportertest.WantEvidence(t, n.Verdict, map[string]any{"pid": pid, "signal": "SIGKILL"})
	// Where the kernel is late, it does not know the parent any more: in a few of 1,000 cases.
	all := n.MoreDeaths + int64(len(n.Deaths))
	if len(n.Deaths) != 100 || all > 2001 || all < 1900 || n.QuietExits > 500 || n.QuietExits < 475 {
		t.Errorf("%d deaths, %d more, %d quiet; want 100 of 2,000, and 500 quiet", len(n.Deaths), n.MoreDeaths, n.QuietExits)
	}
}

// deathJob ends with a crash of a process that is in the journal, so a scan has seen it.
const deathJob = `sh -c 'echo pid $$; until cat perfagent-out/*/node-0.jsonl | grep -q "\"pid\":$$,"; do sleep 0.02; done; kill -BUS $$'; exit 5`

// Where the kernel's connector reports nothing, pidfds show how sampled processes ended, and the report gives the reason
// for which others are missing.
func TestDeaths_InOtherNamespacesAndAsNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command []string
		missing string
	}{
		"network": {[]string{"unshare", "--net"}, "in another network namespace"},
		"pid":     {[]string{"unshare", "--pid", "--fork", "--mount-proc"}, "in another pid or user namespace"},
		"nobody":  {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.command != nil {
				testenv.NeedsRoot(t, "for namespaces")
			}
			args := append(slices.Clone(c.command), clitest.Binary(t), "run", "--interval", "50ms", "--", "sh", "-c", deathJob)
			cmd := clitest.Command(t, args[0], args[1:]...)
			if c.command == nil {
				cmd = clitest.AsNobody(t, cmd)
			}
			o := clitest.RunCommand(t, cmd)
			o.Want(t, 5)
			word, number, _ := strings.Cut(strings.TrimSpace(o.Out), " ")
			pid, _ := strconv.Atoi(number)
			check.True(t, word == "pid", "output %q", o.Out)
			r := wantCause(t, o, "child_died", map[string]any{"pid": pid, "signal": "SIGBUS"}, "exited with code 5 after sh (process "+number+") was killed by SIGBUS")
			if why := deathsMissing(r); !strings.Contains(why, c.missing) || c.missing == "" && why != "" && !strings.Contains(why, "namespace") && !strings.Contains(why, "Linux before") {
				t.Errorf("missing deaths: %q, want %q", why, c.missing)
			}
			all := r.Nodes["0"].Deaths
			d := all[slices.IndexFunc(all, func(d reporter.Death) bool { return d.PID == pid })]
			check.True(t, d.How != "wait" && d.How != "unknown" && !d.Start.IsZero() && strings.HasPrefix(d.Command, "sh -c"), "%+v, want the source, the start and the command", d)
		})
	}
}

// An orphan of the job is waited for by perfagent.
func TestDeaths_OrphanIsWaitedFor(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--", "sh", "-c", `sh -c 'sleep 600 & echo pid $!'; read -r go; exit 3`)
	input, say := clitest.Pipe(t)
	cmd.Stdin = input
	l := clitest.StartProcess(t, cmd)
	pid := l.PID("pid")
	clitest.WaitUntil(t, "perfagent adopts the orphan", func() bool { return clitest.ParentOf(t, pid) == cmd.Process.Pid })
	check.Must(t, unix.Kill(pid, unix.SIGABRT))
	clitest.WaitUntil(t, "perfagent waits for the orphan", func() bool { return clitest.ProcessState(pid) == "" })
	fmt.Fprintln(say, "go")
	r := wantCause(t, mustEnd(l, 3), "child_died", map[string]any{"pid": pid, "signal": "SIGABRT"})
	d := r.Nodes["0"].Deaths
	check.True(t, len(d) == 1 && d[0].How == "wait", "deaths %+v, want one that perfagent waited for", d)
}

// Deaths that a sample followed survive a kill of perfagent.
func TestDeaths_JournalHasThem(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--run-id", "r", "--interval", "20ms", "--", "sh", "-c",
		`sh -c 'kill -SEGV $$'; sh -c 'exit 3'; echo died; exec sleep 60`)
	path := filepath.Join(cmd.Dir, "perfagent-out/r/node-0.jsonl")
	l := clitest.StartProcess(t, cmd)
	l.Expect("died")
	untilExists(t, path)
	if r := readAny(t, path); deathsMissing(r) != "" {
		needsConnector(t, r)
	}
	untilHas(t, path, `"SIGSEGV"`, 1)
	check.Must(t, unix.Kill(-cmd.Process.Pid, unix.SIGKILL))
	l.End()
	n := readAny(t, path).Nodes["0"]
	check.True(t, len(n.Deaths) == 1 && n.Deaths[0].Signal == "SIGSEGV", "deaths %+v, want SIGSEGV", n.Deaths)
}

// attach lists the deaths of the recorded processes' children.
func TestDeaths_OfAttachedProcesses(t *testing.T) {
	t.Parallel()
	job := clitest.Command(t, "sh", "-c", `echo pid $$; read -r go; sh -c 'kill -SEGV $$'; echo died; read -r go; exit 6`)
	input, say := clitest.Pipe(t)
	job.Stdin = input
	p := clitest.StartProcess(t, job)
	pid := p.PID("pid")
	cmd := clitest.Perfagent(t, "attach", "--run-id", "r", "--interval", "20ms", strconv.Itoa(pid))
	check.Must(t, cmd.Start())
	untilHas(t, filepath.Join(cmd.Dir, "perfagent-out/r/node-0.jsonl"), `"sample"`, 1)
	fmt.Fprintln(say, "go")
	p.Expect("died")
	fmt.Fprintln(say, "go")
	p.End()
	clitest.Wait(t, cmd)
	r := clitest.Outcome{Dir: cmd.Dir}.Report(t)
	needsConnector(t, r)
	check.True(t, len(died(r)) == 1 && died(r)[0] == "SIGSEGV", "deaths %v, want SIGSEGV", died(r))
	if code := r.Nodes["0"].Job.ExitCode; code != nil {
		reportertest.WantVerdict(t, r, "child_died", "exited with code 6 after ")
	}
}

var (
	deathSeed  = flag.Uint64("death-seed", 1, "seed of TestDeaths_RandomJobs")
	deathCount = flag.Int("deaths", 24, "number of jobs of TestDeaths_RandomJobs")
)

// A randomJob is a job that prints "PID SIGNAL" before a signal ends one of its processes.
type randomJob struct {
	script string
	code   int
	// certain reports whether the processes that explain the end are direct children of the shell, which lives until
	// their ends are known.
	certain bool
}

// newRandomJob returns a job of a few processes that fail in various ways, at various depths.
func newRandomJob(random *rand.Rand) randomJob {
	var script strings.Builder
	j := randomJob{certain: true}
	crashes := []string{"SEGV", "BUS", "ABRT", "ILL", "FPE", "SYS", "TRAP", "XCPU", "XFSZ"}
	others := []string{"TERM", "KILL", "INT", "HUP"}
	last := 0
	for range random.IntN(6) {
		signal := ""
		switch random.IntN(4) {
		case 0:
			fmt.Fprintln(&script, []string{"test 1 = 2", "grep x </dev/null", "sh -c 'exit 3'", "yes | head -1 >/dev/null", "true"}[random.IntN(5)])
			continue
		case 1:
			signal = others[random.IntN(len(others))]
		default:
			signal = crashes[random.IntN(len(crashes))]
		}
		line := fmt.Sprintf(`sh -c 'echo $$ SIG%s; kill -%s $$'`, signal, signal)
		last = 128 + int(unix.SignalNum("SIG"+signal))
		switch random.IntN(3) {
		case 0:
			line = fmt.Sprintf("sh -c %s", quoted(line+"; exit $?"))
			j.certain = false
		case 1:
			if signal != "INT" { // a shell's background commands ignore it
				line += " & wait $!"
			}
		}
		fmt.Fprintln(&script, line)
		if random.IntN(3) == 0 && last != 0 {
			fmt.Fprintf(&script, "exit $?")
			j.script, j.code = script.String(), last
			return j
		}
	}
	j.code = []int{0, 1, 2, 3, 134, 137, 139, 143, 255}[random.IntN(9)]
	fmt.Fprintf(&script, "exit %d", j.code)
	j.script = script.String()
	return j
}

// quoted quotes text for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// cause returns the cause that the output of the job proves: the process and its signal, or "" for none.
func (j randomJob) cause(out string) (pid, signal string) {
	var pids, signals []string
	for line := range strings.Lines(out) {
		if p, s, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			pids, signals = append(pids, p), append(signals, s)
		}
	}
	if j.code == 0 {
		return "", ""
	}
	for i, s := range slices.Backward(signals) {
		if j.code == 128+int(unix.SignalNum(s)) {
			return pids[i], s
		}
	}
	for i, s := range signals {
		if !slices.Contains([]string{"SIGTERM", "SIGKILL", "SIGINT", "SIGHUP"}, s) {
			return pids[i], s
		}
	}
	return "", ""
}

// Random jobs get the cause that they know themselves, and never another one. make test runs a few; -deaths 500 more.
func TestDeaths_RandomJobs(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(*deathSeed, 0))
	for i := range *deathCount {
		j := newRandomJob(random)
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			o := clitest.Run(t, "run", "--", "sh", "-c", j.script)
			o.Want(t, j.code)
			r := o.Report(t)
			needsConnector(t, r)
			v, n := r.Nodes["0"].Verdict, r.Nodes["0"]
			pid, signal := j.cause(o.Out)
			if n.Wall() > 4 && v.Cause == "exited" { // the machine was too busy: the crash may be too old
				return
			}
			named := v.Cause == "child_died" && fmt.Sprint(v.Evidence["pid"]) == pid && v.Evidence["signal"] == signal
			if !named && (pid != "" || v.Cause != "exited") && (j.certain || v.Cause == "child_died" && !strings.Contains(o.Out, fmt.Sprintf("%.0f %s\n", v.Evidence["pid"], v.Evidence["signal"]))) {
				t.Errorf("cause %s, evidence %v, want %s of process %q; deaths %+v; job:\n%s", v.Cause, v.Evidence, signal, pid, n.Deaths, j.script)
			}
			for _, d := range n.Deaths {
				check.True(t, d.Signal == "" || strings.Contains(o.Out, fmt.Sprintf("%d %s\n", d.PID, d.Signal)), "%+v is no process of the job:\n%s", d, o.Out)
			}
		})
	}
}
