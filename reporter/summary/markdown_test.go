package summary

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

func showMarkdown(t testing.TB, r *reporter.Report, pictures ...string) string {
	t.Helper()
	var out bytes.Buffer
	check.Must(t, WriteMarkdown(&out, r, Options{NodeSparklines: pictures}))
	return out.String()
}

func TestWriteMarkdown_MatchesGoldenFiles(t *testing.T) {
	reports := reportertest.Golden()
	for _, name := range []string{"good", "failed", "signal", "short", "sidecar", "incomplete", "perfpy", "nodes", "nodes-mixed", "nothing",
		"job", "job-nodes"} {
		pictures := []string{"CPU        ▁▂▃▄▅▆▇█  0 to 100 %", "time       0   200 s"}
		got := showMarkdown(t, reports[name], pictures...)
		showMarkdownForm(t, name, got)
		reportertest.CompareGolden(t, filepath.Join("testdata", name+".md"), []byte(got), *update)
	}
	reportertest.CompareGolden(t, filepath.Join("testdata", "hostile.md"), []byte(showMarkdown(t, reportertest.HostileReport("`|</script><b>@octocat *x* `"))), *update)
}

// showMarkdownForm checks that a summary has only lines in perfagent's own format. Text from a report must be escaped,
// in a fenced block or in a code span.
func showMarkdownForm(t testing.TB, name, words string) {
	t.Helper()
	if len(words) >= 512<<10 || !strings.HasSuffix(words, "\n") || strings.Contains(words, "\n\n\n") {
		t.Errorf("%s: %d bytes, want less than 512 KiB, a newline at the end, and no consecutive empty lines", name,
			len(words))
	}
	cell := " (`[^`|]+`|[^`|<>@]*( `[^`|]+`)?) "
	const prose = "(`[^`]+`|\\\\[^ ]|[^\\\\<>@|#&!*_{}\\[\\]~$`])*" // every special character is escaped or in code
	ours := regexp.MustCompile(`^(### perfagent: ` + prose + `|\|(` + cell + `\|)+|\|[-:|]+\||\| (job|node) \| value \| \||` +
		`(\*\*` + prose + `\*\*:)?` + prose + `|- ` + prose + `|<details><summary>All metrics</summary>|</details>|And \x60[^\x60]+\x60\.)$`)
	marks, headings, details := "", 0, 0
	for line := range strings.SplitSeq(words, "\n") {
		switch {
		case line != text.Printable(line):
			t.Errorf("%s: control characters in line %q", name, line)
		case marks == "" && strings.HasPrefix(line, "```"):
			marks = strings.TrimSuffix(line, "text")
			if strings.Trim(marks, "`") != "" {
				t.Errorf("%s: block begins with %q, want only backticks", name, line)
			}
		case line == marks && marks != "":
			marks = ""
		case marks != "":
			if strings.Contains(line, marks) {
				t.Errorf("%s: block of %q contains its own end: %q", name, marks, line)
			}
		case !ours.MatchString(line):
			t.Errorf("%s: line %q outside blocks is not perfagent's own text", name, line)
		case strings.HasPrefix(line, "#"):
			headings++
		case strings.HasPrefix(line, "<details>"):
			details++
		case line == "</details>":
			details--
		}
	}
	if marks != "" || headings != 1 || details != 0 {
		t.Errorf("%s: at the end block %q is open, %d headings, %d open details; want none, 1, 0", name, marks,
			headings, details)
	}
}

func TestWriteMarkdown_IsWellFormedForEveryReport(t *testing.T) {
	for name, r := range reportertest.Golden() {
		showMarkdownForm(t, name, showMarkdown(t, r))
	}
}

// No matter how much data a report has, its summary stays below GitHub's limit, and counts the omitted lines.
func TestWriteMarkdown_StaysSmall(t *testing.T) {
	long := strings.Repeat("\U0001d4b3", 1<<13) // four bytes in one cell
	r := reportertest.HostileReport(long)
	n := r.Nodes["0"]
	for i := range 3000 {
		n.Metrics[fmt.Sprint(i, long[:4096])] = float64(i)
		n.Missing = append(n.Missing, reporter.Missing{What: fmt.Sprint("what ", i), Why: fmt.Sprint(i, long[:4096])})
	}
	words := showMarkdown(t, r, slices.Repeat([]string{long}, 500)...)
	showMarkdownForm(t, "one", words)
	check.Contains(t, "summary", words, "and 440 more, see the report", "and 2941 more, see the report", "…")
	many := reportertest.Nodes(1000, 3, 700, 999)
	words = showMarkdown(t, many)
	showMarkdownForm(t, "many", words)
	check.Contains(t, "summary", words,
		"950 more nodes are in the report", "\n| `3` | ", "\n| `700` | ", "\n| `999` | `compute-0999.cluster.example.org` | ", "\n| all | ")
	check.Equal(t, strings.Count(words, "\n| `"), 50, "number of rows of nodes")
	every := showMarkdown(t, reportertest.Nodes(60, slices.Collect(func(yield func(int) bool) {
		for i := range 60 {
			if !yield(i) {
				return
			}
		}
	})...))
	check.Equal(t, strings.Count(every, "\n| `"), 50, "number of rows if all nodes failed")
	check.Contains(t, "summary", every, "10 more nodes")
}

