package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// Tests of the pages next to reports, and of perfagent plot. The content and behaviour of pages is tested in package
// plotter and in a real browser.

// plotPages returns the pages of all runs in OUT, sorted, relative to OUT.
func plotPages(t testing.TB, out string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(out, "*", "*.html"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range paths {
		paths[i], _ = filepath.Rel(out, p) // it is below out
	}
	return paths
}

// plotWhole checks that a file is a complete page with the metrics of a node.
func plotWhole(t testing.TB, page string, n *reporter.Node) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(data, []byte("<!DOCTYPE html>")) || !bytes.HasSuffix(data, []byte("</html>\n")) {
		t.Fatalf("%s is not a whole page: %.60q … %.60q", page, data, data[max(0, len(data)-60):])
	}
	for name, v := range n.Metrics {
		if strings.HasPrefix(name, "boot_") { // only in the report
			continue
		}
		want := fmt.Sprintf(`data-metric="%s" data-value="%s"`, name, strconv.FormatFloat(v, 'f', -1, 64))
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("page %s lacks %s", page, want)
		}
	}
}

func TestRun_WritesPageNextToReport(t *testing.T) {
	cmd := insideCommand(t, "run", "--run-id", "r", "--summary", "always", "--", "sh", "-c", "echo '<b>'; exit 3")
	o := cmd.perform(t)
	o.Want(t, 3)
	out := filepath.Join(o.Dir, "perfagent-out")
	report, path := reportertest.ReadSingle(t, out)
	page := filepath.Join(out, "r", "node-0.html")
	plotWhole(t, page, report.Nodes["0"])
	if words := strings.Join(strings.Fields(o.Err), " "); !strings.Contains(words, " report "+page+" details ") {
		t.Errorf("the summary lacks the path of the page %s:\n%s", page, o.Err)
	}
	html, _ := os.ReadFile(page)
	if !bytes.Contains(html, []byte("echo &#39;&lt;b&gt;&#39;; exit 3")) || !bytes.Contains(html, []byte("Failed (exit 3)")) {
		t.Error("the page lacks the escaped command or \"Failed (exit 3)\"")
	}
	if st, err := os.Stat(page); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("mode of the page %v (%v), want 0644", st.Mode(), err)
	}

	// A second recording of the same name gets a second page.
	again := insideCommand(t, "run", "--run-id", "r", "--no-page=false", "--", "true")
	again.Dir = o.Dir
	again.perform(t).Want(t, 0)
	second := reportertest.ReadFile(t, filepath.Join(out, "r", "node-0.2.json"))
	plotWhole(t, filepath.Join(out, "r", "node-0.2.html"), second.Nodes["0"])
	plotWhole(t, page, report.Nodes["0"])
	if got := plotPages(t, out); !slices.Equal(got, []string{"r/node-0.2.html", "r/node-0.html"}) {
		t.Errorf("pages %q, want r/node-0.2.html and r/node-0.html", got)
	}
	// plot draws the same page from the report.
	third := insideCommand(t, "plot", path, "--to", "again.html")
	o = third.perform(t)
	o.Want(t, 0)
	if o.Out != "" || o.Err != "" {
		t.Errorf("plot: stdout %q, stderr %q; want none", o.Out, o.Err)
	}
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
		o := cmd.perform(t)
		o.Want(t, 5)
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
		o := clitest.Run(t, "run", c.flag, "--summary", "always", "--", "sh", "-c", c.script)
		pages := plotPages(t, filepath.Join(o.Dir, "perfagent-out"))
		const hint = "none below 2 s; perfagent plot REPORT --to FILE.html makes one"
		cmd := clitest.Perfagent(t, "show")
		cmd.Dir = o.Dir
		shown := clitest.RunCommand(t, cmd)
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
	clitest.WaitUntil(t, "the page is there while the sidecar runs", func() bool {
		_, err := os.Stat(page)
		return err == nil
	})
	early, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(early, []byte("still running")) {
		t.Errorf("the page of a running sidecar lacks \"still running\" (%v)", err)
	}
	l.Signal(unix.SIGTERM)
	o, _ := l.End()
	o.Want(t, 0)
	plotWhole(t, page, o.Report(t).Nodes["0"])
	if late, _ := os.ReadFile(page); bytes.Contains(late, []byte("still running")) {
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
	for node, code := range []string{"0", "4"} {
		cmd := clitest.Perfagent(t, "run", "--run-id", "r", "--node", strconv.Itoa(node), "--no-page", "--out", dir, "--", "sh", "-c", "exit "+code)
		o := clitest.RunCommand(t, cmd)
		if o.Code != node*4 {
			t.Fatalf("node %d: exit code %d, want %d: %s", node, o.Code, node*4, o.Err)
		}
	}
	return filepath.Join(dir, "r")
}

