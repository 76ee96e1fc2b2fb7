package plotter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// chartPlan is a chart without measured values.
type chartPlan struct {
	ID     string // cpu, memory, disk_io, … (see chartPlans), or the key of a series
	Title  string
	Series []Series // the job's, if they can be measured; otherwise the node's
	// Level reports whether values are levels, which are drawn as lines between samples. Rates are drawn as steps.
	Level bool
	// Stacked reports whether the series are parts of a whole, which are drawn on top of each other.
	Stacked bool

	node     []Series                   // replaces Series on a node that measured none of them
	column   collector.Column           // determines the unit and the bound
	line     reporter.OperationTimeline // used by operation charts, instead of column
	optional bool                       // whether the chart is omitted if no series was measured
	nothing  string                     // the sentence that replaces a chart without usage
	// whole lists columns with the usage of the whole node, in the chart's unit or in percent of the node's capacity.
	// The first measured column is used.
	whole []collector.Column
}

// Series is one line of a chart, with the band around it. The lists of the band have the same length as the timeline;
// NaN means not measured.
type Series struct {
	Label  string
	Color  int  // index into the palette; 0 is the job's, nodeColor the node's
	Dash   int  // kind of line: 0 is solid, see dashes
	Others bool // usage of others on the node: a thin grey line
	Key    string
	Band   reporter.Band

	column collector.Column           // column of Key
	line   reporter.OperationTimeline // used by operation series, instead of column; otherwise zero
}

// dashes returns the dash patterns by Series.Dash. A pattern alternates lengths of dashes and gaps, in pixels; nil is
// solid.
func dashes() [][]float64 { return [][]float64{nil, {2, 4}, {6, 3}, {9, 3, 2, 3}} }

// styled returns the series in the style for its index among several. With growing index, first the colors change, then
// the dashes.
func (s Series) styled(place int) Series {
	s.Color, s.Dash = place%nodeColor, place/nodeColor%len(dashes())
	return s
}

// ofNode returns the series in grey, with distinct dashes, if it belongs to the node. It returns series of the job or
// of a GPU unchanged.
func (s Series) ofNode() Series {
	_, _, gpu := s.column.GPU()
	place := 2*s.Color + s.Dash
	if s.line.Kind == "" && !gpu && s.column.Info().Scope != collector.ScopeJob && place < len(dashes()) {
		s.Color, s.Dash = nodeColor, place
	}
	return s
}

// infoOf returns the ColumnInfo of c. For a GPU column, the names lack the number of the GPU, because names with the
// number would be built for all columns.
func infoOf(c collector.Column) collector.ColumnInfo {
	if _, key, gpu := c.GPU(); gpu {
		return key.Info()
	}
	return c.Info()
}

// chartPlans returns the charts of a node with the given number of GPUs and operation lines, in order: CPU and memory
// first, then the GPUs, and then the others. Some nodes have only a few of these charts.
func chartPlans(gpus int, lines []reporter.OperationTimeline) []chartPlan {
	return slices.Concat(usagePlans(), gpuPlans(gpus), operationPlans(lines), devicePlans(), groupPlans())
}

// line returns the series of a column.
func line(label string, c collector.Column, color, dash int) Series {
	return Series{Label: label, column: c, Color: color, Dash: dash}
}

// usagePlans returns the CPU chart and the memory charts.
func usagePlans() []chartPlan {
	return []chartPlan{
		{ID: "cpu", Title: "CPU", column: collector.JobCPU, whole: []collector.Column{collector.CPUAvg},
			Series: []Series{line("this job", collector.JobCPU, 0, 0)}},
		{ID: "memory", Title: "Memory", column: collector.JobMemory, Level: true,
			whole: []collector.Column{collector.MemUsed, collector.MemPercent},
			Series: []Series{line("this job", collector.JobMemory, 0, 0), line("its page cache", collector.JobPageCache, 0, 1),
				line("counted against the limit", collector.LimitMemory, 0, 2)}},
		{ID: "memory_parts", Title: "Memory by kind", column: collector.JobMemoryAnon, Level: true, Stacked: true,
			optional: true, Series: []Series{line("anonymous", collector.JobMemoryAnon, 0, 0),
				line("/dev/shm, tmpfs, shared memory", collector.JobMemoryShmem, 1, 0),
				line("kernel", collector.JobMemoryKernel, 3, 0), line("files and page cache", collector.JobMemoryFile, 2, 0)}},
	}
}

