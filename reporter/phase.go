package reporter

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
)

// newMarks returns the marks of the job in order of time.
func newMarks(rec *collector.Recording) []Mark {
	if rec.Marks == nil {
		return nil
	}

	var out []Mark
	for _, m := range rec.Marks.List {
		out = append(out, Mark{m.At, m.Text})
	}
	slices.SortStableFunc(out, func(a, b Mark) int { return cmp.Compare(a.Timestamp, b.Timestamp) })

	return out
}

// newPhases returns the phases of a run. A phase that is still active at the end lasts until the end of the job, which
// may be before the newest sample.
func newPhases(rec *collector.Recording, end Time) []Phase {
	m := rec.Marks
	if m == nil {
		return nil
	}

	var out []Phase
	for i := range m.Phases {
		of := &m.Phases[i]
		p := Phase{Name: of.Name, Count: of.SpanCount, Spans: phaseSpans(m, i, end)}
		p.Start = p.Spans[0][0]
		for _, span := range p.Spans {
			p.Seconds += span[1]
		}
		p.Seconds = text.Round(p.Seconds, 6)
		p.Metrics, _ = phaseFacts(rec, of, p.Seconds).compute() // phases do not list Missing
		out = append(out, p)
	}

	return out
}

// phaseSpans returns the spans of the phase with the given index. An active span ends no later than end.
func phaseSpans(m *collector.Marks, phase int, end Time) []PhaseSpan {
	var out []PhaseSpan
	for i, span := range m.PhaseSpans {
		if span.Phase != phase {
			continue
		}
		if open := m.InPhase && i == len(m.PhaseSpans)-1; open {
			span.End = max(span.Start, min(span.End, float64(end.UnixMicro())/1e6))
		}
		out = append(out, PhaseSpan{span.Start, text.Round(span.End-span.Start, 6)})
	}

	return out
}

// phaseFacts returns the facts for the metrics of a phase, which have the same formulas as the run's.
func phaseFacts(rec *collector.Recording, p *collector.Phase, seconds float64) *facts {
	account := collector.NoAccount()
	if rec.Account.CPUSeconds.Known() && seconds > 0 {
		account.CPUSeconds = series.Optional(text.Round(p.CPUSeconds, 9)) // adding up shares leaves rounding errors
	}

	f := &facts{
		inPhase: true,
		cpus:    rec.Host.CPUs, account: &account, gpus: rec.GPUs, jobErr: newMissingError(NoJob), length: seconds,
		wall:       seconds,
		whyMissing: func(collector.Column) error { return newMissingError(NoSample) },
	}
	for _, s := range p.Columns {
		f.summary = append(f.summary, series.SummaryOf(s))
	}

	return f
}

// timeResolution is the resolution of sample timestamps, in seconds. A phase's start plus its length may be slightly
// before the timestamp of the sample at its end.
const timeResolution = 0.001

// PhaseAt returns the name of the phase that was active at the time at, in seconds since 1970, or "". A phase does not
// include the moment of its end, unless that is the moment of the newest sample.
func (n *Node) PhaseAt(at float64) string {
	name, start, newest := "", math.Inf(-1), n.newest()
	for _, p := range n.Phases {
		for _, span := range p.Spans {
			end := span[0] + span[1]
			if at >= newest {
				end += 2 * timeResolution
			}
			if span[0] <= at && at < end-timeResolution/2 && span[0] >= start {
				name, start = p.Name, span[0]
			}
		}
	}

	return name
}

// marksMissing returns the Missing of the job's marks.
func marksMissing(rec *collector.Recording) []Missing {
	if rec.Marks == nil {
		return nil
	}

	var out []Missing
	if why := rec.Marks.Why; why != "" {
		out = append(out, Missing{What: "marks", Code: MarksUnread, Why: why})
	}

	lost := rec.Marks.Dropped
	var beyond text.Parts
	beyond.Add(lost.Marks > 0, "%s", text.Count(int(lost.Marks), "mark", "marks"))
	beyond.Add(lost.PhaseSpans > 0, "%s", text.Count(int(lost.PhaseSpans), "beginning of a phase", "beginnings of phases"))
	beyond.Add(lost.Bytes > 0, "%s", text.Count(int(lost.Bytes), "byte of the file", "bytes of the file"))
	if len(beyond) > 0 {
		out = append(out, Missing{
			What: "marks", Code: MarksBeyond, Count: lost.Marks + lost.PhaseSpans,
			Why: "beyond the limit: " + text.List(beyond, len(beyond)),
		})
	}

	return out
}

