package perfagent_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/perfagent/perfagent"
)

// The version has the normal form of PEP 440, without an epoch or a local part, because the names of the packages and
// of the wheel need this form.
func TestVersion_MatchesVersionFile(t *testing.T) {
	data, err := os.ReadFile("VERSION")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?\n$`).Match(data) {
		t.Errorf("VERSION is %q, want one line like 1.0.0 or 1.1.0rc1", data)
	}
	if got := perfagent.Version() + "\n"; got != string(data) {
		t.Errorf("Version with a newline = %q, want the contents of VERSION, %q", got, data)
	}
}
