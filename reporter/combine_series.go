package reporter

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
)

// decimals is the number of decimals of computed numbers. More decimals would only make the file larger.
const decimals = 6

// A timeAxis holds the end times of a series' points in seconds since 1970, in non-decreasing order. A point begins at
// the end of the previous one, the first point at begin.
type timeAxis struct {
	begin float64
	ends  []float64
}

// newTimeAxis returns the time axis of a node's series. A kept sample represents several samples and has the time of
// the first one; the envelope has the end of the point. The axis is empty for a node without times.
func newTimeAxis(n *Node, run *Run) timeAxis {
	key := collector.Timestamp.Key()
	ends := slices.Clone(n.Samples.Column(key))
	if band := n.Envelope[key]; len(band.Max) == len(ends) {
		copy(ends, band.Max)
	}

	start := run.Start
	if n.Sampling != nil && !n.Sampling.Start.IsZero() {
		start = n.Sampling.Start
	}
	t := timeAxis{begin: float64(start.UnixMicro()) / 1e6, ends: ends}
	before := math.Inf(-1)
	for i, end := range ends {
		if math.IsInf(end, 0) || !(end >= before) {
			ends[i] = before
		}
		if before = ends[i]; math.IsInf(before, 0) {
			return timeAxis{}
		}
	}
	if len(ends) > 0 {
		t.begin = min(t.begin, ends[0])
	}
	return t
}

// from returns the start of point i.
func (t timeAxis) from(i int) float64 {
	if i == 0 {
		return t.begin
	}
	return t.ends[i-1]
}

func (t timeAxis) length(i int) float64 { return t.ends[i] - t.from(i) }

// after returns the index of the first point that ends after the time at, or the number of points if there is none.
func (t timeAxis) after(at float64) int {
	return sort.Search(len(t.ends), func(i int) bool { return t.ends[i] > at })
}

// last returns the end of the last point; -Inf if there are no points.
func (t timeAxis) last() float64 {
	if len(t.ends) == 0 {
		return math.Inf(-1)
	}
	return t.ends[len(t.ends)-1]
}

// An axisSpan is a piece of the node's time axis: points i…j−1 of a part. hasHost reports whether these points have
// values of the host.
type axisSpan struct {
	*rankPart
	i, j    int
	hasHost bool
}

// newAxis sets the time axis of the node. It has the points of the parts that measured the host, one after the other,
// or of the longest part if none did. Before them come earlier points of the part that began first, and after them
// later points of the part that ended last.
func (c *combiner) newAxis() {
	for _, h := range c.hostSeries {
		c.extend(h.rankPart, true)
	}
	if len(c.spans) == 0 {
		c.extend(slices.MaxFunc(c.parts, func(a, b *rankPart) int {
			return cmp.Compare(a.axis.last()-a.axis.begin, b.axis.last()-b.axis.begin)
		}), false)
	}
	if len(c.spans) == 0 {
		return // there are no series
	}

	c.extend(slices.MaxFunc(c.parts, func(a, b *rankPart) int {
		return cmp.Compare(a.axis.last(), b.axis.last())
	}), false)
	c.prepend(slices.MinFunc(c.parts, func(a, b *rankPart) int {
		return cmp.Compare(a.axis.begin, b.axis.begin)
	}))

	for _, s := range c.spans {
		c.axis.ends = append(c.axis.ends, s.axis.ends[s.i:s.j]...)
	}
	first := c.spans[0]
	c.axis.begin = first.axis.from(first.i)
}

// extend appends the points of p that end after the end of the axis. If hasHost is false, a remainder of less than half
// an interval gets no point.
func (c *combiner) extend(p *rankPart, hasHost bool) {
	end := math.Inf(-1)
	if n := len(c.spans); n > 0 {
		s := c.spans[n-1]
		end = s.axis.ends[s.j-1]
		if !hasHost {
			end += p.interval() / 2
		}
	}

	if i := p.axis.after(end); i < len(p.axis.ends) {
		c.spans = append(c.spans, axisSpan{p, i, len(p.axis.ends), hasHost})
	}
}

// prepend inserts the points of p that end before the axis begins.
func (c *combiner) prepend(p *rankPart) {
	first := c.spans[0]
	if j := p.axis.after(first.axis.from(first.i) - p.interval()/2); j > 0 {
		c.spans = slices.Insert(c.spans, 0, axisSpan{p, 0, j, false})
	}
}

// interval returns the sampling interval in seconds.
func (p *rankPart) interval() float64 {
	if p.Sampling == nil || !(p.Sampling.IntervalSeconds > 0) {
		return 0
	}
	return p.Sampling.IntervalSeconds
}

// A share is the overlap of a part's point and a point of the axis.
type share struct {
	to, from int     // indexes of the points of the axis and of the part
	seconds  float64 // length of the overlap
	// whole reports that the overlap is at least half as long as the shorter point. Only then do the extremes of the
	// part's point count for the point of the axis. Every point has a whole share, unless the part covers less than
	// half of the point.
	whole bool
}

