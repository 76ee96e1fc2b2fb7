package comparer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Gate is a condition on a metric, METRIC OP VALUE. A comparison fails if the condition holds.
type Gate struct {
	Metric string
	Op     string  // one of > >= < <=
	Value  float64 // a change in percent, or an amount in the metric's unit
	// Percent reports whether Value is a change from A to B in percent. Otherwise, Value is an absolute bound on B's
	// median, in the metric's unit.
	Percent bool
}

// GateResult is the outcome of a gate.
type GateResult struct {
	Gate string `json:"gate"`
	// Fired reports whether the condition holds. It is null if that is unknown.
	Fired  *bool  `json:"fired"`
	Reason string `json:"reason"`
}

// ParseGate parses METRIC OP VALUE. OP is one of > >= < <=. VALUE is a number: with a sign and %, it is a change from A
// to B; without %, it is an amount in the metric's unit. Spaces are ignored.
//
// A percentage other than 0 must have a sign. Otherwise it could be mistaken for an amount of a metric with the unit
// percent.
func ParseGate(words string) (Gate, error) {
	at := operatorAt(words)
	if at < 0 {
		return Gate{}, errors.New("is not METRIC OP VALUE, like 'job_cpu_seconds > +10%'; OP is >, >=, < or <=")
	}

	g := Gate{Metric: strings.TrimSpace(words[:at]), Op: words[at : at+1]}
	rest, orEqual := strings.CutPrefix(words[at+1:], "=")
	if orEqual {
		g.Op += "="
	}

	value, percent := strings.CutSuffix(strings.TrimSpace(rest), "%")
	value = strings.TrimSpace(value)
	g.Percent = percent
	if err := checkMetric(g.Metric); err != nil {
		return Gate{}, err
	}

	v, err := strconv.ParseFloat(value, 64)
	// Reject Inf, NaN, hexadecimal numbers and 1_000, which ParseFloat accepts.
	if err != nil || strings.Trim(value, "0123456789.eE+-") != "" || !isComputable(v) {
		return Gate{}, fmt.Errorf("%q is not a number such as +10%%, -5%% or 90", text.Printable(text.Clip(value, 40)))
	}

	if percent && v != 0 && !strings.ContainsAny(value[:1], "+-") {
		const noSign = "%s%% has no sign: a change is %s +%s%%, an amount%s is %s %s"
		return Gate{}, fmt.Errorf(noSign, value, g.Op, value, inUnit(g.Metric), g.Op, value)
	}

	g.Value = v
	return g, nil
}

// operatorAt returns the index of the operator of a gate in words, or -1. The name of a phase may contain < and >, and
// so may the name of a series in double quotes, where a backslash escapes the next character.
func operatorAt(words string) int {
	if _, _, ok := reporter.SplitPhaseMetricName(strings.TrimSpace(words)); ok {
		return strings.LastIndexAny(words, "<>")
	}

	quoted, escaped := false, false
	for i, c := range []byte(words) {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '<' || c == '>'):
			return i
		}
	}

	return -1
}

func checkMetric(name string) error {
	switch m, ok := metricNamed(name); {
	case ok && m.Aggregation != 0:
		return nil
	case ok:
		return fmt.Errorf("%s is not compared: it counts since boot", name)
	}
	if words := operationNumbersOf(name); words != "" {
		return fmt.Errorf("%q is not a number of a series: use %s", text.Printable(text.Clip(name, 80)), words)
	}
	return fmt.Errorf("there is no metric %q; %s", text.Printable(text.Clip(name, 40)),
		text.DidYouMean(closestMetric(name), "%s", "perfagent metrics lists them all"))
}

// closestMetric returns the metric that an unknown name most likely means: the metric with nearly the same spelling, or
// otherwise the first metric with all words of the name. For example, job_memory_mb, a key of the samples, is taken for
// job_peak_memory_mb. closestMetric returns "" if there is no such metric.
func closestMetric(name string) string {
	names := MetricNames()
	if meant := text.Nearest(name, names); meant != "" {
		return meant
	}

	words := strings.Split(strings.ToLower(name), "_")
	for _, known := range names {
		parts := strings.Split(known, "_")
		if !slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(parts, word) }) {
			return known
		}
	}

	return ""
}

// metricNamed returns the metric, or the number of a phase or series, with the given name.
func metricNamed(name string) (reporter.Metric, bool) {
	if m, ok := reporter.MetricByName(name); ok {
		return m, true
	}
	if m, ok := reporter.PhaseMetric(name); ok {
		return m, true
	}
	return reporter.OperationMetric(name)
}

