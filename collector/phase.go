package collector

import (
	"encoding/json"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// A Phase is what was used while the job was in a phase, over all its stretches. What is measured over a
// time (CPU, bytes) is shared between phases by time. What is read at one moment (memory, space, GPUs)
// belongs to the phase of that moment.
type Phase struct {
	Name      string
	SpanCount int64 // how often
	// CPUSeconds is the CPU time of the job.
	CPUSeconds float64
	// Columns are the values by Column, as far as phases keep them: see [Column.InPhases]. Of a counter
	// they are the increase, as one value.
	Columns []series.Stat
}

// phaseJSON is a Phase in a file. The columns are by their keys, which do not change from version to version.
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

// UnmarshalJSON implements [json.Unmarshaler]. It leaves out columns that are not ours.
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

// InPhases reports whether phases keep a column: those of the samples, without the rates and pressures
// that only the envelope has.
func (c Column) InPhases() bool { return !c.row().EnvelopeOnly && c != Timestamp }

// isWindowed reports whether a column's values are of the time before a sample, rather than of one moment.
func (c Column) isWindowed() bool {
	row := c.row()
	return row.Kind == Rate || row.Requires.Has(RequiresTicks)
}

// addToPhases gives the phases their shares of a sample. rec is without it.
func (m *Marks) addToPhases(s *Sample, rec *Recording) {
	if len(m.PhaseSpans) == 0 {
		return
	}

	in := span{from: rec.NewestTimestamp(), to: s.Values[Timestamp]}
	in.from = min(in.from, in.to-0.001) // the resolution of timestamps: two samples may have the same
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

// NewestTimestamp returns when the newest sample was taken, or when the run started, in seconds
// since 1970.
func (rec *Recording) NewestTimestamp() float64 {
	if at, ok := rec.Summaries[Timestamp].Max(); ok {
		return at
	}
	return rec.startTimestamp()
}

// startTimestamp returns when the run started, in seconds since 1970.
func (rec *Recording) startTimestamp() float64 { return float64(rec.Start.Wall.UnixMilli()) / 1000 }

// longestWindow returns the longest time that a value of the sample stands for, in seconds.
func (s *Sample) longestWindow() float64 {
	longest := s.Weights[Timestamp]
	for c := range NumColumns {
		if c.isWindowed() && s.Has(c) {
			longest = max(longest, s.Weights[c])
		}
	}
	return longest
}

// overlapFraction returns which part of a time lies in the stretch, from 0 to 1.
func (st PhaseSpan) overlapFraction(in span) float64 {
	return max(0, min(st.End, in.to)-max(st.Start, in.from)) / (in.to - in.from)
}

// addTimed adds the part of a sample that lies in a stretch of the phase, of the values that are measured
// over a time: the columns with a window, the counters, and the CPU time.
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

// unread returns for how long before a sample's own time a counter had not been read, in seconds. Its rate knows: the
// window of a rate is longer than a sample only by less than MinWindow, unless some samples could not read it.
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

// addMoment adds the values of a sample that are read at one moment, which the phase is on at. A memory that was
// measured earlier may be that of another phase.
func (p *Phase) addMoment(s *Sample, rec *Recording) {
	for i := range p.columns(rec) {
		c := Column(i)
		if held := c == JobMemory && s.MemoryStale; held || !c.InPhases() || c.isWindowed() || c.row().Kind == Counter {
			continue
		}
		p.Columns[i].Add(s.Values[c], s.Weights[c])
	}
}

// columns returns the phase's columns, as many as the Recording has.
func (p *Phase) columns(rec *Recording) []series.Stat {
	if n := len(rec.Summaries); len(p.Columns) < n {
		p.Columns = append(p.Columns, make([]series.Stat, n-len(p.Columns))...)
	}
	return p.Columns
}

// increase returns how far a counter has gone up since the sample before.
func (rec *Recording) increase(c Column, now float64) float64 {
	before, ok := rec.Summaries[c].Max()
	if !ok {
		before = 0
	}
	return max(0, now-before)
}

// increased returns a total, as one value, after an increase.
func increased(total series.Stat, by float64) series.Stat {
	v := by
	if total.Count > 0 {
		v += total.Max
	}
	return series.Stat{Min: v, Max: v, Sum: v, Count: 1}
}
