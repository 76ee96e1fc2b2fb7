package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/plotter/terminal"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// outputInputs has a directory for each recording, which also contains the golden files of the recording's outputs. See
// testdata/outputs/README.md.
const outputInputs = "testdata/outputs"

// A goldenSet compares outputs with the files of a directory.
type goldenSet struct {
	dir    string            // absolute
	hidden *strings.Replacer // replaces parts that differ between test runs
}

// check compares an output with its golden file. With -update it writes the file first.
func (g goldenSet) check(t *testing.T, name, got string) {
	t.Helper()
	file, got := filepath.Join(g.dir, name), g.hidden.Replace(got)
	if *update {
		check.Must(t, errors.Join(os.MkdirAll(g.dir, 0o755), os.WriteFile(file, []byte(got), 0o644)))
	}
	if diff := cmp.Diff(strings.Split(clitest.Read(t, file), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s is not current (go test ./cmd/perfagent -run Outputs -update):\n%s", file, diff)
	}
}

// run compares the output of a command with a golden file: stdout, stderr unless it is empty, and the exit code unless
// it is 0.
func (g goldenSet) run(t *testing.T, name string, args ...string) {
	t.Helper()
	o := callTo(nil, args...)
	if o.Err != "" {
		o.Out += "[stderr]\n" + o.Err
	}
	if o.Code != 0 {
		o.Out += fmt.Sprintf("[exit code %d]\n", o.Code)
	}
	g.check(t, name, o.Out)
}

// layOutputs lays out the recordings of testdata/outputs, and returns their names and goldens.
func layOutputs(t *testing.T) (names []string, goldens func(name string) goldenSet) {
	t.Helper()
	root, err := filepath.Abs(outputInputs)
	check.Must(t, err)
	names, dir := layRecordings(t, root)
	return names, func(name string) goldenSet {
		return goldenSet{filepath.Join(root, name), strings.NewReplacer(dir, "/data")}
	}
}

// layRecordings copies the recordings below root into perfagent-out below a new working directory, and returns their
// names and that directory. The files are old, so that no perfagent seems to be running.
func layRecordings(t *testing.T, root string) (names []string, dir string) {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"node-*", "perf.json"} {
		paths = append(paths, check.Value(filepath.Glob(filepath.Join(root, "*", pattern)))(t)...)
	}
	if len(paths) == 0 {
		t.Fatal("no recordings in ", root)
	}
	dir = t.TempDir()
	for _, path := range paths {
		name, old := filepath.Base(filepath.Dir(path)), time.Unix(1_767_225_600, 0)
		to := filepath.Join(dir, "perfagent-out", name)
		check.Must(t, os.MkdirAll(to, 0o755))
		check.Must(t, os.Chtimes(copyOf(t, path, to), old, old))
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "MLFLOW_") || strings.HasPrefix(name, "PERFAGENT_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	local := time.Local
	time.Local = time.UTC // ls shows the local time
	t.Cleanup(func() { time.Local = local })
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("TERM", "xterm")
	t.Chdir(dir)

	return names, dir
}

// isForComparisons reports whether a recording is one of the four on either side of a comparison.
func isForComparisons(name string) bool {
	return strings.HasPrefix(name, "old-") || strings.HasPrefix(name, "new-")
}

// pathOf returns the path of a recording: its only file, or its directory.
func pathOf(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("perfagent-out", name)
	files, err := filepath.Glob(filepath.Join(dir, "*.json*"))
	check.Must(t, err)
	if len(files) == 1 {
		return files[0]
	}
	return dir
}

// Each output of each recording equals its golden file.
func TestOutputs_RecordingsEqualGoldenFiles(t *testing.T) {
	names, goldens := layOutputs(t)
	parts := map[string]string{}
	for _, name := range names {
		if isForComparisons(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			g, path := goldens(name), pathOf(t, name)
			for output, args := range map[string][]string{
				"show.txt": nil, "show.md": {"--format", "md"}, "show.csv": {"--format", "csv"}, "rows.txt": {"--format", "jsonl"},
				"numbers.json": {"--json", "-v"}, "processes.txt": {"--processes"}, "ops.txt": {"--ops"},
				"ops.json": {"--ops", "--json"}, "ops-key.txt": {"--ops", "--key", "k1"},
			} {
				g.run(t, output, append([]string{"show", path, "--cpus", "4"}, args...)...)
			}
			checkPage(t, g, path, parts)
			checkScreen(t, g, path)
			checkMerged(t, g, path)
		})
	}
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		parts["all"] += part + " " + parts[part] + "\n"
	}
	goldens("all").check(t, "page-parts.txt", parts["all"])
}

