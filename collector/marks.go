package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/text"
)

// MaxPhases is the largest number of recorded phases with different names.
const MaxPhases = 200

// Marks holds the marks and phases of the job, with the usage in each phase. At most one phase is open at a time.
type Marks struct {
	List   []Mark  `json:"list,omitempty"`
	Phases []Phase `json:"phases,omitempty"` // in order of their first start
	// PhaseSpans are the spans of the phases, in order. They do not overlap.
	PhaseSpans []PhaseSpan `json:"stretches,omitempty"`
	// InPhase reports whether the last span is still open.
	InPhase bool `json:"open,omitempty"`
	// Dropped counts the input beyond the limits.
	Dropped marks.Dropped `json:"lost,omitzero"`
	// Why is the reason why the job's file cannot be read; "" if it can be read or does not exist.
	Why string `json:"why,omitempty"`
}

// A Mark is a moment that the job marked.
type Mark struct {
	At   float64 `json:"at"` // seconds since 1970, on the time axis of the samples
	Text string  `json:"text"`
}

// A PhaseSpan is the time from a start of a phase to its end, in seconds since 1970 on the time axis of the samples.
// The End of an open span is the newest sample.
type PhaseSpan struct {
	Phase int     `json:"phase"` // index into Phases
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// A span is the time from the last sample to the present one, on the time axis of the samples.
type span struct {
	from, to float64
	// step is the offset of the wall clock from the axis, in seconds.
	step float64
}

// alignToTimeAxis returns copies of lines with times on the axis. A phase begins and ends within the span, because its
// line was written during that time. A mark without a time, or with a time outside the run, gets the time of the
// sample.
func alignToTimeAxis(lines []marks.Line, start float64, in span) []marks.Line {
	out := slices.Clone(lines)
	for i := range out {
		at := text.Round(out[i].At-in.step, 6)
		switch {
		case math.IsNaN(at):
			at = in.to
		case out[i].IsPhase:
			at = min(max(at, in.from), in.to)
		case !(at >= start && at <= in.to):
			at = in.to
		}
		out[i].At = at
	}

	return out
}

// AddMarks adds the marks that were read with a sample. Their times must be on the axis. Call it before Add of that
// sample.
func (rec *Recording) AddMarks(news marks.Update) {
	rec.MarksUpdate = news
	if rec.Marks == nil {
		if len(news.Lines) == 0 && news.Dropped == (marks.Dropped{}) && news.Why == "" {
			return
		}
		rec.Marks = &Marks{}
	}

	m := rec.Marks
	for _, l := range news.Lines {
		switch {
		case l.IsPhase:
			m.beginPhase(l.Text, l.At)
		case len(m.List) < marks.MaxMarks:
			m.List = append(m.List, Mark{l.At, l.Text})
		default:
			m.Dropped.Marks++
		}
	}

	m.Dropped.Marks += news.Dropped.Marks
	m.Dropped.PhaseSpans += news.Dropped.PhaseSpans
	m.Dropped.Bytes = max(m.Dropped.Bytes, news.Dropped.Bytes)
	m.Why = news.Why
}

// beginPhase ends the current phase and begins the named one. It begins no phase if name is "" or a limit is reached.
func (m *Marks) beginPhase(name string, at float64) {
	at = m.endPhase(at)
	if name == "" {
		return
	}

	i := slices.IndexFunc(m.Phases, func(p Phase) bool { return p.Name == name })
	switch {
	case len(m.PhaseSpans) == marks.MaxPhaseSpans:
		m.Dropped.PhaseSpans++
		return
	case i < 0 && len(m.Phases) == MaxPhases:
		m.Dropped.PhaseSpans++
		return
	case i < 0:
		i = len(m.Phases)
		m.Phases = append(m.Phases, Phase{Name: name})
	}

	m.Phases[i].SpanCount++
	m.PhaseSpans = append(m.PhaseSpans, PhaseSpan{i, at, at})
	m.InPhase = true
}

// endPhase ends the current phase. It returns the start of the next phase: at, or the end of the last span if that is
// later, because the lines of a file are in order.
func (m *Marks) endPhase(at float64) float64 {
	if n := len(m.PhaseSpans); n > 0 {
		last := &m.PhaseSpans[n-1]
		at = max(at, last.Start)
		if m.InPhase {
			last.End = at
		}
		at = max(at, last.End)
	}
	m.InPhase = false

	return at
}

// check returns an error if m, which was read from a file, cannot be the Marks of a Recording.
func (m *Marks) check() error {
	if len(m.List) > marks.MaxMarks || len(m.Phases) > MaxPhases || len(m.PhaseSpans) > marks.MaxPhaseSpans {
		return errors.New("more marks than the bounds allow")
	}
	if m.InPhase && len(m.PhaseSpans) == 0 {
		return errors.New("an open phase that has not begun")
	}

	begun := make([]int64, len(m.Phases))
	before := 0.0
	for _, st := range m.PhaseSpans {
		if st.Phase < 0 || st.Phase >= len(m.Phases) || !(before <= st.Start && st.Start <= st.End) {
			return fmt.Errorf("span of phase %d from %v to %v", st.Phase, st.Start, st.End)
		}
		begun[st.Phase]++
		before = st.End
	}
	for i, p := range m.Phases {
		if p.Name == "" || p.SpanCount != begun[i] || begun[i] == 0 || !(p.CPUSeconds >= 0) {
			return fmt.Errorf("phase %d has %d spans, not %d", i, begun[i], p.SpanCount)
		}
	}

	return nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It rejects Marks that no Recording can have.
func (m *Marks) UnmarshalJSON(data []byte) error {
	type plain Marks
	var read plain
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if err := (*Marks)(&read).check(); err != nil {
		return fmt.Errorf("read marks: %w", err)
	}
	*m = Marks(read)

	return nil
}

// Clone returns a copy that shares no mutable state with m.
func (m *Marks) Clone() *Marks {
	if m == nil {
		return nil
	}

	c := *m
	c.List, c.PhaseSpans, c.Phases = slices.Clone(m.List), slices.Clone(m.PhaseSpans), slices.Clone(m.Phases)
	for i := range c.Phases {
		c.Phases[i].Columns = slices.Clone(m.Phases[i].Columns)
	}

	return &c
}
