package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// sampleReport returns the complete report file of a real run with several samples.
func sampleReport(t *testing.T, flags ...string) (path string, data []byte) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "perfagent-out")
	args := append([]string{"run", "--out", out, "--interval", "20ms", "--tag", "a=b"}, flags...)
	call(append(args, "--", "sh", "-c", "sleep 0.15; exit 3")...).Want(t, 3)

	paths := reportertest.InDir(t, out)
	if len(paths) != 1 {
		t.Fatalf("reports %q, want exactly one", paths)
	}
	path = filepath.Join(out, paths[0])
	return path, []byte(clitest.Read(t, path))
}

// For a file that is not a report, the exit code is 1, and one line names the file.
func TestShow_RefusesFileThatIsNotAReport(t *testing.T) {
	t.Parallel()
	_, good := sampleReport(t)
	edit := func(old, new string) string {
		if !bytes.Contains(good, []byte(old)) {
			t.Fatalf("the report lacks %q, which the test replaces", old)
		}
		return strings.ReplaceAll(string(good), old, new)
	}
	dir := t.TempDir()
	large := clitest.Write(t, filepath.Join(dir, "large report.json"), "{", 0o644)
	check.Must(t, os.Truncate(large, 500<<20))
	paths := map[string]string{
		"missing": filepath.Join(dir, "some report.json"), "a directory": t.TempDir(), "500 MB": large,
		"a file as parent directory": filepath.Join(clitest.Write(t, filepath.Join(dir, "f"), "", 0o644), "some report.json"),
		"an endless device":          "/dev/zero", "an empty device": "/dev/null",
	}
	for name, text := range map[string]string{
		"empty":                                 "",
		"blank":                                 " \n\n\t\n",
		"NUL bytes":                             strings.Repeat("\x00", 5000),
		"a word":                                "report",
		"a number":                              "1",
		"null":                                  "null",
		"a list":                                "[]",
		"an empty object":                       "{}",
		"an unrelated object":                   `{"name":"x"}`,
		"HTML":                                  "<html></html>",
		"noise":                                 "\xff\xfe\x00\x1b[31m\r\n",
		"another schema":                        edit(`"perfagent.report/1"`, `"something.else/1"`),
		"a newer major schema":                  edit(`"perfagent.report/1"`, `"perfagent.report/2"`),
		"a much newer schema":                   edit(`"perfagent.report/1"`, `"perfagent.report/10.3"`),
		"no schema number":                      edit(`"perfagent.report/1"`, `"perfagent.report"`),
		"a schema that is a number":             edit(`"perfagent.report/1"`, `1`),
		"only a schema":                         `{"schema":"perfagent.report/1"}`,
		"no nodes":                              `{"schema":"perfagent.report/1","run":{},"nodes":{}}`,
		"null for a node":                       `{"schema":"perfagent.report/1","run":{},"nodes":{"0":null}}`,
		"a node name that is not a number":      `{"schema":"perfagent.report/1","run":{},"nodes":{"a":{}}}`,
		"NaN":                                   edit(`"exit_code": 3`, `"exit_code": NaN`),
		"an envelope with too few values":       edit(`"envelope": {`, `"envelope": {"short":{"min":[1],"mean":[1],"max":[1]},`),
		"a malformed time":                      edit(`"start": "`, `"start": "soon`),
		"samples that are a string":             edit(`"samples": [`, `"samples": "x", "other": [`),
		"text after the end":                    string(good) + "{}",
		"perf.py report with NaN":               `{"0": [{"timestamp": 1.0, "mem_percent": NaN}]}`,
		"perf.py report with a list of numbers": `{"0": [1, 2]}`,
		"perf.py report with a string for a number":            `{"0": [{"mem_percent": "high"}]}`,
		"perf.py report with a node name that is not a number": `{"0": [], "x": []}`,
		"perf.py report cut off":                               `{"0": [{"timestamp": 1.0, "mem_`,
		"deep nesting":                                         strings.Repeat("[", 100_000),
		"deep objects":                                         strings.Repeat(`{"0":`, 100_000),
	} {
		paths[name] = clitest.Write(t, filepath.Join(t.TempDir(), "some report.json"), text, 0o644)
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			if path == "/dev/zero" {
				testenv.SkipIfShort(t, "a second of CPU")
			}
			t.Parallel()
			wantRefused(t, path)
		})
	}
	t.Run("unreadable", func(t *testing.T) {
		t.Parallel()
		path := clitest.Write(t, filepath.Join(clitest.OpenTemp(t), "some report.json"), string(good), 0)
		o := clitest.RunCommand(t, clitest.AsNobody(t, clitest.Perfagent(t, "show", path)))
		wantError(t, o, 1, path, "permission denied")
	})
}

