package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// wantCall is like mustRun, but calls perfagent in the test's process, directory and environment.
func wantCall(t testing.TB, code int, args ...string) clitest.Outcome {
	t.Helper()
	o := call(args...)
	o.Want(t, code)
	return o
}

// want is like perform, and checks the exit code.
func (l *insideLine) want(t *testing.T, code int) clitest.Outcome {
	t.Helper()
	o := l.perform(t)
	o.Want(t, code)
	return o
}

// wantInside is like mustRun, but runs perfagent in the test's process.
func wantInside(t *testing.T, code int, args ...string) clitest.Outcome {
	t.Helper()
	return insideCommand(t, args...).want(t, code)
}

// wantInsideIn is like wantInside, but in dir.
func wantInsideIn(t *testing.T, dir string, code int, args ...string) clitest.Outcome {
	t.Helper()
	l := insideCommand(t, args...)
	l.Dir = dir
	return l.want(t, code)
}

// wantError checks the exit code, and that the only output is one line on stderr that contains all words.
func wantError(t testing.TB, o clitest.Outcome, code int, words ...string) {
	t.Helper()
	o.Want(t, code)
	o.WantLine(t, words...)
	if o.Out != "" {
		t.Errorf("stdout %q, want none", o.Out)
	}
}

// wantSilence checks that nothing was printed.
func wantSilence(t testing.TB, o clitest.Outcome) {
	t.Helper()
	if o.Out != "" || o.Err != "" {
		t.Errorf("stdout %q, stderr %q; want none", o.Out, o.Err)
	}
}

// wantContains checks that text contains all words.
func wantContains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

// untilExists waits until there is a file at path.
func untilExists(t testing.TB, path string) {
	t.Helper()
	clitest.WaitUntil(t, path+" exists", func() bool { return clitest.Exists(path) })
}

// untilHas waits until the file at path contains text at least n times.
func untilHas(t testing.TB, path, text string, n int) {
	t.Helper()
	clitest.WaitUntil(t, path+" has "+text, func() bool {
		data, _ := os.ReadFile(path)
		return strings.Count(string(data), text) >= n
	})
}

// decoded returns the value of text, which is JSON.
func decoded[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %.999s", err, text)
	}
	return v
}

// wantText checks the content of the file at path.
func wantText(t testing.TB, path, want string) {
	t.Helper()
	if text := clitest.Read(t, path); text != want {
		t.Errorf("%s contains %.60q, want %q", path, text, want)
	}
}

// readAny returns the report in a file of any kind, such as a journal.
func readAny(t testing.TB, path string) *reporter.Report {
	t.Helper()
	r, err := reportfile.Read(path, 0)
	check.Must(t, err)
	return r
}

// wantCause checks the verdict of a process's report.
func wantCause(t testing.TB, o clitest.Outcome, cause string, evidence map[string]any, words ...string) *reporter.Report {
	t.Helper()
	r := o.Report(t)
	reportertest.WantEvidence(t, reportertest.WantVerdict(t, r, cause, words...), evidence)
	return r
}
