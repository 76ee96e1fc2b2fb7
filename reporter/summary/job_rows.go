package summary

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// jobRow is one of the few rows on the job below the conclusion: a bar with words, or only words, and a curve.
type jobRow struct {
	label, words string
	bar          *Bar
	values       []float64
	killed       bool // the row ends with the sign for a kill
}

// maxCurve is the maximum width of a curve, in cells.
const maxCurve = 20

// minCurve is the minimum width of a curve of many samples, in cells.
const minCurve = 4

// jobRowsOf returns the rows on the job, the subject of the conclusion first.
func jobRowsOf(r *reporter.Report, c *Conclusion) []jobRow {
	n, several := onlyNode(r), len(r.Nodes) > 1
	var rows []jobRow
	for _, b := range Bars(r) {
		row := jobRow{label: b.Label, bar: &b, words: b.rowText(r)}
		if !several {
			row.values = row.curveValues(n, c)
		}
		rows = append(rows, row)
	}
	if !several {
		rows = append(rows, wordRows(n, c)...)
	}

	first := strings.TrimSuffix(c.Subject, "_space")
	if first == "cpu" || first == "gpu" {
		first = strings.ToUpper(first)
	}
	isFirst := func(row jobRow) bool { return first != "" && strings.HasPrefix(row.label, first) }
	if i := slices.IndexFunc(rows, isFirst); i > 0 {
		rows = slices.Concat(rows[i:i+1], rows[:i], rows[i+1:])
	}
	if len(rows) > 0 {
		rows[0].killed = !several && c.killed(n) && rows[0].bar != nil
	}
	return rows
}

// barRows returns the rows with bars, without their curves.
func barRows(r *reporter.Report, c *Conclusion) []jobRow {
	rows := slices.DeleteFunc(jobRowsOf(r, c), func(row jobRow) bool { return row.bar == nil })
	for i := range rows {
		rows[i].values, rows[i].killed = nil, false
	}
	return rows
}

// killed reports whether the job on n failed because SIGKILL ended it.
func (c *Conclusion) killed(n *reporter.Node) bool {
	return c.Outcome == Failed && n.Job != nil && n.Job.Signal == "SIGKILL"
}

// rowText returns the words after the percentage of a bar: "of 2 CPUs (mean), 7.5 s of CPU time", "of 2 GiB, peak 291
// MiB".
func (b Bar) rowText(r *reporter.Report) string {
	if b.rule != "" {
		return "of the " + text.TrimmedSizeText(b.Of) + " of your rule, " + text.SizeText(b.Used)
	}
	mean := text.Parts{b.CapacityText() + " (mean)"}
	switch b.Key {
	case BarCPU:
		seconds := 0.0 // NaN if it is unknown for any node
		for _, n := range r.EachNode() {
			seconds += cpuOfJob(n)
		}
		mean.Add(seconds > 0, "%s of CPU time", text.Seconds(seconds))
		return mean.String()
	case BarGPU:
		return mean.String()
	}
	if math.Abs(b.Percent-100) < 0.5 { // the peak equals the capacity
		return b.CapacityText() + " (peak)"
	}
	return b.CapacityText() + ", peak " + text.SizeText(b.Used)
}

// curveValues returns the values of the curve of a bar, or nil if it has none.
func (row *jobRow) curveValues(n *reporter.Node, c *Conclusion) []float64 {
	columns := map[string][]collector.Column{BarCPU: {collector.JobCPU, collector.CPUAvg},
		BarMemory: {collector.JobMemory, collector.MemPercent}}[row.bar.Key]
	if columns == nil {
		return nil
	}
	column := columns[0]
	if n.Job == nil {
		column = columns[1]
	}
	values := untilKill(n, c, column)
	if limit := KillLimit(n); row.bar.Key == BarMemory && len(values) > 0 && c.killed(n) && limit > 0 {
		values = append(values, limit)
	}
	return values
}

