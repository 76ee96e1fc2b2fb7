package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
)

// Incorrect usage is reported in one line, with a suggestion if possible. The exit code is the command's code for
// errors. The texts are a contract.
func TestTyping_IncorrectUsageIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed, err string
		code       int
	}{
		{"rnu", `perfagent: unknown command "rnu"; did you mean "run"?`, 1},
		{"list", `perfagent: unknown command "list"; did you mean "ls"?`, 1},
		{"delete x", `perfagent: unknown command "delete"; did you mean "prune"?`, 1},
		{"sleep 1", `perfagent: unknown command "sleep"; did you mean "perfagent run -- sleep 1"?`, 1},
		{"-- sleep 1", `perfagent: unknown command "sleep"; did you mean "perfagent run -- sleep 1"?`, 1},
		{"sleep -x --help 1", `perfagent: unknown command "sleep"; did you mean "perfagent run -- sleep -x --help 1"?`, 1},
		{"sleep --token=abc", `perfagent: unknown command "sleep"; did you mean "perfagent run -- sleep '--token=***'"?`, 1},
		{"HF_TOKEN=abc python x", `perfagent: unknown command "HF_TOKEN=***"; perfagent --help lists the commands`, 1},
		{"no-such-program", `perfagent: unknown command "no-such-program"; perfagent --help lists the commands`, 1},
		{"run --interva 1s", "perfagent run: unknown flag --interva; did you mean --interval?", 125},
		{"run --Interval=1s -- true", "perfagent run: unknown flag --Interval; did you mean --interval?", 125},
		{"run -z -- true", "perfagent run: unknown flag -z; perfagent run --help lists the flags", 125},
		{"run --no-such-flag -- true", "perfagent run: unknown flag --no-such-flag; perfagent run --help lists the flags", 125},
		{"run --interval", "perfagent run: --interval: the value is missing", 125},
		{"run -i soon -- true", `perfagent run: --interval: "soon" is not a length of time, such as 10s, 500ms, 1h30m or 10, which is seconds`, 125},
		{"run --interval nan -- true", `perfagent run: --interval: "nan" is not a length of time, such as 10s, 500ms, 1h30m or 10, which is seconds`, 125},
		{"run --node one -- true", `perfagent run: --node: "one" is not a whole number`, 125},
		{"run --=x -- true", "perfagent run: --=x is not a flag; perfagent run --help lists the flags", 125},
		{"run", "perfagent run: no command: perfagent run [flags] -- COMMAND [ARG...]", 125},
		{"run -q -- no-such-program", `perfagent run: "no-such-program": command not found`, 127},
		{"run -q --summary always -- true", "perfagent run: -q is --summary never: use one of the two", 125},
		{"diff --formt json", "perfagent diff: unknown flag --formt; did you mean --format?", 2},
		{"merge", "perfagent merge: name a run, or two reports or more", 1},
		{"push", "perfagent push: name a run or a report; @latest is the newest", 1},
		{"show a b", "perfagent show: one run, please; perfagent diff compares two, and perfagent merge puts several together", 1},
		{"record -- true", `perfagent: unknown command "record"; it is now "op"`, 1},
		{"run --html never -- true", "perfagent run: unknown flag --html; it is now --no-page", 125},
		{"merge --html never x", "perfagent merge: unknown flag --html; it is now --no-page", 1},
		{"ls --html x", "perfagent ls: unknown flag --html; it is now --to", 1},
		{"show --html x", "perfagent show: unknown flag --html; perfagent show --help lists the flags", 1},
		{"plot --output x.png", "perfagent plot: unknown flag --output; it is now --to", 1},
		{"run --output x -- true", "perfagent run: unknown flag --output; it is now --out", 125},
		{"merge x -o job.json", "perfagent merge: --out: job.json is not a directory: to write a file, use --to job.json", 1},
		{"ls --format csv", `perfagent ls: --format: "csv" is not table or json`, 1},
		{"show --json --format csv", "perfagent show: --format: only one format can be printed, not both json and csv", 1},
		{"diff --format md --json a b", "perfagent diff: --json: only one format can be printed, not both md and json", 2},
		{"show --json=maybe", `perfagent show: --json: "maybe" is not true or false`, 1},
		{"metrics no-such", `perfagent metrics: no metric has "no-such" in its name; perfagent metrics lists them all`, 1},
		{"metrics a b", "perfagent metrics: one text, please, which the names contain", 1},
		{"version x", "perfagent version: takes no arguments", 1},
		{"sidecar x", "perfagent sidecar: takes no arguments", 1},
		{"help rnu", `perfagent help: unknown command "rnu"; did you mean "run"?`, 1},
		{"completion tcsh", `perfagent completion: unknown shell "tcsh"; the shells are bash, zsh, fish and powershell`, 1},
		{"completion", "perfagent completion: name one shell: bash, zsh, fish or powershell", 1},
		{"-v", "perfagent: unknown flag -v; did you mean -V?", 1},
	} {
		t.Run(c.typed, func(t *testing.T) {
			t.Parallel()
			o := clitest.Run(t, strings.Fields(c.typed)...)
			if o.Out != "" || o.Err != c.err+"\n" || o.Code != c.code {
				t.Errorf("exit code %d, want %d\nstdout %q\nstderr %q\nwant   %q", o.Code, c.code, o.Out, o.Err, c.err+"\n")
			}
		})
	}
}

