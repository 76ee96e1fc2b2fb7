package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// phaseNames returns the names of a node's phases.
func phaseNames(n *reporter.Node) []string {
	var out []string
	for _, p := range n.Phases {
		out = append(out, p.Name)
	}
	return out
}

// wantPhases checks the names of a node's phases, and that the phases lie within the run and do not overlap.
func wantPhases(t *testing.T, r *reporter.Report, names ...string) *reporter.Node {
	t.Helper()
	n := r.Nodes["0"]
	if got := phaseNames(n); !slices.Equal(got, names) {
		t.Fatalf("phases %q, want %q; missing %v", got, names, n.Missing)
	}

	var all []reporter.PhaseSpan
	for _, p := range n.Phases {
		all = append(all, p.Spans...)
	}
	slices.SortFunc(all, func(a, b reporter.PhaseSpan) int { return int(math.Copysign(1, a[0]-b[0])) })
	end := float64(n.Sampling.Start.UnixMilli()) / 1000
	for _, st := range all {
		if st[0] < end-1e-3 || st[1] < 0 {
			t.Errorf("phase span %v begins before %v, the end of the previous span", st, end)
		}
		end = st[0] + st[1]
	}
	if last := float64(r.Run.End.UnixMicro()) / 1e6; end > last+1e-3 {
		t.Errorf("a phase ends at %v, after the run's end %v", end, last)
	}

	return n
}

// A line appended by a shell becomes a mark, and at the end only the report is left on disk.
func TestMarks_ShellLineBecomesMark(t *testing.T) {
	t.Parallel()
	o := mustRun(t, 7, "run", "--interval", "50ms", "--", "sh", "-c",
		`printf '{"phase":"load","ts":%s}\n' $(date +%s.%N) >> "$PERFAGENT_MARKS"; sleep 0.4
		echo "epoch 1" >> "$PERFAGENT_MARKS"; echo '{"phase":"train"}' >> "$PERFAGENT_MARKS"; sleep 0.4
		printf no-line-end >> "$PERFAGENT_MARKS"; echo "$PERFAGENT_MARKS"; exit 7`)
	r := o.Report(t)
	n := wantPhases(t, r, "load", "train")
	if len(n.Marks) != 2 || n.Marks[0].Text != "epoch 1" || n.Marks[1].Text != "no-line-end" {
		t.Errorf("marks %v, want \"epoch 1\" and \"no-line-end\"", n.Marks)
	}
	if load := n.Phases[0].Seconds; load <= 0 || load > r.Run.WallSeconds {
		t.Errorf("load took %v s, want more than 0 and at most the run's %v s", load, r.Run.WallSeconds)
	}

	want := filepath.Join(o.Dir, "perfagent-out", r.Run.ID, "node-0.marks")
	if path := strings.TrimSpace(o.Out); path != want || clitest.Exists(path) {
		t.Errorf("marks file %s, want %s; still exists: %v, want false", path, want, clitest.Exists(path))
	}
}

// kernelJob is a Python program that marks its phases and prints the kernel's counters at each boundary: CPU seconds,
// and MiB of dirtied files.
const kernelJob = `
import json, os, resource, time
def boundary(name):
    now = time.time()
    with open(os.environ['PERFAGENT_MARKS'], 'a') as f:
        f.write(json.dumps({'phase': name, 'ts': now}) + '\n')
    me = resource.getrusage(resource.RUSAGE_SELF)
    print(name, me.ru_utime + me.ru_stime, me.ru_oublock / 2048, now, flush=True)
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
boundary('load'); burn(0.6)
boundary('wait'); time.sleep(1)
boundary('train'); block = bytearray(b'x') * (200 << 20); burn(0.9); time.sleep(0.8)
boundary('save'); del block; time.sleep(0.3)
with open('file', 'wb') as f: f.write(os.urandom(20 << 20)); os.fsync(f.fileno())
time.sleep(0.6)
boundary('load'); burn(0.3)
boundary(None)
time.sleep(0.2)
`

