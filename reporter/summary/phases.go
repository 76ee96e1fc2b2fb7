package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// phasesShown is the number of phases in a summary, unless all are requested.
const phasesShown = 8

// Phases returns the phases of a report by their first start, each in words: its name, the number of times it began ("3
// ×"), its length, CPUs ("1.92 CPUs"), memory ("peak 3.1 GiB") and GPU ("GPU 81 %"); "" = unknown. For a phase on
// several nodes, the length and the number of times are the greatest on any node, and the other values are combined
// like their metrics.
func Phases(r *reporter.Report) [][]string {
	var rows [][]string
	for _, p := range phasesOf(r) {
		rows = append(rows, p.row())
	}
	return rows
}

// phase is one phase over all nodes.
type phase struct {
	name                   string
	start, seconds         float64
	count                  int64
	jobCPUs, nodeCPU, peak float64
	cpuKnown               bool
	gpu                    float64 // sum over devices
	gpus, nodes            int
}

// phasesOf combines the phases of the nodes.
func phasesOf(r *reporter.Report) []*phase {
	byName := make(map[string]*phase)
	var all []*phase
	for _, n := range r.EachNode() {
		for i := range n.Phases {
			of := &n.Phases[i]
			p := byName[of.Name]
			if p == nil {
				p = &phase{name: of.Name, start: of.Start, peak: math.NaN()}
				byName[of.Name], all = p, append(all, p)
			}
			p.add(n, of)
		}
	}
	slices.SortStableFunc(all, func(a, b *phase) int { return cmp.Compare(a.start, b.start) })

	return all
}

// add adds of, the phase on node n.
func (p *phase) add(n *reporter.Node, of *reporter.Phase) {
	p.start, p.seconds = min(p.start, of.Start), max(p.seconds, of.Seconds)
	p.count = max(p.count, of.Count)
	p.nodes++
	if v, ok := of.Metrics[reporter.MetricJobCores]; ok {
		p.jobCPUs, p.cpuKnown = p.jobCPUs+v, true
	}
	p.peak = greatest(p.peak, metricOrNaN(of.Metrics, reporter.MetricJobMemoryPeak))
	p.nodeCPU += metricOrNaN(of.Metrics, reporter.MetricCPUMean)
	for i := range n.GPUs[:min(len(n.GPUs), collector.MaxGPUs)] {
		v := metricOrNaN(of.Metrics, reporter.GPUMetricName(reporter.MetricGPUUtilization, i))
		if n.ShowsGPU(i) && !math.IsNaN(v) {
			p.gpu, p.gpus = p.gpu+v, p.gpus+1
		}
	}
}

// metricOrNaN returns the named metric, or NaN if it is unknown.
func metricOrNaN(values reporter.Values, name string) float64 {
	if v, ok := values[name]; ok {
		return v
	}
	return math.NaN()
}

// row returns the phase in words, as in Phases.
func (p *phase) row() []string {
	cpus, memory, gpu := "", "", ""
	if mean := p.nodeCPU / float64(p.nodes); p.cpuKnown {
		cpus = text.UsedCPUs(p.jobCPUs) + " CPUs"
	} else if !math.IsNaN(mean) {
		cpus = "node " + text.Percent(mean)
	}
	if !math.IsNaN(p.peak) {
		memory = "peak " + text.SizeText(p.peak)
	}
	if p.gpus > 0 {
		gpu = "GPU " + text.Percent(p.gpu/float64(p.gpus))
	}
	return []string{text.Printable(p.name), fmt.Sprintf("%d ×", p.count), text.Seconds(p.seconds), cpus, memory, gpu}
}

// chosenPhases returns the n longest phases, in the order of all.
func chosenPhases(all []*phase, n int) []*phase {
	longest := slices.SortedStableFunc(slices.Values(all), func(a, b *phase) int {
		return cmp.Compare(b.seconds, a.seconds)
	})[:min(len(all), n)]

	return slices.DeleteFunc(slices.Clone(all), func(p *phase) bool { return !slices.Contains(longest, p) })
}

// phaseTable returns a table of at most limit phases, and the number of omitted ones.
func phaseTable(r *reporter.Report, limit int) (t *table.Table, left int) {
	t = &table.Table{Columns: []table.Column{
		{LongHead: "phase", Max: maxPhaseName}, {LongHead: "began", Right: true, Optional: true},
		{LongHead: "lasted", Right: true}, {LongHead: "CPUs", Right: true, Optional: true},
		{LongHead: "peak memory", Right: true, Optional: true},
		{LongHead: "GPU", Right: true, Optional: true},
	}}
	all := phasesOf(r)
	once := !slices.ContainsFunc(all, func(p *phase) bool { return p.count != 1 })
	for _, of := range chosenPhases(all, limit) {
		row := of.row()
		row[4] = strings.TrimPrefix(row[4], "peak ")
		if once {
			row[1] = ""
		}
		cells := []table.Cell{table.Untrusted(row[0])}
		for _, words := range row[1:] {
			cells = append(cells, table.Bare(cmp.Or(words, text.Absent)))
		}
		t.Add(cells...)
	}
	return t, len(all) - len(t.Rows)
}

// maxPhaseName is the maximum width of a phase's name that shares a line with its numbers, in cells.
const maxPhaseName = 24

// phases writes a line for each of at most limit phases, in columns, and the command that shows the rest.
func (p *terminalWriter) phases(r *reporter.Report, limit int, o Options) {
	t, left := phaseTable(r, limit)
	p.table("phases", t, 2)
	if left > 0 {
		p.path("", fmt.Sprintf("%d more in %s", left, showCommand(r, o)))
	}
}

// phases writes the phases as a table. Names are from the report.
func (m *markdownWriter) phases(r *reporter.Report) {
	t, left := phaseTable(r, markdownPhases)
	remark := ""
	if left > 0 {
		remark = text.Count(left, "more phase is", "more phases are") + " in the report."
	}
	m.table(t, remark)
}
