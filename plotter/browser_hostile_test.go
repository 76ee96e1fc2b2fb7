package plotter

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// browserEvil are strings that would run, end an element, or hide what follows, in some
// place of a page that does not take care.
func browserEvil() map[string]string {
	const run = "window.pwned=1"
	return map[string]string{
		"script":           `</script><script>` + run + `</script>`,
		"script in upper":  `</ScRiPt ><sCrIpT>` + run + `</SCRIPT>`,
		"image":            `<img src=x onerror=` + run + `>`,
		"svg":              `"><svg onload=` + run + `>`,
		"quotes":           `' onmouseover='` + run + `' x="` + "`" + run + "`" + ` onfocus=` + run + ` autofocus tabindex=1 "`,
		"frame":            `<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`,
		"template":         `{{.}} {{template "node"}} {{printf "%s" .Command}} {{end}}`,
		"expression":       `${alert(1)} #{alert(1)} %00 \u003cscript\u003e \x3cscript\x3e`,
		"javascript":       `javascript:alert(1)//`,
		"data":             `data:text/html,<script>parent.pwned=1</script>`,
		"comment":          `<!-- <script>` + run + ` --!> `,
		"escaped twice":    `<!--<script>&lt;/script&gt;</script><script>` + run + `</script>-->`,
		"cdata":            `]]><script>` + run + `</script><![CDATA[`,
		"ends of elements": `</title></style></textarea></noscript></xmp></svg></table></select></h1></body></html><script>` + run + `</script>`,
		"style":            `</style><style>*{display:none!important}</style>`,
		"base and meta":    `<base href="http://127.0.0.1:9/"><meta http-equiv=refresh content="0;url=http://127.0.0.1:9/">`,
		"entities":         `&lt;script&gt;&#60;script&#62;&NotEqualTilde;&amp;amp;`,
		"line separators":  "a\u2028" + run + "\u2029b\r\n\v\f\u0085" + run,
		"control":          "\x00\x01\x1b[31mred\x1b]0;title\x07\x7f\u009b31m",
		"direction":        "\u202egnp.exe\u202c \u2066\u2069\u200f\u061c\u200b\ufeff",
		"no UTF-8":         "\xff\xfe\xc0\x80<\xed\xa0\x80>\xf4\x90\x80\x80" + `<img src=x onerror=` + run + `>`,
		"UTF-7":            "+ADw-script+AD4-" + run + "+ADw-/script+AD4-",
		"prototype":        "__proto__",
		"constructor":      "constructor",
		"a number":         "1e309",
		"combined":         "Z" + strings.Repeat("\u0300\u0489", 200),
		"emoji":            "👩‍👩‍👧‍👦🏴‍☠️",
		"shell":            "`rm -rf ~` $(reboot) ; | & \\ \" '",
	}
}

// browserPoisoned is a report of two nodes that says evil wherever a report has a text;
// each is followed by a word of its own, so that it can be found again.
func browserPoisoned(evil string) (r *reporter.Report, marks map[string]string) {
	marks = make(map[string]string)
	mark := func(where string) string {
		words := evil + "·" + where + "·"
		marks[where] = text.Printable(words)
		return words
	}
	r = browserMinute(0)
	r.Nodes["1"] = browserMinute(1).Nodes["1"]
	r.Run.ID = mark("run id")
	r.Run.Command = []string{mark("arg 0"), mark("arg 1"), mark("arg 2")}
	r.Run.Tags = map[string]string{mark("tag key"): mark("tag value")}
	r.Run.Signal = mark("signal of the run")
	r.Run.Incomplete = ""
	exit := 137
	r.Run.ExitCode = &exit
	for name, n := range r.Nodes {
		at := func(where string) string { return mark("node " + name + " " + where) }
		n.Host = &reporter.Host{Hostname: at("host"), BootID: at("boot"), OS: at("os"), Kernel: at("kernel"), Arch: at("arch"), CPUModel: at("CPU"), CPUs: 8, MemoryMB: 1024}
		n.Sampling.Disks, n.Sampling.NICs = []string{"sda", at("disk")}, []string{at("nic"), "lo"}
		n.Agent.Version = at("version")
		n.Job.Signal = at("signal")
		n.Metrics = maps.Clone(n.Metrics)
		n.Metrics[at("metric")] = 42.5
		n.Job.Source, n.Job.Cgroup, n.Job.MemoryKind = host.JobFromGroup, at("group"), at("")
		delete(marks, "node "+name+" ") // a kind of memory that nobody knows is left out
		n.Limits = &reporter.Limits{CPUs: 2, CPUQuota: 2, MemoryMB: 512, CPUGroup: at("CPU group"), MemoryGroup: at("memory group")}
		n.GPUs = []reporter.GPU{{UUID: at("UUID"), Name: at("GPU"), OfJob: true, Throttle: []string{at("throttle")}}, {Index: 7, Name: at("other GPU")}}
		n.Verdict = &reporter.Verdict{Cause: at("cause"), Text: at("verdict"), Evidence: map[string]any{evil: evil}, Conditions: []string{at("condition")}}
		delete(marks, "node "+name+" cause") // the text says it
		n.Findings = []reporter.Finding{{ID: "memory_tight", Severity: evil, Text: at("finding")}, {ID: "throttled", Severity: diagnosis.SeverityWarning, Text: at("warning")}}
		n.Missing = []reporter.Missing{{What: at("what"), Why: at("why")}, {What: "max_t_mem_percent", Why: at("why of a metric")}}
		delete(n.Metrics, "max_t_mem_percent")
		n.Push = &reporter.Push{MLflow: reporter.PushState{State: reporter.PushPending, RunID: at("push run"), URI: at("push URI"), Error: at("push error"),
			ExperimentName: at("experiment"), ExperimentID: at("experiment id")}}
		n.Origin = at("origin")
		// Keys that nobody knows are left out.
		n.Envelope = maps.Clone(n.Envelope)
		n.Envelope[evil] = n.Envelope["mem_percent"]
		n.Summaries = maps.Clone(n.Summaries)
		n.Summaries[evil] = reporter.Quantile{Max: 1}
	}
	return r, marks
}