func TestMerge_WritesPageOfAllNodes(t *testing.T) {
	reports := plotTwo(t)
	one, two := filepath.Join(reports, "node-0.json"), filepath.Join(reports, "node-1.json")
	merge := func(dir string, args ...string) clitest.Outcome {
		cmd := insideCommand(t, append([]string{"merge", one, two}, args...)...)
		cmd.Dir = dir
		return cmd.perform(t)
	}
	dir := t.TempDir()
	merge(dir, "--to", "job.json").Want(t, 0)
	merged := reportertest.ReadFile(t, filepath.Join(dir, "job.json"))
	plotWhole(t, filepath.Join(dir, "job.html"), merged.Nodes["0"])
	html, _ := os.ReadFile(filepath.Join(dir, "job.html"))
	if !bytes.Contains(html, []byte(`data-node="1"`)) || !bytes.Contains(html, []byte(`id="n1"`)) {
		t.Error("the page lacks the charts or the row of node 1, want both nodes")
	}
	merge(dir, "--to", "only.json", "--no-page").Want(t, 0)
	merge(dir, "--to", "no-extension").Want(t, 0)
	for name, there := range map[string]bool{"only.html": false, "no-extension.html": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("stat of %s: %v, want it to exist: %v", name, err, there)
		}
	}

	// An existing file is not replaced, and no other file is written.
	for _, taken := range []string{"job.json", "job.html"} {
		dir := t.TempDir()
		clitest.Write(t, filepath.Join(dir, taken), "precious", 0o600)
		o := merge(dir, "--to", "job.json")
		o.Want(t, 1)
		o.WantLine(t, taken, "--force")
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("with the existing %s: files %v, want no other", taken, files)
		}
		if text, _ := os.ReadFile(filepath.Join(dir, taken)); string(text) != "precious" {
			t.Errorf("%s is now %.40q, want \"precious\"", taken, text)
		}
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
	o := merge(t.TempDir(), "--to", "job.json")
	o.Want(t, 1)
	o.WantLine(t, "PERFAGENT_NO_PAGE", "sometimes")
}

// If the disk has room for the report but not for its page, one line reports that, and nothing else changes.
func TestRun_FullDiskPreventsOnlyPage(t *testing.T) {
	t.Parallel()
	out := clitest.Mount(t, "size=44k", 0)
	o := clitest.Run(t, "run", "--summary", "never", "--out", out, "--run-id", "r", "--", "sh", "-c", "exit 7")
	o.Want(t, 7)
	_, path := reportertest.ReadSingle(t, out)
	o.WantLine(t, "no space", filepath.Join(out, "r", "node-0.html"))
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("files in the directory of the report %v, want only the report", files)
	}
}

// An existing page is never overwritten: report and page get the next name.
func TestRun_ExistingPageIsNeverOverwritten(t *testing.T) {
	for _, directory := range []bool{false, true} {
		cmd := insideCommand(t, "run", "--summary", "never", "--run-id", "r", "--", "sh", "-c", "exit 7")
		page := filepath.Join(cmd.Dir, "perfagent-out", "r", "node-0.html")
		if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
			t.Fatal(err)
		}
		if directory {
			if err := os.Mkdir(page, 0o755); err != nil {
				t.Fatal(err)
			}
		} else {
			clitest.Write(t, page, "precious", 0o600)
		}
		o := cmd.perform(t)
		o.Want(t, 7)
		if o.Err != "" {
			t.Errorf("stderr %q, want none", o.Err)
		}
		second := filepath.Join(filepath.Dir(page), "node-0.2")
		plotWhole(t, second+".html", reportertest.ReadFile(t, second+".json").Nodes["0"])
		if text, err := os.ReadFile(page); !directory && string(text) != "precious" {
			t.Errorf("%s is now %.40q (%v), want \"precious\"", page, text, err)
		}
	}
}