// FuzzWriteMarkdown checks that a summary is well-formed for any text in the report. The seeds are hostile texts, used
// wherever a report can have text.
func FuzzWriteMarkdown(f *testing.F) {
	for _, words := range reportertest.HostileTexts {
		f.Add(words)
	}
	f.Add("")
	f.Add(" @")
	f.Fuzz(func(t *testing.T, words string) {
		for name, r := range reportertest.HostileReports(words) {
			showMarkdownForm(t, name, showMarkdown(t, r, "chart "+words, "chart "+words))
		}
	})
}

// GitHub's own parser finds only the intended headings, tables and blocks in the summaries, and shows every text from
// the report as plain text.
func TestWriteMarkdown_GitHubShowsReportAsText(t *testing.T) {
	parser := gitHubParser(t)
	blank := func(words string) bool { return strings.TrimSpace(words) == "" } // a blank text results in no action
	texts := append(slices.DeleteFunc(slices.Clone(reportertest.HostileTexts), blank), "plain")
	var names, pages []string
	for i, words := range texts {
		for name, r := range reportertest.HostileReports(words) {
			page := showMarkdown(t, reportertest.AddHostileOperations(r, words), words)
			names, pages = append(names, fmt.Sprintf("%d %s", i, name)), append(pages, page)
		}
	}
	plain := make(map[string]string) // tags on the pages with the text "plain", by kind of report
	rendered := showGitHub(t, parser, pages)
	tags := regexp.MustCompile(`<[^>]*>`)
	for i, page := range slices.Backward(rendered) {
		_, kind, _ := strings.Cut(names[i], " ")
		// Three differences are expected: nodes are sorted by name, an address becomes code, and an action with a colon
		// has a bold lead.
		found := slices.DeleteFunc(tags.FindAllString(page, -1), func(tag string) bool {
			return strings.HasSuffix(tag, "code>") || strings.HasSuffix(tag, "strong>")
		})
		slices.Sort(found)
		shape := strings.Join(found, "")
		if plain[kind] == "" { // the text "plain" comes first
			plain[kind] = shape
		}
		check.Equal(t, shape, plain[kind], "%s: %q changes the tags on the page", names[i], texts[i/3])
		words := texts[i/3]
		if shown := html.UnescapeString(tags.ReplaceAllString(page, "")); len(words) < 200 && !strings.Contains(shown, text.Printable(words)) {
			t.Errorf("%s: %q is not on the page:\n%s", names[i], text.Printable(words), shown)
		}
	}
}

// gitHubParser returns the path of a Python interpreter with cmarkgfm, GitHub's parser.
func gitHubParser(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PERFAGENT_TEST_PYTHON")
	if path == "" {
		path = testenv.Repository(t, ".tools/venv/bin/python")
	}
	if err := exec.Command(path, "-c", "import cmarkgfm").Run(); err != nil {
		testenv.SkipOrFail(t, "needs Python with cmarkgfm, GitHub's Markdown parser: make test installs it")
	}
	return path
}

// showGitHub renders pages with GitHub's parser, without filtering tags.
func showGitHub(t *testing.T, parser string, pages []string) []string {
	t.Helper()
	const script = `import json, sys, cmarkgfm
from cmarkgfm.cmark import Options
json.dump([cmarkgfm.github_flavored_markdown_to_html(p, Options.CMARK_OPT_UNSAFE) for p in json.load(sys.stdin)], sys.stdout)`
	in, err := json.Marshal(pages)
	check.Must(t, err)
	cmd := exec.Command(parser, "-c", script)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	check.Must(t, err)
	var rendered []string
	if err := json.Unmarshal(out, &rendered); err != nil || len(rendered) != len(pages) {
		t.Fatalf("rendered %d of %d pages, error %v", len(rendered), len(pages), err)
	}
	return rendered
}
