package plotter

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// pageBase is the maximum size of a page beyond the size of its report, in bytes.
const pageBase = 90_000

// pageEncoded returns the file of a report.
func pageEncoded(t testing.TB, r *reporter.Report) []byte {
	t.Helper()
	data, err := reporter.Encode(r)
	check.Must(t, err)
	return data
}

// pageOf returns the page of a report.
func pageOf(t testing.TB, r *reporter.Report) string {
	t.Helper()
	return pageWith(t, r, PageOptions{})
}

// pageWith returns the page of a report, with options.
func pageWith(t testing.TB, r *reporter.Report, o PageOptions) string {
	t.Helper()
	var out strings.Builder
	check.Must(t, WritePage(&out, r, o))
	return out.String()
}

// written returns a page to which nodes were added.
func written(t testing.TB, p *Page, run *reporter.Run) string {
	t.Helper()
	var out strings.Builder
	check.Must(t, p.Write(&out, run))
	return out.String()
}

// wantParts checks that text has each of the parts.
func wantParts(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q", what, part)
		}
	}
}

// wantNone checks that text has none of the parts.
func wantNone(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s has %q", what, part)
		}
	}
}

// pageMany returns the page of a thousand nodes. Like the command, it adds one node after the other.
func pageMany(t testing.TB) string {
	t.Helper()
	run, nodes := plottertest.Many()
	p := NewPage(PageOptions{})
	for i, n := range nodes {
		p.Add(&run, strconv.Itoa(i), n)
	}
	return written(t, p, &run)
}

// pageSamples returns a report of n samples, one per second.
func pageSamples(n int) *reporter.Report {
	return plottertest.Report(0, plottertest.Recording(n, 1e9, func(i int, s *collector.Sample) { plottertest.Set(s, i, float64(i*7%97)+0.125, 33.3, float64(i%11)/3) }))
}

func TestPage_IsNotMuchLargerThanItsReport(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU for its large pages")
	reports := map[string]*reporter.Report{
		"nothing": plottertest.Absent(), "one sample": plottertest.Short(), "1000 samples": pageSamples(1000), "1999 samples": pageSamples(1999),
		"gaps": plottertest.Gaps(), "a week": plottertest.Week(t), "64 CPUs": reportertest.Large(0, 1, 1000), "12 nodes": plottertest.Few(), "perf.py": plottertest.PerfPy(t),
		"operations": worked(), "32 series of each kind": busy(),
	}
	for name, evil := range plottertest.HostileStrings() {
		reports["hostile: "+name], _ = plottertest.HostileReport(evil)
	}
	for name, letter := range map[string]string{"letters": "a", "controls": "\x01", "wide": "漢", "no UTF-8": "\xff"} {
		r := plottertest.Minute(0)
		r.Run.Command = []string{"sh", "-c", strings.Repeat(letter, 1<<18)}
		r.Nodes["0"].Host.Hostname = strings.Repeat(letter, 100_000)
		reports["long: "+name] = r
	}
	for _, name := range slices.Sorted(maps.Keys(reports)) {
		r := reports[name]
		page, report := len(pageOf(t, r)), len(pageEncoded(t, r))
		t.Logf("%-24s page %9d, report %9d", name, page, report)
		if page > pageBase+report {
			t.Errorf("%s: page of %d bytes for a report of %d bytes, want at most %d bytes more", name, page, report, pageBase)
		}
	}
}

// HTML writes < as &lt; and " as &#34;, but JSON does not. So the page of a command with only such characters is larger
// than the report, but only by a bounded factor.
func TestPage_EscapingGrowsPageByBoundedFactor(t *testing.T) {
	for _, letter := range []string{"<", "&", `"`, "'", "+"} {
		r := plottertest.Minute(0)
		r.Run.Command = []string{strings.Repeat(letter, 1<<18)}
		page, report := len(pageOf(t, r)), len(pageEncoded(t, r))
		if page > pageBase+5*report {
			t.Errorf("256 KiB of %s: page of %d bytes for a report of %d bytes, want at most 5 times that plus %d", letter,
				page, report, pageBase)
		}
	}
}

