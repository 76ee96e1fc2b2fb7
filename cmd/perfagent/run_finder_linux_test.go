package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter/summary"
)

// runsOf records runs into dir, one after the other. NAME:CODE is a run with a job that exits with CODE, and
// NAME/N:CODE is node N of the run NAME.
func runsOf(t *testing.T, dir string, runs ...string) {
	t.Helper()
	for _, run := range runs {
		name, code, _ := strings.Cut(run, ":")
		name, node, _ := strings.Cut(name, "/")
		args := []string{"run", "--run-id", name, "--interval", "20ms", "--no-page=false"}
		if node != "" {
			args = append(args, "--node", node)
		}
		insideIn(t, dir, append(args, "--", "sh", "-c", "exit "+code)...)
	}
}

// A run of three nodes with one failure is one entry under its name, and the failure is shown.
func TestNames_RunOfThreeNodesIsOneEntry(t *testing.T) {
	dir := t.TempDir()
	runsOf(t, dir, "old:0", "three/0:0", "three/1:5", "three/2:0")

	for _, name := range []string{"three", "@latest", "@-1", "perfagent-out/three", "perfagent-out/three/", ""} {
		o := wantInsideIn(t, dir, 0, append([]string{"show"}, strings.Fields(name)...)...)
		first, _, _ := strings.Cut(o.Out, "\n")
		if !strings.Contains(first, "5") || strings.Contains(first, "Succeeded after") {
			t.Errorf("show of %q begins with %q, want the failure with code 5", name, first)
		}
	}

	if nodes := shownNumbers(t, dir, "three"); len(nodes) != 3 {
		t.Errorf("%d nodes, want 3: %v", len(nodes), nodes)
	}
	insideIn(t, dir, "diff", "old", "@latest").Want(t, 0)

	insideIn(t, dir, "merge", "three", "--to", "three.json").Want(t, 0)
	if r := readReport(t, filepath.Join(dir, "three.json")); len(r.Nodes) != 3 || *r.Run.ExitCode != 5 {
		t.Errorf("three.json: %+v, want 3 nodes, exit code 5", r)
	}
	insideIn(t, dir, "plot", "three", "--to", "all.html").Want(t, 0)
	insideIn(t, dir, "plot", "three", "--to", "one.svg", "--node", "1").Want(t, 0)
	insideIn(t, dir, "plot", "three", "--to", "none.svg", "--node", "7").Want(t, 1)
}

// The error for an unknown name lists the existing runs.
func TestNames_ErrorForUnknownNameListsRuns(t *testing.T) {
	dir := t.TempDir()
	runsOf(t, dir, "a:0", "b:0")
	const runs = `no run or file "varied"; the runs in perfagent-out are b, a`
	for _, args := range [][]string{{"show"}, {"plot"}, {"push"}, {"watch"}, {"ls"}, {"merge", "--to", "x.json"}} {
		wantError(t, insideIn(t, dir, append(args, "varied")...), 1, args[0], runs)
	}
	wantError(t, insideIn(t, dir, "diff", "a", "varied"), 2, "diff", runs)
}

// plot without a name draws the newest run into the working directory, and never overwrites a file.
func TestPlot_DrawsNewestRunByDefault(t *testing.T) {
	dir := t.TempDir()
	runsOf(t, dir, "a:0", "b:0")
	if o := wantInsideIn(t, dir, 0, "plot"); o.Out != "b.png\n" {
		t.Errorf("stdout %q, want \"b.png\\n\"", o.Out)
	}
	picture := filepath.Join(dir, "b.png")
	if data := clitest.Read(t, picture); !strings.HasPrefix(data, "\x89PNG") {
		t.Errorf("b.png begins with %.10q, want a PNG", data)
	}

	clitest.Write(t, picture, "precious", 0o644)
	for _, args := range [][]string{{"plot"}, {"plot", "--force"}, {"plot", "perfagent-out/b/node-0.json"}} {
		wantError(t, insideIn(t, dir, args...), 1, "b.png is replaced only with --to b.png --force")
	}
	wantText(t, picture, "precious")
}