// A file that is created at the page's path while the job runs is kept, and one line reports it.
func TestRun_PageWrittenByJobIsNotOverwritten(t *testing.T) {
	o := inside(t, "run", "--summary", "never", "--run-id", "r", "--", "sh", "-c", "echo precious >perfagent-out/r/node-0.html; exit 7")
	o.Want(t, 7)
	o.WantLine(t, "perfagent-out/r/node-0.html", "exists")
	if text, err := os.ReadFile(filepath.Join(o.Dir, "perfagent-out", "r", "node-0.html")); string(text) != "precious\n" {
		t.Errorf("the page is now %.40q (%v), want \"precious\\n\"", text, err)
	}
	o.Report(t)
}

// The page of a perf.py file has the metrics of the file.
func TestPlot_PageOfPerfPyFileHasItsMetrics(t *testing.T) {
	o := inside(t, "run", "--compat", "perf.py", "--run-id", "r", "--interval", "50ms", "--no-page=false", "--", "sleep", "0.3")
	o.Want(t, 0)
	dir := filepath.Join(o.Dir, "perfagent-out", "r")
	page, err := os.ReadFile(filepath.Join(dir, "node-0.html"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, []byte(`data-metric="max_t_mem_percent" data-value="`)) {
		t.Error("the page lacks max_t_mem_percent")
	}
	again := insideCommand(t, "plot", filepath.Join(dir, "node-0.json"), "--cpus", "6", "--to", "again.html")
	again.perform(t).Want(t, 0)
	if html, err := os.ReadFile(filepath.Join(again.Dir, "again.html")); err != nil || !bytes.Contains(html, []byte(`data-metric="node_cpu_hours" data-value="`)) {
		t.Errorf("the page with --cpus lacks node_cpu_hours (%v)", err)
	}
}

func TestPlot_WritesSVGAndPNG(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU for its pictures")
	week := plottertest.WeekFile(t)
	plot := func(args ...string) []byte {
		t.Helper()
		cmd := insideCommand(t, append([]string{"plot", week}, args...)...)
		o := cmd.perform(t)
		o.Want(t, 0)
		if o.Out != "" || o.Err != "" {
			t.Errorf("plot %v: stdout %q, stderr %q; want none", args, o.Out, o.Err)
		}
		files, _ := filepath.Glob(filepath.Join(cmd.Dir, "picture.*"))
		if len(files) != 1 {
			t.Fatalf("plot %v left the files %q, want one", args, files)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	svg, image := plot("--to", "picture.svg"), plot("--to", "picture.png")
	plotXML(t, svg)
	if c, err := png.DecodeConfig(bytes.NewReader(image)); err != nil || c.Width != 800 {
		t.Errorf("picture.png: %+v (%v), want a width of 800", c, err)
	}
	if !bytes.Equal(svg, plot("--to", "picture.svg")) || !bytes.Equal(image, plot("--to", "picture.png")) {
		t.Error("two runs of plot drew different pictures of the same report")
	}
	if c, err := png.DecodeConfig(bytes.NewReader(plot("--to", "picture.png", "--width", "1234", "--metric", "mem_used_mb", "--node", "0"))); err != nil || c.Width != 1234 {
		t.Errorf("picture.png: %+v (%v), want a width of 1234", c, err)
	}
	metric := plot("--metric", "disk_io_read_mb_per_second", "--to", "picture.svg")
	plotXML(t, metric)
	if !bytes.Contains(metric, []byte(">disk_io_read_mb_per_second<")) || bytes.Contains(metric, []byte("Memory")) {
		t.Error("picture with --metric lacks its key, or has the chart Memory")
	}
}

// plotXML checks that data is well-formed XML.
func plotXML(t testing.TB, data []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
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
		o.Want(t, 1)
		o.WantLine(t, c.words...)
		if files, _ := os.ReadDir(o.Dir); len(files) != 0 || o.Out != "" {
			t.Errorf("plot %v: files %v, stdout %q; want none", c.args, files, o.Out)
		}
	}
}

// An existing file is replaced only with --force, and only if it is a regular file.
func TestPlot_ReplacesFileOnlyWithForce(t *testing.T) {
	good := filepath.Join(plotTwo(t), "node-0.json")
	for _, name := range []string{"x.html", "x.svg", "x.png"} {
		dir := t.TempDir()
		plot := func(args ...string) clitest.Outcome {
			cmd := insideCommand(t, append([]string{"plot", good, "--to", name}, args...)...)
			cmd.Dir = dir
			return cmd.perform(t)
		}
		clitest.Write(t, filepath.Join(dir, name), "precious", 0o644)
		o := plot()
		o.Want(t, 1)
		o.WantLine(t, name, "--force")
		if text, _ := os.ReadFile(filepath.Join(dir, name)); string(text) != "precious" {
			t.Errorf("%s is now %.40q, want \"precious\": --force was not given", name, text)
		}
		plot("--force").Want(t, 0)
		if text, _ := os.ReadFile(filepath.Join(dir, name)); len(text) < 1000 {
			t.Errorf("%s is %.40q, want it replaced", name, text)
		}
		if err := errors.Join(os.Remove(filepath.Join(dir, name)), os.Symlink(good, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		o = plot("--force")
		o.Want(t, 1)
		o.WantLine(t, "regular file")
	}
	reportertest.ReadFile(t, good)
}

// A file extension in capitals also determines the format.
func TestPlot_AcceptsExtensionInCapitals(t *testing.T) {
	good := filepath.Join(plotTwo(t), "node-0.json")
	for name, begin := range map[string]string{"x.HTML": "<!DOCTYPE html>", "x.Svg": "<", "x.PNG": "\x89PNG"} {
		o := inside(t, "plot", good, "--to", name)
		o.Want(t, 0)
		if text, err := os.ReadFile(filepath.Join(o.Dir, name)); err != nil || !strings.HasPrefix(string(text), begin) {
			t.Errorf("%s: %v, %.40q; want a file that begins with %q", name, err, text, begin)
		}
	}
}

// plot never overwrites its input, even under another name.
func TestPlot_KeepsItsInput(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(plotTwo(t), "node-0.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	same := clitest.Write(t, filepath.Join(dir, "same.html"), string(text), 0o644)
	if err := errors.Join(os.Link(same, filepath.Join(dir, "hard.html")), os.Symlink("same.html", filepath.Join(dir, "soft.html"))); err != nil {
		t.Fatal(err)
	}
	for _, names := range [][2]string{{"same.html", "same.html"}, {same, "./same.html"}, {"hard.html", "same.html"}, {"soft.html", "same.html"}} {
		cmd := insideCommand(t, "plot", names[0], "--to", names[1], "--force")
		cmd.Dir = dir
		o := cmd.perform(t)
		o.Want(t, 1)
		o.WantLine(t, names[1], "is the report itself")
		if now, _ := os.ReadFile(same); !bytes.Equal(now, text) {
			t.Fatalf("plot with %q: the report is now %.40q, want it unchanged", names, now)
		}
	}
}

// merge --to X.html fails with a hint to name the report instead of the page.
func TestMerge_RefusesNameOfPage(t *testing.T) {
	good := filepath.Join(plotTwo(t), "node-0.json")
	for _, name := range []string{"m3.html", "m3.HTML", "./m3.Html"} {
		o := inside(t, "merge", good, "--to", name)
		o.Want(t, 1)
		o.WantLine(t, "--to "+name, "m3.json", "page is written next to it")
		if files, _ := os.ReadDir(o.Dir); len(files) != 0 {
			t.Errorf("merge --to %s left the files %v, want none", name, files)
		}
	}
}