// The page stays small even if every node has long texts.
func TestPage_StaysSmallWithThousandNodes(t *testing.T) {
	testenv.SkipIfShort(t, "a page of a thousand nodes")
	if n := len(pageMany(t)); n > plottertest.ManyBytes {
		t.Errorf("page of %d bytes, want at most %d", n, plottertest.ManyBytes)
	}
}

func TestPage_IsDeterministic(t *testing.T) {
	poisoned, _ := plottertest.HostileReport(`<&">`)
	for i := range 20 {
		poisoned.Run.Tags["tag "+strconv.Itoa(i)] = "value"
		for _, n := range poisoned.Nodes {
			n.Metrics["metric "+strconv.Itoa(i)] = float64(i)
		}
	}
	for name, r := range map[string]*reporter.Report{"a week": plottertest.Week(t), "12 nodes": plottertest.Few(), "many keys": poisoned} {
		first := pageOf(t, r)
		for range 5 {
			again := *r
			again.Nodes, again.Run.Tags = maps.Clone(r.Nodes), maps.Clone(r.Run.Tags)
			for node, n := range again.Nodes {
				other := *n
				other.Metrics, other.Envelope, other.Summaries = maps.Clone(n.Metrics), maps.Clone(n.Envelope), maps.Clone(n.Summaries)
				again.Nodes[node] = &other
			}
			if pageOf(t, &again) != first {
				t.Errorf("%s: two pages of the same report differ", name)
			}
		}
	}
}

func TestPage_RejectsReportWithoutNodes(t *testing.T) {
	check.Error(t, WritePage(io.Discard, &reporter.Report{}, PageOptions{}), "no nodes")
}

// WritePage returns an error from the writer.
func TestWritePage_ReturnsWriteErrors(t *testing.T) {
	check.Error(t, WritePage(closedPipe{}, plottertest.Short(), PageOptions{}), io.ErrClosedPipe.Error())
}

// Merged buckets keep the least and the greatest values, and the mean.
func TestPage_KeepsPeaksOfManyNodes(t *testing.T) {
	n := reportertest.Large(517, plottertest.ManyNodes, plottertest.ManyBuckets).Nodes["517"]
	i := plottertest.Burst(t, n)
	node := newPageNode(&reporter.Run{}, "517", n)
	s := node.charts[0].Series[0]
	at, most := 0, 0.0
	for k, v := range s.Band.Max {
		if v > most {
			at, most = k, v
		}
	}
	if most != 64 || s.Band.Mean[at] > 32 || at != i*len(s.Band.Max)/plottertest.ManyBuckets || len(s.Band.Max) > maxPoints {
		t.Errorf("burst in bucket %d: greatest value %v CPUs, mean %v, in merged bucket %d of %d; want 64, at most 32, same time",
			i, most, s.Band.Mean[at], at, len(s.Band.Max))
	}
}

// A page and an SVG can be made from any readable report, and every page has the same number of scripts.
func FuzzPage(f *testing.F) {
	poisoned := plottertest.Short() // a small report, because large inputs are slow
	poisoned.Run.Command, poisoned.Run.Tags = []string{`</script><b x="'>`}, map[string]string{`<!--`: `{{.}}`}
	poisoned.Nodes["7"] = &reporter.Node{Metrics: reporter.Values{`"><img src=x>`: 1e300}, Missing: []reporter.Missing{{What: "cpu", Why: "\u202e"}}}
	for _, r := range []*reporter.Report{plottertest.Short(), plottertest.Absent(), poisoned, plottertest.HostileNumbers([]float64{1e308, -1, 5e-324}, []float64{1, 1, 0})} {
		data, err := reporter.Encode(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := pageRead(t, data)
		if err != nil {
			return
		}
		html := pageOf(t, r)
		check.Equal(t, strings.Count(html, "<script"), 2, "number of script elements")
		pictureWellFormed(t, r, PictureOptions{Width: 400})
	})
}

