package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// These tests check the documents against the program: lists match the code, commands run, links resolve, and the
// schema describes the reports.

const (
	readme     = "../../README.md"
	optionsDoc = "../../docs/options.md"
	metricsDoc = "../../docs/metrics.md"
	mlflowDoc  = "../../docs/mlflow.md"
	schemaFile = "../../" + reportertest.SchemaFile
	// blockLimit is the time limit of a block of commands.
	blockLimit = 10 * time.Minute
)

// documents returns the Markdown files in the root of the repository, in docs and in docs/dev.
func documents(t *testing.T) []string {
	t.Helper()
	var docs []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/dev/*.md"} {
		matches, err := filepath.Glob(pattern)
		if err != nil || len(matches) == 0 {
			t.Fatalf("%s matches %d documents (%v), want at least one", pattern, len(matches), err)
		}
		docs = append(docs, matches...)
	}
	return docs
}

// docs/README.md lists every page.
func TestDocs_IndexHasEveryPage(t *testing.T) {
	t.Parallel()
	index := clitest.Read(t, "../../docs/README.md")
	for _, file := range documents(t) {
		name, isPage := strings.CutPrefix(file, "../../docs/")
		if isPage && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

// markedPart splits a document at <!-- name:begin --> and <!-- name:end -->.
func markedPart(t *testing.T, doc, name string) (before, part, after string) {
	t.Helper()
	before, rest, found := strings.Cut(doc, "<!-- "+name+":begin -->\n")
	part, after, ended := strings.Cut(rest, "<!-- "+name+":end -->")
	if !found || !ended {
		t.Fatalf("the document has no part marked %q", name)
	}
	return before, part, after
}

// The table in docs/metrics.md equals reporter.Metrics(). -update rewrites it.
func TestDocs_MetricTableEqualsMetrics(t *testing.T) {
	generatedPart(t, metricsDoc, "metrics", metricRows())
}

// The table in docs/mlflow.md lists the series of package pusher, with the units and keys of their columns.
func TestDocs_SeriesTableMatchesPusher(t *testing.T) {
	generatedPart(t, mlflowDoc, "series", seriesRows())
}

// The perfagent env example in docs/schedulers.md prints the output on the page, except the host name.
func TestDocs_EnvPrintsItsExample(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Slurm's variables: run the tests on Linux")
	}
	const page = "../../docs/schedulers.md"
	cmd := exec.CommandContext(t.Context(), "sh", "-c", fenced(t, page, "sh")[0].text)
	cmd.Env = []string{"PATH=" + filepath.Dir(clitest.Binary(t)) + ":" + os.Getenv("PATH")}
	out, err := cmd.Output()
	host := regexp.MustCompile(`(?m)^node name .*$`)
	want := host.ReplaceAllString(fenced(t, page, "text")[0].text, "")
	if diff := cmp.Diff(want, host.ReplaceAllString(string(out), "")); err != nil || diff != "" {
		t.Errorf("perfagent env (-page +printed): %v\n%s", err, diff)
	}
}

// The manifest in docs/kubernetes.md is part of deploy/kubernetes/job.yaml.
func TestDocs_ManifestIsPartOfJobYAML(t *testing.T) {
	manifest := clitest.Read(t, "../../deploy/kubernetes/job.yaml")
	for line := range strings.Lines(fenced(t, "../../docs/kubernetes.md", "yaml")[0].text) {
		if !strings.Contains(manifest, "\n"+line) {
			t.Errorf("docs/kubernetes.md: deploy/kubernetes/job.yaml has no line %q", line)
		}
	}
}

// generatedPart compares a marked part of a document with want. -update rewrites it.
func generatedPart(t *testing.T, file, name, want string) {
	t.Helper()
	before, got, after := markedPart(t, clitest.Read(t, file), name)
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s: the part %q is not current (go test ./cmd/perfagent -run Docs -update rewrites it):\n%s", file, name, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
	}
	doc := before + "<!-- " + name + ":begin -->\n" + want + "<!-- " + name + ":end -->" + after
	clitest.Write(t, file, doc, 0o644)
}

func seriesRows() string {
	var out strings.Builder
	out.WriteString("| name | unit | key or meaning |\n|---|---|---|\n")
	row := func(name, unit, from string) { fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name, unit, from) }
	const megabytes = "MB (10^6 bytes)"
	units := map[collector.Unit]string{collector.Mebibytes: megabytes, collector.MebibytesPerSecond: "MB/s"}
	unit := func(u collector.Unit) string {
		if words, ok := units[u]; ok {
			return words
		}
		return string(u)
	}
	about := map[string][2]string{
		"network_receive_megabytes":  {megabytes, "`net_io_ext_recv_mb` + `net_io_lo_recv_mb`"},
		"network_transmit_megabytes": {megabytes, "`net_io_ext_sent_mb` + `net_io_lo_sent_mb`"},
	}
	for c := range collector.NumColumns {
		info := c.Info()
		about[info.MLflow] = [2]string{unit(info.Unit), "`" + info.Key + "`"}
	}
	all := pusher.AllSeries()
	for i, s := range all {
		if strings.HasSuffix(s.Name, "_max") {
			continue // in the row of the mean
		}
		name := s.Name
		if i+1 < len(all) && all[i+1].Name == s.Name+"_max" {
			name += "`, `…_max"
		}
		row(name, about[s.Name][0], about[s.Name][1])
	}

	whole := map[collector.Bound]string{collector.BoundDeviceMemory: "memory", collector.BoundDevicePower: "power limit"}
	for key := range collector.GPUKey(collector.NumGPUKeys) {
		info := key.Info()
		row(info.MLflow, unit(info.Unit), "`"+info.Key+"`")
		if info.MLflowShare != "" {
			row(info.MLflowShare, string(collector.Percent), "the same, as a share of the GPU's "+whole[info.Bound])
		}
	}
	for _, l := range reporter.TimelineKinds() {
		words := string(l.Unit)
		if words == "" {
			words = "the job's"
		}
		row(strings.TrimSuffix(string(l.Kind)+"/{name}/"+l.Number, "/"), words, l.Meaning)
	}
	return out.String()
}

// unitCell returns a unit for a table without the definition of MiB, which the page gives once.
func unitCell(u collector.Unit) string {
	return markdownCell.Replace(strings.TrimSuffix(string(u), " (2^20 bytes)"))
}

func metricRows() string {
	var out strings.Builder
	out.WriteString("| name | unit | meaning |\n|---|---|---|\n")
	for _, m := range allMetrics() {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", m.Name, unitCell(m.Unit), markdownCell.Replace(m.Meaning))
	}
	return out.String()
}

// The tables in docs/options.md list the flags of the commands. -update rewrites them.
func TestDocs_OptionTablesEqualFlags(t *testing.T) {
	s := streams{out: new(bytes.Buffer), err: new(bytes.Buffer)}
	record := []*cobra.Command{newRun(s), newAttach(s), newSidecar(s)}
	others := slices.DeleteFunc(newRoot(s, "").Commands(), func(c *cobra.Command) bool {
		return c.Hidden || slices.ContainsFunc(record, func(r *cobra.Command) bool { return r.Name() == c.Name() })
	})
	generatedPart(t, optionsDoc, "options", optionRows(record))
	generatedPart(t, optionsDoc, "others", optionRows(others))
}

// optionRows returns a table of the flags of the given commands. Identical flags share one row.
func optionRows(commands []*cobra.Command) string {
	var flags []string
	of := make(map[string][]string) // commands by flag
	for _, cmd := range commands {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			cells := optionCells(f)
			if f.Hidden || f.Name == "help" {
				return
			}
			if of[cells] == nil {
				flags = append(flags, cells)
			}
			of[cells] = append(of[cells], "`"+cmd.Name()+"`")
		})
	}
	var out strings.Builder
	out.WriteString("| command | flag | variable | default | meaning |\n|---|---|---|---|---|\n")
	for _, cells := range flags {
		only := strings.Join(of[cells], ", ")
		if len(of[cells]) == len(commands) {
			only = "all"
		}
		fmt.Fprintf(&out, "| %s | %s |\n", only, cells)
	}
	return out.String()
}

var usageVariable = regexp.MustCompile(` \[\$(\w+)\]`)

// optionCells returns the cells of a flag: its names, variable, default and meaning.
func optionCells(f *pflag.Flag) string {
	entry, meaning, details := flagEntry(f)
	_, name, _ := strings.Cut(entry, "--")
	name, usage := "`--"+name+"`", meaning+details
	if f.Shorthand != "" {
		name += ", `-" + f.Shorthand + "`"
	}
	variable, def := "", strings.Trim(f.DefValue, "[]")
	if m := usageVariable.FindStringSubmatch(usage); m != nil {
		variable = "`" + m[1] + "`"
	}
	if slices.Contains([]string{"", "0", "0s", "false"}, def) {
		def = ""
	} else {
		def = "`" + def + "`"
	}
	usage = usageVariable.ReplaceAllString(usage, "")
	return strings.Join([]string{name, variable, def, markdownCell.Replace(usage)}, " | ")
}

// markdownCell escapes text for a cell of a Markdown table.
var markdownCell = strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", `\<`)

// block is a fenced block of a document.
type block struct {
	line     int // number of its first line
	language string
	text     string
}

// blocks returns the fenced blocks of doc.
func blocks(doc string) []block {
	var out []block
	inside, number := false, 0
	for line := range strings.Lines(doc) {
		number++
		fence, isFence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case isFence && !inside:
			out = append(out, block{number + 1, fence, ""})
			inside = true
		case isFence:
			inside = false
		case inside:
			out[len(out)-1].text += line
		}
	}
	return out
}

// Every block that is fenced as sh runs without an error, with perfagent on PATH. All blocks of a document run in one
// new directory. For a line "make TARGET", the test only checks that the Makefile has the target. Blocks that must not
// be run are fenced as console or text. TestDocs_MLflowCommandsRun runs blocks fenced as "sh mlflow", and
// TestStore_S3CommandsOfTheDocsWork runs "sh s3".
func TestDocs_CommandsRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the documents' commands are for sh: run the tests on Linux or macOS")
	}
	t.Parallel()
	targets := makeTargets(t)
	path := filepath.Dir(clitest.Binary(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
	for _, file := range documents(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			dir, home := t.TempDir(), t.TempDir()
			for _, b := range blocks(clitest.Read(t, file)) {
				if b.language != "sh" {
					continue
				}
				script := withoutMake(t, b, targets)
				runBlock(t, b.line, script, dir, "PATH="+path, "HOME="+home, "TMPDIR="+home)
			}
		})
	}
}

// runBlock runs a script in dir. line is the number of its first line in the document.
func runBlock(t *testing.T, line int, script, dir string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), blockLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", script)
	cmd.Dir, cmd.WaitDelay = dir, blockLimit // a job that survives perfagent keeps the pipe open
	cmd.Env = append(env, "TERM=dumb", "LC_ALL=C.UTF-8", clitest.Patiently)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("not finished within %v", blockLimit)
	}
	if err != nil {
		t.Errorf("block at line %d failed: %v\n%s\n%s", line, err, script, out)
	}
}

// documentedServer is the address of the MLflow server in the documents.
const documentedServer = "http://127.0.0.1:5000"

// Every block that is fenced as "sh mlflow" runs without an error in a new directory, with a real server. The first
// Python block of docs/mlflow.md is train.py. Afterwards, the server has a run for each report, and reports with the
// same run ID share one run.
func TestDocs_MLflowCommandsRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the documents' commands are for sh: run the tests on Linux or macOS")
	}
	t.Parallel()
	path := filepath.Dir(clitest.Binary(t))
	s := mlflowServers.Get(t, mlflowtest.Options{})
	path += string(os.PathListSeparator) + filepath.Dir(s.Python) + string(os.PathListSeparator) + os.Getenv("PATH")
	script := fenced(t, mlflowDoc, "python")[0].text
	for _, b := range fenced(t, mlflowDoc, "sh mlflow") {
		t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
			t.Parallel()
			dir, home := t.TempDir(), t.TempDir()
			clitest.Write(t, filepath.Join(dir, "train.py"), script, 0o644)
			runBlock(t, b.line, withServer(s, b.text), dir, "PATH="+path, "HOME="+home, "TMPDIR="+home, "MLFLOW_TRACKING_URI="+s.URL,
				"MLFLOW_DISABLE_TELEMETRY=true", "DO_NOT_TRACK=true", "PYTHONWARNINGS=ignore", "GIT_PYTHON_REFRESH=quiet")
			wantDocumentedRuns(t, s, dir)
		})
	}
}

// fenced returns the blocks of file that are fenced as language. There must be at least one.
func fenced(t *testing.T, file, language string) []block {
	t.Helper()
	all := blocks(clitest.Read(t, file))
	all = slices.DeleteFunc(all, func(b block) bool { return b.language != language })
	if len(all) == 0 {
		t.Fatalf("%s: no block is fenced as %s, want at least one", file, language)
	}
	return all
}

// withServer replaces the address of the server in text with the address of s, removes the installation of MLflow, and
// makes the job of node 1 run until node 0 has pushed.
func withServer(s *mlflowtest.Server, text string) string {
	text = regexp.MustCompile(`(?m)^pip install mlflow .*\n`).ReplaceAllString(text, "")
	// Node 1 waits a limited time for node 0's run, which takes longer on a busy machine.
	text = strings.ReplaceAll(text, "sleep 6 &", `sh -c 'until grep -qs "\"done\"" perfagent-out/pair/node-0.json; do sleep 0.1; done' &`)
	return strings.ReplaceAll(text, documentedServer, s.URL)
}

// wantDocumentedRuns checks that the server has a run for each report below dir, with enough points for a line in the
// charts.
func wantDocumentedRuns(t *testing.T, s *mlflowtest.Server, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "perfagent-out", "*", "node-*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("reports in %s: %d (%v), want at least one", dir, len(files), err)
	}
	runs := make(map[string]string) // by perfagent's run ID
	for _, file := range files {
		r, err := reportfile.Read(file, 0)
		check.Must(t, err)
		node := r.NodeNames()[0]
		state := r.Nodes[node].Push.MLflow
		if state.State != reporter.PushDone || state.URI != s.URL {
			t.Errorf("%s: push state %+v, want done, to %s", file, state, s.URL)
			continue
		}
		if run := runs[r.Run.ID]; run != "" && run != state.RunID {
			t.Errorf("%s: pushed to run %s, want %s, the run of another node", file, state.RunID, run)
		}
		runs[r.Run.ID] = state.RunID
		line := s.ReadBack(t, state.RunID).Metrics["system/"+node+"/system_memory_usage_percentage"]
		if r.Run.WallSeconds >= 1 && r.Nodes[node].Samples.Len() > 1 && (len(line) < 2 || line[len(line)-1].Step < 1) {
			t.Errorf("%s: the chart has the points %v, want at least 2 for a line", file, line)
		}
	}
}

// docs/mlflow.md lists exactly the MLflow variables that perfagent reads, and all tags that perfagent sets.
func TestDocs_MLflowListsVariablesAndTags(t *testing.T) {
	doc := clitest.Read(t, mlflowDoc)
	_, table, _ := markedPart(t, doc, "variables")
	var want, got []string
	for _, file := range []string{"../../mlflow/config.go", "../../agent/tracking.go", "../../agent/pusher/group.go", "push.go"} {
		for _, m := range regexp.MustCompile(`"(MLFLOW_[A-Z0-9_]+)"`).FindAllStringSubmatch(clitest.Read(t, file), -1) {
			want = append(want, m[1])
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(MLFLOW_[A-Z0-9_]+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("variables of docs/mlflow.md (-code +table):\n%s", diff)
	}
	tags := regexp.MustCompile(`(?m)^\t[Tt]ag\w+ += "([a-z_.]+)"`).FindAllStringSubmatch(clitest.Read(t, "../../agent/pusher/tags.go"), -1)
	if len(tags) == 0 {
		t.Error("no tags found in agent/pusher/tags.go, want the tags that docs/mlflow.md names")
	}
	for _, m := range tags {
		if !strings.Contains(doc, "`"+m[1]) {
			t.Errorf("docs/mlflow.md does not name the tag %s", m[1])
		}
	}
}

var makeLine = regexp.MustCompile(`^make((?: [a-z]+)+)`)

// withoutMake returns the commands of b without prompts and calls of make. It checks that the Makefile has the targets
// of these calls.
func withoutMake(t *testing.T, b block, targets []string) string {
	t.Helper()
	var script strings.Builder
	for line := range strings.Lines(b.text) {
		line = strings.TrimPrefix(line, "$ ")
		m := makeLine.FindStringSubmatch(line)
		if m == nil {
			script.WriteString(line)
			continue
		}
		for _, target := range strings.Fields(m[1]) {
			if !slices.Contains(targets, target) {
				t.Errorf("line %d: make %s: the Makefile has no such target", b.line, target)
			}
		}
	}
	return script.String()
}

func makeTargets(t *testing.T) []string {
	t.Helper()
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(clitest.Read(t, "../../Makefile"), -1) {
		targets = append(targets, m[1])
	}
	return targets
}

// Every target in the documents, written as `make TARGET`, exists.
func TestDocs_MakeTargetsExist(t *testing.T) {
	targets := makeTargets(t)
	eachMatch(t, "`make ([a-z0-9-]+)", func(file, target string) {
		if !slices.Contains(targets, target) {
			t.Errorf("%s: make %s: the Makefile has no such target", file, target)
		}
	})
}

// eachMatch calls visit with the first group of each match in a document.
func eachMatch(t *testing.T, expression string, visit func(file, found string)) {
	t.Helper()
	re := regexp.MustCompile(expression)
	for _, file := range documents(t) {
		for _, m := range re.FindAllStringSubmatch(clitest.Read(t, file), -1) {
			visit(file, m[1])
		}
	}
}

// Relative links point to files of the project, and anchors point to headings.
func TestDocs_LinksPointToFilesAndHeadings(t *testing.T) {
	eachMatch(t, `\]\(([^)\s]+)\)`, func(file, link string) {
		u, err := url.Parse(link)
		if err != nil {
			t.Errorf("%s: link %s is not a URL: %v", file, link, err)
		}
		if err != nil || u.Scheme != "" {
			return
		}
		to := file
		if u.Path != "" {
			to = filepath.Join(filepath.Dir(file), filepath.FromSlash(u.Path))
		}
		if _, err := os.Stat(to); err != nil {
			t.Errorf("%s: link %s points to no file: %v", file, link, err)
		} else if u.Fragment != "" && !slices.Contains(anchors(clitest.Read(t, to)), u.Fragment) {
			t.Errorf("%s: link %s points to no heading of %s", file, link, to)
		}
	})
}

// anchors returns the anchors of the headings in doc.
func anchors(doc string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(doc, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}

// Project files that the documents name in backquotes exist.
func TestDocs_NamedFilesExist(t *testing.T) {
	const folders = `agent|cmd|collector|docs|e2e|internal|job|mlflow|opstats|plotter|reporter|scripts|store|testdata`
	eachMatch(t, "`((?:"+folders+")/[A-Za-z0-9_./-]*)`", func(file, name string) {
		if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
			t.Errorf("%s names a file that does not exist: %v", file, err)
		}
	})
}

// The benchmarks that docs/dev/performance.md names exist in the given packages.
func TestDocs_NamedBenchmarksExist(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `(Benchmark\\w+)` \\| `([a-z0-9/]+)` \\|")
	rows := row.FindAllStringSubmatch(clitest.Read(t, "../../docs/dev/performance.md"), -1)
	if len(rows) == 0 {
		t.Error("docs/dev/performance.md names no benchmark")
	}
	for _, m := range rows {
		files, _ := filepath.Glob(filepath.Join("../..", m[2], "*_test.go"))
		if !slices.ContainsFunc(files, func(file string) bool {
			return strings.Contains(clitest.Read(t, file), "func "+m[1]+"(b *testing.B)")
		}) {
			t.Errorf("docs/dev/performance.md: package %s has no benchmark %s", m[2], m[1])
		}
	}
}

// README.md states the same costs as the table that make floor writes.
func TestDocs_ReadmeCostsMatchMakeFloor(t *testing.T) {
	text := clitest.Read(t, readme)
	for label, unit := range map[string]string{
		"added to `true`, median of 100, ms": "ms", "CPU time used by sampling at 1 Hz, ms/s": "ms of CPU time a second",
	} {
		_, row, found := strings.Cut(clitest.Read(t, "../../docs/dev/performance.md"), "\n| "+label+" |")
		cells := strings.Split(row, " | ")
		if !found || len(cells) < 7 {
			t.Fatalf("docs/dev/performance.md has no row %q", label)
		}
		if want := cells[6] + " " + unit; !strings.Contains(text, want) {
			t.Errorf("README.md lacks %q, the value of the row %q in docs/dev/performance.md", want, label)
		}
	}
}

// docs/dev/dependencies.md lists each direct dependency of the program and of scripts/dist, with its version in go.mod.
func TestDocs_DependenciesAreComplete(t *testing.T) {
	doc := clitest.Read(t, "../../docs/dev/dependencies.md")
	requirement := regexp.MustCompile(`(?m)^\s(\S+) (v\S+)( // indirect)?$`)
	modules := clitest.Read(t, "../../go.mod") + clitest.Read(t, "../../scripts/dist/go.mod")
	for _, m := range requirement.FindAllStringSubmatch(modules, -1) {
		if m[3] == "" && !strings.Contains(doc, "| `"+m[1]+"` | "+m[2]+" |") {
			t.Errorf("docs/dev/dependencies.md has no row for %s %s", m[1], m[2])
		}
	}
	tools := clitest.Read(t, "../../scripts/lint.sh") + clitest.Read(t, "../../scripts/requirements.txt")
	for _, m := range regexp.MustCompile(`(?m)(?:^version|==)=?([0-9.]+)$`).FindAllStringSubmatch(tools, -1) {
		if !strings.Contains(doc, "| "+m[1]+" |") {
			t.Errorf("docs/dev/dependencies.md has no row for a tool of version %s", m[1])
		}
	}
	pythonRows(t, doc)
}

// pythonRows checks the table of Python packages. It must list the installed versions of mlflow, mlflow-skinny and
// psutil, and no versions that are not installed.
func pythonRows(t *testing.T, doc string) {
	t.Helper()
	files, err := filepath.Glob("../../scripts/requirements*.txt")
	if err != nil || len(files) < 3 {
		t.Fatalf("Python requirements files: %q (%v), want at least 3", files, err)
	}
	installed := make(map[string][]string)
	for _, file := range files {
		for line := range strings.Lines(clitest.Read(t, file)) {
			name, version, _ := strings.Cut(strings.TrimSpace(line), "==")
			installed[name] = append(installed[name], version)
		}
	}
	_, table, _ := markedPart(t, doc, "python")
	rows := make(map[string]string)
	for _, m := range regexp.MustCompile("(?m)^\\| `([\\w-]+)` \\| ([0-9., ]+) \\|").FindAllStringSubmatch(table, -1) {
		rows[m[1]] = m[2]
		for version := range strings.SplitSeq(m[2], ", ") {
			if !slices.Contains(installed[m[1]], version) {
				t.Errorf("docs/dev/dependencies.md: %s %s is not required by %q", m[1], version, files)
			}
		}
	}
	for _, name := range []string{"mlflow", "mlflow-skinny", "psutil"} {
		for _, version := range installed[name] {
			if !slices.Contains(strings.Split(rows[name], ", "), version) {
				t.Errorf("docs/dev/dependencies.md has no row for %s %s", name, version)
			}
		}
	}
}

// schemaDocument returns the decoded schema.
func schemaDocument(t testing.TB) map[string]any {
	t.Helper()
	var doc map[string]any
	check.Must(t, json.Unmarshal([]byte(clitest.Read(t, schemaFile)), &doc))
	return doc
}

// part returns the object at a path of keys.
func part(t *testing.T, doc map[string]any, path ...string) map[string]any {
	t.Helper()
	for _, key := range path {
		next, ok := doc[key].(map[string]any)
		if !ok {
			t.Fatalf("the schema has no key %s in the path %v", key, path)
		}
		doc = next
	}
	return doc
}

// The schema lists exactly the keys of the report's types, metrics and samples, with a unit for each metric and sample.
// docs/report.md names the keys of the types, too.
func TestSchema_ListsTheKeysOfReports(t *testing.T) {
	doc, tree := schemaDocument(t), clitest.Read(t, "../../docs/report.md")
	node := part(t, doc, "$defs", "node", "properties")
	for _, test := range []struct {
		of    any
		where map[string]any
	}{
		{reporter.Report{}, doc},
		{reporter.Run{}, part(t, doc, "properties", "run")},
		{reporter.Node{}, part(t, doc, "$defs", "node")},
		{reporter.Host{}, part(t, node, "host")},
		{reporter.Sampling{}, part(t, node, "sampling")},
		{reporter.ClockEvent{}, part(t, node, "sampling", "properties", "clock_steps", "items")},
		{reporter.ClockEvent{}, part(t, node, "sampling", "properties", "suspends", "items")},
		{reporter.Agent{}, part(t, node, "agent")},
		{reporter.Job{}, part(t, node, "job")},
		{reporter.Limits{}, part(t, node, "limits")},
		{reporter.GPU{}, part(t, node, "gpus", "items")},
		{reporter.Verdict{}, part(t, doc, "$defs", "verdict")},
		{reporter.Finding{}, part(t, doc, "$defs", "finding")},
		{reporter.Missing{}, part(t, node, "missing", "items")},
		{reporter.Push{}, part(t, node, "push")},
		{reporter.PushState{}, part(t, node, "push", "properties", "mlflow")},
		{reporter.Summary{}, part(t, doc, "$defs", "percentSummary")},
		{reporter.Band{}, part(t, doc, "$defs", "band")},
		{reporter.Band{}, part(t, doc, "$defs", "percentBand")},
	} {
		var want []string
		typ := reflect.TypeOf(test.of)
		for i := range typ.NumField() {
			key, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			want = append(want, key)
			if !regexp.MustCompile(`\b` + key + `\b`).MatchString(tree) {
				t.Errorf("docs/report.md does not name %s of %s", key, typ)
			}
		}
		wantKeys(t, typ.String(), want, part(t, test.where, "properties"))
	}
	var metrics, samples, envelope []string
	units := make(map[string]string)
	for _, m := range reporter.Metrics() {
		metrics = append(metrics, m.Name)
		units[m.Name] = string(m.Unit)
	}
	for c := range collector.NumColumns {
		envelope = append(envelope, c.Key())
		units[c.Key()] = strings.TrimSuffix(string(c.Info().Unit), " (2^20 bytes)")
		if !c.Info().EnvelopeOnly {
			samples = append(samples, c.Key())
		}
	}
	rows := part(t, node, "samples", "items", "properties")
	wantKeys(t, "metrics", metrics, part(t, node, "metrics", "properties"))
	wantKeys(t, "samples", samples, rows)
	wantKeys(t, "envelope", envelope, part(t, node, "envelope", "properties"))
	for _, props := range []map[string]any{part(t, node, "metrics", "properties"), rows, part(t, node, "envelope", "properties")} {
		for key := range props {
			if text, _ := part(t, props, key)["description"].(string); !strings.Contains(text, "Unit: "+units[key]) {
				t.Errorf("%s: the description lacks the unit %s: %s", key, units[key], text)
			}
		}
	}
}

func wantKeys(t *testing.T, what string, want []string, props map[string]any) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(props))); diff != "" {
		t.Errorf("keys of %s (-code +schema):\n%s", what, diff)
	}
}

// Every property has a description.
func TestSchema_EveryPropertyHasDescription(t *testing.T) {
	eachObject(schemaDocument(t), func(object map[string]any) {
		props, _ := object["properties"].(map[string]any)
		for key, value := range props {
			if property, ok := value.(map[string]any); !ok || property["description"] == nil {
				t.Errorf("property %s has no description", key)
			}
		}
	})
}

// eachObject visits all objects of a JSON value.
func eachObject(value any, visit func(map[string]any)) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			eachObject(item, visit)
		}
	case map[string]any:
		visit(v)
		for _, item := range v {
			eachObject(item, visit)
		}
	}
}

// strictSchema is the schema, changed to reject unknown keys.
var strictSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	data, err := os.ReadFile(schemaFile)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	eachObject(doc, func(object map[string]any) {
		if _, ok := object["properties"].(map[string]any); ok {
			object["additionalProperties"] = false
		}
	})
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("strict.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("strict.json")
})

// validFile checks a report against the schema and against strictSchema. It also checks that the envelope is as long as
// the samples.
func validFile(t *testing.T, path string) {
	t.Helper()
	data := []byte(clitest.Read(t, path))
	reportertest.Validate(t, data)
	strict, err := strictSchema()
	check.Must(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if err := strict.Validate(doc); err != nil {
		t.Errorf("%s has keys that the schema does not describe: %v", path, err)
	}
	r, err := reportfile.Read(path, 0)
	check.Must(t, err)
	for name, n := range r.Nodes {
		for key, band := range n.Envelope {
			if all := n.Samples.Len(); len(band.Min) != all || len(band.Mean) != all || len(band.Max) != all {
				t.Errorf("%s: node %s: the envelope of %s is not as long as the %d samples", path, name, key, all)
			}
		}
	}
}

// documented runs perfagent in dir, with a minimal environment.
type documented struct {
	t   *testing.T
	dir string
}

func (d documented) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(d.t.Context(), clitest.Binary(d.t), args...)
	cmd.Dir, cmd.WaitDelay = d.dir, clitest.Longest
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.dir, "TMPDIR=" + d.dir}
	return cmd
}

// run runs perfagent, checks its exit code and returns its stdout.
func (d documented) run(code int, args ...string) string {
	d.t.Helper()
	cmd := d.command(args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		d.t.Fatalf("perfagent %v: %v, want exit code %d\n%s", args, err, code, stderr.String())
	}
	return out.String()
}

// start starts perfagent and waits until it has written a sample to file.
func (d documented) start(file string, args ...string) *exec.Cmd {
	d.t.Helper()
	cmd := d.command(args...)
	check.Must(d.t, cmd.Start())
	d.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	clitest.WaitUntil(d.t, file+" has a sample", func() bool { return fileHas(d.path(file), `"sample`) })
	return cmd
}

func (d documented) path(name string) string { return filepath.Join(d.dir, name) }

// The reports that the binary writes match the schema.
func TestSchema_AcceptsReportsOfTheBinary(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs signals and sh: run the tests on Linux or macOS")
	}
	d := documented{t, t.TempDir()}

	d.run(0, "run", "--run-id", "j", "--tag", "a=b", "--interval", "20ms", "--", "sleep", "0.3")
	validFile(t, d.path("perfagent-out/j/node-0.json"))
	d.run(7, "run", "--run-id", "j", "--", "sh", "-c", "exit 7")
	validFile(t, d.path("perfagent-out/j/node-0.2.json"))
	d.run(137, "run", "--run-id", "j", "--", "sh", "-c", "kill -9 $$")
	validFile(t, d.path("perfagent-out/j/node-0.3.json"))
	// This report has merged samples, because the run took more than --max-length samples.
	d.run(0, "run", "--run-id", "j", "--node", "4", "--max-length", "4", "--interval", "10ms", "--", "sleep", "0.3")
	validFile(t, d.path("perfagent-out/j/node-4.json"))

	// If the output directory cannot be made, the report is written to the temporary directory and contains the reason.
	clitest.Write(t, d.path("file"), "", 0o644)
	d.run(0, "run", "--out", "file/out", "--", "true")
	elsewhere, err := filepath.Glob(d.path("perfagent-[0-9]*/node-0.json"))
	if err != nil || len(elsewhere) != 1 {
		t.Fatalf("reports in the temporary directory: %q, want one", elsewhere)
	}
	validFile(t, elsewhere[0])

	// The report of a sidecar, while the sidecar runs and after it has ended.
	sidecar := d.start("perfagent-out/j/node-1.json", "sidecar", "--run-id", "j", "--node", "1", "--interval", "20ms")
	validFile(t, d.path("perfagent-out/j/node-1.json"))
	check.Must(t, sidecar.Process.Signal(syscall.SIGTERM))
	check.Must(t, sidecar.Wait())
	validFile(t, d.path("perfagent-out/j/node-1.json"))

	// A journal left by a killed perfagent, perf.py's JSON, and all nodes merged.
	journal := "perfagent-out/j/node-2.jsonl"
	killed := d.start(journal, "run", "--run-id", "j", "--node", "2", "--interval", "20ms", "--", "sleep", "60")
	check.Must(t, killed.Process.Kill())
	_ = killed.Wait()
	if out := d.run(0, "show", "--json", journal); !json.Valid([]byte(out)) {
		t.Errorf("show --json of a journal prints no valid JSON: %s", out)
	}
	d.run(0, "run", "--run-id", "p", "--node", "3", "--compat", "perf.py", "--interval", "20ms", "--", "sleep", "0.2")
	d.run(0, "merge", "perfagent-out/j/node-0.json", "perfagent-out/j/node-1.json", journal, "perfagent-out/j/node-4.json",
		"perfagent-out/p/node-3.json", "--cpus", "8", "--to", "all.json")
	validFile(t, d.path("all.json"))
	merged, err := reportfile.Read(d.path("all.json"), 0)
	check.Must(t, err)
	if got := merged.NodeNames(); !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) {
		t.Errorf("nodes of the merged report = %q, want 0 to 4", got)
	}
}

