package collector

import (
	"encoding/json"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// A Phase holds the usage in all spans of a phase. Values measured over a window (CPU, bytes) are divided between
// phases by time. Values read at one moment (memory, space, GPUs) count for the phase of that moment.
type Phase struct {
	Name      string
	SpanCount int64
	// CPUSeconds is the CPU time of the job.
	CPUSeconds float64
	// Columns holds the statistics of the columns that phases keep (see [Column.InPhases]), indexed by Column. For a
	// counter, the Stat holds a single value, the increase.
	Columns []series.Stat
}

// phaseJSON is the JSON form of a Phase. It identifies columns by their keys, which do not change between versions.
type phaseJSON struct {
	Name       string                 `json:"name"`
	Begun      int64                  `json:"begun"`
	CPUSeconds float64                `json:"cpu_seconds"`
	Columns    map[string]series.Stat `json:"columns,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (p Phase) MarshalJSON() ([]byte, error) {
	out := phaseJSON{p.Name, p.SpanCount, p.CPUSeconds, make(map[string]series.Stat)}
	for i, s := range p.Columns {
		if s.Count > 0 {
			out.Columns[Column(i).Key()] = s
		}
	}

	return json.Marshal(out)
}

// UnmarshalJSON implements [json.Unmarshaler]. It ignores unknown columns and columns that phases do not keep.
func (p *Phase) UnmarshalJSON(data []byte) error {
	var read phaseJSON
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}

	*p = Phase{Name: read.Name, SpanCount: read.Begun, CPUSeconds: read.CPUSeconds}
	for key, s := range read.Columns {
		c, ok := ColumnByKey(key)
		if !ok || !c.InPhases() {
			continue
		}
		if n := int(c) + 1; len(p.Columns) < n {
			p.Columns = append(p.Columns, make([]series.Stat, n-len(p.Columns))...)
		}
		p.Columns[c] = s
	}

	return nil
}

// InPhases reports whether phases keep the column. They keep the columns of the samples, but not columns that only the
// envelope has, such as rates and pressures.
func (c Column) InPhases() bool { return !c.row().EnvelopeOnly && c != Timestamp }

// isWindowed reports whether the column is measured over the time before a sample, rather than at one moment.
func (c Column) isWindowed() bool {
	row := c.row()
	return row.Kind == Rate || row.Requires.Has(RequiresTicks)
}

// addToPhases adds to each phase its share of the sample. Call it before the sample is added to rec.
func (m *Marks) addToPhases(s *Sample, rec *Recording) {
	if len(m.PhaseSpans) == 0 {
		return
	}

	in := span{from: rec.NewestTimestamp(), to: s.Values[Timestamp]}
	in.from = min(in.from, in.to-0.001) // timestamps are in milliseconds: two may be equal
	last := &m.PhaseSpans[len(m.PhaseSpans)-1]
	if m.InPhase {
		last.End = max(last.Start, in.to)
	}

	earliest := in.from - s.longestWindow() + s.Weights[Timestamp]
	for i := len(m.PhaseSpans) - 1; i >= 0 && m.PhaseSpans[i].End >= earliest; i-- {
		st := m.PhaseSpans[i]
		m.Phases[st.Phase].addTimed(s, st, in, rec)
	}
	if m.InPhase {
		m.Phases[last.Phase].addMoment(s, rec)
	}
}

// NewestTimestamp returns the time of the newest sample, or of the start of the run, in seconds since 1970.
func (rec *Recording) NewestTimestamp() float64 {
	if at, ok := rec.Summaries[Timestamp].Max(); ok {
		return at
	}
	return rec.startTimestamp()
}

// startTimestamp returns the start of the run, in seconds since 1970.
func (rec *Recording) startTimestamp() float64 { return float64(rec.Start.Wall.UnixMilli()) / 1000 }

// longestWindow returns the longest window of the sample's values, in seconds.
func (s *Sample) longestWindow() float64 {
	longest := s.Weights[Timestamp]
	for c := range NumColumns {
		if c.isWindowed() && s.Has(c) {
			longest = max(longest, s.Weights[c])
		}
	}
	return longest
}

// overlapFraction returns the fraction of in that lies in the span, from 0 to 1.
func (st PhaseSpan) overlapFraction(in span) float64 {
	return max(0, min(st.End, in.to)-max(st.Start, in.from)) / (in.to - in.from)
}

// addTimed adds the part of a sample that lies in a span of the phase, for values measured over time: windowed columns,
// counters, and the CPU time.
func (p *Phase) addTimed(s *Sample, st PhaseSpan, in span, rec *Recording) {
	whole := st.overlapFraction(in)
	p.CPUSeconds += whole * s.JobCPUSeconds

	for i := range p.columns(rec) {
		c := Column(i)
		switch {
		case !c.InPhases() || !s.Has(c):
		case c.row().Kind == Counter:
			unread := in
			unread.from -= s.unread(c, rec.Interval)
			if part := st.overlapFraction(unread); part > 0 {
				p.Columns[i] = increased(p.Columns[i], part*rec.increase(c, s.Values[c]))
			}
		case c.isWindowed():
			window := in
			window.from -= max(0, s.Weights[c]-s.Weights[Timestamp])
			if part := st.overlapFraction(window); part > 0 {
				p.Columns[i].Add(s.Values[c], part*s.Weights[c])
			}
		}
	}
}

// unread returns the number of seconds before the sample's interval for which the counter c was not read. The window of
// the counter's rate shows this: it exceeds the interval by MinWindow or more only if earlier samples could not read
// the counter.
func (s *Sample) unread(c Column, interval time.Duration) float64 {
	rate := c.row().Rate
	if rate == 0 || !s.Has(rate) {
		return 0
	}
	if late := s.Weights[rate] - s.Weights[Timestamp]; late >= MinWindow(interval).Seconds() {
		return late
	}
	return 0
}

// addMoment adds the values read at one moment during the phase. It skips a stale memory value, which may belong to
// another phase.
func (p *Phase) addMoment(s *Sample, rec *Recording) {
	for i := range p.columns(rec) {
		c := Column(i)
		if stale := c == JobMemory && s.MemoryStale; stale || !c.InPhases() || c.isWindowed() || c.row().Kind == Counter {
			continue
		}
		p.Columns[i].Add(s.Values[c], s.Weights[c])
	}
}

// columns returns the phase's columns, extended to the width of the Recording.
func (p *Phase) columns(rec *Recording) []series.Stat {
	if n := len(rec.Summaries); len(p.Columns) < n {
		p.Columns = append(p.Columns, make([]series.Stat, n-len(p.Columns))...)
	}
	return p.Columns
}

// increase returns the increase of the counter c from the last sample to now.
func (rec *Recording) increase(c Column, now float64) float64 {
	before, ok := rec.Summaries[c].Max()
	if !ok {
		before = 0
	}
	return max(0, now-before)
}

// increased returns total plus by, as a Stat of one value.
func increased(total series.Stat, by float64) series.Stat {
	v := by
	if total.Count > 0 {
		v += total.Max
	}
	return series.Stat{Min: v, Max: v, Sum: v, Count: 1}
}
