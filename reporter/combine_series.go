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

// decimals is how many of a number that was computed are kept: more would only fill the file.
const decimals = 6

// A timeline is when the points of a series end, in seconds since 1970, never falling. A point stands for the time
// since the one before it, the first for that since begin.
type timeline struct {
	begin float64
	ends  []float64
}

// timesOf returns the time line of a node's series. A kept sample stands for several, so that the envelope says where a
// point ends, and the sample where it begins. It is empty for a node without times.
func timesOf(n *Node, run *Run) timeline {
	key := collector.Timestamp.Key()
	ends := slices.Clone(n.Samples.Column(key))
	if band := n.Envelope[key]; len(band.Max) == len(ends) {
		copy(ends, band.Max)
	}

	start := run.Start
	if n.Sampling != nil && !n.Sampling.Start.IsZero() {
		start = n.Sampling.Start
	}
	t := timeline{begin: float64(start.UnixMicro()) / 1e6, ends: ends}
	before := math.Inf(-1)
	for i, end := range ends {
		if math.IsInf(end, 0) || !(end >= before) {
			ends[i] = before
		}
		if before = ends[i]; math.IsInf(before, 0) {
			return timeline{}
		}
	}
	if len(ends) > 0 {
		t.begin = min(t.begin, ends[0])
	}
	return t
}

// from returns when a point begins.
func (t timeline) from(i int) float64 {
	if i == 0 {
		return t.begin
	}
	return t.ends[i-1]
}

func (t timeline) length(i int) float64 { return t.ends[i] - t.from(i) }

// after returns the first point that ends after a time, or how many points there are.
func (t timeline) after(at float64) int {
	return sort.Search(len(t.ends), func(i int) bool { return t.ends[i] > at })
}

// last returns when the last point ends; -Inf without points.
func (t timeline) last() float64 {
	if len(t.ends) == 0 {
		return math.Inf(-1)
	}
	return t.ends[len(t.ends)-1]
}

// A stretch is a part of the node's time axis: points i…j−1 of a piece. held reports whether they show the host.
type stretch struct {
	*piece
	i, j int
	held bool
}

// newAxis returns the time axis of the node: the points of the pieces that measured the host, one after the other, and
// before and after them those of the ranks that began first and ended last. If nobody measured the host, it begins with
// the piece that lasted longest.
func (c *combination) newAxis() {
	for _, h := range c.holders {
		c.extend(h.piece, true)
	}
	if len(c.stretches) == 0 {
		c.extend(slices.MaxFunc(c.pieces, func(a, b *piece) int {
			return cmp.Compare(a.times.last()-a.times.begin, b.times.last()-b.times.begin)
		}), false)
	}
	if len(c.stretches) == 0 {
		return // none has a series
	}

	c.extend(slices.MaxFunc(c.pieces, func(a, b *piece) int {
		return cmp.Compare(a.times.last(), b.times.last())
	}), false)
	c.prepend(slices.MinFunc(c.pieces, func(a, b *piece) int {
		return cmp.Compare(a.times.begin, b.times.begin)
	}))

	for _, s := range c.stretches {
		c.axis.ends = append(c.axis.ends, s.times.ends[s.i:s.j]...)
	}
	first := c.stretches[0]
	c.axis.begin = first.times.from(first.i)
}

// extend adds the points of a piece after the end of the axis. Of a piece that is only there to fill the rest, less
// than a sample is not worth a point.
func (c *combination) extend(p *piece, held bool) {
	end := math.Inf(-1)
	if n := len(c.stretches); n > 0 {
		s := c.stretches[n-1]
		end = s.times.ends[s.j-1]
		if !held {
			end += p.interval() / 2
		}
	}

	if i := p.times.after(end); i < len(p.times.ends) {
		c.stretches = append(c.stretches, stretch{p, i, len(p.times.ends), held})
	}
}

// prepend adds the points of a piece that end before the axis begins.
func (c *combination) prepend(p *piece) {
	first := c.stretches[0]
	if j := p.times.after(first.times.from(first.i) - p.interval()/2); j > 0 {
		c.stretches = slices.Insert(c.stretches, 0, stretch{p, 0, j, false})
	}
}

// interval returns the time between two samples, in seconds.
func (p *piece) interval() float64 {
	if p.Sampling == nil || !(p.Sampling.IntervalSeconds > 0) {
		return 0
	}
	return p.Sampling.IntervalSeconds
}

// A share is the part of a piece's point that is in a point of the axis.
type share struct {
	to, from int     // the points of the axis and of the piece
	seconds  float64 // that they have in common
	// whole reports that this is half of one of the two or more, so that the extremes of the piece's point count here.
	// Each point of either is whole somewhere, unless the piece was there for less than half of it.
	whole bool
}

