package plotter

import (
	"regexp"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// A link can lead only to a file with a relative path.
func TestLocal(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"../a/node-0.html": "../a/node-0.html", "a/b:c.html": "a/b:c.html", "./javascript:alert(1)": "./javascript:alert(1)",
		"javascript:alert(1)": "#", "HTTPS://example.org/": "#", "": "",
	} {
		check.Equal(t, local(address), want, "local(%q)", address)
	}
}

// FuzzPages puts the same text into every field that pages show, and checks that the text does not become an element,
// an address, or a part of a style or script.
func FuzzPages(f *testing.F) {
	f.Add("node-a b&'\"<:%41%zz+.html")
	for _, evil := range plottertest.HostileStrings() {
		f.Add(evil)
	}
	f.Add(strings.Join(reportertest.HostileTexts[:60], ""))
	f.Fuzz(func(t *testing.T, evil string) {
		if len(evil) > 10_000 || strings.TrimSpace(evil) == "" {
			return
		}
		harmless := strings.Repeat("x", len(text.Printable(evil))) // the output may depend on the length
		check.Equal(t, elementsOf(t, evil), elementsOf(t, harmless), "elements with %q, as with harmless text", evil)
	})
}

var (
	// ourScripts finds the scripts and styles.
	ourScripts = regexp.MustCompile(`(?s)<(script|style)\b[^>]*>.*?</(script|style)>`)
	elements   = regexp.MustCompile(`<[a-zA-Z/!][a-z0-9]*|href="(?:[a-zA-Z]*:|//)|ZgotmplZ`)
)

// elementsOf returns the elements of all pages, with words in every field that is a text.
func elementsOf(t *testing.T, words string) []string {
	t.Helper()
	two, _ := plottertest.HostileReport(words)
	one := reportertest.AddHostileOperations(reportertest.HostileReport(words), words)
	one.Run.Tags = map[string]string{words: words}
	var out strings.Builder
	for _, r := range []*reporter.Report{one, two} {
		check.Must(t, WritePage(&out, r, PageOptions{Siblings: []string{words, "a/" + words}}))
	}
	check.Must(t, WriteDiffPage(&out, compared(t, words), words))
	row := IndexRow{Run: words, Start: words, Nodes: words, End: words, Command: words, Link: words, CPU: UsageBar{1, words}, State: words}
	check.Must(t, WriteIndex(&out, Index{Title: words, Rows: []IndexRow{row, {Run: words, Link: "a/" + words}}}))
	return elements.FindAllString(ourScripts.ReplaceAllString(out.String(), "<$1>"), -1)
}