// The commands mark and phase write consistent marks and pass on exit codes and streams, and the times of the phases
// add up.
func TestMarks_CommandsWriteConsistentPhases(t *testing.T) {
	t.Parallel()
	o := mustExit(t, 0, clitest.Script(t, "sh", `exec "$P" run --interval 50ms -- sh -c '
		set -e
		echo in | "$P" phase build -- sh -c "
			cat; echo \$PERFAGENT_PHASE; \"$P\" mark compiling a lot
			sleep 0.3; \"$P\" phase link -- sleep 0.3; sleep 0.3"
		"$P" phase test -- sh -c "exit 3" || echo "exit $?"
		"$P" phase test -- sh -c "kill -TERM \$\$" || echo "exit $?"
		"$P" phase pack
		sleep 0.1
		"$P" phase --end
		"$P" phase none -- nosuchcommand || echo "exit $?"'`))
	if want := "in\nbuild\nexit 3\nexit 143\nexit 127\n"; o.Out != want {
		t.Errorf("stdout %q, want %q", o.Out, want)
	}

	n := wantPhases(t, o.Report(t), "build", "link", "test", "pack")
	build, link := n.Phase("build"), n.Phase("link")
	if build.Count != 2 || link.Count != 1 || n.Phase("test").Count != 2 {
		t.Errorf("counts: build %d, link %d, test %d; want 2, 1, 2", build.Count, link.Count, n.Phase("test").Count)
	}
	// The nested phase begins where the outer one is interrupted.
	if before := build.Spans[0]; math.Abs(before[0]+before[1]-link.Start) > 1e-5 {
		t.Errorf("link begins at %v, want %v, when build is interrupted", link.Start, before[0]+before[1])
	}
	if len(n.Marks) != 1 || n.Marks[0].Text != "compiling a lot" {
		t.Errorf("marks %v, want only \"compiling a lot\"", n.Marks)
	}
}

// A mark never makes a script fail; only incorrect usage does.
func TestMark_FailsOnlyOnIncorrectUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args       []string
		file, line string
		code       int
	}{
		{[]string{"mark", "a"}, "", "", 0},
		{[]string{"phase", "a"}, "", "", 0},
		{[]string{"phase", "--end"}, "", "", 0},
		{[]string{"phase", "a", "--", "sh", "-c", "exit 4"}, "", "", 4},
		{[]string{"mark", "a"}, "no/such/file", "write mark: open no/such/file: no such file or directory", 0},
		{[]string{"phase", "a"}, "/", "write mark: open /: is a directory", 0},
		{[]string{"mark", "a"}, "/dev/null", "/dev/null is not a regular file", 0},
		{[]string{"phase", "a", "--", "sh", "-c", "exit 4"}, "/dev/full", "/dev/full is not a regular file", 4},

		{[]string{"mark"}, "", "no text: perfagent mark TEXT", 125},
		{[]string{"phase"}, "", "no name: perfagent phase NAME", 125},
		{[]string{"phase", "--", "true"}, "", "no name: perfagent phase NAME", 125},
		{[]string{"phase", ""}, "", "no name: perfagent phase NAME", 125},
		{[]string{"phase", "a", "true"}, "", "a command follows --", 125},
		{[]string{"phase", "a", "--"}, "", "a command follows --", 125},
		{[]string{"phase", "--end", "a"}, "", "--end takes no name", 125},
		{[]string{"phase", "--stop"}, "", "unknown flag --stop", 125},
		{[]string{"mark", "--end"}, "", "", 0},
		{[]string{"mark", "--- stage 2 ---"}, "", "", 0},
		{[]string{"mark", "-5", "degrees"}, "", "", 0},
		{[]string{"mark", "--"}, "", "no text: perfagent mark TEXT", 125},
		{[]string{"phase", "a", "--", "nosuchcommand"}, "", "command not found", 127},
		{[]string{"phase", "a", "--", "/"}, "", "cannot be executed", 126},
	} {
		t.Run(strings.Join(test.args, " ")+" "+test.file, func(t *testing.T) {
			t.Parallel()
			o := mustExit(t, test.code, with(clitest.Perfagent(t, test.args...), "PERFAGENT_MARKS="+test.file))
			if (o.Err == "") != (test.line == "") || !strings.Contains(o.Err, test.line) {
				t.Errorf("stderr %q, want %q", o.Err, test.line)
			}
			if test.file != "" && strings.Count(o.Err, "\n") > 2 { // one for the beginning, one for the end
				t.Errorf("stderr %q, want at most 2 lines", o.Err)
			}
		})
	}
}

