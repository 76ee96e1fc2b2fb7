package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// Tests of the pages next to reports, and of perfagent plot. The content and behavior of pages is tested in package
// plotter and in a real browser.

// plotPages returns the pages of all runs in OUT, sorted, relative to OUT.
func plotPages(t testing.TB, out string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(out, "*", "*.html"))
	check.Must(t, err)
	for i, p := range paths {
		paths[i], _ = filepath.Rel(out, p) // it is below out
	}
	return paths
}

// plotWhole checks that a file is a complete page with the metrics of a node.
func plotWhole(t testing.TB, page string, n *reporter.Node) {
	t.Helper()
	data := clitest.Read(t, page)
	if !strings.HasPrefix(data, "<!DOCTYPE html>") || !strings.HasSuffix(data, "</html>\n") {
		t.Fatalf("%s is not a whole page: %.60q … %.60q", page, data, data[max(0, len(data)-60):])
	}
	for name, v := range n.Metrics {
		want := fmt.Sprintf(`data-metric="%s" data-value="%s"`, name, strconv.FormatFloat(v, 'f', -1, 64))
		if !strings.HasPrefix(name, "boot_") && !strings.Contains(data, want) { // boot_… is only in the report
			t.Errorf("page %s lacks %s", page, want)
		}
	}
}

func TestRun_WritesPageNextToReport(t *testing.T) {
	cmd := insideCommand(t, "run", "--run-id", "r", "--summary", "always", "--", "sh", "-c", "echo '<b>'; exit 3")
	o := cmd.want(t, 3)
	out := filepath.Join(o.Dir, "perfagent-out")
	report, path := reportertest.ReadSingle(t, out)
	page := filepath.Join(out, "r", "node-0.html")
	plotWhole(t, page, report.Nodes["0"])
	if words := strings.Join(strings.Fields(o.Err), " "); !strings.Contains(words, " report "+page+" details ") {
		t.Errorf("the summary lacks the path of the page %s:\n%s", page, o.Err)
	}
	wantContains(t, clitest.Read(t, page), "echo &#39;&lt;b&gt;&#39;; exit 3", "Failed (exit 3)")
	if st, err := os.Stat(page); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("mode of the page %v (%v), want 0644", st.Mode(), err)
	}

	// A second recording of the same name gets a second page.
	insideIn(t, o.Dir, "run", "--run-id", "r", "--no-page=false", "--", "true").Want(t, 0)
	second := reportertest.ReadFile(t, filepath.Join(out, "r", "node-0.2.json"))
	plotWhole(t, filepath.Join(out, "r", "node-0.2.html"), second.Nodes["0"])
	plotWhole(t, page, report.Nodes["0"])
	if got := plotPages(t, out); !slices.Equal(got, []string{"r/node-0.2.html", "r/node-0.html"}) {
		t.Errorf("pages %q, want r/node-0.2.html and r/node-0.html", got)
	}
	// plot draws the same page from the report.
	o = wantInside(t, 0, "plot", path, "--to", "again.html")
	wantSilence(t, o)
	plotWhole(t, filepath.Join(o.Dir, "again.html"), report.Nodes["0"])
}

// A run has a report even if its page is disabled.
func TestRun_WritesPageUnlessDisabled(t *testing.T) {
	for _, c := range []struct {
		flags []string
		env   string
		pages int
	}{
		{[]string{"--no-page"}, "", 0},
		{nil, "PERFAGENT_NO_PAGE=1", 0},
		{[]string{"--no-page=false"}, "PERFAGENT_NO_PAGE=1", 1},
		{[]string{"--no-page"}, "PERFAGENT_NO_PAGE=rubbish", 0},
		{nil, "PERFAGENT_NO_PAGE=", 1},
	} {
		cmd := insideCommand(t, append(append([]string{"run"}, c.flags...), "--summary", "always", "--", "sh", "-c", "exit 5")...)
		cmd.Env = append(cmd.Env, c.env)
		o := cmd.want(t, 5)
		o.Report(t)
		pages := plotPages(t, filepath.Join(o.Dir, "perfagent-out"))
		if len(pages) != c.pages || strings.Contains(o.Err, ".html") != (c.pages == 1) {
			t.Errorf("%v %s: pages %q, want %d, named in stderr:\n%s", c.flags, c.env, pages, c.pages, o.Err)
		}
	}
}

