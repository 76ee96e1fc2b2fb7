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

// transcript returns the transcript in docs/mpi.md below the given title.
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

// These expressions match the parts that differ between runs: run IDs and numbers.
var (
	names   = regexp.MustCompile(`mpi-[0-9a-f]{12}`)
	numbers = regexp.MustCompile(`[0-9]+([-.:][0-9]+)*( m?s\b)?`) // times are in seconds or milliseconds
)

// comparable returns a transcript without the parts that differ between runs.
func comparable(text string) string {
	text = numbers.ReplaceAllString(names.ReplaceAllString(text, "RUN"), "N")
	return strings.Join(strings.Fields(text), " ") // a line is wrapped elsewhere if a number is longer
}

// wantTranscript runs the commands of a transcript in a copy of the examples, on the first host, and compares their
// output with the transcript. With -transcripts, it writes the output into the document instead.
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
		t.Errorf("output of the commands:\n%s\nwant, from %s:\n%s\nstderr: %s", o.Out, mpiDoc, want, o.Err)
	}
}