// checkPage checks the page and the picture of a recording. It adds scripts and styles to parts.
func checkPage(t *testing.T, g goldenSet, path string, parts map[string]string) {
	t.Helper()
	for _, name := range []string{"page.html", "picture.svg"} {
		if o := callTo(nil, "plot", path, "--cpus", "4", "--to", name, "--force"); o.Code != 0 || o.Err != "" {
			t.Fatalf("%s: %+v, want exit code 0 and no stderr", name, o)
		}
	}
	page := textOfPage(t, clitest.Read(t, "page.html"), parts)
	g.check(t, "page.txt", page+"[picture]\n"+textOfPicture(clitest.Read(t, "picture.svg")))
}

var (
	pageElement = regexp.MustCompile(`(?s)<(script|style|svg)\b([^>]*)>(.*?)</(?:script|style|svg)>`)
	pageTag     = regexp.MustCompile(`\s*(<[^>]*>)\s*`)
	pageBlock   = regexp.MustCompile(`\n?(<(?:p|div|section|details|summary|table|caption|thead|tbody|tr|ul|ol|li|h[1-6]|dl|dt|dd|figure|` +
		`header|footer|main|nav|body|head|title|meta|link|form|template)\b|⟦)`)
	pageImage   = regexp.MustCompile(`data:[a-z/+;]+base64,[^"]*`)
	pictureText = regexp.MustCompile(`(?s)<(?:text|title|tspan)\b[^>]*>(.*?)</`)
	blanks      = regexp.MustCompile(`\s+`)
)

// textOfPage returns a page without insignificant white space. A picture is reduced to its text and a hash, and data
// has one line per list of numbers. Scripts and styles are added to parts by their hashes.
func textOfPage(t *testing.T, page string, parts map[string]string) string {
	t.Helper()
	var data []string
	keep := func(text string) string {
		data = append(data, text)
		return fmt.Sprintf("⟦%d⟧", len(data)-1)
	}
	page = pageElement.ReplaceAllStringFunc(page, func(all string) string {
		m := pageElement.FindStringSubmatch(all)
		switch {
		case m[1] == "svg":
			return keep("[picture]\n" + textOfPicture(all))
		case strings.Contains(m[2], "application/json"):
			return keep("[data" + m[2] + "]\n" + linesOfJSON(t, m[3]))
		}
		sum := hashOf(m[3])
		parts[m[1]+" "+sum] = fmt.Sprint(len(m[3]), " bytes")
		return keep("[" + m[1] + " " + sum + "]\n")
	})
	page = pageImage.ReplaceAllStringFunc(page, func(image string) string { return "data:" + hashOf(image) })
	page = pageTag.ReplaceAllString(blanks.ReplaceAllString(page, " "), "$1")
	page = pageBlock.ReplaceAllString(page, "\n$1")
	for i, text := range data {
		page = strings.Replace(page, fmt.Sprintf("⟦%d⟧", i), text, 1)
	}

	return strings.TrimPrefix(page, "\n")
}

// textOfPicture returns the text of a picture on one line, after a hash of the picture.
func textOfPicture(svg string) string {
	var words []string
	for _, m := range pictureText.FindAllStringSubmatch(svg, -1) {
		words = append(words, blanks.ReplaceAllString(m[1], " "))
	}
	return hashOf(svg) + " " + strings.Join(words, " | ") + "\n"
}

func hashOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12] }

var numbersOfJSON = regexp.MustCompile(`\[[^\[\]{}"]*\]`)

// linesOfJSON returns JSON with one value per line, except that a list of numbers is on one line.
func linesOfJSON(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	check.Must(t, json.Indent(&out, []byte(text), "", " "))
	return numbersOfJSON.ReplaceAllStringFunc(out.String(), func(list string) string {
		return blanks.ReplaceAllString(list, "")
	}) + "\n"
}

// checkScreen checks the screen of watch for a recording, on a wide terminal and on a narrow one.
func checkScreen(t *testing.T, g goldenSet, path string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), filepath.Base(path), "node-0*"))
	if err != nil || len(files) == 0 {
		files = []string{path}
	}
	r, err := reportfile.Read(files[0], 4)
	check.Must(t, err)
	var out strings.Builder
	for _, o := range []terminal.Options{{Width: 120, Height: 60}, {Width: 60, Height: 25, ASCII: true}} {
		o.Node, o.Footer = "0", "q: quit"
		fmt.Fprintf(&out, "[%d × %d]\n%s\n", o.Width, o.Height, strings.Join(terminal.Screen(r, o), "\n"))
	}
	g.check(t, "watch.txt", out.String())
}

// checkMerged checks the report that merge makes of a recording. The golden file of an unchanged report is one line.
func checkMerged(t *testing.T, g goldenSet, path string) {
	t.Helper()
	o := callTo(nil, "merge", path, "--cpus", "4", "--to", "merged.json", "--force", "--no-page")
	merged := clitest.Read(t, "merged.json")
	if before, err := os.ReadFile(path); err == nil && string(before) == merged {
		merged = "the same\n"
	}
	g.check(t, "merged.json", o.Out+merged)
	g.check(t, "merged.txt", o.Err)
	check.Must(t, os.Remove("merged.json"))
}

