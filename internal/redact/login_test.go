package redact_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/redact"
)

// The login in an address is found even if the address is misspelled. Other arguments have no logins.
func TestLogins(t *testing.T) {
	for arg, want := range map[string]string{
		"redis://:pw@host:6379#job":   ":pw",
		"redis://user:pw@host":        "user:pw",
		"redis:/:pw@host":             "pw",
		"redis:/:pw@host#job@2":       "pw",
		"redis://:p#w@host":           "p#w",
		"redis::pw@host":              "pw",
		"redis:pw@host":               "pw",
		"redis;//:pw@host":            "pw",
		"redis//:pw@host":             "pw",
		"//:pw@host":                  "pw",
		":pw@host:6379":               "pw",
		"user:pw@host":                "pw",
		"http:/user:pw@host":          "user:pw",
		`http:\\user:pw@host`:         "user:pw",
		"redis:///:pw@host":           "pw",
		"redis://:p/w@host":           "p/w",
		"--store=redis:/:pw@host":     "pw",
		"PERFAGENT_STORE=redis:/:p@h": "p",

		"job@2": "", "@latest": "", "s3://bucket/prefix#job@2": "", "redis://host#job@2": "", "s3://bucket/a@b": "", "host:6379": "", "": "", "@": "", ":@": "",
		"/shared/12:30@host.json": "", "./12:30@host.json": "", "user@host:path": "",
	} {
		found := redact.Logins([]string{"show", arg, arg})
		if want == "" && len(found) > 0 || want != "" && !slices.Equal(found, []string{want}) {
			t.Errorf("logins in %s = %q, want %q", arg, found, want)
		}
	}
}

// The Writer hides logins, including quoted ones, and nothing else.
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := redact.NewWriter(&out, redact.Logins([]string{`redis:/:p"w@host`, "x:a@b"}))
	n, err := fmt.Fprintf(w, "no run %q, no run redis:/:p\"w@host, x:a@b, a p\"w\n", `redis:/:p"w@host`)
	want := "no run \"redis:/:***@host\", no run redis:/:***@host, x:***@b, a p\"w\n"
	if got := out.String(); got != want || err != nil || n <= 0 {
		t.Errorf("wrote %q (%d bytes, error %v), want %q", got, n, err, want)
	}
}
