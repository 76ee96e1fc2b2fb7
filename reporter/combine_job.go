package reporter

import (
	"cmp"
	"math"
	"path"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// PeakFromRanks is the value of PeakMemoryFrom for a job of several ranks: the peak is their greatest sum at any one
// time.
const PeakFromRanks = "ranks"

// wholeJob adds up the jobs of the ranks. It returns nil if no rank has one.
func (c *combiner) wholeJob() *Job {
	out := joinedOf(c.parts, func(p *rankPart) *Job { return p.Job }, (*Job).add)
	if out == nil {
		return nil
	}

	out.CPUSeconds = 0
	for _, p := range c.parts { // for a rank without an end, the usage so far
		out.CPUAtLeast = out.CPUAtLeast || p.Job == nil || p.Job.CPUAtLeast
		if p.Job != nil {
			out.CPUSeconds += p.Job.CPUSeconds
		} else {
			out.CPUSeconds += p.Metrics[MetricJobCPU]
		}
	}
	out.ExitCode, out.Signal = c.run.ExitCode, c.run.Signal
	return out
}

// joinedOf uses add to combine the values that valueOf returns for parts. It returns nil if no part has a value.
func joinedOf[P, T any](parts []P, valueOf func(P) *T, add func(have, more *T)) (out *T) {
	for _, p := range parts {
		switch v := valueOf(p); {
		case v == nil:
		case out == nil:
			out = new(*v)
		default:
			add(out, v)
		}
	}
	return out
}

// add adds o, the job of another rank, to j. It clears fields that cannot be combined.
func (j *Job) add(o *Job) {
	if o.Start.Before(j.Start.Time) {
		j.Start = o.Start
	}
	if o.End.After(j.End.Time) {
		j.End = o.End
	}
	j.PIDs, j.Attached = append(slices.Clip(j.PIDs), o.PIDs...), j.Attached || o.Attached

	j.UserSeconds += o.UserSeconds
	j.SystemSeconds += o.SystemSeconds
	j.BlockReadMB += o.BlockReadMB
	j.BlockWriteMB += o.BlockWriteMB
	j.MinorFaults += o.MinorFaults
	j.MajorFaults += o.MajorFaults
	j.VoluntarySwitches += o.VoluntarySwitches
	j.InvoluntarySwitches += o.InvoluntarySwitches
	j.Orphans += o.Orphans

	if o.MaxRSSMB > j.MaxRSSMB {
		j.MaxRSSMB, j.MaxRSSAtMost = o.MaxRSSMB, o.MaxRSSAtMost
	}
	j.UnownedMB = min(j.UnownedMB, o.UnownedMB) // each rank also counts the other's shared memory
	j.CgroupStays = j.CgroupStays || o.CgroupStays
	if j.Source != o.Source {
		j.Source = ""
	}
	if j.MemoryKind != o.MemoryKind { // resident sizes are an upper bound of the other kinds
		rss := j.MemoryKind == host.MemoryRSS || o.MemoryKind == host.MemoryRSS
		if j.MemoryKind = ""; rss {
			j.MemoryKind = host.MemoryRSS
		}
	}
	if j.Cgroup != o.Cgroup {
		j.Cgroup, j.CgroupPeakMB = "", 0
	} else {
		j.CgroupPeakMB = max(j.CgroupPeakMB, o.CgroupPeakMB)
	}
}

// jobMetrics combines the metrics of the job. The series of n must already be set.
func (c *combiner) jobMetrics(n *Node) {
	for i := range metricTable {
		m := &metricTable[i]
		if !m.OfJob() {
			continue
		}
		if v, err := c.jobMetric(n, m); err != nil {
			c.nodeMissing = append(c.nodeMissing, newMissingMetric(m.Name, err))
		} else {
			n.Metrics[m.Name] = v
		}
	}
	if peak, ok := n.Metrics[MetricJobMemoryPeak]; ok && n.Job != nil {
		n.Job.PeakMemoryMB, n.Job.PeakMemoryFrom = peak, PeakFromRanks
	}
	if parts := n.memoryOfRanks(); n.Job != nil {
		n.Job.MemoryAtPeak, n.Job.MemoryAtKill = parts, nil
	} else {
		n.MemoryAtPeak = parts
	}
}

func (c *combiner) jobMetric(n *Node, m *Metric) (float64, error) {
	switch m.Name {
	case MetricWall:
		_, err := c.greatest(m.Name)
		return c.run.WallSeconds, err
	case MetricJobCPU:
		return c.sum(m.Name)
	case MetricJobCores:
		return c.perWall(1)
	case MetricLimitCPU:
		if n.Limits == nil || !(n.Limits.CPUs > 0) {
			return 0, newMissingError(LimitUnknown)
		}
		share, err := c.perWall(n.Limits.MeanCPUs())
		return min(100, 100*share), err
	case MetricJobMaxRSS:
		return c.greatest(m.Name)
	case MetricJobMemoryPeak, MetricJobCoresPeak, MetricJobProcesses, MetricJobThreads:
		return c.peak(n, m)
	}

	if m.isTotal {
		return c.sum(m.Name)
	}
	return c.groupMetric(m)
}

// sum adds up the values of the named metric. It returns an error if a rank lacks the metric.
func (c *combiner) sum(name string) (sum float64, err error) {
	for _, p := range c.parts {
		v, ok := p.Metrics[name]
		if !ok {
			return 0, c.whyMissing(name)
		}
		sum += v
	}
	return sum, nil
}

// perWall returns the CPU seconds of all ranks per second of the node's run, divided by unit.
func (c *combiner) perWall(unit float64) (float64, error) {
	cpu, err := c.sum(MetricJobCPU)
	if err != nil {
		return 0, err
	}
	if allowed := c.run.WallSeconds * unit; allowed > 0 {
		return cpu / allowed, nil
	}
	return 0, newMissingError(NoLength)
}

// greatest returns the greatest value of the named metric among the ranks that have it.
func (c *combiner) greatest(name string) (float64, error) {
	out := math.NaN()
	for _, p := range c.parts {
		if v, ok := p.Metrics[name]; ok && !(out >= v) {
			out = v
		}
	}
	if math.IsNaN(out) {
		return 0, c.whyMissing(name)
	}
	return out, nil
}

// peak returns the greatest sum of the ranks' values at one time, but at least the highest peak of a single rank.
func (c *combiner) peak(n *Node, m *Metric) (float64, error) {
	own, err := c.greatest(m.Name)
	if err != nil {
		return 0, err
	}
	together := n.Envelope[m.column.Key()].Max
	return extreme(append([]float64{own}, together...), math.Max), nil
}

// groupMetric combines a metric of control groups. Ranks that share a group read the same counters, so the value of a
// group is the greatest value of its ranks or, for a share of time, the value of the first rank (see byGroup). Groups
// without the limit or quota that the metric describes are left out if other groups have one.
func (c *combiner) groupMetric(m *Metric) (float64, error) {
	var values []float64
	for _, set := range c.byGroup(func(p *rankPart) string { return p.groupOf(m.column) }) {
		value := math.NaN()
		for _, p := range set {
			v, ok := p.Metrics[m.Name]
			if ok && (math.IsNaN(value) || m.Aggregation != collector.Mean && v > value) {
				value = v
			}
		}
		switch {
		case !math.IsNaN(value):
			values = append(values, value)
		case !slices.ContainsFunc(set, func(p *rankPart) bool { return p.isInapplicable(m.Name) }):
			return 0, c.whyMissing(m.Name)
		}
	}

	if len(values) == 0 {
		return 0, c.whyMissing(m.Name)
	}
	return aggregateRanks(collector.ColumnInfo{Aggregation: m.Aggregation}, slices.Collect(slices.Chunk(values, 1)))[0],
		nil
}

// isInapplicable reports whether p lacks the named metric because there was nothing to measure.
func (p *rankPart) isInapplicable(name string) bool {
	return slices.ContainsFunc(p.Missing, func(m Missing) bool { return m.What == name && NothingToMeasure(m) })
}

// eachAlone returns one set per part.
func (c *combiner) eachAlone() [][]*rankPart { return slices.Collect(slices.Chunk(c.parts, 1)) }

// byGroup divides the parts into sets for which group returns the same control group. Each set is sorted by the time
// for which the parts measured the host, then by the length of their runs, longest first.
func (c *combiner) byGroup(group func(*rankPart) string) [][]*rankPart {
	var out [][]*rankPart
	places := make(map[string]int)
	for _, p := range c.parts {
		key := group(p)
		i, ok := places[key]
		if !ok {
			i = len(out)
			places[key], out = i, append(out, nil)
		}
		out[i] = append(out[i], p)
	}

	for _, set := range out {
		slices.SortStableFunc(set, func(a, b *rankPart) int {
			return cmp.Or(cmp.Compare(b.hostSeconds(), a.hostSeconds()), compareLengths(b, a))
		})
	}
	return out
}

// groupOf identifies the control group that a column is read from. Containers on one host may have different groups
// with the same path, but they have different host names.
func (p *rankPart) groupOf(column collector.Column) string {
	group := p.ranks[0].Cgroup
	if p.Job != nil {
		group = p.Job.Cgroup
	}
	if l := p.Limits; l != nil {
		switch column {
		case collector.JobThrottled:
			group = l.CPUGroup
		case collector.LimitMemory, collector.LimitMemoryPercent:
			group = l.MemoryGroup
		}
	}
	if p.Host == nil {
		return group
	}
	return p.Host.Hostname + "\x00" + group
}

// cpusetOf identifies the control group that sets the CPUs of a job. A group that perfagent created for the job has
// the CPUs of its parent.
func (p *rankPart) cpusetOf() string {
	group := p.groupOf(collector.JobPageCache)
	if p.Job != nil && p.Job.Source == host.JobFromCreated {
		return path.Dir(group)
	}
	return group
}

// limits returns the limits of the ranks together: a limit of a shared group counts once, other limits add up.
func (c *combiner) limits() *Limits {
	list := c.allLimits()
	if len(list) == 0 {
		return nil
	}
	base := cmp.Or(c.base().Limits, list[0])
	out, cpus := *base, 0
	if h := c.base().Host; h != nil {
		cpus = h.CPUs
	}
	c.combineLimits(&out, cpus)
	out.Reclaim = joinedOf(list, func(l *Limits) *Reclaim { return l.Reclaim }, addReclaim)
	out.CPUsRange = c.cpusMoved(out.CPUs)
	out.GivenCPUs, out.GivenMemoryMB = 0, 0
	if given := min(c.given(), cmp.Or(float64(cpus), math.Inf(1))); given > out.CPUs {
		out.GivenCPUs = given
	}

	inCommon := len(list) == len(c.parts)
	for _, l := range list {
		if l.CPUGroup != base.CPUGroup {
			out.CPUGroup, inCommon = "", false
		}
		if l.MemoryGroup != base.MemoryGroup {
			out.MemoryGroup, inCommon = "", false
		}
	}
	if !inCommon { // the ranges of several groups cannot be added up
		out.QuotaRange, out.MemoryRange = nil, nil
	}
	return &out
}

// combineLimits sets the CPU and memory limits of out to the limits of all ranks together. cpus is the number of the
// host's CPUs, 0 if unknown.
func (c *combiner) combineLimits(out *Limits, cpus int) {
	group := func(column collector.Column, of func(*Limits) float64) series.Optional {
		sets := c.byGroup(func(p *rankPart) string { return p.groupOf(column) })
		if sum := c.sumLimit(sets, of); sum > 0 {
			return series.Optional(sum)
		}
		return series.Unknown()
	}
	out.CPUQuota = group(collector.JobThrottled, func(l *Limits) float64 { return float64(l.CPUQuota) })
	out.MemoryMB = group(collector.LimitMemory, func(l *Limits) float64 { return float64(l.MemoryMB) })
	set := c.sumLimit(c.byGroup((*rankPart).cpusetOf), func(l *Limits) float64 { return float64(l.CPUSetCPUs) })
	out.CPUSetCPUs = int(min(set, float64(cmp.Or(cpus, math.MaxInt32))))
	bound := c.sumLimit(c.eachAlone(), func(l *Limits) float64 { return float64(l.AffinityCPUs) })
	out.AffinityCPUs = int(min(bound, float64(cmp.Or(out.CPUSetCPUs, cpus, math.MaxInt32))))

	out.CPUs = 0
	for _, v := range []float64{float64(out.CPUQuota), float64(out.CPUSetCPUs), float64(out.AffinityCPUs)} {
		if v > 0 && (out.CPUs == 0 || v < out.CPUs) {
			out.CPUs = v
		}
	}
}

// allLimits returns the limits of all ranks that have any.
func (c *combiner) allLimits() []*Limits {
	var out []*Limits
	for _, p := range c.parts {
		if p.Limits != nil {
			out = append(out, p.Limits)
		}
	}
	return out
}

// addReclaim raises each field of have to its value in more if that is greater.
func addReclaim(have, more *Reclaim) {
	have.HighMB, have.SwapMB = max(have.HighMB, more.HighMB), max(have.SwapMB, more.SwapMB)
	have.RefaultedMB = max(have.RefaultedMB, more.RefaultedMB)
}

// cpusMoved returns the range of the CPUs that the ranks may use together: the sum of their ranges, scaled to end at
// now, the number of CPUs at the end of the run. It returns nil if the limit of no rank changed.
func (c *combiner) cpusMoved(now float64) *LimitRange {
	var sum, least, mean, most float64
	var out *LimitRange
	for _, l := range c.allLimits() {
		sum, least, mean, most = sum+l.CPUs, least+l.LeastCPUs(), mean+l.MeanCPUs(), most+l.MostCPUs()
		if r := l.CPUsRange; r != nil && (out == nil || r.ChangedAt.After(out.ChangedAt)) {
			out = new(*r)
		}
	}
	if out == nil || !(sum > 0) {
		return nil
	}
	of := func(v float64) series.Optional { return series.Optional(now * v / sum) }
	out.Min, out.Mean, out.Max = of(least), of(mean), of(most)
	return out
}

// given returns the number of CPUs that the ranks were given together; 0 if no rank has bound itself to fewer.
func (c *combiner) given() (sum float64) {
	some := false
	for _, l := range c.allLimits() {
		some = some || l.GivenCPUs > 0
		sum += max(l.GivenCPUs, l.CPUs)
	}
	if !some {
		return 0
	}
	return sum
}

// sumLimit adds up one limit over the sets of parts that share it. For each set, it uses the greatest value that
// limitOf returns. sumLimit returns 0 if a set has no limit.
func (c *combiner) sumLimit(sets [][]*rankPart, limitOf func(*Limits) float64) (sum float64) {
	for _, set := range sets {
		greatest := 0.0
		for _, p := range set {
			if p.Limits != nil && limitOf(p.Limits) > greatest {
				greatest = limitOf(p.Limits)
			}
		}
		if greatest == 0 {
			return 0
		}
		sum += greatest
	}
	return sum
}

// jobSummaries sets the minimum, mean and maximum of the job's columns, from the series of all ranks. Only columns of a
// control group that all ranks share have percentiles, taken from the first part (see byGroup).
func (c *combiner) jobSummaries(n *Node) {
	for key, band := range n.Envelope {
		column, ok := collector.ColumnByKey(key)
		if !ok || column.Info().Scope != collector.ScopeJob {
			continue
		}
		if column.Info().Source == host.SourceCgroup {
			sets := c.byGroup(func(p *rankPart) string { return p.groupOf(column) })
			if q, ok := sets[0][0].Summaries[key]; ok && len(sets) == 1 {
				n.Summaries[key] = q
				continue
			}
		}

		q := Summary{Min: extreme(band.Min, math.Min), Max: band.MaxOf(0, len(band.Max))}
		q.Mean = band.MeanOf(0, len(band.Mean), c.axis.length)
		if math.IsNaN(q.Mean) || !(math.Abs(q.Min) <= math.MaxFloat64 && math.Abs(q.Max) <= math.MaxFloat64) {
			continue
		}
		q.Mean = clamped(q.Mean, q.Min, q.Max)
		n.Summaries[key] = q
	}
}
