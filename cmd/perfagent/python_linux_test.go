package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// Tests of the Python module perfagent in python/.

// withModule makes a process find the module, and the module find the program.
func withModule(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	cmd.Env = append(cmd.Env,
		"PYTHONPATH="+testenv.Repository(t, "python"), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=default",
		"PATH="+filepath.Dir(clitest.Binary(t))+":"+os.Getenv("PATH"))
	return cmd
}

// moduleScript prepares a Python script in a file, which multiprocessing requires.
func moduleScript(t *testing.T, wrap []string, text string) *exec.Cmd {
	t.Helper()
	path := clitest.Write(t, filepath.Join(clitest.OpenTemp(t), "script.py"), clitest.Burn+text, 0o644)
	words := slices.Concat(wrap, []string{testenv.Python(t), path})
	return withModule(t, clitest.Command(t, words[0], words[1:]...))
}

// runScript runs a Python script, and checks that it succeeds without a message.
func runScript(t *testing.T, text string) clitest.Outcome {
	t.Helper()
	o := mustExit(t, 0, moduleScript(t, nil, text))
	if o.Err != "" {
		t.Errorf("stderr %q, want none", o.Err)
	}
	return o
}

// wantMonitored checks that a script succeeded and that its report has the given CPU time, and returns the report.
func wantMonitored(t *testing.T, o clitest.Outcome, seconds float64) *reporter.Report {
	t.Helper()
	o.Want(t, 0)
	if o.Err != "" {
		t.Errorf("stderr %q, want none", o.Err)
	}
	r := o.Report(t)
	if !r.Nodes["0"].Job.Attached || exited(r) != -1 {
		t.Errorf("run %+v, job %+v; want an attached job without an exit code", r.Run, r.Nodes["0"].Job)
	}
	wantCPU(t, r, seconds)
	return r
}

func TestMonitor_RecordsScript(t *testing.T) {
	t.Parallel()
	o := clitest.RunCommand(t, moduleScript(t, nil, `
import json, perfagent
burn(0.3)
os.environ["PERFAGENT_MARKS"] = "before"
monitor = perfagent.Monitor("script", interval=0.05, tags={"stage": 3}, args=["--no-page=false"])
assert monitor.report is None and monitor.summary is None
with monitor as inside:
    assert inside is monitor and os.environ["PERFAGENT_MARKS"].endswith("node-0.marks")
    with perfagent.phase("outer"):
        burn(0.1)
        with perfagent.phase("inner"):
            burn(0.2)
        burn(0.1)
    perfagent.mark("done ✓")
    @perfagent.phase("decorated")
    def work():
        burn(0.1)
        return 5
    assert work() == 5
    assert monitor.report is None
    threads = threading.active_count()
assert threads == 1 and not os.listdir("/proc/self/task")[1:]
assert os.environ["PERFAGENT_MARKS"] == "before" and "PERFAGENT_PHASE" not in os.environ
assert monitor.finalize() is monitor and monitor.stop() is monitor
assert monitor.report["run"]["id"] == monitor.run_id == "script"
assert os.path.isfile(monitor.page_path)
page = monitor._repr_html_()
print(json.dumps([monitor.report_path, page, monitor.summary]))
`))
	r := wantMonitored(t, o, 0.5)
	said := decoded[[]any](t, o.Out)
	if want := filepath.Join(o.Dir, "perfagent-out/script/node-0.json"); said[0] != want {
		t.Errorf("report_path %v, want %v", said[0], want)
	}
	if page := said[1].(string); !strings.Contains(page, "script") || strings.Contains(page, "<script") || strings.Contains(page, "://") {
		t.Errorf("_repr_html_ returns %q, want the name script without markup or links", page)
	}
	if r.Run.Tags["stage"] != "3" {
		t.Errorf("tags %v, want stage 3", r.Run.Tags)
	}

	n := r.Nodes["0"]
	if len(n.Marks) != 1 || n.Marks[0].Text != "done ✓" {
		t.Errorf("marks %+v, want only \"done ✓\"", n.Marks)
	}
	phases := ""
	for _, p := range n.Phases {
		phases += fmt.Sprintf("%s %d, ", p.Name, p.Count)
	}
	if want := "outer 2, inner 1, decorated 1, "; phases != want {
		t.Errorf("phases and their counts %q, want %q", phases, want)
	}
}

