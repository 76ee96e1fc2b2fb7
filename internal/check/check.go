// Package check has the checks that most tests share. Each names what was got and wanted.
package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Value returns the first result of a call that must not fail: check.Value(call())(t).
func Value[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return v
	}
}

// True reports a failure with the given message unless ok.
func True(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// Equal reports a failure unless got and want are equal. what, formatted with args, names the value.
func Equal[T any](t testing.TB, got, want T, what string, args ...any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprintf(what, args...), d)
	}
}

// Contains reports a failure for each of the parts that text lacks. what names the text.
func Contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%.9000s", what, part, text)
		}
	}
}

// Error reports a failure unless err is an error that contains want.
func Error(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that contains %q", err, want)
	}
}