// shares returns the overlaps of the node's axis with of, the axis of a part, in order. The first point of the node's
// axis includes the time before it, and the last point the time after it.
func (c *combiner) shares(of timeAxis) []share {
	var out []share
	n := len(c.axis.ends)
	k := 0
	for to := range n {
		a0, a1 := c.axis.from(to), c.axis.ends[to]
		if to == 0 {
			a0 = math.Inf(-1)
		}
		if to == n-1 {
			a1 = math.Inf(1)
		}

		for i := k; i < len(of.ends) && of.from(i) < a1; i++ {
			if of.ends[i] <= a1 {
				k = i + 1
			}
			seconds := min(a1, of.ends[i]) - max(a0, of.from(i))
			if at := of.ends[i]; seconds > 0 || of.length(i) == 0 && a0 < at && at <= a1 {
				least := min(a1-a0, of.length(i))
				out = append(out, share{to, i, max(0, seconds), seconds >= 0.499*least})
			}
		}
	}
	return out
}

// onAxis returns b, a band of p, on the time axis of the node, with the least minimum, the greatest maximum, and the
// mean weighted by time. Points without a value of the part are NaN.
func (c *combiner) onAxis(p *rankPart, b Band) Band {
	shares, n := p.shares, len(c.axis.ends)
	if shares == nil { // p already has the node's axis
		return b
	}
	out := Band{absentNumbers(n), absentNumbers(n), absentNumbers(n)}
	for len(shares) > 0 {
		to, same := shares[0].to, 1
		for same < len(shares) && shares[same].to == to {
			same++
		}
		out.Min[to], out.Mean[to], out.Max[to] = pointOf(b, shares[:same])
		shares = shares[same:]
	}
	return out
}

// pointOf returns the values of a point of the axis. shares are its overlaps with points of b.
func pointOf(b Band, shares []share) (least, mean, greatest float64) {
	least, greatest = math.NaN(), math.NaN()
	sum, weight, plain, count := 0.0, 0.0, 0.0, 0.0
	for _, s := range shares {
		v := b.Mean[s.from]
		if math.IsNaN(v) {
			continue
		}
		if s.whole {
			if at := b.Min[s.from]; !(least <= at) {
				least = at
			}
			if at := b.Max[s.from]; !(greatest >= at) {
				greatest = at
			}
		}
		sum, weight = sum+v*s.seconds, weight+s.seconds
		plain, count = plain+v, count+1
	}

	switch {
	case math.IsNaN(least) || math.IsNaN(greatest):
		return math.NaN(), math.NaN(), math.NaN()
	case weight > 0:
		return least, clamped(text.Round(sum/weight, decimals), least, greatest), greatest
	}
	return least, clamped(text.Round(plain/count, decimals), least, greatest), greatest
}

// valuesOnAxis returns the kept samples of a part on the time axis of the node: at each point, the sample with the
// longest overlap.
func (c *combiner) valuesOnAxis(p *rankPart, values []float64) []float64 {
	if p.shares == nil { // p already has the node's axis
		return values
	}
	out := absentNumbers(len(c.axis.ends))
	most, at := 0.0, -1
	for _, s := range p.shares {
		if s.to != at {
			most, at = -1, s.to
		}
		if s.whole && s.seconds > most {
			most, out[s.to] = s.seconds, values[s.from]
		}
	}
	return out
}

func absentNumbers(n int) Numbers { return slices.Repeat(Numbers{math.NaN()}, n) }

// band returns the band of key in the envelope of. It returns false if there is no such band, if the part has no
// samples, or if their lengths differ.
func (p *rankPart) band(of Envelope, key string) (Band, bool) {
	b, ok := of[key]
	n := len(p.axis.ends)
	return b, ok && n > 0 && len(b.Min) == n && len(b.Mean) == n && len(b.Max) == n
}

// series sets the samples and the envelope of the node, and the envelopes of its ranks.
func (c *combiner) series(n *Node) {
	c.newAxis()
	for _, p := range c.parts {
		if len(c.spans) != 1 || c.spans[0].rankPart != p {
			p.shares = c.shares(p.axis)
		}
	}

	n.Envelope = make(Envelope)
	for column := range collector.Column(collector.MaxColumns) {
		if column.Info().Scope == collector.ScopeJob {
			c.addJobColumn(n, column)
		} else {
			c.addHostColumn(n, column)
		}
	}
	for _, p := range c.operationParts {
		c.addTimelines(n, p)
	}
}

// addTimelines adds the timelines of p's operations to n if no other part has operations, else to the rank of p.
func (c *combiner) addTimelines(n *Node, p *rankPart) {
	to := n.Envelope
	if len(c.operationParts) > 1 {
		to = p.ranks[0].Envelope
	}
	for key := range p.Envelope {
		if _, ok := ParseTimelineKey(key); !ok {
			continue
		}
		if band, ok := p.band(p.Envelope, key); ok {
			to[key] = c.onAxis(p, band)
		}
	}
}

