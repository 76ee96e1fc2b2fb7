//go:build e2e

package mpi

import (
	"flag"
	"regexp"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/hosttest"
	"github.com/perfagent/perfagent/internal/mpitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

var transcripts = flag.Bool("transcripts", false, "write into docs/mpi.md what its commands print")

const mpiDoc = "docs/mpi.md"

// transcript returns the block of docs/mpi.md below a title.
func transcript(t *testing.T, title string) string {
	t.Helper()
	_, text, found := strings.Cut(clitest.Read(t, testenv.Repository(t, mpiDoc)), "\n## "+title+"\n")
	_, text, begins := strings.Cut(text, "```console\n")
	text, _, ends := strings.Cut(text, "```\n")
	if !found || !begins || !ends {
		t.Fatalf("%s has no transcript below %q", mpiDoc, title)
	}

	return text
}

// Parts that differ between runs: run IDs, numbers, and the blanks between columns.
var (
	names   = regexp.MustCompile(`mpi-[0-9a-f]{12}`)
	numbers = regexp.MustCompile(`[0-9]+([-.:][0-9]+)*( m?s\b)?`) // a time is in seconds or milliseconds
	blanks  = regexp.MustCompile(` +`)
)

// comparable returns a transcript without these parts.
func comparable(text string) string {
	text = numbers.ReplaceAllString(names.ReplaceAllString(text, "RUN"), "N")
	return strings.TrimSpace(blanks.ReplaceAllString(text, " "))
}

// wantTranscript runs the commands of a transcript in a copy of the examples, on the first host. With -transcripts it
// writes what they print into the document instead of comparing it.
func wantTranscript(t *testing.T, hosts []*hosttest.Host, e mpitest.Engine, title string) {
	t.Helper()
	want, script := transcript(t, title), ""
	for line := range strings.Lines(want) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			script += "printf '%s\\n' '" + strings.TrimSuffix("$ "+command, "\n") + "'\n" + command
		}
	}

	o, _ := onHosts(t, hosts, e, examples, "sh", "-c", script)
	if *transcripts {
		file := testenv.Repository(t, mpiDoc)
		clitest.Write(t, file, strings.Replace(clitest.Read(t, file), want, o.Out, 1), 0o644)
		return
	}
	if got := comparable(o.Out); got != comparable(want) {
		t.Errorf("the commands print\n%s\nwant as in %s\n%s\nstderr: %s", o.Out, mpiDoc, want, o.Err)
	}
}