// The module has the version of the program.
func TestMonitor_HasVersionOfProgram(t *testing.T) {
	t.Parallel()
	version := strings.TrimSpace(clitest.Read(t, testenv.Repository(t, "VERSION")))
	text := clitest.Read(t, testenv.Repository(t, "python/perfagent/__init__.py"))
	wantContains(t, text, "\n__version__ = \""+version+"\"\n")
}

// A Monitor that has ended does not record again.
func TestMonitor_RecordsOnce(t *testing.T) {
	t.Parallel()
	runScript(t, `
import perfagent, warnings
m = perfagent.Monitor("once").start()
assert m.start() is m and m.stop() is m
report = m.report
with warnings.catch_warnings(record=True) as caught:
    assert m.start() is m
assert [str(w.message) for w in caught] == ["perfagent does not record: this Monitor has ended, and records once: make a new one"], caught
assert m.report is report
`)
}

// The summary has the schema of ls --json, and names the report and the page.
func TestMonitor_SummaryHasSchemaOfLs(t *testing.T) {
	t.Parallel()
	runScript(t, `
import perfagent
with perfagent.Monitor("run", out="runs", args=["--interval", "50ms", "--no-page=false"]) as m:
    burn(0.2)
s, page = m.summary, m._repr_html_()
assert s["schema"] == "perfagent.summary/1" and s["run_id"] == "run" and s["state"] == "ended", s
assert s["report"] == m.report_path and s["page"] == m.page_path, s
assert "CPU" in page and len(page.encode()) <= 64 << 10 and "<script" not in page and "http" not in page
`)
}

// Children of multiprocessing are counted, and a forked copy of a Monitor does nothing in them.
func TestMonitor_CountsChildrenOfMultiprocessing(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"fork", "spawn"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			o := clitest.RunCommand(t, moduleScript(t, nil, `
import multiprocessing, perfagent
monitor = perfagent.Monitor(interval="50ms")
def work(i):
    before = os.environ.get("PERFAGENT_MARKS")
    monitor.finalize()
    assert os.environ.get("PERFAGENT_MARKS") == before
    perfagent.mark("child")
    burn(0.2)
if __name__ == "__main__":
    with monitor:
        jobs = [multiprocessing.get_context("`+method+`").Process(target=work, args=(i,)) for i in range(2)]
        for j in jobs: j.start()
        for j in jobs: j.join()
        assert [j.exitcode for j in jobs] == [0, 0]
        child = os.fork()
        if child == 0:
            sys.exit() # with what is registered for the exit
        os.waitpid(child, 0)
        burn(0.1)
`))
			o.Want(t, 0)
			r := o.Report(t)
			if got := r.Nodes["0"].Metrics["job_cpu_seconds"]; got < 0.48 || got > 1.2 { // spawn imports the modules again
				t.Errorf("job_cpu_seconds %v, want 0.48 to 1.2", got)
			}
			if n := len(r.Nodes["0"].Marks); n != 2 {
				t.Errorf("%d marks, want 2", n)
			}
		})
	}
}

