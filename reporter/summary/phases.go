package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// phasesShown is how many phases a summary shows, unless it is asked for all.
const phasesShown = 8

// A PhaseRow is what people read of a phase, in words. Words that are not known are "".
type PhaseRow struct {
	Name    string // printable
	Count   string // "3 ×"
	Seconds string // "12 min"
	CPUs    string // "1.92 CPUs"
	Memory  string // "peak 3.1 GiB"
	GPU     string // "GPU 81 %"
}

// Phases returns the phases of a report by their first start. Of several nodes that were in a phase, the
// length and the number of beginnings are the greatest, and the others are put together as their metrics
// are.
func Phases(r *reporter.Report) []PhaseRow {
	var rows []PhaseRow
	for _, p := range phasesOf(r) {
		rows = append(rows, p.row())
	}
	return rows
}

// A phase is one phase over all nodes.
type phase struct {
	name                   string
	start, seconds         float64
	count                  int64
	jobCPUs, nodeCPU, peak float64
	cpuKnown, peakKnown    bool
	gpu                    float64 // sum over devices
	gpus, nodes            int
}

// phasesOf puts the phases of the nodes together.
func phasesOf(r *reporter.Report) []*phase {
	byName := make(map[string]*phase)
	var all []*phase
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil {
			continue
		}
		for i := range n.Phases {
			of := &n.Phases[i]
			p := byName[of.Name]
			if p == nil {
				p = &phase{name: of.Name, start: of.Start}
				byName[of.Name], all = p, append(all, p)
			}
			p.add(n, of)
		}
	}
	slices.SortStableFunc(all, func(a, b *phase) int { return cmp.Compare(a.start, b.start) })

	return all
}

// add adds the phase of a node.
func (p *phase) add(n *reporter.Node, of *reporter.Phase) {
	p.start, p.seconds = min(p.start, of.Start), max(p.seconds, of.Seconds)
	p.count = max(p.count, of.Count)
	p.nodes++
	if v, ok := of.Metrics[reporter.MetricJobCores]; ok {
		p.jobCPUs, p.cpuKnown = p.jobCPUs+v, true
	}
	if v, ok := of.Metrics[reporter.MetricJobMemoryPeak]; ok {
		p.peak, p.peakKnown = max(p.peak, v), true
	}
	p.nodeCPU += number(of.Metrics, reporter.MetricCPUMean)
	for i := range n.GPUs[:min(len(n.GPUs), collector.MaxGPUs)] {
		v := number(of.Metrics, reporter.GPUMetricName(reporter.MetricGPUUtilization, i))
		if n.ShowsGPU(i) && !math.IsNaN(v) {
			p.gpu, p.gpus = p.gpu+v, p.gpus+1
		}
	}
}

// number returns a metric, or NaN.
func number(values reporter.Values, name string) float64 {
	if v, ok := values[name]; ok {
		return v
	}
	return math.NaN()
}

// row returns the phase in words.
func (p *phase) row() PhaseRow {
	out := PhaseRow{
		Name: text.Printable(p.name), Count: fmt.Sprintf("%d ×", p.count), Seconds: text.Seconds(p.seconds),
	}
	switch mean := p.nodeCPU / float64(p.nodes); {
	case p.cpuKnown:
		out.CPUs = text.UsedCPUs(p.jobCPUs) + " CPUs"
	case !math.IsNaN(mean):
		out.CPUs = "node " + text.Percent(mean)
	}
	if p.peakKnown {
		out.Memory = "peak " + text.SizeText(p.peak)
	}
	if p.gpus > 0 {
		out.GPU = "GPU " + text.Percent(p.gpu/float64(p.gpus))
	}

	return out
}

// chosenPhases returns the phases that are shown, at most n: the longest, in their order.
func chosenPhases(all []*phase, n int) []*phase {
	if len(all) <= n {
		return all
	}

	longest := slices.SortedStableFunc(slices.Values(all), func(a, b *phase) int {
		return cmp.Compare(b.seconds, a.seconds)
	})[:n]

	return slices.DeleteFunc(slices.Clone(all), func(p *phase) bool { return !slices.Contains(longest, p) })
}

// phaseTable returns a table of phases.
func phaseTable(phases []*phase) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Long: "phase", Most: maxPhaseName}, {Long: "began", Right: true}, {Long: "lasted", Right: true},
		{Long: "CPUs", Right: true, Optional: true}, {Long: "memory", Right: true, Optional: true},
		{Long: "GPU", Right: true, Optional: true},
	}}
	for _, of := range phases {
		row := of.row()
		cells := []table.Cell{table.Quote(row.Name)}
		for _, words := range []string{row.Count, row.Seconds, row.CPUs, row.Memory, row.GPU} {
			cells = append(cells, table.Bare(cmp.Or(words, text.Absent)))
		}
		t.Add(cells...)
	}

	return t
}

// maxPhaseName is the width of the name of a phase that shares a line with its numbers, in cells.
const maxPhaseName = 24

// phases writes a line for each phase, in columns.
func (p *layout) phases(r *reporter.Report, most int) {
	all := phasesOf(r)
	shown := chosenPhases(all, most)
	p.table("phases", phaseTable(shown), 2)
	if left := len(all) - len(shown); left > 0 {
		p.line(plain, text.PadRight("", labelWidth)+text.Count(left, "more phase", "more phases")+
			", see perfagent show")
	}
}

// phases writes the phases as a table. Names are from the report.
func (m *markdown) phases(r *reporter.Report) {
	all := phasesOf(r)
	if len(all) == 0 {
		return
	}

	shown := chosenPhases(all, markdownPhases)
	m.table(phaseTable(shown))
	if left := len(all) - len(shown); left > 0 {
		m.line(text.Count(left, "more phase is", "more phases are") + " in the report.")
		m.line("")
	}
}
