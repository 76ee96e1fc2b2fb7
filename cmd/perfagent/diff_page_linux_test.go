package main

import (
	"html"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

// For real runs of two commands, diff prints the verdict and the commands and writes the page, but replaces an existing
// page only with --force.
func TestDiff_WritesPageWithVerdictAndKeepsExistingPage(t *testing.T) {
	dir := t.TempDir()
	for id, seconds := range map[string]string{"before": "0.1", "after": "0.5"} {
		inside(t, "run", "--out", filepath.Join(dir, "perfagent-out"), "--run-id", id, "--", "sleep", seconds).Want(t, 0)
	}
	args := []string{"--to", "diff.html", "before", "after"}

	o := diffIn(t, dir, args...)
	o.Want(t, 0)
	first, rest, _ := strings.Cut(o.Out, "\n")
	if !strings.HasPrefix(first, "B took ") || !strings.HasPrefix(rest, "With one run on each side, this may be noise: repeat each; "+
		"4 runs are enough.\nthe commands differ: A sleep 0.1 | B sleep 0.5\n") {
		t.Errorf("stdout begins with\n%s\n%s\nwant how long B took, and both commands", first, rest)
	}
	page := clitest.Read(t, filepath.Join(dir, "diff.html"))
	if !strings.Contains(html.UnescapeString(page), "<h1 data-verdict>"+first+"</h1>") {
		t.Errorf("the page lacks the verdict %q:\n%s", first, page)
	}

	clitest.Write(t, filepath.Join(dir, "diff.html"), "mine", 0o644)
	o = diffIn(t, dir, args...)
	o.Want(t, 2)
	if !strings.Contains(o.Err, "diff.html exists: use --force to replace it") || o.Out != "" ||
		clitest.Read(t, filepath.Join(dir, "diff.html")) != "mine" {
		t.Errorf("existing page without --force: stdout %s, stderr %s; want only the hint, and the page kept",
			o.Out, o.Err)
	}
	diffIn(t, dir, append([]string{"--force"}, args...)...).Want(t, 0)
	if clitest.Read(t, filepath.Join(dir, "diff.html")) == "mine" {
		t.Error("the existing page was kept with --force, want it replaced")
	}
	diffIn(t, dir, "--to", filepath.Join("no", "such", "diff.html"), "before", "after").Want(t, 2)
}