func TestMetrics_ListsNamesThatContainText(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(output(t, "metrics", "PSI")), "\n")
	for i, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		if i > 0 && !strings.Contains(name, "psi") || i == 1 && !strings.HasPrefix(name, "job_") {
			t.Errorf("line %d is %q, want a metric with psi in its name, job_ first", i, line)
		}
	}
	if len(lines) != 7 {
		t.Errorf("%d lines, want 7: %q", len(lines), lines)
	}
}

// For the page of a run, the error names the report next to it.
func TestShow_NamesReportNextToPage(t *testing.T) {
	t.Parallel()
	path, _ := sampleReport(t)
	page := strings.TrimSuffix(path, ".json") + ".html"
	notes := clitest.Write(t, filepath.Join(t.TempDir(), "notes.txt"), "to do\n", 0o644)
	for file, want := range map[string]string{
		page:  page + " is the page; the report is node-0.json in the same directory",
		notes: notes + " is not a report of perfagent or perf.py",
	} {
		if o := call("show", file); o.Code != 1 || o.Out != "" || o.Err != "perfagent show: "+want+"\n" {
			t.Errorf("show prints %+v, want the error %s", o, want)
		}
	}
}

// show --json prints only the number of remarks; -v prints them all.
func TestShow_JSONCountsRemarks(t *testing.T) {
	t.Parallel()
	path, _ := sampleReport(t)
	short, long := call("show", "--json", path), call("show", "--json", "-v", path)
	short.WantLine(t, " remarks on what is absent or special; add -v to print them")
	clitest.WantLines(t, long.Err, 2, 50)
	n, _, _ := strings.Cut(strings.TrimPrefix(short.Err, "perfagent: "), " ")
	if short.Out != long.Out || short.Code != 0 || long.Code != 0 || n != strconv.Itoa(strings.Count(long.Err, "\n")) {
		t.Errorf("show --json counts %s remarks, exit codes %d and %d; want 0, and as many lines with -v:\n%s",
			n, short.Code, long.Code, long.Err)
	}
}

// A probable mistake causes a warning, and the job runs normally.
func TestRun_ProbableMistakeCausesWarning(t *testing.T) {
	t.Parallel()
	const noHelp = " is not known; perfagent run --help names the variables"
	const noDisk = "--disk-path /no/such is not there; its file system is not measured"
	for _, c := range []struct {
		flags, env string
		warnings   []string
	}{
		{"", "PERFAGENT_INTERVALL=1s", []string{"PERFAGENT_INTERVALL is not known; did you mean PERFAGENT_INTERVAL?"}},
		{"", "PERFAGENT_ZZZ=1 PERFAGENT_ABC=1", []string{"PERFAGENT_ABC" + noHelp, "PERFAGENT_ZZZ" + noHelp}},
		{"", "PERFAGENT_HTML=never", []string{"PERFAGENT_HTML is not known; it is now PERFAGENT_NO_PAGE"}},
		{"--disk-path /no/such --disk-path /", "", []string{noDisk}},
		{"", "PERFAGENT_DISK_PATH=/:/no/such", []string{noDisk}},
		{"", `PERFAGENT_MARKS=/no PERFAGENT_PHASE=a PERFAGENT_OPS_HOST=h PERFAGENT_OPS_PORT=1 PERFAGENT_RUN_ID=r PERFAGENT_NODE=0
			PERFAGENT_TEST_X=1 PERFAGENT_PUSH_TIMEOUT=5 PERFAGENT_INTERVAL=0.5
			PERFAGENT_SERVICE_HOST=10.0.0.1 PERFAGENT_PORT=tcp://10.0.0.1:9100 PERFAGENT_PORT_9100_TCP=x`, nil},
		{"--interval 10 --push-timeout .5", "", nil},
	} {
		args := append(append([]string{"run", "-q", "-o", "out"}, strings.Fields(c.flags)...), "--", "sh", "-c", "echo out; echo err >&2; exit 7")
		cmd := clitest.Perfagent(t, args...)
		cmd.Env = append(cmd.Env, strings.Fields(c.env)...)
		want := ""
		for _, w := range c.warnings {
			want += "perfagent: warning: " + w + "\n"
		}
		if o := clitest.RunCommand(t, cmd); o.Code != 7 || o.Out != "out\n" || o.Err != want+"err\n" {
			t.Errorf("flags %q, variables %q: exit code %d, stdout %q, stderr %q, want %q", c.flags, c.env, o.Code, o.Out, o.Err, want)
		}
	}
}

