//go:build e2e

package mpi

import (
	"regexp"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/hosttest"
	"github.com/perfagent/perfagent/internal/mpitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// transcript returns the block of docs/clusters.md below a title.
func transcript(t *testing.T, title string) string {
	t.Helper()
	_, text, found := strings.Cut(clitest.Read(t, testenv.Repository(t, "docs/clusters.md")), "\n### "+title+"\n")
	_, text, begins := strings.Cut(text, "```console\n")
	text, _, ends := strings.Cut(text, "```\n")
	if !found || !begins || !ends {
		t.Fatalf("docs/clusters.md has no transcript below %q", title)
	}

	return text
}

// Parts that differ between runs: run IDs, numbers, and the blanks between columns.
var (
	names   = regexp.MustCompile(`mpi-[0-9a-f]{12}`)
	numbers = regexp.MustCompile(`[0-9]+([-.:][0-9]+)*`)
	blanks  = regexp.MustCompile(` +`)
)

// comparable returns a transcript without these parts.
func comparable(text string) string {
	text = numbers.ReplaceAllString(names.ReplaceAllString(text, "RUN"), "N")
	return strings.TrimSpace(blanks.ReplaceAllString(text, " "))
}

// wantTranscript runs the commands of a transcript in a copy of the examples, on the first host.
func wantTranscript(t *testing.T, hosts []*hosttest.Host, e mpitest.Engine, title string) {
	t.Helper()
	want, script := transcript(t, title), ""
	for line := range strings.Lines(want) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			script += "printf '%s\\n' '" + strings.TrimSuffix("$ "+command, "\n") + "'\n" + command
		}
	}

	o, _ := onHosts(t, hosts, e, examples, "sh", "-c", script)
	if got := comparable(o.Out); got != comparable(want) {
		t.Errorf("the commands print\n%s\nwant as in docs/clusters.md\n%s\nstderr: %s", o.Out, want, o.Err)
	}
}