// Outputs that depend on all recordings, or on no recording, equal their golden files.
func TestOutputs_ListsEqualGoldenFiles(t *testing.T) {
	names, goldens := layOutputs(t)
	g := goldens("all")
	for output, args := range map[string][]string{
		"ls.txt": {"ls"}, "ls.json": {"ls", "--json"}, "metrics.txt": {"metrics"}, "metrics.json": {"metrics", "--json"},
	} {
		g.run(t, output, args...)
	}
	if o := callTo(nil, "ls", "--to", "index.html"); o.Code != 0 {
		t.Fatalf("ls --to: %+v, want exit code 0", o)
	}
	g.check(t, "index.txt", textOfPage(t, clitest.Read(t, "index.html"), map[string]string{}))

	t.Setenv("LC_ALL", "C")
	for _, name := range []string{"gpus", "operations", "ranks"} {
		goldens(name).run(t, "show-ascii.txt", "show", pathOf(t, name))
	}
	if len(names) < 20 {
		t.Errorf("%d recordings in testdata, want at least 20", len(names))
	}
}

// Comparisons of recordings equal their golden files.
func TestOutputs_ComparisonsEqualGoldenFiles(t *testing.T) {
	_, goldens := layOutputs(t)
	g := goldens("diff")
	olds, news := []string{"old-1", "old-2", "old-3", "old-4"}, []string{"new-1", "new-2", "new-3", "new-4"}
	for name, sides := range map[string][2][]string{
		"four": {olds, news}, "one": {{"plain"}, {"cgroup"}}, "work": {{"operations"}, {"crash"}}, "ranks": {{"ranks"}, {"pieces"}},
		"nodes": {{"nodes"}, {"devices"}}, "phases": {{"marks"}, {"nodes"}}, "gpus": {{"gpus"}, {"plain"}},
	} {
		runs := slices.Concat(sides[0], []string{"--"}, sides[1])
		g.run(t, name+".txt", append([]string{"diff", "--all"}, runs...)...)
		g.run(t, name+".md", append([]string{"diff", "--format", "md"}, runs...)...)
		g.run(t, name+".json", append([]string{"diff", "--format", "json", "--to", name + ".html", "--fail-if", "job_cpu_seconds > +10%",
			"--fail-if", "wall_seconds < 1"}, runs...)...)
		g.check(t, name+".page.txt", textOfPage(t, clitest.Read(t, name+".html"), map[string]string{}))
	}
}

// The data sent to an MLflow server for each recording equals its golden file. The pushes run concurrently because each
// sometimes waits for the server.
func TestOutputs_DataForMLflowEqualsGoldenFiles(t *testing.T) {
	names, goldens := layOutputs(t)
	var pushes sync.WaitGroup
	for _, name := range names {
		if isForComparisons(name) {
			continue
		}
		fake := mlflowtest.NewFake()
		server := httptest.NewServer(fake)
		path := pathOf(t, name)
		pushes.Go(func() {
			defer server.Close()
			if o := callTo(nil, "push", "--mlflow", server.URL, "--cpus", "4", path); o.Code != 0 {
				t.Errorf("push of %s: %+v, want exit code 0", name, o)
			}
			var out strings.Builder
			for _, run := range fake.Runs() {
				writeRun(&out, run)
			}
			g := goldens(name)
			g.hidden = strings.NewReplacer(server.URL, "http://mlflow", strings.TrimPrefix(server.URL, "http://"), "mlflow")
			g.check(t, "mlflow.txt", out.String())
		})
	}
	pushes.Wait()
}

// writeRun writes the content of a run on the server, except values that the server generates.
func writeRun(out *strings.Builder, run mlflowtest.RunData) {
	fmt.Fprintf(out, "run %q, %s\n", run.Info.RunName, run.Info.Status)
	for _, kind := range []struct {
		name  string
		pairs map[string]string
	}{{"tag", run.Tags}, {"param", run.Params}} {
		for _, key := range slices.Sorted(maps.Keys(kind.pairs)) {
			fmt.Fprintf(out, "%s %s: %s\n", kind.name, key, kind.pairs[key])
		}
	}
	for _, a := range run.Artifacts {
		fmt.Fprintf(out, "artifact %s\n", a.Path)
	}
	for _, key := range slices.Sorted(maps.Keys(run.Metrics)) {
		fmt.Fprintf(out, "%s:", key)
		for _, p := range run.Metrics[key] {
			fmt.Fprintf(out, " %d@%d=%v", p.Step, p.Timestamp, p.Value)
		}
		fmt.Fprintln(out)
	}
}
