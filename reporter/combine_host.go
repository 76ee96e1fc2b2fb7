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

// A hosting is a time in which a piece's perfagent measured the host.
type hosting struct {
	*piece
	start, end Time
}

func (h hosting) seconds() float64 { return Holder{Start: h.start, End: h.end}.seconds() }

// findHolders finds whose measurements of the host are shown, in order. Where two measured it at the same time,
// because they could not see each other, that is the one that did so for longer.
func (c *combination) findHolders() {
	var all []hosting
	for _, p := range c.pieces {
		if p.Sampling == nil || len(p.Sampling.Holders) == 0 {
			continue
		}
		list := p.Sampling.Holders
		all = append(all, hosting{p, list[0].Start, list[len(list)-1].End})
	}
	slices.SortStableFunc(all, func(a, b hosting) int { return cmp.Compare(b.seconds(), a.seconds()) })

	for _, h := range all {
		slack := 2 * h.interval()
		if !slices.ContainsFunc(c.holders, func(o hosting) bool { return overlap(h, o) > slack }) {
			c.holders = append(c.holders, h)
		}
	}
	slices.SortStableFunc(c.holders, func(a, b hosting) int { return a.start.Compare(b.start.Time) })

	c.hosts = c.holders
	if len(c.hosts) == 0 {
		c.hosts = c.unsampled()
	}
}

// overlap returns for how many seconds both measured the host. It is negative if one began after the other's end.
func overlap(a, b hosting) float64 {
	own := min(a.end.Sub(a.start.Time), b.end.Sub(b.start.Time))
	return min(own, a.end.Sub(b.start.Time), b.end.Sub(a.start.Time)).Seconds()
}