// shares returns which points of a piece are in which of the axis, in order. The first point of the axis has all that
// was before it, and the last all that came after it.
func (c *combination) shares(of timeline) []share {
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

// resampled returns a band of a piece on the time axis of the node: the least minimum, the greatest maximum, and the
// mean weighted by time. Where the piece has no value, it is NaN.
func resampled(b Band, shares []share, n int) Band {
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

// pointOf returns a point of the axis from the shares of a band's points in it.
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

// resampledValues returns the kept samples of a piece on the time axis of the node: at each point, that with which it
// has the most in common.
func resampledValues(values []float64, shares []share, n int) []float64 {
	out := absentNumbers(n)
	most, at := 0.0, -1
	for _, s := range shares {
		if s.to != at {
			most, at = -1, s.to
		}
		if s.whole && s.seconds > most {
			most, out[s.to] = s.seconds, values[s.from]
		}
	}
	return out
}

func absentNumbers(n int) Numbers {
	out := make(Numbers, n)
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

// band returns the envelope of a column; false if the piece has none that fits its samples.
func (p *piece) band(of Envelope, key string) (Band, bool) {
	b, ok := of[key]
	n := len(p.times.ends)
	return b, ok && n > 0 && len(b.Min) == n && len(b.Mean) == n && len(b.Max) == n
}

// series makes the samples and the envelope of the node, and the envelopes of its ranks.
func (c *combination) series(n *Node) {
	c.newAxis()
	for _, p := range c.pieces {
		if len(c.stretches) != 1 || c.stretches[0].piece != p {
			p.shares = c.shares(p.times)
		}
	}

	n.Envelope = make(Envelope)
	for column := range collector.Column(collector.MaxColumns) {
		if column.Info().Since == collector.Job {
			c.addJobColumn(n, column)
		} else {
			c.addHostColumn(n, column)
		}
	}
	for _, p := range c.workers {
		c.addWorkLines(n, p)
	}
}

// addWorkLines takes the time lines of a piece's operations: to the node if it is the only one that has some, else to
// its rank.
func (c *combination) addWorkLines(n *Node, p *piece) {
	to := n.Envelope
	if len(c.workers) > 1 {
		to = p.ranks[0].Envelope
	}
	for key := range p.Envelope {
		if _, ok := WorkLineOf(key); !ok {
			continue
		}
		if band, ok := p.band(p.Envelope, key); ok {
			to[key] = c.onAxis(p, band)
		}
	}
}

// onAxis returns a band of a piece on the time axis of the node. Without shares the axis is the piece's own.
func (c *combination) onAxis(p *piece, b Band) Band {
	if p.shares == nil {
		return b
	}
	return resampled(b, p.shares, len(c.axis.ends))
}

// addHostColumn joins the series of a column of the host, one rank's after the other's. A counter goes on where the one
// before had come to.
func (c *combination) addHostColumn(n *Node, column collector.Column) {
	row := column.Info()
	part := func(of func(*piece) []float64) (Numbers, bool) { return c.joined(column, of) }

	if least, ok := part(func(p *piece) []float64 { return p.Envelope[row.Key].Min }); ok {
		mean, _ := part(func(p *piece) []float64 { return p.Envelope[row.Key].Mean })
		greatest, _ := part(func(p *piece) []float64 { return p.Envelope[row.Key].Max })
		n.Envelope[row.Key] = Band{least, mean, greatest}
	}
	if values, ok := part(func(p *piece) []float64 { return p.Samples.Column(row.Key) }); ok {
		n.Samples.Keys, n.Samples.Columns = append(n.Samples.Keys, row.Key), append(n.Samples.Columns, values)
	}
}

// joined returns a column of the host over the whole axis. ok reports whether any part of it is known.
func (c *combination) joined(column collector.Column, of func(*piece) []float64) (out Numbers, ok bool) {
	out = make(Numbers, 0, len(c.axis.ends))
	for _, s := range c.stretches {
		list := of(s.piece)
		if len(list) != len(s.times.ends) || !s.held && column != collector.Timestamp {
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

// addJobColumn makes a column of the job. That of the node's job is put together from those of the ranks; where ranks
// share a control group, its column is none of each rank's own, and counts once.
func (c *combination) addJobColumn(n *Node, column collector.Column) {
	row := column.Info()
	sets := c.eachAlone()
	if row.Source == host.SourceCgroup {
		sets = c.byGroup(func(p *piece) string { return p.groupOf(column) })
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
			if own := p.Samples.Column(row.Key); len(own) > 0 && len(own) == len(p.times.ends) {
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
		n.Envelope[row.Key] = Band{across(row, least), across(row, mean), across(row, greatest)}
	}
	if len(values) > 0 {
		n.Samples.Keys = append(n.Samples.Keys, row.Key)
		n.Samples.Columns = append(n.Samples.Columns, across(row, values))
	}
}

// addRankColumn gives the ranks of a piece their envelope of a column on the time axis of the node.
func (c *combination) addRankColumn(p *piece, key string, band Band) {
	if len(p.ranks) == 1 {
		p.ranks[0].Envelope[key] = band
		return
	}
	for i, r := range p.ranks { // of a node that was put together before
		if own, ok := p.band(p.Ranks[strconv.Itoa(r.Rank)].Envelope, key); ok {
			p.ranks[i].Envelope[key] = c.onAxis(p, own)
		}
	}
}

func (c *combination) valuesOnAxis(p *piece, list []float64) []float64 {
	if p.shares == nil {
		return list
	}
	return resampledValues(list, p.shares, len(c.axis.ends))
}

// or returns the band with the points of another where it has none.
func (b Band) or(other Band) Band {
	if b.Mean == nil {
		return other
	}
	return Band{firstKnown(b.Min, other.Min), firstKnown(b.Mean, other.Mean), firstKnown(b.Max, other.Max)}
}

// firstKnown returns the values of a list and, where it has none, of another of the same length.
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

// across puts the values of several ranks or groups together, point by point. A counter stays what it was when a rank
// has ended.
func across(row collector.ColumnInfo, lists [][]float64) []float64 {
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
			case row.Across == collector.Max:
				out[i] = max(out[i], v)
			default:
				out[i] += v
			}
		}
	}

	for i, n := range known {
		if row.Across == collector.Mean {
			out[i] /= max(1, n)
		}
		if n > 1 {
			out[i] = text.Round(out[i], decimals)
		}
	}
	return out
}