// In an ASCII locale, text for people is ASCII. Formats for programs stay UTF-8.
func TestLocale_ASCIIOnlyForPeople(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	perform := func(locale string, args ...string) clitest.Outcome {
		cmd := clitest.Perfagent(t, args...)
		cmd.Dir, cmd.Env = dir, append(cmd.Env, strings.Fields(locale)...)
		return clitest.RunCommand(t, cmd)
	}
	plain := func(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 }

	const name, shown = "größe-日本", `gr\u00f6\u00dfe-\u65e5\u672c`
	run := []string{"run", "-i", "20ms", "--summary", "always", "--run-id", "r", "--tag", "k=" + name, "--", "sh", "-c", "echo é; sleep 0.2", name}
	first := perform("LC_ALL=C", run...)
	if first.Code != 0 || first.Out != "é\n" || !plain(first.Err) {
		t.Errorf("run in an ASCII locale: %+v, want exit code 0, stdout é, and stderr in ASCII", first)
	}
	if second := perform("LC_ALL=C", "show", "r"); !plain(second.Out) || !strings.Contains(second.Out, shown) {
		t.Errorf("show in an ASCII locale: %+v, want ASCII with %q", second, shown)
	}
	check.Must(t, os.Rename(filepath.Join(dir, "perfagent-out/r"), filepath.Join(dir, "perfagent-out", name)))
	report := filepath.Join("perfagent-out", name, "node-0.json")

	for _, args := range [][]string{
		{"show", report}, {"diff", report, report}, {"show", name}, {"metrics"}, {"--help"}, {"show", "--help"}, {name}, {"run", "--" + name},
	} {
		for _, locale := range []string{"LC_ALL=C", "LC_ALL= LC_CTYPE=POSIX LANG=de_DE.UTF-8", "LC_ALL= LC_CTYPE= LANG=C"} {
			if o := perform(locale, args...); !plain(o.Out + o.Err) {
				t.Errorf("%s, perfagent %q prints other characters, want ASCII:\n%s%s", locale, args, o.Out, o.Err)
			}
		}
	}
	for _, locale := range []string{"LC_ALL=C.UTF-8 LANG=C", "LC_ALL= LC_CTYPE=de_DE.UTF-8 LANG=C"} {
		if o := perform(locale, "show", report); plain(o.Out) || !strings.Contains(o.Out, name) {
			t.Errorf("%s: show lacks %q in UTF-8: %s", locale, name, o.Out)
		}
	}
	for _, args := range [][]string{{"show", "--format", "md", report}, {"diff", "--format", "json", report, report}} {
		if in, out := perform("LC_ALL=C", args...), perform("LC_ALL=C.UTF-8", args...); in.Out != out.Out || plain(in.Out) {
			t.Errorf("%q prints different text in the C locale, or no UTF-8:\n%s", args, in.Out)
		}
	}
}

// Commands accept the name of a run in place of its files, and flags have short forms.
func TestTyping_AcceptsNamesOfRunsAndShortForms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(text string) clitest.Outcome {
		cmd := clitest.Script(t, "sh", `PATH=$(dirname "$P"):$PATH; `+text)
		cmd.Dir = dir
		return clitest.RunCommand(t, cmd)
	}
	in(`for n in 0 1 2; do perfagent run -q --run-id three --node $n -- sh -c "exit $(( n % 2 * 5 ))"; done
		for id in varied gpu; do perfagent run -q --run-id $id -- sleep 0.1; done`).Want(t, 0)

	for _, c := range []struct {
		typed, want string
		code        int
	}{
		{"perfagent ls", "RUN ", 0},
		{"perfagent show three", "Node 1 failed (exit 5)", 0},
		{"perfagent show perfagent-out/three", "Node 1 failed (exit 5)", 0},
		{"perfagent show --json varied", "wall_seconds", 0},
		{"perfagent diff --format json @-2 gpu", "varied", 0},
		{"perfagent plot && ls gpu.png", "gpu.png", 0},
		{"perfagent push varied", "the report records no server: use --mlflow URI or set MLFLOW_TRACKING_URI", 1},
		{"perfagent show nosuch", `perfagent show: no run or file "nosuch"; the runs in perfagent-out are gpu, varied, three`, 1},
		{"perfagent watch three", `perfagent watch: run "three" has ended: perfagent show perfagent-out/three`, 1},
		{"perfagent __complete watch ''", "varied", 0},
		{"perfagent __complete show --format ''", "jsonl", 0},
		{"perfagent __complete run -- slee", "sleep", 0},
		{"perfagent --version", "perfagent 1.0.0", 0},
		{"perfagent -V", "perfagent 1.0.0", 0},
		{"perfagent version --json", `"version": "1.0.0"`, 0},
	} {
		if o := in(c.typed); !strings.Contains(o.Out+o.Err, c.want) || o.Code != c.code {
			t.Errorf("%s: exit code %d\n%s%s\nwant %d, %q", c.typed, o.Code, o.Out, o.Err, c.code, c.want)
		}
	}
}