func TestLs_ListsRunsNewestFirst(t *testing.T) {
	dir := t.TempDir()
	for out, want := range map[string]string{".": "no runs are in .: ", "none": "there is no directory none: "} {
		for _, command := range [][]string{{"ls"}, {"prune", "--keep", "1"}} {
			wantError(t, insideIn(t, dir, append(command, "--out", out)...), 0, want, "--out")
		}
	}
	if o := insideIn(t, dir, "ls", "--json"); o.Code != 0 || o.Out != "[]\n" {
		t.Errorf("ls --json without runs: %+v, want exit code 0 and []", o)
	}
	runsOf(t, dir, "a:0", "b/0:0", "b/1:7")

	o := wantInsideIn(t, dir, 0, "ls")
	lines := strings.Split(strings.TrimSpace(o.Out), "\n")
	if len(lines) != 3 || strings.Join(strings.Fields(lines[0]), " ") != "RUN START END TIME NODES CPU MEMORY COMMAND" {
		t.Fatalf("ls prints %d lines, want the header and 2 runs:\n%s", len(lines), o.Out)
	}
	if b := strings.Fields(lines[1]); b[0] != "b" || !strings.Contains(lines[1], " 2 ") || !strings.Contains(lines[1], "exit 7") {
		t.Errorf("the newest run is %s, want b with 2 nodes and exit 7", lines[1])
	}
	if !strings.Contains(lines[2], " of ") || strings.Contains(lines[2], text.Absent) || !strings.Contains(lines[2], "iB  sh -c") {
		t.Errorf("the line of the oldest run lacks CPUs or memory: %s", lines[2])
	}
	if !strings.HasPrefix(lines[2], "a ") || !strings.HasSuffix(lines[2], "sh -c 'exit 0'") {
		t.Errorf("the oldest run is %s, want a with sh -c 'exit 0'", lines[2])
	}

	if b := onlyListed(t, dir, "@latest"); b.Schema != summary.OverviewSchema || b.RunID != "b" || b.Nodes != 2 ||
		!slices.Equal(b.FailedNodes, []int{1}) || *b.ExitCode != 7 {
		t.Errorf("ls lists %+v, want run b of 2 nodes, node 1 failed with exit code 7", b)
	}
}

// An index in any directory links to the pages of the runs, and replaces a file only with --force.
func TestLs_IndexLinksPages(t *testing.T) {
	dir := t.TempDir()
	runsOf(t, dir, "a:0", "b:3")
	check.Must(t, os.Mkdir(filepath.Join(dir, "public"), 0o755))
	insideIn(t, dir, "ls", "--to", "public/index.html").Want(t, 0)
	wantContains(t, clitest.Read(t, filepath.Join(dir, "public/index.html")), `<a href="../perfagent-out/a/node-0.html">a</a>`,
		`<tr class="failed"><td><a href="../perfagent-out/b/node-0.html">b</a>`, "sh -c &#39;exit 3&#39;")

	wantError(t, insideIn(t, dir, "ls", "--to", "public/index.html"), 1, "public/index.html exists", "--force")
	insideIn(t, dir, "ls", "--to", "public/index.html", "--force").Want(t, 0)
}

// On a terminal, lines are cut to the width of the terminal.
func TestLs_FitsTerminal(t *testing.T) {
	t.Parallel()
	cmd := clitest.Script(t, "/bin/sh", `"$P" run -- sh -c 'exit 3 # `+strings.Repeat("x", 200)+`'; "$P" ls`)
	cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8", "PERFAGENT_SUMMARY=never")
	screen, code := clitest.OnTerminal(t, cmd).End()
	if code != 0 || !strings.Contains(screen, "exit 3") {
		t.Fatalf("exit code %d, want 0 and a run with exit 3:\n%s", code, screen)
	}
	for line := range strings.Lines(screen) {
		line = strings.NewReplacer("\x1b[31m", "", "\x1b[0m", "", "\r", "", "\n", "").Replace(line)
		if n := len([]rune(line)); n > 80 {
			t.Errorf("a line of %d cells, want at most 80: %s", n, line)
		}
	}
}

// For several nodes, show names the command that shows each node of the same launch in full.
func TestShow_NamesCommandThatShowsAllNodesInFull(t *testing.T) {
	dir := t.TempDir()
	runsOf(t, dir, "b/0:0", "b/1:0", "b/0:0", "b/1:0")
	for arguments, want := range map[string]string{
		"b@1": "b@1", "b": "b", "": "b", "@-2": "b@1", "--out perfagent-out b@1": "--out perfagent-out b@1",
		"--out ./perfagent-out/b/..": "--out ./perfagent-out/b/.. b",
	} {
		o := insideIn(t, dir, append([]string{"show"}, strings.Fields(arguments)...)...)
		details := "perfagent show --all " + want
		if o.Code != 0 || !strings.HasSuffix(o.Out, "\ndetails    "+details+"\n") {
			t.Errorf("show %s: exit code %d, want the details %s:\n%s", arguments, o.Code, details, o.Out)
		}
		if o := insideIn(t, dir, strings.Fields(details)[1:]...); o.Code != 0 || !strings.Contains(o.Out, "\nnode 1      ") {
			t.Errorf("%s: %+v, want exit code 0 and node 1", details, o)
		}
	}
}

