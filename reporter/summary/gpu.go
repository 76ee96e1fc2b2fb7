package summary

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// gpuRowsShown is the maximum number of GPUs that a summary lists.
const gpuRowsShown = 8

// gpuRows returns a row for each GPU of the job or, for a node without a job, for each GPU.
func gpuRows(n *reporter.Node) []numberRow {
	var rows numberRows
	more, others := 0, 0
	for i := range n.GPUs {
		switch {
		case !n.ShowsGPU(i):
			others++
		case len(rows) == gpuRowsShown:
			more++
		default:
			rows = append(rows, gpuRow(n, i))
		}
	}
	rows.add(more > 0, numberRow{label: "GPUs", value: text.Quantity{Number: fmt.Sprintf("+%d", more)},
		note: "more, see the report"})
	rows.add(len(rows) == 0 && others > 0, numberRow{label: "GPUs", value: text.Quantity{Number: "0"},
		note: unseenGPUs(n, others)})
	return rows
}

// unseenGPUs returns the note for a job that could see none of the listed GPUs. If a node has very many GPUs, perfagent
// samples only some of them, which the report lists under missing. The job may then have used others.
func unseenGPUs(n *reporter.Node, listed int) string {
	for _, m := range n.Missing {
		if m.Code == gpu.NotFollowed && m.Total > int64(listed) {
			return fmt.Sprintf("of %d followed are the job's; the node has %d", listed, m.Total)
		}
	}
	return fmt.Sprintf("of the node's %d could be seen by the job", listed)
}

// gpuRow returns the row of GPU i.
func gpuRow(n *reporter.Node, i int) numberRow {
	r := numberRow{label: fmt.Sprintf("GPU %d", i), value: text.Percentage(n.GPUMetric(reporter.MetricGPUUtilization, i)),
		note: gpuNote(n, i), of: strings.TrimPrefix(text.Printable(n.GPUs[i].Name), "NVIDIA ")}
	if r.of != "" {
		r.note += ";"
	}
	return r
}

// gpuNote returns the peak memory and power of GPU i, and their limits.
func gpuNote(n *reporter.Node, i int) string {
	memory, power := n.GPUMetric(reporter.MetricGPUMemoryPeak, i), n.GPUMetric(reporter.MetricGPUPowerPeak, i)
	g, watts := n.GPUs[i], text.Fixed(power, 0)
	if g.PowerLimitWatts > 0 {
		watts += " of " + text.Fixed(float64(g.PowerLimitWatts), 0)
	}
	note := text.Parts{"busy"}
	note.Add(!math.IsNaN(memory), "%s", usedOf(memory, float64(g.MemoryMB)))
	note.Add(!math.IsNaN(power), "%s W", watts)
	return note.String()
}

// gpuTotals summarizes the GPUs of all nodes.
type gpuTotals struct {
	listed, nodes  int // GPUs of jobs, or of nodes without a job; nodes with such GPUs
	busy           float64
	measured       int // number of GPUs summed up in busy
	least          float64
	leastAt        string // node and device with the lowest utilization
	memory, fullOf float64
}

func newGPUTotals(r *reporter.Report) gpuTotals {
	a := gpuTotals{least: math.Inf(1)}
	for name, n := range r.EachNode() {
		before := a.listed
		for i := range n.GPUs {
			if !n.ShowsGPU(i) {
				continue
			}
			a.listed++
			if v := n.GPUMetric(reporter.MetricGPUUtilization, i); !math.IsNaN(v) {
				a.busy, a.measured = a.busy+v, a.measured+1
				if v < a.least {
					a.least, a.leastAt = v, fmt.Sprintf("node %s, GPU %d", text.Printable(name), i)
				}
			}
			if v := n.GPUMetric(reporter.MetricGPUMemoryPeak, i); v > a.memory {
				a.memory, a.fullOf = v, float64(n.GPUs[i].MemoryMB)
			}
		}
		a.nodes += min(1, a.listed-before)
	}
	return a
}

// rows returns the rows on all GPUs together, or no rows if there are no GPUs.
func (a *gpuTotals) rows() (rows numberRows) {
	of, most := strconv.Itoa(a.listed), "the most memory used on one"
	if a.measured > 0 && a.measured < a.listed {
		of = fmt.Sprintf("%d of the %d", a.measured, a.listed)
	}
	if a.fullOf > 0 {
		most += ", of " + text.SizeText(a.fullOf)
	}
	rows.add(a.listed > 0, numberRow{label: "GPUs", value: text.Percentage(a.busy / float64(a.measured)),
		note: "busy, mean of " + of + " on " + text.Count(a.nodes, "node", "nodes")})
	rows.add(a.measured > 1, numberRow{value: text.Percentage(a.least), note: "the least,", of: a.leastAt})
	rows.add(a.memory > 0, numberRow{value: text.Size(a.memory), note: most})
	return rows
}

// usedOf formats MiB used out of a capacity: "1.5 of 8.0 GiB". It omits an unknown capacity.
func usedOf(used, of float64) string {
	u, o := text.Size(used), text.Size(of)
	switch {
	case !(of > 0):
		return u.String()
	case u.Unit == o.Unit: // write the unit once
		return u.Number + " of " + o.String()
	}
	return u.String() + " of " + o.String()
}
