package clitest

import (
	"regexp"
	"strings"
	"testing"
)

// WantLines checks that text consists of whole lines with perfagent's prefix, and that their number is between least
// and most.
func WantLines(t testing.TB, text string, least, most int) {
	t.Helper()
	if n := strings.Count(text, "\n"); n < least || n > most || text != "" && !strings.HasSuffix(text, "\n") {
		t.Errorf("%d lines on stderr, want %d to %d:\n%s", n, least, most, text)
	}
	for line := range strings.Lines(text) {
		if !ours.MatchString(line) {
			t.Errorf("line on stderr lacks perfagent's prefix: %q", line)
		}
	}
	WantPrintable(t, text)
}

// ours matches the start of a line that perfagent prints about itself.
var ours = regexp.MustCompile(`^perfagent( [a-z]+)?: `)

// WantPrintable checks that text has no control characters except newlines.
func WantPrintable(t testing.TB, text string) {
	t.Helper()
	if bad := regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f\x{80}-\x{9f}]`).FindString(text); bad != "" {
		t.Errorf("text has the raw control character %q, want it escaped: %q", bad, text)
	}
}

// An Outcome is the result of a process, or of a command line in this process.
type Outcome struct {
	Out, Err string
	Code     int    // -1 if a signal killed it
	Dir      string // its working directory
}

// Want checks the exit code.
func (o Outcome) Want(t testing.TB, code int) {
	t.Helper()
	if o.Code != code {
		t.Errorf("exit code %d, want %d; stderr:\n%s", o.Code, code, o.Err)
	}
}

// WantLine checks that stderr is a single line that has perfagent's prefix and contains all words.
func (o Outcome) WantLine(t testing.TB, words ...string) {
	t.Helper()
	WantLines(t, o.Err, 1, 1)
	for _, w := range words {
		if !strings.Contains(o.Err, w) {
			t.Errorf("stderr lacks %q:\n%s", w, o.Err)
		}
	}
}