// A hundred thousand lines cost little, are counted, and do not affect the job.
func TestMarks_HundredThousandLinesCostLittle(t *testing.T) {
	t.Parallel()
	for _, line := range []string{`{"phase":"p%d","ts":%d.5}`, "a mark with the number %d\\x1b[2J%d", `{"mark":"%d","ts":%d`} {
		n := mustRun(t, 9, "run", "--interval", "50ms", "--", testenv.Python(t), "-c", `
import os, time
with open(os.environ['PERFAGENT_MARKS'], 'a') as f:
    for i in range(100000):
        f.write('`+line+`\n' % (i, i))
        if i % 1000 == 0: f.flush()
raise SystemExit(9)`).Report(t).Nodes["0"]
		if len(n.Marks) > 1000 || len(n.Phases) > 200 || len(n.Marks)+len(n.Phases) == 0 {
			t.Errorf("%s: %d marks, %d phases; want some, but at most 1000 and 200", line, len(n.Marks), len(n.Phases))
		}
		if !slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool {
			return m.Code == reporter.MarksBeyond && m.What == "marks" && m.Count >= 1000
		}) {
			t.Errorf("%s: missing %v, want marks with a count of at least 1000", line, n.Missing)
		}
		if n.Agent.CPUSeconds > 1.5 || n.Agent.MaxRSSMB > 60 {
			t.Errorf("%s: perfagent used %v s of CPU time, %v MiB; want at most 1.5 s, 60 MiB",
				line, n.Agent.CPUSeconds, n.Agent.MaxRSSMB)
		}
	}
}

// The journal of a killed perfagent contains the marks and phases up to that time.
func TestMarks_AreInJournalOfKilledPerfagent(t *testing.T) {
	t.Parallel()
	in, goOn := clitest.Pipe(t)
	cmd := clitest.Perfagent(t, "run", "--run-id", "k", "--interval", "20ms", "--", "sh", "-c",
		`echo '{"phase":"load"}' >> "$PERFAGENT_MARKS"; echo early >> "$PERFAGENT_MARKS"; `+untilJournal("load")+`
		echo '{"phase":"train"}' >> "$PERFAGENT_MARKS"; echo started; read line; echo late >> "$PERFAGENT_MARKS"; echo done`)
	cmd.Stdin = in
	l := clitest.StartProcess(t, cmd)
	l.Expect("started")
	journal := filepath.Join(cmd.Dir, "perfagent-out/k/node-0.jsonl")
	clitest.WaitUntil(t, "the journal has some samples of the phase", func() bool {
		_, since, found := strings.Cut(clitest.Read(t, journal), `"train"`)
		return found && strings.Count(since, "\n") > 5
	})
	l.Signal(syscall.SIGKILL)
	_ = goOn.Close()
	l.Expect("done")

	r, err := reportfile.Read(journal, 0)
	check.Must(t, err)
	n := wantPhases(t, r, "load", "train")
	if n.Phases[0].Seconds <= 0 || n.Phases[1].Seconds <= 0 || len(n.Marks) != 1 || n.Marks[0].Text != "early" {
		t.Errorf("phases %v, marks %v; want two phases, each longer than 0 s, and \"early\"", n.Phases, n.Marks)
	}
	reportertest.Validate(t, encoded(t, r))
}

// A perfagent without a report file sets no marks file; a nested perfagent with a report file replaces the marks file
// of the outer one.
func TestMarks_NestedPerfagentReplacesOuterFile(t *testing.T) {
	t.Parallel()
	show := []string{"sh", "-c", `echo "${PERFAGENT_MARKS-unset} ${PERFAGENT_PHASE-unset}"`}
	dir := t.TempDir()
	for _, test := range []struct {
		name, want string
		args, env  []string
	}{
		{"output directory is a file", "unset unset", []string{"--out", clitest.Write(t, filepath.Join(dir, "file"), "", 0o644)}, nil},
		{"perf.py format", "unset unset", []string{"--compat", "perf.py"}, nil},
		{"nested, perf.py format", "/outer unset", []string{"--compat", "perf.py"}, []string{"PERFAGENT_MARKS=/outer"}},
		{"nested, with a report", dir + "/in/node-0.marks ", []string{"--out", dir, "--run-id", "in"},
			[]string{"PERFAGENT_MARKS=/outer", "PERFAGENT_PHASE=outer"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Perfagent(t, slices.Concat([]string{"run"}, test.args, []string{"--"}, show)...)
			if o := mustExit(t, 0, with(cmd, test.env...)); o.Out != test.want+"\n" {
				t.Errorf("marks file and phase of the job are %q, want %q", o.Out, test.want)
			}
		})
	}
}

// A marks file that the job replaced or shortened is not read.
func TestMarks_ReplacedFileIsNotRead(t *testing.T) {
	t.Parallel()
	for job, want := range map[string]string{
		`mkfifo "$PERFAGENT_MARKS"`: "it is not a regular file: p", `mkdir "$PERFAGENT_MARKS"`: "it is not a regular file: d",
		`ln -s /etc/passwd "$PERFAGENT_MARKS"`: "it is not a regular file: L",
		`echo one two three > "$PERFAGENT_MARKS"; ` + untilJournal("one two three") + `; echo one > "$PERFAGENT_MARKS"`: "it has shrunk",
	} {
		o := mustRun(t, 0, "run", "--interval", "20ms", "--", "sh", "-c", job+"; "+untilSampledAgain(5))
		if missing := o.Report(t).Nodes["0"].Missing; !slices.ContainsFunc(missing, func(m reporter.Missing) bool {
			return m.Code == reporter.MarksUnread && strings.Contains(m.Why, want)
		}) {
			t.Errorf("%s: missing %v, want %q", job, missing, want)
		}
	}
}

