//go:build e2e

package slurm

import (
	"flag"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

var transcripts = flag.Bool("transcripts", false, "write into docs/slurm.md what the example is and prints")

const slurmDoc = "docs/slurm.md"

// kept returns the part of docs/slurm.md between the comments "NAME:begin" and "NAME:end". With -transcripts, it first
// replaces that part with text.
func kept(t *testing.T, name, language, text string) string {
	t.Helper()
	file := testenv.Repository(t, slurmDoc)
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(clitest.Read(t, file), begin)
	part, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no markers for %s", slurmDoc, name)
	}
	if *transcripts {
		part = "```" + language + "\n" + strings.TrimRight(text, "\n") + "\n```\n"
		clitest.Write(t, file, before+begin+part+end+after, 0o644)
	}
	return part
}

// The script in docs/slurm.md is the same as in the examples.
func TestDocs_ScriptMatchesExample(t *testing.T) {
	script := clitest.Read(t, testenv.Repository(t, "examples/slurm/oom.sh"))
	if part := kept(t, "slurm-oom-script", "bash", script); !strings.Contains(part, script) {
		t.Errorf("script in %s differs from the example (to update it: go test -tags e2e ./e2e/slurm -transcripts):\n%s",
			slurmDoc, part)
	}
}