// The schema rejects invalid reports.
func TestSchema_RejectsInvalidReports(t *testing.T) {
	schema := reportertest.Schema(t)
	run := `"run":{"id":"a","start":"2026-01-31T12:00:00.5Z","end":"2026-01-31T12:00:01.5Z","wall_seconds":1}`
	node := `"metrics":{},"samples":[],"missing":[],"origin":"perf.py"`
	good := `{"schema":"perfagent.report/1",` + run + `,"nodes":{"0":{` + node + `,"later":1}}}`
	for _, test := range []struct{ name, old, new string }{
		{"valid report", "", ""},
		{"newer major schema", "report/1", "report/2"},
		{"no nodes", `"0":{` + node + `,"later":1}`, ""},
		{"node that is not an index", `"0":`, `"node-0":`},
		{"local time", "12:00:00.5Z", "12:00:00.5+01:00"},
		{"time without fraction", "12:00:00.5Z", "12:00:00Z"},
		{"negative wall time", `"wall_seconds":1`, `"wall_seconds":-1`},
		{"signal without exit code", `"wall_seconds":1`, `"wall_seconds":1,"signal":"SIGKILL"`},
		{"percent above 100", `"metrics":{}`, `"metrics":{"max_t_mem_percent":100.1}`},
		{"metric that is not a number", `"metrics":{}`, `"metrics":{"new":"1"}`},
		{"negative counter", `"samples":[]`, `"samples":[{"disk_io_read_mb":-1}]`},
		{"null in a sample", `"samples":[]`, `"samples":[{"mem_percent":null}]`},
		{"null for missing", `"missing":[]`, `"missing":null`},
		{"missing without reason", `"missing":[]`, `"missing":[{"what":"cpu"}]`},
		{"unknown state of a push", `"later":1`, `"push":{"mlflow":{"state":"lost"}}`},
		{"perfagent's node without a host", `,"origin":"perf.py"`, ""},
	} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(good, test.old, test.new, 1)))
		if err != nil {
			t.Fatalf("%s: the changed report is not JSON: %v", test.name, err)
		}
		if err := schema.Validate(doc); (err == nil) != (test.old == "") {
			t.Errorf("%s: Validate returns %v, want an error for a changed report and none for the valid one",
				test.name, err)
		}
	}
}

// The table of keys in docs/report.md lists the columns of the samples.
func TestDocs_SampleKeysEqualColumns(t *testing.T) {
	const rate = "_per_second" // in the row of the counter
	columns := make(map[string]bool)
	for c := range collector.NumColumns {
		columns[c.Key()] = true
	}
	var out strings.Builder
	out.WriteString("| key | unit | meaning |\n|---|---|---|\n")
	row := func(c collector.ColumnInfo) {
		name, unit := c.Key, unitCell(c.Unit)
		if columns[name+rate] {
			name, unit = name+"`, `…"+rate, unit+", "+unit+"/s"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name, unit, markdownCell.Replace(c.Label))
	}
	for c := range collector.NumColumns {
		if counter, found := strings.CutSuffix(c.Key(), rate); c != collector.Timestamp && (!found || !columns[counter]) {
			row(c.Info())
		}
	}
	for k := range collector.GPUKey(collector.NumGPUKeys) {
		row(k.Info())
	}
	generatedPart(t, "../../docs/report.md", "keys", out.String())
}