// A run of less than 2 s has a page only if it failed or --no-page=false was given. Otherwise show names the command
// that draws the page.
func TestRun_ShortRunHasPageOnlyIfItFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag, script string
		pages        int
	}{{"-i1", "true", 0}, {"--no-page=false", "true", 1}, {"-i1", "exit 3", 1}, {"-i1", "sleep 2", 1}, {"--no-page", "sleep 2", 0}} {
		var o clitest.Outcome
		for range 5 { // a busy machine may delay true by 2 s
			o = clitest.Run(t, "run", c.flag, "--summary", "always", "--", "sh", "-c", c.script)
			if c.script != "true" || o.Report(t).Run.WallSeconds < 2 {
				break
			}
		}
		pages := plotPages(t, filepath.Join(o.Dir, "perfagent-out"))
		const hint = "none below 2 s; perfagent plot REPORT --to FILE.html makes one"
		shown := call("show", "--out", filepath.Join(o.Dir, "perfagent-out"))
		if len(pages) != c.pages || strings.Contains(shown.Out, hint) != (c.script == "true" && c.pages == 0) {
			t.Errorf("%s, %s: pages %q, want %d; show:\n%s", c.flag, c.script, pages, c.pages, shown.Out)
		}
		if c.pages > 0 {
			continue
		}

		_, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
		page := filepath.Join(o.Dir, "page.html")
		clitest.Run(t, "plot", path, "--to", page).Want(t, 0)
		plotWhole(t, page, o.Report(t).Nodes["0"])
	}
}

func TestSidecar_RefreshesItsPage(t *testing.T) {
	t.Parallel()
	l := clitest.StartProcess(t, clitest.Perfagent(t, "sidecar", "--run-id", "r", "--interval", "20ms", "--no-page=false"))
	page := filepath.Join(l.Cmd.Dir, "perfagent-out", "r", "node-0.html")
	untilExists(t, page)
	wantContains(t, clitest.Read(t, page), "still running")
	l.Signal(unix.SIGTERM)
	o := mustEnd(l, 0)
	plotWhole(t, page, o.Report(t).Nodes["0"])
	if strings.Contains(clitest.Read(t, page), "still running") {
		t.Error("the page of an ended sidecar has \"still running\"")
	}
	if got := plotPages(t, filepath.Join(o.Dir, "perfagent-out")); len(got) != 1 {
		t.Errorf("pages %q, want one", got)
	}
}

// plotTwo writes reports of two nodes into a directory.
func plotTwo(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, node := range []int{0, 1} {
		name := strconv.Itoa(node)
		mustRun(t, node, "run", "--run-id", "r", "--node", name, "--no-page", "--out", dir, "--", "sh", "-c", "exit "+name)
	}
	return filepath.Join(dir, "r")
}