// BenchmarkPage makes the page of one node with a thousand buckets.
func BenchmarkPage(b *testing.B) {
	r := reportertest.Large(0, 1, 1000)
	for b.Loop() {
		check.Must(b, WritePage(io.Discard, r, PageOptions{}))
	}
}

// BenchmarkPageShort makes the page of a job that ended at its first sample.
func BenchmarkPageShort(b *testing.B) {
	r := plottertest.Short()
	for b.Loop() {
		check.Must(b, WritePage(io.Discard, r, PageOptions{}))
	}
}

// BenchmarkPage1000 makes the page of a thousand nodes with a thousand buckets each. All nodes are in memory.
func BenchmarkPage1000(b *testing.B) {
	plottertest.Many()
	size := 0
	for b.Loop() {
		size = len(pageMany(b))
	}
	b.ReportMetric(float64(size), "bytes")
}

// If the series of the nodes are in a store, the page has the nodes' numbers, and names the store in place of charts.
func TestPage_NamesStoreOfReferencedSeries(t *testing.T) {
	t.Parallel()
	full, lazy := pageSamples(20), pageSamples(20)
	lazy.Nodes["0"] = full.Nodes["0"].WithReference("file:///d#job/node-0", 9, "00")
	lazy.Nodes["1"] = full.Nodes["0"].WithReference("file:///d#job/node-1", 9, "00")
	lazy.Run.Gather = &reporter.GatherResult{Store: "file:///d", NodesExpected: 3}
	page := pageOf(t, lazy)
	wantParts(t, "page", page, "The series of 2 nodes are in the store", "2 of 3 nodes", `"charts":{}`)
	body, _, _ := strings.Cut(page, "<script")
	wantNone(t, "page with only references to series", body, "<figure", ": not measured.")
	wantParts(t, "page with series", pageOf(t, full), "<figure")
	wantNone(t, "page with series", pageOf(t, full), "are in the store")
}

// A live page shows the time of its update, and does not list the end of the run as missing.
func TestPage_LivePageShowsUpdateTime(t *testing.T) {
	r := plottertest.Minute(0)
	r.Run.ExitCode, r.Run.Incomplete = nil, "the job is still running"
	n := r.Nodes["0"]
	n.Missing = append(n.Missing, reporter.Missing{What: "wall_seconds", Code: reporter.JobGoesOn, Why: "the job's end is not known"})
	for live, want := range map[time.Duration]bool{time.Second: true, 0: false} {
		page := pageWith(t, r, PageOptions{Live: live})
		check.Equal(t, strings.Contains(page, `data-at="1769860860">12:01:00 UTC</time>`), want,
			"live %v: page shows the time of its update", live)
		check.Equal(t, strings.Contains(page, "<li><b>wall_seconds</b>"), !want, "live %v: page lists the end as missing",
			live)
		check.Equal(t, strings.Contains(page, ` data-live>`), want, "live %v: page shows that the job is running", live)
	}
}

// The page links to the pages of other nodes by name.
func TestPage_LinksSiblings(t *testing.T) {
	page := pageWith(t, plottertest.Minute(0), PageOptions{Siblings: []string{"node-1.html", "node-12.html"}})
	wantParts(t, "page", page, `<a href="node-1.html">node 1</a> <a href="node-12.html">node 12</a>`)
}

// maxScript is the maximum size of the page's script in bytes.
const maxScript = 10_240

func TestPage_ScriptIsSmall(t *testing.T) {
	if n := len(pageScript()); n > maxScript || n < maxScript/2 || strings.Contains(string(pageScript()), "// ") {
		t.Errorf("script has %d bytes, want at most %d bytes without comments", n, maxScript)
	}
}
