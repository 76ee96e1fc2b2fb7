package collector

import (
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/intake"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/collector/series"
)

// Operations is what the job reported about its operations: timings, counters, gauges, transfers.
type Operations struct {
	// Keys are the keys of the timelines, as in the envelope of a report.
	Keys []string
	// Timelines has a column for each of the Keys and a bucket for each bucket of Recording.Ring. It is nil while there
	// are no Keys.
	Timelines *series.Ring
	// LastSample is the newest sample of the Timelines.
	LastSample []series.Stat

	// Aggregator holds everything received. It is nil until the Sampler has closed the intake: use CopyAggregator before.
	Aggregator *aggregate.Aggregator

	intake *intake.Intake // nil after the end, and in copies
}

// CopyAggregator returns a copy of the present Aggregator.
func (w *Operations) CopyAggregator() *aggregate.Aggregator {
	if w.intake != nil {
		return w.intake.CopyAggregator()
	}
	return w.Aggregator.Clone()
}

// Clone returns a copy for another goroutine.
func (w *Operations) Clone() *Operations {
	if w == nil {
		return nil
	}
	c := &Operations{Keys: slices.Clone(w.Keys), LastSample: slices.Clone(w.LastSample), Aggregator: w.CopyAggregator()}
	if w.Timelines != nil {
		c.Timelines = w.Timelines.Clone()
	}
	return c
}

// AddSample adds a sample to the timelines. Call it before Recording.Add of the same sample. keys may only grow.
func (w *Operations) AddSample(rec *Recording, keys []string, sample []series.Stat) {
	w.Keys, w.LastSample = keys, sample
	switch {
	case len(keys) == 0:
		return
	case w.Timelines == nil:
		w.Timelines = rec.Ring.NewAligned(len(keys))
	case w.Timelines.Width() < len(keys):
		w.Timelines.Widen(len(keys))
	}
	w.Timelines.AddStats(sample)
}

// CollectFrom takes new operations from an Intake with every sample. Call it before Run, which closes the Intake after
// the job's end.
func (s *Sampler) CollectFrom(in *intake.Intake) {
	s.intake = in
	s.rec.Operations = &Operations{intake: in}
}

// collectOperations takes the operations since the last sample, and returns the marks among them.
func (s *Sampler) collectOperations(at time.Time, closing bool) (moments marks.Update) {
	if s.intake == nil {
		return moments
	}

	w := s.rec.Operations
	if closing {
		w.Aggregator, w.intake = s.intake.Close(), nil
		s.means, w.Keys = w.Aggregator.Collect(at, s.means[:0]), w.Aggregator.TimelineKeys()
	} else {
		s.means, w.Keys = s.intake.Collect(at, s.means[:0])
	}
	w.AddSample(s.rec, w.Keys, statsOf(w.LastSample[:0], s.means))

	marked, beyond := s.intake.Marks()
	moments.Dropped.Marks = beyond
	for _, m := range marked {
		moments.Lines = append(moments.Lines, marks.NewMarkLine(m.Text, marks.UnixSeconds(m.At)))
	}

	return moments
}

// statsOf appends a Stat for each mean to out.
func statsOf(out []series.Stat, figures []aggregate.WeightedMean) []series.Stat {
	for _, f := range figures {
		var s series.Stat
		s.Add(f.Mean, f.Weight)
		if s.Count > 0 {
			s.Min, s.Max = f.Min, f.Max
		}
		out = append(out, s)
	}
	return out
}