func TestMerge_WritesPageOfAllNodes(t *testing.T) {
	reports := plotTwo(t)
	one, two := filepath.Join(reports, "node-0.json"), filepath.Join(reports, "node-1.json")
	merge := func(dir string, args ...string) clitest.Outcome {
		return insideIn(t, dir, append([]string{"merge", one, two}, args...)...)
	}
	dir := t.TempDir()
	merge(dir, "--to", "job.json").Want(t, 0)
	merged := reportertest.ReadFile(t, filepath.Join(dir, "job.json"))
	plotWhole(t, filepath.Join(dir, "job.html"), merged.Nodes["0"])
	wantContains(t, clitest.Read(t, filepath.Join(dir, "job.html")), `data-node="1"`, `id="n1"`) // the charts and the row
	merge(dir, "--to", "only.json", "--no-page").Want(t, 0)
	merge(dir, "--to", "no-extension").Want(t, 0)
	expectFiles(t, dir, "job.html", "job.json", "no-extension", "no-extension.html", "only.json")

	// An existing file is not replaced, and no other file is written.
	for _, taken := range []string{"job.json", "job.html"} {
		dir := t.TempDir()
		clitest.Write(t, filepath.Join(dir, taken), "precious", 0o600)
		wantError(t, merge(dir, "--to", "job.json"), 1, taken, "--force")
		expectFiles(t, dir, taken)
		wantText(t, filepath.Join(dir, taken), "precious")
		if taken == "job.html" { // without a page there is no conflict
			merge(dir, "--to", "job.json", "--no-page").Want(t, 0)
		}
		merge(dir, "--to", "job.json", "--force").Want(t, 0)
		plotWhole(t, filepath.Join(dir, "job.html"), reportertest.ReadFile(t, filepath.Join(dir, "job.json")).Nodes["0"])
	}
	for value, pages := range map[string]bool{"1": false, "0": true, "": true} {
		t.Setenv("PERFAGENT_NO_PAGE", value)
		dir := t.TempDir()
		merge(dir, "--to", "job.json").Want(t, 0)
		if got := clitest.Exists(filepath.Join(dir, "job.html")); got != pages {
			t.Errorf("merge with PERFAGENT_NO_PAGE=%s: page exists: %v, want %v", value, got, pages)
		}
	}
	t.Setenv("PERFAGENT_NO_PAGE", "sometimes")
	merge(t.TempDir(), "--to", "job.json", "--no-page").Want(t, 0)
	wantError(t, merge(t.TempDir(), "--to", "job.json"), 1, "PERFAGENT_NO_PAGE", "sometimes")
}

// If the disk has room for the report but not for its page, one line reports that, and nothing else changes.
func TestRun_FullDiskPreventsOnlyPage(t *testing.T) {
	t.Parallel()
	out := clitest.Mount(t, "size=44k", 0)
	o := mustRun(t, 7, "run", "--summary", "never", "--out", out, "--run-id", "r", "--", "sh", "-c", "exit 7")
	_, path := reportertest.ReadSingle(t, out)
	o.WantLine(t, "no space", filepath.Join(out, "r", "node-0.html"))
	expectFiles(t, filepath.Dir(path), "node-0.json")
}

// An existing page is never overwritten: report and page get the next name.
func TestRun_ExistingPageIsNeverOverwritten(t *testing.T) {
	for _, directory := range []bool{false, true} {
		dir := t.TempDir()
		page := filepath.Join(dir, "perfagent-out/r/node-0.html")
		precious := page
		if directory {
			precious = filepath.Join(page, "file")
		}
		check.Must(t, os.MkdirAll(filepath.Dir(precious), 0o755))
		clitest.Write(t, precious, "precious", 0o600)
		wantSilence(t, wantInsideIn(t, dir, 7, "run", "--summary", "never", "--run-id", "r", "--", "sh", "-c", "exit 7"))
		second := filepath.Join(filepath.Dir(page), "node-0.2")
		plotWhole(t, second+".html", reportertest.ReadFile(t, second+".json").Nodes["0"])
		wantText(t, precious, "precious")
	}
}

// A file that is created at the page's path while the job runs is kept, and one line reports it.
func TestRun_PageWrittenByJobIsNotOverwritten(t *testing.T) {
	o := wantInside(t, 7, "run", "--summary", "never", "--run-id", "r", "--", "sh", "-c", "echo precious >perfagent-out/r/node-0.html; exit 7")
	o.WantLine(t, "perfagent-out/r/node-0.html", "exists")
	wantText(t, filepath.Join(o.Dir, "perfagent-out/r/node-0.html"), "precious\n")
	o.Report(t)
}

// The page of a perf.py file has the metrics of the file.
func TestPlot_PageOfPerfPyFileHasItsMetrics(t *testing.T) {
	o := wantInside(t, 0, "run", "--compat", "perf.py", "--run-id", "r", "--interval", "50ms", "--no-page=false", "--", "sleep", "0.3")
	dir := filepath.Join(o.Dir, "perfagent-out", "r")
	wantContains(t, clitest.Read(t, filepath.Join(dir, "node-0.html")), `data-metric="max_t_mem_percent" data-value="`)
	insideIn(t, dir, "plot", "node-0.json", "--cpus", "6", "--to", "again.html").Want(t, 0)
	wantContains(t, clitest.Read(t, filepath.Join(dir, "again.html")), `data-metric="node_cpu_hours" data-value="`)
}