// wantRefused checks that show and merge refuse the file in one line and write nothing.
func wantRefused(t *testing.T, path string) {
	t.Helper()
	merged := filepath.Join(t.TempDir(), "merged.json")
	for _, args := range [][]string{{"show", path}, {"show", "--json", path}, {"show", "--cpus", "4", path}, {"merge", path, "--to", merged}} {
		wantError(t, call(args...), 1, path)
		if clitest.Exists(merged) {
			t.Errorf("%s was written, want nothing written", merged)
		}
		if t.Failed() {
			t.Fatalf("after %v", args)
		}
	}
}

// A report that is cut off anywhere is refused in one line that names the file.
func TestShow_RefusesReportCutOffAnywhere(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU")
	path, good := sampleReport(t)
	_, perfpy := sampleReport(t, "--compat", "perf.py")
	for name, data := range map[string][]byte{"ours": good, "perf.py's": perfpy} {
		end := len(bytes.TrimSpace(data)) - 1
		cuts := []int{1, 2, end, end - 1, end - 2}
		for i := range 60 {
			cuts = append(cuts, 3+i*(end-3)/60)
		}
		for at := 0; at < end && len(cuts) < 100; at += 7 { // after each kind of delimiter
			if strings.ContainsRune(`{}[]:,"-.\`, rune(data[at])) {
				cuts = append(cuts, at+1)
			}
		}
		for _, cut := range cuts {
			clitest.Write(t, path, string(data[:cut]), 0o644)
			o := inside(t, "show", path)
			if o.Code != 1 {
				t.Errorf("show %s cut off at byte %d: exit code %d, want 1", name, cut, o.Code)
			}
			o.WantLine(t, path)
		}
	}
}

// A report with unknown keys or a newer minor schema is accepted.
func TestShow_AcceptsReportOfNewerMinorSchema(t *testing.T) {
	_, good := sampleReport(t)
	text := strings.Replace(string(good), `"perfagent.report/1",`, `"perfagent.report/1.7", "future": {"a": [1, null, "x"]},`, 1)
	text = strings.Replace(text, `"metrics": {`, `"gpus": [{"name": "x"}], "metrics": {"future_metric": 7,`, 1)
	path := clitest.Write(t, filepath.Join(t.TempDir(), "r.json"), text, 0o644)
	wantInside(t, 0, "show", path)
	if nodes := shownNumbers(t, t.TempDir(), path); nodes["0"]["future_metric"] != 7 {
		t.Errorf("show --json: %v, want future_metric 7 of node 0", nodes)
	}
}

// hostile has control characters of every kind: ESC, CR, BEL, backspace, DEL, C1.
const hostile = "a\x1b[31m\rb\x07\b\t\x7f\u009b2Jc\u202ed"

// Control characters in names, commands, tags and hosts are escaped in all output.
func TestCommand_EscapesControlCharacters(t *testing.T) {
	check := func(name string, o clitest.Outcome, code int, words ...string) {
		t.Helper()
		wantEscaped(t, name, o, code)
		for _, w := range words {
			if !strings.Contains(o.Out+o.Err, w) {
				t.Errorf("%s: the output lacks %q: stdout %q, stderr %q", name, w, o.Out, o.Err)
			}
		}
	}
	const shown = `a\x1b[31m\rb\a\b\t\x7f\u009b2Jc\u202ed`
	check("a command not found", insideWith(t, []string{plainPath}, "run", "--", hostile), 127, shown)
	check("a command not found, by path", inside(t, "run", "--", "./"+hostile), 127)
	check("an unknown flag", inside(t, "run", "--"+hostile, "--", "true"), 125)
	check("an unknown command", inside(t, hostile), 1)
	check("a tag", inside(t, "run", "--tag", hostile, "--", "true"), 125)
	check("a run id", inside(t, "run", "--run-id", hostile, "--", "true"), 125)
	check("a summary", inside(t, "run", "--summary", hostile, "--", "true"), 125)
	check("a log level", inside(t, "run", "--log-level", hostile, "--", "true"), 125)
	check("a report's name", inside(t, "show", hostile), 1)
	check("a directory of reports", inside(t, "show", "--out", hostile), 1)
	check("a merged report's name", inside(t, "merge", hostile, "--to", "x"), 1)
	check("an unwritable directory", inside(t, "run", "--out", "/proc/"+hostile, "--", "sh", "-c", "exit 4"), 4)
	o := inside(t, "run", "--summary", "always", "--out", hostile, "--tag", hostile+"="+hostile, "--", "sh", "-c", "exit 5", hostile)
	check("the summary", o, 5, shown)
	path := filepath.Join(o.Dir, hostile, reportertest.InDir(t, filepath.Join(o.Dir, hostile))[0])
	check("show", inside(t, "show", path), 0, shown)
	check("show --json", inside(t, "show", "--json", path), 0)
	check("a variable", insideWith(t, []string{"PERFAGENT_NODE=" + hostile}, "run", "--", "true"), 125)
	args := []string{"run", "--log-format", "json", "--out", "/proc/" + hostile, "--", "true"}
	check("a log in JSON", insideWith(t, []string{"TMPDIR=/proc/" + hostile}, args...), 0)
}

// wantEscaped checks the exit code, and that neither stream has raw control characters.
func wantEscaped(t *testing.T, name string, o clitest.Outcome, code int) {
	t.Helper()
	o.Want(t, code)
	for stream, text := range map[string]string{"stdout": o.Out, "stderr": o.Err} {
		if strings.ContainsAny(text, "\x1b\r\x07\b\t\x7f\u009b\u202e") {
			t.Errorf("%s: %s has raw control characters, want them escaped: %q", name, stream, text)
		}
	}
}

// hostileIn replaces every string of a report with hostile, except the strings that are needed to interpret the report.
func hostileIn(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			v[k] = hostileIn(inner, k)
		}
		switch key {
		case "tags":
			v[hostile] = hostile
		case "metrics":
			v[hostile] = 1.5
		case "envelope", "summaries":
			v[hostile] = v["mem_percent"]
		}
	case []any:
		for i := range v {
			v[i] = hostileIn(v[i], key)
		}
		if key == "samples" {
			v[0].(map[string]any)[hostile] = 1.0
		}
		if key == "missing" {
			return append(v, map[string]any{"what": hostile, "why": hostile})
		}
	case string:
		switch key {
		case "schema", "start", "end", "at", "state":
			return v
		}
		return hostile
	}
	return v
}

// Control characters in a report are escaped in all output, and the report can be merged.
func TestShow_EscapesControlCharactersOfReport(t *testing.T) {
	_, good := sampleReport(t)
	text, err := json.Marshal(hostileIn(decoded[any](t, string(good)), ""))
	check.Must(t, err)
	path := clitest.Write(t, filepath.Join(t.TempDir(), "r.json"), string(text), 0o644)
	merged := filepath.Join(t.TempDir(), "m.json")
	for _, args := range [][]string{{"show", path}, {"show", "--json", path}, {"merge", path, "--to", merged}, {"show", merged}, {"show", "--json", merged},
		{"show", "--format", "md", path}, {"show", "--format", "csv", path}} {
		o := inside(t, args...)
		wantEscaped(t, fmt.Sprint(args), o, 0)
		if args[1] == "--json" && decoded[map[string]reporter.Values](t, o.Out)["0"][hostile] != 1.5 {
			t.Errorf("show --json lacks the metric %q with 1.5: %s", hostile, o.Out)
		}
	}
}

// Every command except run fails if it cannot write to stdout.
func TestCommand_FailedWriteToStdoutIsAnError(t *testing.T) {
	path, _ := sampleReport(t)
	for _, args := range [][]string{{"show", path}, {"show", "--json", path}, {"metrics"}, {"metrics", "--json"}, {"version"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		check.Must(t, err)
		defer full.Close()
		cmd := insideCommand(t, args...)
		cmd.Stdout = full
		o := cmd.want(t, 1)
		clitest.WantLines(t, o.Err, 1, 100) // show --json also prints remarks
		if !strings.HasSuffix(o.Err, "no space left on device\n") {
			t.Errorf("%v > /dev/full: stderr %q, want \"no space left on device\" at its end", args, o.Err)
		}
	}
}

// Absurd numbers in a report do not make a command crash.
func TestShow_DoesNotCrashOnAbsurdNumbers(t *testing.T) {
	_, good := sampleReport(t)
	for _, number := range []string{"1e308", "-1e308", "-1", "1e-320", "0", "123456789012345678901234567890"} {
		text := string(good)
		for _, key := range []string{"wall_seconds", "max_t_mem_percent", "node_cpu_hours", "memory_mb", "cpu_seconds", "total_disk_io_read_mb", "user_seconds"} {
			text = numberOf(t, text, key, number)
		}
		path := clitest.Write(t, filepath.Join(t.TempDir(), "r.json"), text, 0o644)
		for _, args := range [][]string{{"show", path}, {"show", "--json", path}} {
			o := inside(t, args...)
			if o.Code != 0 && o.Code != 1 || strings.Contains(o.Out, "NaN") || strings.Contains(o.Out, "Inf") {
				t.Errorf("number %s: %v gave %+v, want exit code 0 or 1, and no NaN or Inf", number, args[0], o)
			}
			for line := range strings.Lines(o.Out) {
				if n := len([]rune(line)); args[1] != "--json" && n > 82 && !strings.Contains(line, path) {
					t.Errorf("number %s: a line of %d characters, want at most 82: %s", number, n, line)
				}
			}
		}
	}
}

// numberOf replaces the first value of key in text with number.
func numberOf(t *testing.T, text, key, number string) string {
	t.Helper()
	before, after, ok := strings.Cut(text, fmt.Sprintf("%q: ", key))
	if !ok {
		t.Fatalf("the report has no key %s, which the test replaces", key)
	}
	return before + fmt.Sprintf("%q: ", key) + number + strings.TrimLeft(after, "-+.eE0123456789")
}