// untilKill returns the greatest value of a column for each kept sample, up to the kill if the kernel killed the job.
func untilKill(n *reporter.Node, c *Conclusion, column collector.Column) []float64 {
	values := n.Samples.Column(column.Key())
	if band, ok := n.Envelope[column.Key()]; ok {
		values = band.Max
	}
	if !c.killed(n) || n.Verdict == nil || !diagnosis.IsOutOfMemory(n.Verdict.Cause) {
		return values
	}
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(n.Verdict.Evidence["time"]))
	if err != nil {
		return values
	}
	after := func(t float64) bool { return t >= float64(at.UnixMicro())/1e6 }
	end := slices.IndexFunc(n.Samples.Column(collector.Timestamp.Key()), after)
	if end < 0 {
		end = len(values)
	}
	return slices.Clone(values[:min(end, len(values))])
}

// jobRows writes the rows. Their curves share a time axis that ends in the last column.
func (p *terminalWriter) jobRows(rows []jobRow, o Options) {
	words, samples, sign := 0, 0, ""
	for _, row := range rows {
		words = max(words, text.Width(wordsOf(row.spans(o.ASCII))))
		samples = max(samples, len(row.values))
		if row.killed {
			sign = "✗"
		}
	}
	if o.ASCII {
		o.Curve, sign = nil, strings.Replace(sign, "✗", "x", 1)
	}
	cells := min(samples, maxCurve, p.width-words-2-text.Width(sign))
	hint := "each curve to its own peak"
	if o.Curve == nil || samples < 2 || cells < min(samples, minCurve) {
		cells, hint = 0, ""
	}

	p.spans(span{dim, text.PadLeft(hint, p.width)})
	for _, row := range rows {
		line, peak := row.spans(o.ASCII), 0.0
		for _, v := range row.values {
			peak = greatest(peak, v)
		}
		curve, end := strings.Repeat(" ", cells), strings.Repeat(" ", text.Width(sign))
		if cells > 0 && peak > 0 {
			none := slices.Repeat([]float64{math.NaN()}, samples-len(row.values))
			curve = o.Curve(slices.Concat(row.values, none), cells, 0, peak, false)
		}
		if row.killed {
			end = sign
		}
		if gap := p.width - text.Width(wordsOf(line)) - cells - text.Width(sign); gap > 0 {
			line = append(line, span{plain, strings.Repeat(" ", gap)}, span{blue, curve}, span{alarm, end})
		}
		p.spans(line...)
	}
}

// spans returns the label, the bar and the words of the row.
func (row *jobRow) spans(ascii bool) []span {
	label := span{dim, text.PadRight(row.label, headWidth)}
	if row.bar == nil {
		return []span{label, {plain, row.words}}
	}
	picture, look := row.bar.Picture(), blue
	if ascii {
		picture = text.ASCII(picture)
	}
	if row.bar.Percent >= 95 && (row.bar.Key == BarMemory || row.bar.Key == BarDisk) {
		look = alarm
	}
	return []span{label, {look, picture}, {plain, " " + text.PadLeft(row.bar.Share(), len("100 %")) + "  " + row.words}}
}

// wordRows returns the rows without a bar: on the bytes that the job read and wrote, if any, and on the processes in
// the samples.
func wordRows(n *reporter.Node, c *Conclusion) (rows []jobRow) {
	read, written := n.Metric(reporter.MetricJobRead), n.Metric(reporter.MetricJobWritten)
	var words text.Parts
	words.Add(written > 0, "%s written", text.SizeText(written))
	words.Add(read > 0, "%s read", text.SizeText(read))
	if len(words) > 0 {
		values := slices.Clone(untilKill(n, c, collector.JobReadRate))
		for i, v := range untilKill(n, c, collector.JobWriteRate) {
			if i < len(values) {
				values[i] += v
			}
		}
		rows = append(rows, jobRow{label: "disk", words: words.String(), values: values})
	}

	processes, threads := n.Metric(reporter.MetricJobProcesses), n.Metric(reporter.MetricJobThreads)
	if !math.IsNaN(processes) {
		words = text.Parts{"at most " + text.Fixed(processes, 0) + " seen"}
		words.Add(!math.IsNaN(threads), "with %s", text.Count(threads, "thread", "threads"))
		rows = append(rows, jobRow{label: "processes", words: words.String()})
	}
	return rows
}