// A sidecar reads the marks file of its node, no matter which process writes it.
func TestMarks_SidecarReadsMarksOfAnyProcess(t *testing.T) {
	t.Parallel()
	l, path := beside(t, nil)
	file := strings.TrimSuffix(path, ".json") + ".marks"
	clitest.Write(t, file, `{"phase":"nightly"}`+"\nhalf way\n", 0o644)
	l.Signal(syscall.SIGTERM)
	mustEnd(l, 0)

	n := reportertest.ReadFile(t, path).Nodes["0"]
	if !slices.Equal(phaseNames(n), []string{"nightly"}) || len(n.Marks) != 1 || clitest.Exists(file) {
		t.Errorf("phases %v, marks %v, marks file left %v; want nightly, one mark, false",
			n.Phases, n.Marks, clitest.Exists(file))
	}
	if _, ok := n.Phases[0].Metrics["cpu_avg_utilization_pct"]; !ok && n.Phases[0].Seconds > 0.1 {
		t.Errorf("metrics of the phase %v, want cpu_avg_utilization_pct", n.Phases[0].Metrics)
	}
}

// Names from the job are plain text on terminals, in tables and on pages.
func TestMarks_HostileNamesArePlainText(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--run-id", "h", "--interval", "50ms", "--summary", "always", "--no-page=false", "--", testenv.Python(t), "-c", `
import json, os, time
with open(os.environ['PERFAGENT_MARKS'], 'a') as f:
    for name in ['\x1b[2J\x1b]0;x\x07', '</script><script>alert(1)</script>', '=cmd|A1', 'a | b', '@here', '\u202eevil', 'x' * 1000]:
        f.write(json.dumps({'phase': name, 'ts': time.time()}) + '\n' + json.dumps({'mark': name}) + '\n')
        f.flush()
        time.sleep(0.2)`)
	o := mustExit(t, 0, cmd)
	clitest.WantPrintable(t, o.Err)
	if n := o.Report(t).Nodes["0"]; len(n.Phases) != 7 || len(n.Phases[6].Name) != 200 {
		t.Errorf("phases %q, want 7, the last name cut to 200 bytes", phaseNames(n))
	}

	for _, args := range [][]string{{"show"}, {"show", "--format", "md"}, {"show", "--format", "csv"}, {"show", "--json"},
		{"diff", "perfagent-out/h", "perfagent-out/h"}, {"diff", "--format", "md", "perfagent-out/h", "perfagent-out/h"}} {
		again := clitest.Perfagent(t, args...)
		again.Dir = cmd.Dir
		out := mustExit(t, 0, again)
		clitest.WantPrintable(t, out.Out)
		if strings.Contains(out.Out, ",=cmd") || strings.Contains(out.Out, "\n=cmd") {
			t.Errorf("%v prints a field that begins with =, which spreadsheets take for a formula", args)
		}
	}
	dir := filepath.Join(cmd.Dir, "perfagent-out/h")
	call("plot", filepath.Join(dir, "node-0.json"), "--to", filepath.Join(dir, "picture.svg")).Want(t, 0)
	for _, name := range []string{"node-0.html", "picture.svg"} {
		page := clitest.Read(t, filepath.Join(dir, name))
		if strings.Contains(page, "<script>alert") || !strings.Contains(page, `data-phase="&lt;/script&gt;`) {
			t.Errorf("%s contains a phase name as raw HTML, or lacks the escaped name", name)
		}
	}
}

// At the process limit the command still runs, and no phase is begun that would never end.
func TestPhase_BeginsNoPhaseAtProcessLimit(t *testing.T) {
	bash := testenv.NeedsTool(t, "bash", "apt-get install bash")
	o := clitest.RunCommand(t, clitest.AsLoneUser(t, clitest.Script(t, bash,
		`ulimit -u 10; PERFAGENT_MARKS=$PWD/m $P phase a -- sh -c 'echo ran; exit 3'; echo $?; ls`)))
	if !strings.HasPrefix(o.Out, "ran\n3\n") || strings.Contains(o.Out, "m\n") {
		t.Errorf("stdout %q, want \"ran\\n3\\n\" first and no marks file; stderr %q", o.Out, o.Err)
	}
}