// TestBrowser_HostileReports: whatever a report says, nothing of it runs or becomes an
// element, and all of it can be read.
func TestBrowser_HostileReports(t *testing.T) {
	harmless, _ := browserPoisoned("x")
	elements, _ := browserWalk(browserNew(t), harmless)
	evil := browserEvil()
	evil["all at once"] = strings.Join(slices.Sorted(maps.Values(evil)), "")
	for _, name := range slices.Sorted(maps.Keys(evil)) {
		t.Run(name, func(t *testing.T) {
			r, marks := browserPoisoned(evil[name])
			b := browserNew(t)
			got, seen := browserWalk(b, r)
			if got != elements {
				t.Errorf("there are other elements than of a harmless report:\n%s\n%s", got, elements)
			}
			for where, words := range marks {
				if !strings.Contains(seen, words) {
					t.Errorf("%s is lost from view: %q", where, words)
				}
			}
			b.is(`window.pwned === undefined && document.title.length > 0`)
			if got := b.asked(); len(got) != 1 {
				t.Errorf("the page asked for %q", got)
			}
		})
	}
	t.Run("JavaScript off", func(t *testing.T) {
		r, marks := browserPoisoned(evil["all at once"])
		b := browserNew(t)
		b.scripts(false)
		b.visit(browserFile(t, browserHTML(t, r)))
		for where, words := range marks {
			if !strings.Contains(where, "node 1") && !strings.Contains(b.readable(), words) {
				t.Errorf("%s is lost from view", where)
			}
		}
	})
	t.Run("from a file", func(t *testing.T) {
		r, _ := browserPoisoned(evil["all at once"])
		browserFromFile(t, r)
	})
}

// browserWalk opens the page of a report of two nodes and looks at both, by mouse and by
// keys, so that all of it is written by the page's script, too. It gives the elements of
// the page with the second node, and all text that was seen.
func browserWalk(b *browserTab, r *reporter.Report) (elements, seen string) {
	b.t.Helper()
	b.visit(browserFile(b.t, browserHTML(b.t, r)))
	first := b.readable()
	b.point(b.plot("memory"), 0.4, 0.5)
	at := b.box("[data-heatmap=cpu] .map")
	b.point(at, 0.3, 0.75)
	seen = first + b.tip()
	b.click(at, 0.3, 0.75)
	b.until(`document.getElementById("node").dataset.node === "1"`)
	elements = b.elements()
	seen += b.readable()
	b.metrics(browserByShownName(r.Nodes["1"]))
	b.do(chromedp.Focus("#choose", chromedp.ByQuery))
	b.keys(kb.ArrowUp)
	b.until(`document.getElementById("node").dataset.node === "0"`)
	if again := b.readable(); again != first {
		b.t.Error("the first node does not look as before after another one was shown")
	}
	return elements, seen
}

// browserByShownName is a node with its metrics by the names that a page gives them.
func browserByShownName(n *reporter.Node) *reporter.Node {
	out := *n
	out.Metrics = printableMetrics(n.Metrics)
	return &out
}

// elements lists all elements of the page with the names of their attributes.
func (b *browserTab) elements() string {
	b.t.Helper()
	return browserEval[string](b, `[...document.querySelectorAll("*")].map(e => e.tagName + "(" + e.getAttributeNames().join() + ")").join(" ")`)
}