// unsampled returns the piece that says most of the host if none has a sample of it: the longest of those that do not
// leave it to another.
func (c *combination) unsampled() []hosting {
	var best *piece
	for _, p := range c.pieces {
		byAnother := slices.ContainsFunc(p.Missing, func(m Missing) bool { return m.Code == HostByAnother })
		if !byAnother && (best == nil || p.run.WallSeconds > best.run.WallSeconds) {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	return []hosting{{best, best.run.Start, best.run.End}}
}

// base returns the piece from which comes what all have in common: the host, how it was sampled.
func (c *combination) base() *piece {
	if len(c.hosts) > 0 {
		return c.hosts[0].piece
	}
	return slices.MaxFunc(c.pieces, func(a, b *piece) int { return cmp.Compare(a.run.WallSeconds, b.run.WallSeconds) })
}

// hostMetrics puts the metrics of the host together.
func (c *combination) hostMetrics(n *Node) {
	for _, m := range slices.Concat(Metrics(), n.GPUMetrics()) {
		if m.OfJob() || m.column == noColumn {
			continue
		}
		if v, ok := c.hostMetric(&m); ok {
			n.Metrics[m.Name] = v
		}
	}

	if len(c.hosts) > 0 && n.Host != nil && n.Host.CPUs > 0 { // over the whole node's time
		hours := c.run.WallSeconds * float64(n.Host.CPUs) / 3600
		n.Metrics[MetricCPUHours] = hours
		if mean, ok := n.Metrics[MetricCPUMean]; ok {
			n.Metrics[MetricUnusedCPUHours] = hours * (100 - mean) / 100
		}
	}
}

// hostMetric puts a metric of the host together from the ranks that measured it one after the other. ok is false if
// none has it.
func (c *combination) hostMetric(m *Metric) (v float64, ok bool) {
	sum, weight, plain, greatest, last, count := 0.0, 0.0, 0.0, math.Inf(-1), 0.0, 0
	for _, h := range c.hosts {
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
	case m.Across == collector.Max:
		return greatest, true
	case m.Across == collector.Mean && weight > 0:
		return min(sum/weight, greatest), true // rounding must not take a share above 100 %
	case m.Across == collector.Mean:
		return plain / float64(count), true
	case m.Across == 0: // since boot
		return last, true
	}

	if first := c.hosts[0]; m.total {
		if begin, known := first.sinceBoot(m); known && c.sameDevices(m.column) {
			end, known := c.hosts[len(c.hosts)-1].Metrics["boot_"+m.Name]
			if known && end-begin >= greatest {
				return end - begin, true
			}
		}
	}
	c.missed(m.column)
	return plain, true
}

// sinceBoot returns what the counter of a total had counted since boot when the piece's perfagent began to measure.
func (h hosting) sinceBoot(m *Metric) (float64, bool) {
	boot, ok := h.Metrics["boot_"+m.Name]
	total, known := h.Metrics[m.Name]
	return boot - total, ok && known
}

// sameDevices reports whether the ranks that measured the host counted the same devices since the same boot.
func (c *combination) sameDevices(column collector.Column) bool {
	first := c.hosts[0]
	for _, h := range c.hosts {
		if h.Host == nil || first.Host == nil || h.Host.BootID != first.Host.BootID ||
			!slices.Equal(devicesOf(h.piece, column), devicesOf(first.piece, column)) {
			return false
		}
	}
	return true
}

func devicesOf(p *piece, column collector.Column) []string {
	list := p.Sampling.NICs
	if column.Info().Source == host.SourceDiskIO {
		list = p.Sampling.Disks
	}
	return slices.Sorted(slices.Values(list))
}

// missed notes that what a counter counted is lost between the end of one rank that measured the host and the begin of
// the next, if that was longer than it takes to notice the end.
func (c *combination) missed(column collector.Column) {
	gap := 0.0
	for i, h := range c.hosts[1:] {
		gap += max(0, h.start.Sub(c.hosts[i].end.Time).Seconds())
	}
	m := Missing{What: column.Info().Source, Code: CountedLate, Why: fmt.Sprintf("not counted for %s in all, from the "+
		"end of one rank that measured the host to the next one's begin", text.Seconds(gap))}
	handOver := 2 * c.hosts[0].interval() * float64(len(c.hosts)-1)
	if gap > handOver && !slices.Contains(c.lacking, m) {
		c.lacking = append(c.lacking, m)
	}
}

// findOffsets finds what the counters of the host had come to, in the first rank's counting, when the next one began.
func (c *combination) findOffsets() {
	if len(c.holders) < 2 {
		return
	}
	for column := range collector.Column(collector.MaxColumns) {
		if row := column.Info(); row.Kind != collector.Counter || row.Since == collector.Job {
			continue
		}
		m, _ := MetricNamed(TotalOf(column))
		begin, exact := c.holders[0].sinceBoot(&m)
		exact = exact && c.sameDevices(column)
		sum := 0.0
		for _, h := range c.holders {
			h.offsets[column] = sum
			if since, known := h.sinceBoot(&m); exact && known && since-begin >= sum {
				h.offsets[column] = since - begin
			}
			sum = h.offsets[column] + h.Metrics[m.Name]
		}
	}
}

// briefly is the share of the time that ranks may have measured the host whose values do not change percentiles that
// are accurate to a tenth of a point.
const briefly = 0.001

// hostSummaries puts the summaries of the host together. The percentiles of several ranks cannot be, unless all but one
// of them measured it for next to no time.
func (c *combination) hostSummaries(n *Node) {
	if len(c.hosts) == 0 {
		return
	}

	all, longest := 0.0, c.hosts[0]
	for _, h := range c.hosts {
		if all += h.seconds(); h.seconds() > longest.seconds() {
			longest = h
		}
		for key := range h.Summaries {
			if _, done := n.Summaries[key]; !done && ofHost(key) {
				n.Summaries[key] = c.hostSummary(key)
			}
		}
	}

	if all-longest.seconds() > briefly*all {
		c.lacking = append(c.lacking, Missing{What: "summaries", Code: HostByAnother,
			Why: "the percentiles of the host, which " + rankNames(c.hostRanks()) + " measured one after the other"})
		return
	}
	for key, q := range longest.Summaries {
		if have, ok := n.Summaries[key]; ok {
			have.P50, have.P95, have.P99 = q.P50, q.P95, q.P99
			n.Summaries[key] = have
		}
	}
}

// hostSummary returns the least, mean and greatest value of a column of the host.
func (c *combination) hostSummary(key string) Quantile {
	column, _ := collector.ColumnNamed(key)
	q, sum, weight := Quantile{Min: math.Inf(1), Max: math.Inf(-1)}, 0.0, 0.0
	for _, h := range c.hosts {
		of, ok := h.Summaries[key]
		if !ok {
			continue
		}
		offset, seconds := h.offsets[column], max(h.seconds(), 1e-9) // one of no length counts where there is no other
		q.Min, q.Max = min(q.Min, of.Min+offset), max(q.Max, of.Max+offset)
		sum, weight = sum+(of.Mean+offset)*seconds, weight+seconds
	}
	q.Mean = clamped(sum/weight, q.Min, q.Max)
	return q
}

// hostRanks returns the ranks that measured the host.
func (c *combination) hostRanks() []int {
	var pieces []*piece
	for _, h := range c.hosts {
		pieces = append(pieces, h.piece)
	}
	return numbersOf(pieces...)
}
