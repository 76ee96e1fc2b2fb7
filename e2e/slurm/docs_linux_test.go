//go:build e2e

package slurm

import (
	"flag"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

var transcripts = flag.Bool("transcripts", false, "write into docs/clusters.md what the examples are and print")

const clustersDoc = "docs/clusters.md"

// kept returns the part of docs/clusters.md between the comments "NAME:begin" and "NAME:end". With -transcripts it
// first replaces that part by the text.
func kept(t *testing.T, name, language, text string) string {
	t.Helper()
	file := testenv.Repository(t, clustersDoc)
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(clitest.Read(t, file), begin)
	part, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no part %s", clustersDoc, name)
	}
	if *transcripts {
		part = "```" + language + "\n" + strings.TrimRight(text, "\n") + "\n```\n"
		clitest.Write(t, file, before+begin+part+end+after, 0o644)
	}
	return part
}

// The script in docs/clusters.md equals the example.
func TestDocs_ScriptEqualsExample(t *testing.T) {
	script := clitest.Read(t, testenv.Repository(t, "examples/slurm/oom.sh"))
	if part := kept(t, "slurm-oom-script", "bash", script); !strings.Contains(part, script) {
		t.Errorf("%s has another script: go test -tags e2e ./e2e/slurm -transcripts rewrites it\n%s", clustersDoc, part)
	}
}