// The report is written without finalization, and even if the interpreter is killed.
func TestMonitor_WritesReportWithoutFinalization(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, end string }{
		{"exit", "sys.exit()"}, {"exception", "raise ValueError"}, {"killed", "os.kill(os.getpid(), 9)"}, {"os._exit", "os._exit(3)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := clitest.RunCommand(t, moduleScript(t, nil, clitest.Sampled+`
import perfagent
monitor = perfagent.Monitor("r", interval=0.05)
monitor.start()
print(monitor._agent.pid, flush=True)
burn(0.2)
sampled(2)
`+c.end))
			path := filepath.Join(o.Dir, "perfagent-out/r/node-0.json")
			untilExists(t, path)
			r := reportertest.ReadFile(t, path)
			pid, err := strconv.Atoi(strings.TrimSpace(o.Out))
			check.Must(t, err)
			clitest.WaitUntil(t, "the agent has ended", func() bool { return strings.Trim(clitest.ProcessState(pid), "ZX") == "" })
			// Python also uses CPU time to shut down its threads.
			if got := r.Nodes["0"].Metrics["job_cpu_seconds"]; !(got > 0.17 && got < 1) {
				t.Errorf("job_cpu_seconds %v, want 0.17 to 1", got)
			}
			if want := map[string]int{"killed": 137, "os._exit": 3}[c.name]; want != 0 && exited(r) != want {
				t.Errorf("run %+v, want exit code %d", r.Run, want)
			}
		})
	}
}

// If the program cannot be started, or another program has its name, Monitor warns.
func TestMonitor_WarnsIfProgramCannotStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, arguments, impostor, want string }{
		{"no program", "", "", "no program perfagent"},
		{"wrong flag", `args=["--interval", "x"]`, "", "interval"},
		{"missing process", `pid=4194303`, "", "process 4194303: it is not there"},
		{"wrong type", `interval=object()`, "", ""},
		{"another program", "", "exit 3\n", "exit code 3"},
		{"garbage", "", `echo '{"pid": 1}'; exec sleep 100`, `it answered b'{"pid": 1}\n'`},
		{"half a line", "", `printf '{"run_id":'; exec sleep 100`, "no response within 1 s"},
		{"endless line", "", `printf '{"run_id":"'; exec cat /dev/zero`, `it answered b'{"run_id`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := moduleScript(t, nil, `
import perfagent, warnings
perfagent._START_PATIENCE = 1 if "half" in os.environ.get("CASE", "") else 300
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with perfagent.Monitor(`+c.arguments+`) as m:
        perfagent.mark("x")
        with perfagent.phase("p"): pass
assert m.report is None and m.summary is None and m.report_path is None and "PERFAGENT_MARKS" not in os.environ
assert "<p>" in m._repr_html_()
assert [w.category for w in caught] == [RuntimeWarning], caught
print(caught[0].message)
try:
    os.waitpid(-1, os.WNOHANG)
    raise SystemExit("a child is left")
except ChildProcessError: pass
`)
			if c.name == "no program" {
				cmd.Env = append(cmd.Env, "PATH="+t.TempDir())
			}
			if c.impostor != "" {
				dir := t.TempDir()
				clitest.Write(t, filepath.Join(dir, "perfagent"), "#!/bin/sh\n"+c.impostor, 0o755)
				cmd.Env = append(cmd.Env, "PATH="+dir+":/bin:/usr/bin", "CASE="+c.name)
			}
			o := mustExit(t, 0, cmd)
			if !strings.Contains(o.Out, c.want) || !strings.HasPrefix(o.Out, "perfagent does not record: ") {
				t.Errorf("warning %q, want %q", o.Out, c.want)
			}
		})
	}
}

// Several Monitors may end in any order: after the last one the variable has its original value.
func TestMonitor_SeveralEndInAnyOrder(t *testing.T) {
	t.Parallel()
	mustExit(t, 0, moduleScript(t, nil, `
import perfagent
for before in (None, "before"):
    os.environ.pop("PERFAGENT_MARKS", None)
    if before: os.environ["PERFAGENT_MARKS"] = before
    a, b, c = [perfagent.Monitor().start() for _ in range(3)]
    b.stop()
    perfagent.mark("c")
    a.stop()
    perfagent.mark("c")
    c.stop()
    assert os.environ.get("PERFAGENT_MARKS") == before, os.environ["PERFAGENT_MARKS"]
    assert [len(m.report["nodes"]["0"].get("marks", [])) for m in (a, b, c)] == [0, 0, 2]
`))
}

// The name of a phase may be any text, in any locale.
func TestMonitor_PhaseNameMayBeAnyText(t *testing.T) {
	t.Parallel()
	cmd := moduleScript(t, nil, `
import perfagent
with perfagent.Monitor() as m:
    for name in ("\u65e5\u672c", "a\0b", "\ud800", "\udcff", ""):
        with perfagent.phase(name):
            with perfagent.phase("inner"): pass
assert "PERFAGENT_PHASE" not in os.environ
names = [p["name"] for p in m.report["nodes"]["0"]["phases"]]
assert "\u65e5\u672c" in names and "inner" in names, ascii(names)
`)
	cmd.Env = append(cmd.Env, "LC_ALL=C", "PYTHONCOERCECLOCALE=0", "PYTHONUTF8=0")
	clitest.RunCommand(t, cmd).Want(t, 0)
}

// The summary is from the Monitor's own report, in any directory.
func TestMonitor_SummaryIsFromOwnReport(t *testing.T) {
	t.Parallel()
	mustExit(t, 0, moduleScript(t, nil, `
import perfagent
first, later = [perfagent.Monitor("same").start().stop() for _ in range(2)]
assert later.summary["report"] == later.report_path, later.summary
assert first.report_path != later.report_path and first.summary is None, first.summary

open("file", "w").close()
elsewhere = perfagent.Monitor("r", out="file").start().stop()
assert elsewhere.summary["report"] == elsewhere.report_path and elsewhere.summary["run_id"] == "r", elsewhere.summary
assert "r: Sampled for " in elsewhere._repr_html_()
`))
}

// A killed perfagent leaves no report, and Monitor reports that.
func TestMonitor_ReportsKilledPerfagent(t *testing.T) {
	t.Parallel()
	o := mustExit(t, 0, moduleScript(t, nil, `
import perfagent, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with perfagent.Monitor("r") as m:
        m._agent.kill()
        m._agent.wait()
assert m.report is None and m.summary["report"].endswith("node-0.jsonl"), m.summary
print([str(w.message) for w in caught if w.category is RuntimeWarning])
`))
	wantContains(t, o.Out, "exit code -9", "perfagent-out/r has what is known")
}

// Messages of the program appear after it has ended.
func TestMonitor_PassesOnMessages(t *testing.T) {
	t.Parallel()
	o := mustExit(t, 0, moduleScript(t, nil, "import perfagent\nwith perfagent.Monitor(args=['--summary', 'always', '--no-page']): pass"))
	if !strings.HasPrefix(o.Err, "perfagent: ") || !strings.Contains(o.Err, "node-0.json") {
		t.Errorf("stderr %q, want a line of perfagent that names node-0.json", o.Err)
	}
}

// Ctrl-C goes to the Python program.
func TestMonitor_CtrlCGoesToPython(t *testing.T) {
	t.Parallel()
	l := clitest.StartProcess(t, moduleScript(t, nil, `
import perfagent
with perfagent.Monitor("i", interval=0.05):
    try:
        print("ready", flush=True)
        time.sleep(100)
    except KeyboardInterrupt:
        burn(0.2)
`))
	l.Expect("ready")
	check.Must(t, syscall.Kill(-l.Cmd.Process.Pid, syscall.SIGINT))
	wantMonitored(t, mustEnd(l, 0), 0.2)
}

// jupyter is a script that restarts a Jupyter kernel during a recording, as a notebook does.
const jupyter = `
import sys, jupyter_client
manager = jupyter_client.KernelManager(kernel_cmd=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"])
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)
def run(code):
    reply = client.execute_interactive(code, timeout=60)
    assert reply["content"]["status"] == "ok", reply["content"]
run("import perfagent, time; m = perfagent.Monitor('first', interval=0.05).start()")
run("with perfagent.phase('cell'): time.sleep(0.2)")
manager.restart_kernel(now=` + "NOW" + `)
client.wait_for_ready(timeout=60)
run("import perfagent, time; m = perfagent.Monitor('second', interval=0.05).start(); time.sleep(0.1); m.stop()")
run("assert m.report['run']['id'] == 'second'; m")
client.stop_channels()
manager.shutdown_kernel(now=True)
`
