package collector

import (
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/intake"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/collector/series"
)

// Operations holds the data that the job reported about its operations: timings, counters, gauges, transfers.
type Operations struct {
	// Keys are the keys of the timelines, as in the envelope of a report.
	Keys []string
	// Timelines has a column for each of the Keys and a bucket for each bucket of Recording.Ring. It is nil while there
	// are no Keys.
	Timelines *series.Ring
	// LastSample is the newest sample of the Timelines.
	LastSample []series.Stat

	// Aggregator holds everything received. It is nil until the Sampler has closed the intake; until then, use
	// CopyAggregator.
	Aggregator *aggregate.Aggregator

	intake *intake.Intake // nil after the job's end, and in copies
}

// CopyAggregator returns a copy of the current Aggregator.
func (o *Operations) CopyAggregator() *aggregate.Aggregator {
	if o.intake != nil {
		return o.intake.CopyAggregator()
	}
	return o.Aggregator.Clone()
}

// Clone returns a copy for another goroutine.
func (o *Operations) Clone() *Operations {
	if o == nil {
		return nil
	}
	c := &Operations{Keys: slices.Clone(o.Keys), LastSample: slices.Clone(o.LastSample), Aggregator: o.CopyAggregator()}
	if o.Timelines != nil {
		c.Timelines = o.Timelines.Clone()
	}
	return c
}

// AddSample adds a sample to the timelines. Call it before Recording.Add of the same sample. keys may only grow.
func (o *Operations) AddSample(rec *Recording, keys []string, sample []series.Stat) {
	o.Keys, o.LastSample = keys, sample
	switch {
	case len(keys) == 0:
		return
	case o.Timelines == nil:
		o.Timelines = rec.Ring.NewAligned(len(keys))
	case o.Timelines.Width() < len(keys):
		o.Timelines.Widen(len(keys))
	}
	o.Timelines.AddStats(sample)
}

// CollectFrom makes the Sampler take new operations from in with every sample. Call it before Run, which closes the
// Intake after the job's end.
func (s *Sampler) CollectFrom(in *intake.Intake) {
	s.intake = in
	s.rec.Operations = &Operations{intake: in}
}

// collectOperations takes the operations since the last sample, and returns the marks among them.
func (s *Sampler) collectOperations(at time.Time, closing bool) (update marks.Update) {
	if s.intake == nil {
		return update
	}

	o := s.rec.Operations
	if closing {
		o.Aggregator, o.intake = s.intake.Close(), nil
		o.LastSample, o.Keys = o.Aggregator.Collect(at, o.LastSample[:0]), o.Aggregator.TimelineKeys()
	} else {
		o.LastSample, o.Keys = s.intake.Collect(at, o.LastSample[:0])
	}
	o.AddSample(s.rec, o.Keys, o.LastSample)

	return s.intake.Marks()
}
