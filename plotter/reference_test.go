package plotter

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/comparer"
	"github.com/perfagent/perfagent/reporter/summary"
)

// The pages were once made by html/template and encoding/json. Both are slow, at the end of every job, but they know
// where a text stands and how it is escaped there. So they still make the pages here, from testdata/reference, and what
// htmlWriter makes must be the same.

// A reference is the templates of the pages.
type reference struct{ *template.Template }

func newReference(t testing.TB) reference {
	t.Helper()
	set := template.New("").Funcs(template.FuncMap{"words": func(s string) []string { return strings.Split(s, " ") }})
	set, err := set.ParseGlob(filepath.Join("testdata", "reference", "*.html"))
	if err != nil {
		t.Fatal(err)
	}
	return reference{set}
}

// run returns what a template makes of data.
func (r reference) run(t testing.TB, name string, data any) string {
	t.Helper()
	var out strings.Builder
	if err := r.ExecuteTemplate(&out, name, data); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// made returns what is written as HTML that the templates take over.
func made(write func(w *htmlWriter)) template.HTML {
	var out strings.Builder
	w := newHTMLWriter(&out)
	write(w)
	_ = w.flush()
	return template.HTML(out.String())
}

// page returns the page.
func (r reference) page(t testing.TB, p *Page, run *reporter.Run) string {
	t.Helper()
	slices.SortFunc(p.nodes, func(a, b *pageNode) int { return reporter.CompareNodes(a.name, b.name) })
	p.noteStarts()

	top, shown := p.top(run), p.shown()
	out := r.run(t, "top", top) + "<style>\n" + string(uplotCSS+pageCSS+p.ranksStyle(run)) + "</style>\n" + r.run(t, "head", top)
	if len(p.nodes) > 1 {
		out += r.run(t, "nodes", r.nodes(t, p, run))
	} else {
		out += string(made(func(w *htmlWriter) { p.ranksSection(w, run) }))
	}
	out += r.run(t, "node", r.section(p, run, shown)) + r.data(t, p, run, shown)
	return out + "<script>\n/*\n" + string(uplotLicense) + "*/\n" + string(uplotJS) + "</script>\n<script>\n" + string(pageJS) + "</script>\n</body>\n</html>\n"
}

// section is the node that is shown.
func (r reference) section(p *Page, run *reporter.Run, shown []int) any {
	type chart struct {
		ID, Label     string
		Picture       template.HTML
		Hidden, Quiet bool
	}
	n := p.nodes[0]
	var charts []chart
	for _, c := range n.chosen(shown, p.lanes()) {
		label := titleOf(c.Chart, n.time)
		picture := made(func(w *htmlWriter) {
			height := c.height(chartHeight, 800)
			canvas := svgCanvas{w}
			canvas.open(800, height, label)
			drawChart(canvas, c.Chart, n.time, box{0, 0, 800, height})
			canvas.close()
		})
		charts = append(charts, chart{c.ID, label, picture, c.hidden, c.Quiet()})
	}
	return struct {
		Name, Version    string
		Many             bool
		Messages, Advice []summary.Message
		Cards, Details   []summary.Highlight
		Missing          []reporter.Missing
		Phases           []summary.PhaseRow
		Charts           []chart
		Groups           []referenceGroup
		Work, Processes  any
	}{
		n.name, n.version, len(p.nodes) > 1, n.messages, n.advice, n.cards, n.details, n.missing[:n.listed], n.phases, charts,
		referenceMetrics(p), referenceWork(p), referenceProcesses(p, run),
	}
}

type (
	referenceGroup struct {
		Name string
		Rows []referenceMetric
	}
	referenceMetric struct {
		Name, Value, Short, Unit, Meaning, How, Why string
		Has                                         bool
	}
)

func referenceMetrics(p *Page) []referenceGroup {
	n := p.nodes[0]
	var groups []referenceGroup
	for _, name := range reporter.Groups() {
		g := referenceGroup{Name: string(name)}
		for _, m := range p.metrics() {
			if m.Group != name {
				continue
			}
			v, has := n.metrics[m.Name]
			row := referenceMetric{Name: m.Name, Unit: string(m.Unit), Meaning: m.Meaning, How: m.How, Has: has}
			for _, missing := range n.missing {
				if missing.What == m.Name {
					row.Why = missing.Why
				}
			}
			if has {
				row.Value, row.Short = strconv.FormatFloat(v, 'f', -1, 64), short(v)
			}
			g.Rows = append(g.Rows, row)
		}
		if len(g.Rows) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

func referenceWork(p *Page) any {
	type table struct {
		Attr  template.HTMLAttr
		Title string
		Heads []string
		Rows  [][]string
	}
	all, unseen := &reporter.Report{Nodes: make(map[string]*reporter.Node)}, 0
	for _, n := range p.nodes {
		all.Nodes[n.name] = n.work
		unseen = max(unseen, n.unseen)
	}
	w := all.Work()
	if w == nil {
		return nil
	}
	var tables []table
	for _, t := range []workTable{operationTable(w), counterTable(w), gaugeTable(w), valueTable(w), transferTable(w)} {
		if len(t.rows) > 0 {
			tables = append(tables, table{template.HTMLAttr("data-" + t.name), t.title, t.heads, t.rows})
		}
	}
	return map[string]any{"Notes": workNotes(w, unseen), "Tables": tables}
}

func referenceProcesses(p *Page, run *reporter.Run) any {
	type number struct{ Value, Words string }
	type row struct {
		PID           int
		Node, Command string
		Number        number
		Numbers       []number
	}
	exact := func(v float64, words string) number { return number{strconv.FormatFloat(v, 'f', -1, 64), words} }
	known := func(v float64, words string) number {
		if v > 0 {
			return exact(v, words)
		}
		return number{Words: text.Absent}
	}
	var list []nodeProcess
	for _, n := range p.nodes {
		for _, p := range n.processes {
			list = append(list, nodeProcess{n.name, p})
		}
	}
	if len(p.nodes) > 1 && len(list) > 0 {
		list = heaviest(list)
	}
	var rows []row
	for _, p := range list {
		end := cmp.Or(p.End.Time, run.End.Time)
		began, length := max(0, p.Start.Sub(run.Start.Time)).Seconds(), max(0, end.Sub(p.Start.Time)).Seconds()
		rows = append(rows, row{p.PID, p.node, text.Printable(p.Command), exact(float64(p.PID), strconv.Itoa(p.PID)), []number{
			exact(p.CPUSeconds, text.Seconds(p.CPUSeconds)), exact(p.EndedChildrenCPUSeconds, text.Seconds(p.EndedChildrenCPUSeconds)),
			known(p.PeakMemoryMB, text.SizeText(p.PeakMemoryMB)), known(float64(p.Threads), strconv.Itoa(p.Threads)),
			exact(began, text.Seconds(began)), exact(length, p.lasted(end)),
		}})
	}
	return map[string]any{"Rows": rows, "Many": len(p.nodes) > 1}
}

// nodes is what the page shows of many nodes.
func (r reference) nodes(t testing.TB, p *Page, run *reporter.Run) any {
	t.Helper()
	type heatmap struct {
		ID, Title, Chart string
		Height           int
		Mean, Peak       template.URL
	}
	type row struct {
		Name, Host, Exit, Mean, Peak, Memory, Unused, JobCPUs, JobMemory string
		Missing                                                          int
		First                                                            bool
		Ranks                                                            template.HTML
	}
	start, length := p.span()
	picture := func(plan heatPlan, of func(reporter.Band) reporter.Numbers) template.URL {
		data, err := p.heatmap(plan, start, length, of)
		if err != nil {
			t.Fatal(err)
		}
		return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(data))
	}
	var maps []heatmap
	for _, plan := range heatPlans() {
		if p.elsewhere() == 0 && (!plan.ofJob || p.any(plan)) {
			maps = append(maps, heatmap{
				string(plan.id), string(plan.title), string(plan.chart), p.mapHeight(),
				picture(plan, func(b reporter.Band) reporter.Numbers { return b.Mean }),
				picture(plan, func(b reporter.Band) reporter.Numbers { return b.Max }),
			})
		}
	}
	columns := 8
	if p.anyOfJob() {
		columns = 10
	}
	first, _, _, failed := p.first(run)
	var rows []row
	for i, n := range p.nodes {
		brief := summary.Brief(n.metrics)
		rows = append(rows, row{
			n.name, n.host, n.exit, brief.CPUMean, brief.CPUPeak, brief.MemoryPeak, brief.UnusedHours, brief.JobCPUs, brief.JobMemory,
			n.listed, failed && i == first, made(func(w *htmlWriter) { p.ranksOf(w, n, run, columns) }),
		})
	}
	count := strconv.Itoa(len(p.nodes))
	if run.Gather != nil && run.Gather.NodesExpected > len(p.nodes) {
		count += " of " + strconv.Itoa(run.Gather.NodesExpected)
	}
	return map[string]any{
		"Count": count, "First": p.nodes[0].name, "Last": p.nodes[len(p.nodes)-1].name, "Length": text.Seconds(length),
		"Heatmaps": maps, "Nodes": rows, "Job": p.anyOfJob(), "Ring": made(func(w *htmlWriter) { p.ring(w, run, start, length) }),
		"Work": referenceWork(p), "Processes": referenceProcesses(p, run),
	}
}

// data is what the page's script gets, by encoding/json.
func (r reference) data(t testing.TB, p *Page, run *reporter.Run, shown []int) string {
	t.Helper()
	type series struct {
		Label  string `json:"label"`
		Spread bool   `json:"spread,omitempty"`
		Color  int    `json:"color,omitempty"`
		Dash   int    `json:"dash,omitempty"`
		Unit   string `json:"unit,omitempty"`
		Part   Part   `json:"part,omitempty"`
	}
	type chart struct {
		ID     string   `json:"id"`
		Title  string   `json:"title"`
		Unit   string   `json:"unit"`
		Top    float64  `json:"top"`
		Series []series `json:"series"`
		Asides []series `json:"asides"`
		Maybe  bool     `json:"maybe,omitempty"`
		Signed bool     `json:"signed,omitempty"`
		Stack  []string `json:"stack,omitempty"`
		Lanes  bool     `json:"lanes,omitempty"`
		Within bool     `json:"within,omitempty"`
	}
	gpus := 0
	for _, n := range p.nodes {
		gpus = max(gpus, n.gpus)
	}
	plans, charts := chartPlans(gpus, p.lines()), []chart{}
	for _, i := range shown {
		plan := &plans[i]
		plan.series = slices.DeleteFunc(plan.series, p.lacks)
		c := chart{
			ID: plan.id, Title: plan.title, Unit: plan.unit(), Top: plan.top(), Maybe: plan.whenMeasured, Signed: plan.line.Signed(),
			Lanes: i == 0 && p.lanes(), Within: i > 0 && i < gpuCharts && p.lanes(),
		}
		if plan.stack.rest != "" {
			c.Stack = []string{plan.stack.rest, plan.stack.alone, plan.stack.share}
		}
		for _, s := range plan.series {
			c.Series = append(c.Series, series{Label: s.label, Spread: s.upper != 0, Color: s.color, Dash: s.dash, Part: s.part})
		}
		for _, s := range plan.aside {
			c.Asides = append(c.Asides, series{Label: s.label, Spread: s.upper != 0, Unit: s.asideUnit()})
		}
		charts = append(charts, c)
	}

	var names, hosts []string
	for _, n := range p.nodes {
		names, hosts = append(names, n.name), append(hosts, n.host)
	}
	if len(names) == 1 {
		hosts = nil
	}
	start, length := p.span()
	plan := map[string]any{
		"charts": charts, "run": run.ID + "@" + strconv.FormatInt(run.Start.UnixMicro(), 10), "first": names[0], "nodes": names, "hosts": hosts,
		"start": start, "length": length, "live": p.options.Live.Milliseconds(), "columns": p.heatColumns(),
	}
	if p.limit > 0 {
		plan["packed"] = true
	}
	out := referenceScript(t, "plan", plan)
	for _, n := range p.nodes {
		out += referenceScript(t, "node-"+n.name, referenceNode(n, plans, shown, len(p.nodes) > 1))
	}
	return out
}

func referenceScript(t testing.TB, id string, data any) string {
	t.Helper()
	encoded, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return `<script type="application/json" id="` + template.HTMLEscapeString(id) + `">` + string(encoded) + "</script>\n"
}

func referenceNode(n *pageNode, plans []chartPlan, shown []int, many bool) map[string]any {
	d := map[string]any{"s": n.time.Start, "t": referenceNumbers(n, n.time.Ends)}
	put := func(key, chart string, value any) {
		if d[key] == nil {
			d[key] = make(map[string]any)
		}
		d[key].(map[string]any)[chart] = value
	}
	add := func(key string, values ...any) {
		list, _ := d[key].([]any)
		d[key] = append(list, values...)
	}
	d["c"], d["a"] = []any{}, []any{}
	measured := false
	for i, c := range n.charts {
		measured = measured || i < gpuCharts && len(c.Series) > 0
		if !slices.Contains(shown, i) {
			continue
		}
		if c.BoundText != "" {
			put("b", c.ID, []any{c.Bound, c.BoundText})
		}
		if c.Whole > 0 {
			put("w", c.ID, c.Whole)
			if s := c.Stacked(); s.Top != c.Whole && len(s.Series) > 0 {
				put("z", c.ID, s.Top)
			}
		}
		if c.Peak > 0 {
			put("o", c.ID, []any{c.Peak, c.PeakText})
		}
		if c.Quiet() {
			add("q", c.ID)
		}
		add("c", referenceBands(n, plans[i].series, c.Series))
		add("a", referenceBands(n, plans[i].aside, c.Asides))
	}
	for _, s := range n.scales {
		if measured {
			add("l", []float64{s.memory, s.power})
		}
	}
	for _, m := range n.time.Marks {
		add("e", []any{m.At, m.Text})
	}
	for _, s := range n.time.Phases {
		add("h", []any{s.From, s.To, s.Name, s.Color % len(seriesColors())})
	}
	if !many {
		return d
	}

	d["k"], d["f"], d["x"], d["v"], d["g"], d["m"] = []any{}, []any{}, []any{}, []any{}, []any{}, n.metrics
	for _, c := range n.cards {
		add("k", []string{c.Label, c.Value, c.Note})
	}
	for _, f := range n.details {
		add("f", []string{f.Label, f.Value})
	}
	for _, m := range n.missing {
		add("x", []string{m.What, m.Why})
	}
	if n.listed > 0 {
		d["y"] = n.listed
	}
	for _, r := range n.phases {
		add("p", []string{r.Name, r.Count, r.Seconds, r.CPUs, r.Memory, r.GPU})
	}
	for _, m := range n.messages {
		add("v", []any{m.Text, m.Bad})
	}
	for _, m := range n.advice {
		add("g", []any{m.Text, m.Bad})
	}
	return d
}

func referenceBands(n *pageNode, plans []seriesPlan, have []Series) []any {
	out := make([]any, len(plans))
	for i, plan := range plans {
		for _, s := range have {
			least, mean, greatest := referenceNumbers(n, s.Band.Min), referenceNumbers(n, s.Band.Mean), referenceNumbers(n, s.Band.Max)
			switch {
			case s.Key != plan.name():
			case s.Spread:
				out[i] = []any{least, []any{}, greatest}
			case same(s.Band):
				out[i] = []any{greatest}
			default:
				out[i] = []any{least, mean, greatest}
			}
		}
	}
	return out
}

func referenceNumbers(n *pageNode, list reporter.Numbers) any {
	if !n.thinned {
		return list
	}
	return json.RawMessage(made(func(w *htmlWriter) { writePacked(w, list) }))
}

// referenceData finds the data of scripts.
var referenceData = regexp.MustCompile(`(?s)<script type="application/json" id="[^"]*">.*?</script>`)

// referenceLinks finds the addresses of links.
var referenceLinks = regexp.MustCompile(`href="([^"]*)"`)

// referenceSchemes finds those addresses with a scheme that html/template allows. On our pages they lead nowhere, as all
// others.
var referenceSchemes = regexp.MustCompile(`(?is)^href="(https?|mailto):.*"$`)

// sameAsReference wants a page to be that of the templates, but for what no browser sees: html/template writes + as &#43;,
// in place of an address with a scheme it has a word of its own, and it escapes more in the place that an address ends
// with; encoding/json sorts some names and writes 1e-07 as 1e-7.
func sameAsReference(t *testing.T, what, got, want string) {
	t.Helper()
	values := func(page string) (rest string, data []any) {
		rest = referenceData.ReplaceAllStringFunc(page, func(script string) string {
			start, encoded, _ := strings.Cut(script, ">")
			encoded = strings.TrimSuffix(encoded, "</script>")
			var v any
			if err := json.Unmarshal([]byte(encoded), &v); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if strings.ContainsAny(encoded, "<>&\u2028\u2029") {
				t.Errorf("%s: the data of a script has a < or the like: %.200s", what, encoded)
			}
			data = append(data, v)
			return start
		})
		rest = referenceLinks.ReplaceAllStringFunc(rest, func(link string) string {
			if plain, err := url.PathUnescape(link); err == nil {
				link = plain
			}
			return referenceSchemes.ReplaceAllString(link, `href="#"`)
		})
		return rest, data
	}
	want = strings.NewReplacer("&#43;", "+", "#ZgotmplZ", "#").Replace(want)
	if link := referenceLinks.FindString(got); referenceSchemes.MatchString(link) {
		t.Errorf("%s: a link leads to %s", what, link)
	}
	gotText, gotData := values(got)
	wantText, wantData := values(want)
	if gotText != wantText {
		at := 0
		for at < min(len(gotText), len(wantText)) && gotText[at] == wantText[at] {
			at++
		}
		from := max(0, at-80)
		t.Errorf("%s: at byte %d there is\n%.200q\nwant\n%.200q", what, at, gotText[from:], wantText[from:])
	}
	if !reflect.DeepEqual(gotData, wantData) {
		t.Errorf("%s: the data of scripts (-want +got):\n%.2000s", what, gocmp.Diff(wantData, gotData))
	}
}

// referenceReports are reports of all kinds.
func referenceReports(t testing.TB) map[string]*reporter.Report {
	lines := worked()
	draws(lines.Nodes["0"], 32)
	reports := map[string]*reporter.Report{
		"one sample": plottertest.Short(), "a minute": plottertest.Minute(0), "gaps": plottertest.Gaps(), "nothing": plottertest.Absent(),
		"a week": plottertest.Week(t), "perf.py": plottertest.PerfPy(t), "2 GPUs": plottertest.Limited(0, 20, 2),
		"lanes": plottertest.Limited(0, 20, 6), "nodes with GPUs": plottertest.LimitedNodes(), "a job": plottertest.Job(),
		"64 CPUs": reportertest.Large(0, 1, 1000), "operations": worked(), "many operations": lines, "phases": phased(),
		"ranks": plottertest.Concluded(t, reportertest.KilledRank()), "ranks of a node": reportertest.Ranks(1, 4, 20),
		"processes": reportertest.Processes(plottertest.Minute(0)), "processes of nodes": reportertest.Processes(plottertest.LimitedNodes()),
		"a failed node": reportertest.Nodes(5, 2),
	}
	for name, r := range reportertest.Golden() {
		if len(r.Nodes) > 0 && !slices.Contains(slices.Collect(maps.Values(r.Nodes)), nil) {
			reports["golden "+name] = r
		}
	}
	for i, values := range [][]float64{{1.7e308, -1.7e308, 0}, {5e-324, 0, 1e-7}, {-1, -2, -3}, {101, 1e9, 3}, nil} {
		reports["numbers "+strconv.Itoa(i)] = plottertest.HostileNumbers(values, []float64{1, 2, 3}[:len(values)])
	}
	full, lazy := pageSamples(20), pageSamples(20)
	for _, name := range []string{"0", "1"} {
		lazy.Nodes[name] = full.Nodes["0"].ByReference("file:///d#job/node-"+name, 9, "00")
	}
	lazy.Run.Gather = &reporter.Gather{Store: "file:///d", NodesExpected: 3}
	reports["by reference"] = lazy
	return reports
}

func TestReference_Page(t *testing.T) {
	r := newReference(t)
	live := PageOptions{Live: 5 * time.Second, Siblings: []string{"node-1.html"}}
	for name, report := range referenceReports(t) {
		t.Run(name, func(t *testing.T) {
			referencePage(t, r, report, PageOptions{}, 0)
			referencePage(t, r, report, live, 0)
			referencePage(t, r, report, PageOptions{}, fewest)
		})
	}
}

// referencePage wants the page of a report to be that of the templates. A limit of a node's buckets packs them.
func referencePage(t *testing.T, r reference, report *reporter.Report, o PageOptions, limit int) {
	t.Helper()
	pages := [2]*Page{NewPage(o), NewPage(o)}
	for _, p := range pages {
		p.limit = limit
		for _, name := range report.NodeNames() {
			p.Add(&report.Run, name, report.Nodes[name])
		}
	}
	var out strings.Builder
	if err := pages[0].Write(&out, &report.Run); err != nil {
		t.Fatal(err)
	}
	sameAsReference(t, fmt.Sprintf("%+v, limit %d", o, limit), out.String(), r.page(t, pages[1], &report.Run))
}

// FuzzReference puts a text wherever the pages have one.
func FuzzReference(f *testing.F) {
	f.Add("a")
	f.Add("node-a b&'\"<:%41%zz+.html")
	for _, evil := range plottertest.Evil() {
		f.Add(evil)
	}
	f.Add(strings.Join(reportertest.HostileTexts[:60], ""))
	r := newReference(f)
	f.Fuzz(func(t *testing.T, evil string) {
		if len(evil) > 10_000 {
			return
		}
		two, _ := plottertest.Poisoned(evil)
		one := reportertest.HostileWork(reportertest.HostileReport(evil), evil)
		one.Run.Tags = map[string]string{evil: evil}
		o := PageOptions{Siblings: []string{evil, "a/" + evil}}
		referencePage(t, r, two, o, 0)
		referencePage(t, r, one, o, 0)

		var out bytes.Buffer
		c := compared(t, evil)
		if err := WriteDiffPage(&out, c, evil); err != nil {
			t.Fatal(err)
		}
		sameAsReference(t, "diff", out.String(), r.diff(t, c, evil))
		out.Reset()
		x := Index{Title: evil, Rows: []IndexRow{
			{Run: evil, Start: evil, Length: evil, Nodes: evil, End: evil, Command: evil, Link: evil, CPU: Gauge{12.345, evil}, State: evil},
			{Run: "x", Link: "a/" + evil, Memory: Gauge{100, evil}},
		}}
		for _, x := range []Index{x, {Title: evil}} {
			out.Reset()
			if err := WriteIndex(&out, x); err != nil {
				t.Fatal(err)
			}
			sameAsReference(t, "index", out.String(), r.index(t, x))
		}
	})
}

// diff returns the page of a comparison.
func (r reference) diff(t testing.TB, c *comparer.Comparison, version string) string {
	t.Helper()
	page := struct {
		*diffPage
		Version string
	}{newDiffPage(c), version}
	return r.run(t, "top", page) + "<style>\n" + string(pageCSS+diffCSS) + "</style>" + r.run(t, "body", page)
}

// index returns an index. That of the templates began and ended with an empty line.
func (r reference) index(t testing.TB, x Index) string {
	t.Helper()
	return strings.TrimSpace(r.run(t, "index.html", struct {
		Index
		CSS template.CSS
	}{x, template.CSS(pageCSS)})) + "\n"
}