func TestPrune_RemovesOldRuns(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "perfagent-out")
	runsOf(t, dir, "one:0", "two:0", "three:1", "four:0")
	clitest.Write(t, filepath.Join(out, "two", "notes.txt"), "mine", 0o644)
	for _, args := range [][]string{nil, {"--keep", "-2"}, {"--older", "3x"}, {"--older", "-1s"}, {"--keep", "1", "two"}} {
		wantError(t, insideIn(t, dir, append([]string{"prune"}, args...)...), 1)
	}
	o := wantInsideIn(t, dir, 0, "prune", "--keep", "1", "--dry-run")
	if strings.Count(o.Out, "would remove") != 3 {
		t.Errorf("a dry run prints\n%s\nwant 3 lines \"would remove\"", o.Out)
	}
	expectFiles(t, out, ".gitignore", "four", "one", "three", "two")
	insideIn(t, dir, "prune", "--older", "1h").Want(t, 0) // none is that old
	insideIn(t, dir, "prune", "--keep", "1", "--older", "2w").Want(t, 0)
	expectFiles(t, out, ".gitignore", "four", "one", "three", "two")

	insideIn(t, dir, "prune", "--keep", "2").Want(t, 0)
	expectFiles(t, out, ".gitignore", "four", "three", "two")
	expectFiles(t, filepath.Join(out, "two"), "notes.txt")
	if o := insideIn(t, dir, "ls"); strings.Contains(o.Out, "two") {
		t.Errorf("ls lists the removed run two:\n%s", o.Out)
	}
}

// Runs with a pending push or without a report are kept and listed.
func TestPrune_KeepsPendingAndIncompleteRuns(t *testing.T) {
	dir := t.TempDir()
	insideIn(t, dir, "run", "--run-id", "pending", "--mlflow", "http://127.0.0.1:9", "--push-timeout", "0s", "--", "true").Want(t, 0)
	runsOf(t, dir, "done:0", "lost:0")
	lost := filepath.Join(dir, "perfagent-out", "lost")
	journal := clitest.Write(t, filepath.Join(lost, "node-0.jsonl"), `{"journal":"x`, 0o644)
	hour := time.Now().Add(-time.Hour) // before the last write
	check.Must(t, errors.Join(os.Remove(filepath.Join(lost, "node-0.json")), os.Chtimes(journal, hour, hour)))

	o := wantInsideIn(t, dir, 0, "prune", "--keep", "0")
	wantContains(t, o.Err, "keeps pending: its push is pending: perfagent push pending", "keeps lost: its perfagent is gone")
	if strings.Count(o.Out, "\n") != 1 || !strings.Contains(o.Out, "removed done") {
		t.Errorf("prune prints\n%s\nwant only \"removed done\"", o.Out)
	}

	insideIn(t, dir, "prune", "--keep", "0", "--force").Want(t, 0)
	expectFiles(t, filepath.Join(dir, "perfagent-out"), ".gitignore")
}

// All commands find a run by name even if a file or directory of the same name exists, such as the job's program.
func TestFinder_PrefersRunToFileOfSameName(t *testing.T) {
	dir := t.TempDir()
	runsOf(t, dir, "train:0", "test:0")
	clitest.Write(t, filepath.Join(dir, "train"), "#!/bin/sh\n", 0o755)
	check.Must(t, os.Mkdir(filepath.Join(dir, "test"), 0o755))
	clitest.Write(t, filepath.Join(dir, "test/settings.json"), "{}", 0o644)

	for _, args := range [][]string{
		{"show", "train"}, {"show", "test"}, {"diff", "train", "test"}, {"ls", "train", "test"}, {"plot", "train"}, {"merge", "train", "--to", "merged.json"},
	} {
		if o := insideIn(t, dir, args...); o.Code != 0 || strings.Contains(o.Err, "not a report") {
			t.Errorf("perfagent %q: %+v, want exit code 0 and the runs", args, o)
		}
	}
	if o := insideIn(t, dir, "watch", "train"); o.Code != 1 || !strings.Contains(o.Err, `run "train" has ended`) {
		t.Errorf("watch: %+v, want the end of the run train", o)
	}
}