// inUnit returns the unit of the named metric as a part of a sentence. It returns "" if the unit is unknown, because
// the job defines the metric.
func inUnit(name string) string {
	m, _ := metricNamed(name)
	if m.Unit == "" {
		return ""
	}
	return fmt.Sprintf(" in the metric's unit (%s)", m.Unit)
}

// String returns the gate in the form that ParseGate parses.
func (g Gate) String() string {
	format := byte('f')
	if a := math.Abs(g.Value); a >= 1e15 || a != 0 && a < 1e-6 {
		format = 'e'
	}

	value := strconv.FormatFloat(g.Value, format, -1, 64)
	if g.Percent {
		if g.Value > 0 {
			value = "+" + value
		}
		value += "%"
	}

	return g.Metric + " " + g.Op + " " + value
}

// CheckGate applies g to the comparison and adds the result to c.Gates.
//
// A change in percent is treated as 0 % unless it is significant, so that noise does not fire a gate. If there are too
// few runs to estimate the noise, the plain difference of the medians is used, and the reason mentions this. A change
// from 0 to a positive value is infinite. An amount is compared with B's median.
func (c *Comparison) CheckGate(g Gate) GateResult {
	v := GateResult{Gate: g.String()}
	c.show(g.Metric)
	m, ok := c.Metric(g.Metric)
	switch {
	case !ok:
		v.Reason = c.unknown(g.Metric)
	case m.B == nil:
		v.Reason = "B does not have the metric: " + m.whyB
	case g.Percent && m.A == nil:
		v.Reason = "A does not have the metric: " + m.whyA
	case g.Percent:
		change, reason := m.gatedChange()
		fired := g.holds(change)
		v.Fired, v.Reason = &fired, reason
	default:
		fired := g.holds(*m.B)
		v.Fired, v.Reason = &fired, fmt.Sprintf("B has %s", amount(*m.B, m.Unit))
	}

	c.Gates = append(c.Gates, v)
	return v
}

// show makes the tables show the named metric, which a gate uses.
func (c *Comparison) show(name string) {
	for i := range c.Metrics {
		if c.Metrics[i].Name == name {
			c.Metrics[i].hidden, c.Metrics[i].gated = false, true
		}
	}
}

// unknown returns the reason why the comparison lacks the named metric. The name must be valid.
func (c *Comparison) unknown(name string) string {
	m, _ := metricNamed(name)
	if m.Kind != "" && !slices.ContainsFunc(c.Metrics, func(m Metric) bool { return m.definition.Kind != "" }) {
		return "operations were not recorded: perfagent run --ops on"
	}
	if (m.Kind != "" || m.Phase != "") && slices.ContainsFunc(c.Metrics, func(o Metric) bool {
		return o.definition.Kind == m.Kind && o.definition.Series == m.Series && o.definition.Phase == m.Phase
	}) {
		return "that " + subjectOf(&m) + " has no such number on any node of A or B"
	}
	return "no node of A or B has that " + subjectOf(&m)
}

// subjectOf returns a noun for what m describes, such as "phase" or "GPU". Not every node has the described object.
func subjectOf(m *reporter.Metric) string {
	if m.Phase != "" {
		return "phase"
	}
	if m.Kind != "" {
		return m.Kind.Noun()
	}
	column, _ := m.Column()
	if _, _, ok := column.GPU(); ok {
		return "GPU"
	}
	return "device"
}

// holds reports whether the gate's condition is true for v.
func (g Gate) holds(v float64) bool {
	switch g.Op {
	case ">":
		return v > g.Value
	case ">=":
		return v >= g.Value
	case "<":
		return v < g.Value
	}
	return v <= g.Value
}

// gatedChange returns the change in percent that a gate uses. how explains where the number is from.
func (m Metric) gatedChange() (change float64, how string) {
	plain := 0.0
	switch {
	case m.ChangePct != nil:
		plain = *m.ChangePct
	case *m.A != *m.B:
		plain = math.Inf(int(math.Copysign(1, *m.B-*m.A)))
	}

	how = fmt.Sprintf("from %s to %s", text.Number(*m.A), amount(*m.B, m.Unit))
	if isComputable(plain) {
		how = gateChangeText(plain) + ", " + how
	}

	switch {
	case m.Changed == nil:
		how += fmt.Sprintf("; too few runs to know the noise (A %d, B %d), so by the plain difference", m.NA, m.NB)
		return plain, how
	case *m.Changed:
		return plain, how + fmt.Sprintf(" (p %s, %d and %d runs)", pValueCell(*m.P), m.NA, m.NB)
	}

	how = fmt.Sprintf("no significant change (p %s, %d and %d runs): %s", pValueCell(*m.P), m.NA, m.NB, how)
	return 0, how
}