// readable is all text that the page shows, and the names of the metrics.
func (b *browserTab) readable() string {
	b.t.Helper()
	return browserEval[string](b, `document.body.innerText.replace(/\n+/g, "\n")`)
}

// browserFromFile opens the page of a report that was read from a file.
func browserFromFile(t *testing.T, r *reporter.Report) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node-0.json")
	data, err := reporter.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	read, err := reportfile.Read(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := browserOpen(t, read, "#node=1")
	b.is(`window.pwned === undefined && document.getElementById("node").dataset.node === "1"`)
}

// TestBrowser_LongTexts: a command line of a megabyte and a host name of 100 kB can be
// read to their ends, do not make the page wide, and do not make it slow.
func TestBrowser_LongTexts(t *testing.T) {
	for name, letters := range map[string]string{"letters": "a", "tags": "<b>", "spaces": "x ", "wide": "漢"} {
		t.Run(name, func(t *testing.T) {
			r := browserMinute(0)
			long := strings.Repeat(letters, 1<<20/len(letters))
			r.Run.Command = []string{"sh", "-c", long + "·the end of the command"}
			r.Nodes["0"].Host.Hostname = strings.Repeat(letters, 100_000/len(letters)) + "·the end of the host"
			r.Run.Tags = map[string]string{"k": strings.Repeat(letters, 10_000) + "·the end of the tag"}
			r.Nodes["0"].Missing = []reporter.Missing{{What: "cpu", Why: strings.Repeat(letters, 10_000) + "·the end of the reason"}}
			b := browserOpen(t, r, "")
			words := b.readable()
			if !strings.Contains(words, long[:1<<19]) {
				t.Error("the command is not all there")
			}
			for _, end := range []string{"command", "host", "tag", "reason"} {
				if !strings.Contains(words, "·the end of the "+end) {
					t.Errorf("the end of the %s is lost", end)
				}
			}
			b.narrow()
			b.size(390, 844, 1)
			b.until(`Math.abs(document.querySelector("[data-chart] canvas").getBoundingClientRect().width - document.querySelector("[data-chart]").clientWidth) < 2`)
			b.narrow()
			b.point(b.plot("cpu"), 0.5, 0.5)
			b.is(`window.pwned === undefined`)
		})
	}
}

// TestBrowser_HostileNumbers: no number makes the page fail.
func TestBrowser_HostileNumbers(t *testing.T) {
	huge, tiny, nan := 1.7e308, 5e-324, math.NaN()
	usual := []float64{1, 2, 3}
	for name, c := range map[string]struct{ values, times []float64 }{
		"huge": {[]float64{huge, huge, huge}, usual}, "huge both ways": {[]float64{-huge, huge, 0}, usual},
		"tiny": {[]float64{tiny, 0, tiny}, usual}, "negative": {[]float64{-1, -2, -3}, usual},
		"above 100": {[]float64{101, 1e9, 3}, usual}, "some": {[]float64{nan, 5, nan}, usual},
		"none": {[]float64{nan, nan, nan}, usual}, "millions": {[]float64{1e6, 2e6, 3e6}, usual},
		"clock backwards": {usual, []float64{3, 2, 1}}, "clock stands still": {usual, []float64{0, 0, 0}},
		"clock huge": {usual, []float64{huge, huge, huge}}, "clock far": {usual, []float64{1e12, 2e12, 9e15}},
		"clock unknown": {usual, []float64{nan, nan, nan}}, "all huge": {[]float64{huge, -huge, huge}, []float64{-huge, huge, huge}},
		"nothing": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := browserOpen(t, browserNumbers(c.values, c.times), "")
			for _, chart := range browserCharts() {
				b.point(b.plot(chart), 0.5, 0.5)
			}
			b.keys(kb.Tab + kb.End + kb.ArrowLeft + "+" + kb.ArrowRight + "-" + kb.Escape)
			b.drag(b.plot("disk_io"), 0.3, 0.6)
			b.point(b.plot("disk_io"), 0.5, 0.5)
			b.is(`!/NaN|Infinity|undefined|null/.test(document.body.innerText)`)
		})
	}
}

// browserNumbers is a report in which all values of all buckets are the same few.
func browserNumbers(values, times []float64) *reporter.Report {
	r := browserReport(0, browserRecording(len(values), 1e9, nil))
	n := r.Nodes["0"]
	for key := range n.Envelope {
		list := reporter.Numbers(values)
		if key == "timestamp" {
			list = nil
			for _, v := range times {
				list = append(list, float64(browserStart().Unix())+v)
			}
		}
		n.Envelope[key] = reporter.Band{Min: list, Mean: list, Max: list}
	}
	for name := range n.Metrics {
		if len(values) > 0 {
			n.Metrics[name] = values[0]
		}
	}
	return r
}