// devicePlans returns the charts of disks, networks, waiting tasks and optional devices.
func devicePlans() []chartPlan {
	return []chartPlan{
		{ID: "disk_io", Title: "Disk", column: collector.DiskReadRate, nothing: "No disk traffic.",
			Series: []Series{line("reads", collector.JobReadRate, 0, 0), line("writes", collector.JobWriteRate, 0, 1)},
			node: []Series{line("reads of the node", collector.DiskReadRate, 0, 0),
				line("writes of the node", collector.DiskWriteRate, 0, 1)}},
		{ID: "network", Title: "Network of the node", column: collector.NetExtRecvRate,
			nothing: "No network traffic on the interfaces that are counted.",
			Series: slices.Concat(ratesOf(collector.TrafficNetwork, 0), ratesOf(collector.TrafficLoopback, 1),
				ratesOf(collector.TrafficInfiniBand, 2))},
		{ID: "disk_space", Title: "Disk used", column: collector.DiskPercent, Level: true,
			Series: []Series{line("used", collector.DiskPercent, 0, 0)}},
		{ID: "pressure", Title: "Waiting", column: collector.PSICPUSome, optional: true,
			nothing: "No task waited for CPU, memory or storage.",
			Series: []Series{
				line("for a CPU, some tasks", collector.JobPSICPUSome, 0, 0),
				line("for a CPU, all tasks", collector.JobPSICPUFull, 0, 1),
				line("for memory, some", collector.JobPSIMemorySome, 1, 0),
				line("for memory, all", collector.JobPSIMemoryFull, 1, 1),
				line("for storage, some", collector.JobPSIIOSome, 2, 0),
				line("for storage, all", collector.JobPSIIOFull, 2, 1),
			},
			node: []Series{
				line("for a CPU, some tasks of the node", collector.PSICPUSome, 0, 0),
				line("for memory, some", collector.PSIMemorySome, 0, 1),
				line("for memory, all", collector.PSIMemoryFull, 1, 1),
				line("for storage, some", collector.PSIIOSome, 1, 0),
			}},
		{ID: "network_file_systems", Title: "Network file systems", column: collector.NFSReadRate, optional: true,
			nothing: "No traffic of network file systems.",
			Series:  append(ratesOf(collector.TrafficNFS, 0), ratesOf(collector.TrafficLustre, 1)...)},
		{ID: "node_power", Title: "CPU and memory power", column: collector.NodePower, optional: true,
			Series: []Series{line("the node", collector.NodePower, 0, 0)}},
		{ID: "cpu_temperature", Title: "CPU temperature", column: collector.CPUTemperature, Level: true, optional: true,
			Series: []Series{line("hottest package", collector.CPUTemperature, 0, 0)}},
	}
}

// ratesOf returns a series for the rate of each counter in a group, all in one color. The label is the direction of the
// counter: "received". If several groups share a chart, the label also names the group: "loopback received".
func ratesOf(group collector.TrafficGroup, color int) (list []Series) {
	for i, counter := range collector.TrafficByGroup()[group] {
		row, label := counter.Info(), counter.Info().Direction
		switch group {
		case collector.TrafficLoopback, collector.TrafficInfiniBand, collector.TrafficNFS, collector.TrafficLustre:
			label = string(group) + " " + label
		}
		list = append(list, line(label, row.Rate, color, i%len(dashes())))
	}
	return list
}

// groupPlans returns charts for the groups of counters that have no other chart.
func groupPlans() (plans []chartPlan) {
	groups := collector.TrafficByGroup()
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if slices.Contains(collector.Traffic(), groups[group][0]) {
			continue
		}
		name, series := string(group), ratesOf(group, 0)
		plans = append(plans, chartPlan{
			ID: strings.ReplaceAll(name, " ", "_"), Title: strings.ToUpper(name[:1]) + name[1:],
			column: series[0].column, optional: true, Series: series,
		})
	}
	return plans
}

// gpuPlans returns the charts of the GPUs, with a series for each device.
func gpuPlans(gpus int) (plans []chartPlan) {
	for _, row := range []struct {
		id, title string
		key       collector.GPUKey
		level     bool
	}{
		{"gpu_utilization", "GPU busy", collector.GPUUtilization, false},
		{"gpu_memory", "GPU memory", collector.GPUMemoryUsed, true},
		{"gpu_power", "GPU power", collector.GPUPower, false},
		{"gpu_temperature", "GPU temperature", collector.GPUTemperature, true},
	} {
		p := chartPlan{ID: row.id, Title: row.title, Level: row.level, optional: true,
			column: collector.GPUColumn(0, row.key)}
		for i := range gpus {
			p.Series = append(p.Series, line(fmt.Sprintf("GPU %d", i), collector.GPUColumn(i, row.key), 0, 0).styled(i))
		}
		plans = append(plans, p)
	}
	return plans
}

// SampleKeys returns the keys of the samples that the page draws, except operation lines.
func SampleKeys() []string {
	keys := []string{collector.Timestamp.Key()}
	for _, p := range chartPlans(collector.MaxGPUs, nil) {
		for _, s := range slices.Concat(p.Series, p.node) {
			keys = append(keys, s.column.Key())
		}
		for _, c := range p.whole {
			keys = append(keys, c.Key())
		}
	}
	return keys
}
