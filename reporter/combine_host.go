package reporter

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
)

// A partSpan is a span of time in which the perfagent of a part measured the host.
type partSpan struct {
	*rankPart
	start, end Time
}

func (h partSpan) seconds() float64 { return HostSpan{Start: h.start, End: h.end}.seconds() }

// findHostSpans finds the spans that supply the host's series, in order of time. If two perfagents measured the host at
// the same time, because they did not find each other, it uses the longer span.
func (c *combiner) findHostSpans() {
	var all []partSpan
	for _, p := range c.parts {
		if p.Sampling == nil || len(p.Sampling.HostSpans) == 0 {
			continue
		}
		list := p.Sampling.HostSpans
		all = append(all, partSpan{p, list[0].Start, list[len(list)-1].End})
	}
	slices.SortStableFunc(all, func(a, b partSpan) int { return cmp.Compare(b.seconds(), a.seconds()) })

	for _, h := range all {
		slack := 2 * h.interval()
		if !slices.ContainsFunc(c.hostSeries, func(o partSpan) bool { return overlap(h, o) > slack }) {
			c.hostSeries = append(c.hostSeries, h)
		}
	}
	slices.SortStableFunc(c.hostSeries, func(a, b partSpan) int { return a.start.Compare(b.start.Time) })

	c.hostTotals = c.hostSeries
	if len(c.hostTotals) == 0 {
		c.hostTotals = c.unsampled()
	}
}

// overlap returns the length of the overlap of a and b in seconds. It is negative if there is a gap between them.
func overlap(a, b partSpan) float64 {
	own := min(a.end.Sub(a.start.Time), b.end.Sub(b.start.Time))
	return min(own, a.end.Sub(b.start.Time), b.end.Sub(a.start.Time)).Seconds()
}

// unsampled returns the span that supplies the host's totals if no part has a sample of the host: the run of the
// longest part that did not leave the host to another rank. It returns nil if every part did.
func (c *combiner) unsampled() []partSpan {
	own := c.partsWith(func(p *rankPart) bool {
		return !slices.ContainsFunc(p.Missing, func(m Missing) bool { return m.Code == HostByAnother })
	})
	if len(own) == 0 {
		return nil
	}
	best := slices.MaxFunc(own, compareLengths)
	return []partSpan{{best, best.run.Start, best.run.End}}
}

// compareLengths compares two parts by the lengths of their runs.
func compareLengths(a, b *rankPart) int { return cmp.Compare(a.run.WallSeconds, b.run.WallSeconds) }

// base returns the part that supplies the data common to all parts: the host and its sampling.
func (c *combiner) base() *rankPart {
	if len(c.hostTotals) > 0 {
		return c.hostTotals[0].rankPart
	}
	return slices.MaxFunc(c.parts, compareLengths)
}

// hostMetrics combines the metrics of the host.
func (c *combiner) hostMetrics(n *Node) {
	for _, m := range slices.Concat(Metrics(), n.GPUMetrics()) {
		if m.OfJob() || m.column == noColumn {
			continue
		}
		if v, ok := c.hostMetric(&m); ok {
			n.Metrics[m.Name] = v
		}
	}

	if len(c.hostTotals) > 0 && n.Host != nil && n.Host.CPUs > 0 { // over the node's whole run
		hours := c.run.WallSeconds * float64(n.Host.CPUs) / 3600
		n.Metrics[MetricCPUHours] = hours
		if mean, ok := n.Metrics[MetricCPUMean]; ok {
			n.Metrics[MetricUnusedCPUHours] = hours * (100 - mean) / 100
		}
	}
}

// hostMetric combines metric m of the host from the ranks that measured the host one after the other. ok is false if
// none of them has m.
func (c *combiner) hostMetric(m *Metric) (v float64, ok bool) {
	sum, weight, plain, greatest, last, count := 0.0, 0.0, 0.0, math.Inf(-1), 0.0, 0
	for _, h := range c.hostTotals {
		of, known := h.Metrics[m.Name]
		if !known {
			continue
		}
		count++
		sum, weight = sum+of*h.seconds(), weight+h.seconds()
		plain, greatest, last = plain+of, max(greatest, of), of
	}

	switch {
	case count <= 1:
		return last, count == 1
	case m.Aggregation == collector.Max:
		return greatest, true
	case m.Aggregation == collector.Mean && weight > 0:
		return min(sum/weight, greatest), true // rounding must not push a share above 100 %
	case m.Aggregation == collector.Mean:
		return plain / float64(count), true
	case m.Aggregation == 0: // since boot
		return last, true
	}

	if first := c.hostTotals[0]; m.isTotal {
		if begin, known := first.sinceBoot(m); known && c.sameDevices(m.column) {
			end, known := c.hostTotals[len(c.hostTotals)-1].Metrics["boot_"+m.Name]
			if known && end-begin >= greatest {
				return end - begin, true
			}
		}
	}
	c.addCounterGap(m.column)
	return plain, true
}