// addHostColumn joins the series of a column of the host, one rank after the other. A counter continues from the
// value of the previous rank.
func (c *combiner) addHostColumn(n *Node, column collector.Column) {
	row := column.Info()
	part := func(of func(*rankPart) []float64) (Numbers, bool) { return c.joined(column, of) }

	if least, ok := part(func(p *rankPart) []float64 { return p.Envelope[row.Key].Min }); ok {
		mean, _ := part(func(p *rankPart) []float64 { return p.Envelope[row.Key].Mean })
		greatest, _ := part(func(p *rankPart) []float64 { return p.Envelope[row.Key].Max })
		n.Envelope[row.Key] = Band{least, mean, greatest}
	}
	if values, ok := part(func(p *rankPart) []float64 { return p.Samples.Column(row.Key) }); ok {
		n.Samples.Keys, n.Samples.Columns = append(n.Samples.Keys, row.Key), append(n.Samples.Columns, values)
	}
}

// joined returns the values of a column of the host over the whole axis. of returns the values of a part. ok is false
// if there are none.
func (c *combiner) joined(column collector.Column, of func(*rankPart) []float64) (out Numbers, ok bool) {
	out = make(Numbers, 0, len(c.axis.ends))
	for _, s := range c.spans {
		list := of(s.rankPart)
		if len(list) != len(s.axis.ends) || !s.hasHost && column != collector.Timestamp {
			out = append(out, absentNumbers(s.j-s.i)...)
			continue
		}

		ok = true
		for _, v := range list[s.i:s.j] {
			out = append(out, v+s.offsets[column])
		}
	}
	return out, ok
}

// addJobColumn sets a column of the job. The node's column combines the columns of the ranks. If ranks share a control
// group, a column of the group is counted once and added to none of them.
func (c *combiner) addJobColumn(n *Node, column collector.Column) {
	row := column.Info()
	sets := c.eachAlone()
	if row.Source == host.SourceCgroup {
		sets = c.byGroup(func(p *rankPart) string { return p.groupOf(column) })
	}

	var least, mean, greatest, values [][]float64
	for _, set := range sets {
		var band Band
		var list []float64
		for _, p := range set {
			if own, ok := p.band(p.Envelope, row.Key); ok {
				band = band.or(c.onAxis(p, own))
				if len(set) == 1 {
					c.addRankColumn(p, row.Key, band)
				}
			}
			if own := p.Samples.Column(row.Key); len(own) > 0 && len(own) == len(p.axis.ends) {
				list = firstKnown(list, c.valuesOnAxis(p, own))
			}
		}
		if band.Mean != nil {
			least, mean, greatest = append(least, band.Min), append(mean, band.Mean), append(greatest, band.Max)
		}
		if list != nil {
			values = append(values, list)
		}
	}

	if len(mean) > 0 {
		n.Envelope[row.Key] = Band{aggregateRanks(row, least), aggregateRanks(row, mean), aggregateRanks(row, greatest)}
	}
	if len(values) > 0 {
		n.Samples.Keys = append(n.Samples.Keys, row.Key)
		n.Samples.Columns = append(n.Samples.Columns, aggregateRanks(row, values))
	}
}

// addRankColumn sets the envelopes of p's ranks for key, on the time axis of the node. If p has one rank, the rank's
// envelope is band.
func (c *combiner) addRankColumn(p *rankPart, key string, band Band) {
	if len(p.ranks) == 1 {
		p.ranks[0].Envelope[key] = band
		return
	}
	for i, r := range p.ranks { // p was combined before
		if own, ok := p.band(p.Ranks[strconv.Itoa(r.Rank)].Envelope, key); ok {
			p.ranks[i].Envelope[key] = c.onAxis(p, own)
		}
	}
}

// or returns b, with its missing points taken from other.
func (b Band) or(other Band) Band {
	if b.Mean == nil {
		return other
	}
	return Band{firstKnown(b.Min, other.Min), firstKnown(b.Mean, other.Mean), firstKnown(b.Max, other.Max)}
}

// firstKnown returns a, with NaN replaced by the values of b. Both have the same length unless a is nil.
func firstKnown(a, b []float64) []float64 {
	if a == nil {
		return b
	}
	out := slices.Clone(a)
	for i, v := range out {
		if math.IsNaN(v) {
			out[i] = b[i]
		}
	}
	return out
}

// aggregateRanks combines the values of several ranks or groups, point by point. A counter keeps its value after
// its rank has ended.
func aggregateRanks(row collector.ColumnInfo, lists [][]float64) []float64 {
	out := absentNumbers(len(lists[0]))
	known := make([]float64, len(out))
	for _, list := range lists {
		last := math.NaN()
		for i, v := range list {
			if math.IsNaN(v) && row.Kind == collector.Counter {
				v = last
			}
			if last = v; math.IsNaN(v) {
				continue
			}
			switch known[i]++; {
			case known[i] == 1:
				out[i] = v
			case row.Aggregation == collector.Max:
				out[i] = max(out[i], v)
			default:
				out[i] += v
			}
		}
	}

	for i, n := range known {
		if row.Aggregation == collector.Mean {
			out[i] /= max(1, n)
		}
		if n > 1 {
			out[i] = text.Round(out[i], decimals)
		}
	}
	return out
}