func TestPlot_WritesSVGAndPNG(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU for its pictures")
	week := plottertest.WeekFile(t)
	plot := func(name string, args ...string) string {
		t.Helper()
		o := wantInside(t, 0, append([]string{"plot", week, "--to", name}, args...)...)
		wantSilence(t, o)
		expectFiles(t, o.Dir, name)
		return clitest.Read(t, filepath.Join(o.Dir, name))
	}
	svg, image := plot("picture.svg"), plot("picture.png")
	if svg != plot("picture.svg") || image != plot("picture.png") {
		t.Error("two runs of plot drew different pictures of the same report")
	}
	narrow := plot("picture.png", "--width", "1234", "--metric", "mem_used_mb", "--node", "0")
	for picture, width := range map[string]int{image: 800, narrow: 1234} {
		if c, err := png.DecodeConfig(strings.NewReader(picture)); err != nil || c.Width != width {
			t.Errorf("picture.png: %+v (%v), want a width of %d", c, err, width)
		}
	}
	metric := plot("picture.svg", "--metric", "disk_io_read_mb_per_second")
	if !strings.Contains(metric, ">disk_io_read_mb_per_second<") || strings.Contains(metric, "Memory") {
		t.Error("picture with --metric lacks its key, or has the chart Memory")
	}
	for _, picture := range []string{svg, metric} {
		check.Must(t, xml.Unmarshal([]byte(picture), new(struct{}))) // well-formed
		if !strings.HasSuffix(strings.TrimSpace(picture), "</svg>") {
			t.Error("the picture does not end with </svg>")
		}
	}
}

// An error of plot is one line with exit code 1, and leaves no file.
func TestPlot_ErrorLeavesNoFile(t *testing.T) {
	good := filepath.Join(plotTwo(t), "node-0.json")
	broken := clitest.Write(t, filepath.Join(t.TempDir(), "broken.json"), `{"schema":"perfagent.report/1","nodes":{`, 0o644)
	newer := clitest.Write(t, filepath.Join(t.TempDir(), "newer.json"), `{"schema":"perfagent.report/2","nodes":{}}`, 0o644)
	for _, c := range []struct {
		args  []string
		words []string
	}{
		{[]string{good, "--to", ""}, []string{"--to"}},
		{[]string{good, "--to", "x.gif"}, []string{"x.gif", ".svg"}},
		{[]string{good, "--to", "svg"}, []string{`"svg"`}},
		{[]string{good, "--to", "x\x1b.pdf"}, []string{`x\x1b.pdf`}},
		{[]string{good, "--to", "x.svg", "--node", "7"}, []string{"no node 7", good}},
		{[]string{good, "--to", "x.svg", "--node", "-1"}, []string{"--node"}},
		{[]string{good, "--to", "x.svg", "--node", "first"}, []string{"--node"}},
		{[]string{good, "--to", "x.svg", "--metric", "cpu"}, []string{`"cpu"`, "mem_percent"}},
		{[]string{good, "--to", "x.svg", "--metric", "timestamp"}, []string{"time axis"}},
		{[]string{good, "--to", "x.png", "--metric", "wall_seconds"}, []string{"wall_seconds"}},
		{[]string{good, "--to", "x.png", "--width", "299"}, []string{"--width", "300"}},
		{[]string{good, "--to", "x.png", "--width", "8001"}, []string{"--width", "8000"}},
		{[]string{good, "--to", "x.png", "--width", "wide"}, []string{"--width"}},
		{[]string{good, "--to", "x.png", "--cpus", "-1"}, []string{"--cpus"}},
		{[]string{good, "--to", "x.html", "--width", "900"}, []string{"shows all nodes"}},
		{[]string{good, "--to", "x.html", "--metric", "mem_percent"}, []string{"--metric"}},
		{[]string{good, "--to", "nowhere/x.svg"}, []string{"nowhere/x.svg cannot be written: there is no directory nowhere"}},
		{[]string{good, "--to", "nowhere/x.HTML"}, []string{"nowhere/x.HTML cannot be written: there is no directory nowhere"}},
		{[]string{good, "--to", "x.HTML", "--width", "900"}, []string{"shows all nodes"}},
		{[]string{broken, "--to", "x.html"}, []string{broken}},
		{[]string{broken, "--to", "x.svg"}, []string{broken}},
		{[]string{newer, "--to", "x.html"}, []string{newer, "newer perfagent"}},
		{[]string{"not-there.json", "--to", "x.html"}, []string{"not-there.json"}},
		{[]string{".", "--to", "x.png"}, []string{"no report under ."}},
		{[]string{"a", "b"}, []string{"one run", "perfagent diff"}},
	} {
		o := inside(t, append([]string{"plot"}, c.args...)...)
		wantError(t, o, 1, c.words...)
		expectFiles(t, o.Dir)
	}
}