// sinceBoot returns the value, counted since boot, of the counter of the total m when the part's perfagent began to
// measure the host. It returns false if the value is unknown.
func (h partSpan) sinceBoot(m *Metric) (float64, bool) {
	boot, ok := h.Metrics["boot_"+m.Name]
	total, known := h.Metrics[m.Name]
	return boot - total, ok && known
}

// sameDevices reports whether the ranks that measured the host counted the same devices since the same boot.
func (c *combiner) sameDevices(column collector.Column) bool {
	first := c.hostTotals[0]
	for _, h := range c.hostTotals {
		if h.Host == nil || first.Host == nil || h.Host.BootID != first.Host.BootID ||
			!slices.Equal(devicesOf(h.rankPart, column), devicesOf(first.rankPart, column)) {
			return false
		}
	}
	return true
}

func devicesOf(p *rankPart, column collector.Column) []string {
	list := p.Sampling.NICs
	if column.Info().Source == host.SourceDiskIO {
		list = p.Sampling.Disks
	}
	return slices.Sorted(slices.Values(list))
}

// addCounterGap adds a Missing for counts that were lost after one rank stopped measuring the host and before the next
// rank started, if these gaps are longer than the ranks need to take over.
func (c *combiner) addCounterGap(column collector.Column) {
	gap := 0.0
	for i, h := range c.hostTotals[1:] {
		gap += max(0, h.start.Sub(c.hostTotals[i].end.Time).Seconds())
	}
	m := Missing{What: column.Info().Source, Code: CountedLate, Why: fmt.Sprintf("not counted for %s in all, from the "+
		"end of one rank that measured the host to the next one's begin", text.Seconds(gap))}
	handOver := 2 * c.hostTotals[0].interval() * float64(len(c.hostTotals)-1)
	if gap > handOver && !slices.Contains(c.nodeMissing, m) {
		c.nodeMissing = append(c.nodeMissing, m)
	}
}

// findOffsets sets the offsets of the parts that measured the host: the growth of each host counter from the start of
// the first of these parts to the start of the part itself.
func (c *combiner) findOffsets() {
	if len(c.hostSeries) < 2 {
		return
	}
	for column := range collector.Column(collector.MaxColumns) {
		if row := column.Info(); row.Kind != collector.Counter || row.Scope == collector.ScopeJob {
			continue
		}
		m, _ := MetricByName(TotalMetricName(column))
		begin, exact := c.hostSeries[0].sinceBoot(&m)
		exact = exact && c.sameDevices(column)
		sum := 0.0
		for _, h := range c.hostSeries {
			h.offsets[column] = sum
			if since, known := h.sinceBoot(&m); exact && known && since-begin >= sum {
				h.offsets[column] = since - begin
			}
			sum = h.offsets[column] + h.Metrics[m.Name]
		}
	}
}

// negligibleShare is the share of time that can be ignored for percentiles, which are accurate to 0.1 percentage
// points.
const negligibleShare = 0.001

// hostSummaries combines the summaries of the host. Percentiles of several ranks cannot be combined, unless all but one
// of them measured the host for a negligible time.
func (c *combiner) hostSummaries(n *Node) {
	if len(c.hostTotals) == 0 {
		return
	}

	all, longest := 0.0, c.hostTotals[0]
	var parts []*rankPart
	for _, h := range c.hostTotals {
		parts = append(parts, h.rankPart)
		if all += h.seconds(); h.seconds() > longest.seconds() {
			longest = h
		}
		for key := range h.Summaries {
			if _, done := n.Summaries[key]; !done && ofHost(key) {
				n.Summaries[key] = c.hostSummary(key)
			}
		}
	}

	if all-longest.seconds() > negligibleShare*all {
		c.nodeMissing = append(c.nodeMissing, Missing{What: "summaries", Code: HostByAnother,
			Why: "the percentiles of the host, which " + rankNames(rankNumbers(parts...)) + " measured one after the other"})
		return
	}
	for key, q := range longest.Summaries {
		if have, ok := n.Summaries[key]; ok {
			have.P50, have.P95, have.P99 = q.P50, q.P95, q.P99
			n.Summaries[key] = have
		}
	}
}

// hostSummary returns the minimum, mean and maximum of the host's column with the given key.
func (c *combiner) hostSummary(key string) Summary {
	column, _ := collector.ColumnByKey(key)
	q, sum, weight := Summary{Min: math.Inf(1), Max: math.Inf(-1)}, 0.0, 0.0
	for _, h := range c.hostTotals {
		of, ok := h.Summaries[key]
		if !ok {
			continue
		}
		offset, seconds := h.offsets[column], max(h.seconds(), 1e-9) // a single span may have no length
		q.Min, q.Max = min(q.Min, of.Min+offset), max(q.Max, of.Max+offset)
		sum, weight = sum+(of.Mean+offset)*seconds, weight+seconds
	}
	q.Mean = clamped(sum/weight, q.Min, q.Max)
	return q
}