// Numbers of a phase that are not metrics of the table.
const (
	PhaseSeconds = "seconds"
	PhaseCount   = "count"
)

const phasePrefix = "phase."

// PhaseMetricName returns the name of a number of a phase: phase.NAME.seconds, phase.NAME.count, or phase.NAME.METRIC.
func PhaseMetricName(phase, number string) string { return phasePrefix + phase + "." + number }

// SplitPhaseMetricName is the inverse of PhaseMetricName. Only the name of a phase may contain dots. It returns false
// for other names.
func SplitPhaseMetricName(name string) (phase, number string, ok bool) {
	rest, ok := strings.CutPrefix(name, phasePrefix)
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 1 {
		return "", "", false
	}
	return rest[:dot], rest[dot+1:], true
}

// PhaseNumbers lists the numbers that a phase can have: its length, its count, and metrics in the order of the table,
// metrics of GPUs last.
func PhaseNumbers() []string {
	table := metricTable
	for device := range collector.MaxGPUs {
		table = slices.Concat(table, gpuMetrics(device))
	}
	names := []string{PhaseSeconds, PhaseCount}
	for _, m := range table {
		if m.inPhases {
			names = append(names, m.Name)
		}
	}
	return names
}

// PhaseMetric returns the metric with a name from [PhaseMetricName]. It returns false if there is no such number.
func PhaseMetric(name string) (m Metric, ok bool) {
	phase, number, ok := SplitPhaseMetricName(name)
	if !ok {
		return Metric{}, false
	}

	switch number {
	case PhaseSeconds:
		m = Metric{Label: "wall time", Unit: collector.Seconds, Aggregation: collector.Max,
			Meaning: "length of the phase " + phase}
	case PhaseCount:
		m = Metric{Label: "beginnings", Unit: collector.Times, Aggregation: collector.Max,
			Meaning: "beginnings of the phase " + phase}
	default:
		if m, ok = MetricByName(number); !ok || !m.inPhases {
			return Metric{}, false
		}
		m.Meaning, m.PerfPy = m.Meaning+", in the phase "+phase, false
	}
	m.Label += ", " + phase
	m.Name, m.Group, m.Phase, m.Number = name, GroupPhases, phase, number

	return m, true
}

// PhaseValues returns all numbers of the node's phases by their names from [PhaseMetricName].
func (n *Node) PhaseValues() Values {
	out := make(Values)
	for i := range n.Phases {
		for number, v := range n.Phases[i].Values() {
			out[PhaseMetricName(n.Phases[i].Name, number)] = v
		}
	}
	return out
}

// Values returns the numbers of the phase: see [PhaseNumbers].
func (p *Phase) Values() Values {
	out := Values{PhaseSeconds: p.Seconds, PhaseCount: float64(p.Count)}
	maps.Copy(out, p.Metrics)
	return out
}

// Phase returns the phase with the given name, or nil.
func (n *Node) Phase(name string) *Phase {
	if i := slices.IndexFunc(n.Phases, func(p Phase) bool { return p.Name == name }); i >= 0 {
		return &n.Phases[i]
	}
	return nil
}

// CurrentPhase returns the name of the phase at the newest sample, or "".
func (n *Node) CurrentPhase() string {
	if len(n.Phases) == 0 {
		return ""
	}
	return n.PhaseAt(n.newest())
}

// newest returns the time of the newest sample, or +Inf without samples.
func (n *Node) newest() float64 {
	ends := n.Envelope[collector.Timestamp.Key()].Max
	if len(ends) == 0 {
		return math.Inf(1)
	}
	return ends[len(ends)-1]
}