// An existing file is replaced only with --force, and only if it is a regular file.
func TestPlot_ReplacesFileOnlyWithForce(t *testing.T) {
	good := filepath.Join(plotTwo(t), "node-0.json")
	for _, name := range []string{"x.html", "x.svg", "x.png"} {
		dir := t.TempDir()
		file := clitest.Write(t, filepath.Join(dir, name), "precious", 0o644)
		plot := []string{"plot", good, "--to", name, "--force"}
		wantError(t, insideIn(t, dir, plot[:4]...), 1, name, "--force")
		wantText(t, file, "precious")
		insideIn(t, dir, plot...).Want(t, 0)
		if text := clitest.Read(t, file); len(text) < 1000 {
			t.Errorf("%s is %.40q, want it replaced", name, text)
		}
		check.Must(t, errors.Join(os.Remove(file), os.Symlink(good, file)))
		wantError(t, insideIn(t, dir, plot...), 1, "regular file")
	}
	reportertest.ReadFile(t, good)
}

// A file extension in capitals also determines the format.
func TestPlot_AcceptsExtensionInCapitals(t *testing.T) {
	good := filepath.Join(plotTwo(t), "node-0.json")
	for name, begin := range map[string]string{"x.HTML": "<!DOCTYPE html>", "x.Svg": "<", "x.PNG": "\x89PNG"} {
		o := wantInside(t, 0, "plot", good, "--to", name)
		if text := clitest.Read(t, filepath.Join(o.Dir, name)); !strings.HasPrefix(text, begin) {
			t.Errorf("%s: %.40q, want a file that begins with %q", name, text, begin)
		}
	}
}

// plot never overwrites its input, even under another name.
func TestPlot_KeepsItsInput(t *testing.T) {
	text := clitest.Read(t, filepath.Join(plotTwo(t), "node-0.json"))
	dir := t.TempDir()
	same := clitest.Write(t, filepath.Join(dir, "same.html"), text, 0o644)
	check.Must(t, errors.Join(os.Link(same, filepath.Join(dir, "hard.html")), os.Symlink("same.html", filepath.Join(dir, "soft.html"))))
	for _, names := range [][2]string{{"same.html", "same.html"}, {same, "./same.html"}, {"hard.html", "same.html"}, {"soft.html", "same.html"}} {
		wantError(t, insideIn(t, dir, "plot", names[0], "--to", names[1], "--force"), 1, names[1], "is the report itself")
		wantText(t, same, text)
	}
}

// merge --to X.html fails with a hint to name the report instead of the page.
func TestMerge_RefusesNameOfPage(t *testing.T) {
	good := filepath.Join(plotTwo(t), "node-0.json")
	for _, name := range []string{"m3.html", "m3.HTML", "./m3.Html"} {
		o := inside(t, "merge", good, "--to", name)
		wantError(t, o, 1, "--to "+name, "m3.json", "page is written next to it")
		expectFiles(t, o.Dir)
	}
}
