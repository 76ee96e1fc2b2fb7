package comparer

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Gate is a condition on a metric that must not come true: METRIC OP VALUE.
type Gate struct {
	Metric string
	Op     string  // one of > >= < <=
	Value  float64 // a change in percent, or an amount in the metric's unit
	// Percent tells that Value is the change of B against A; else it is an amount
	// that B's median is held against.
	Percent bool
}

// Verdict is a gate and what became of it.
type Verdict struct {
	Gate string `json:"gate"`
	// Fired tells whether the condition came true; null = it cannot be judged.
	Fired  *bool  `json:"fired"`
	Reason string `json:"reason"`
}

// ParseGate reads METRIC OP VALUE: a metric that is compared, one of > >= < <=, and a
// number: with a sign and % for a change of B against A, without % for an amount in the
// metric's unit. Spaces do not matter. A percentage other than 0 that has no sign is
// refused: of a metric in percent it would be taken for the amount.
func ParseGate(words string) (Gate, error) {
	at := strings.IndexAny(words, "<>")
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
	// ParseFloat also reads Inf, NaN, hexadecimal numbers and 1_000.
	if err != nil || strings.Trim(value, "0123456789.eE+-") != "" || !finite(v) {
		return Gate{}, fmt.Errorf("%q is no number, like +10%%, -5%% or 90", text.Printable(clip(value, 40)))
	}

	if percent && v != 0 && !strings.ContainsAny(value[:1], "+-") {
		return Gate{}, fmt.Errorf("%s%% has no sign: a change is %s +%s%%, an amount in the metric's unit (%s) is %s %s",
			value, g.Op, value, unitOf(g.Metric), g.Op, value)
	}

	g.Value = v
	return g, nil
}

func checkMetric(name string) error {
	if ruleOf(name) != nil {
		if _, ok := reporter.MetricNamed(name); ok {
			return nil
		}
	}

	if _, ok := reporter.MetricNamed(name); ok {
		return fmt.Errorf("%s is not compared: it counts since boot", name)
	}

	return fmt.Errorf("there is no metric %q: perfagent metrics lists them", text.Printable(clip(name, 40)))
}

// unitOf is the unit of a metric that there is.
func unitOf(name string) string {
	m, _ := reporter.MetricNamed(name)
	return m.Unit
}

// String writes the gate as ParseGate reads it.
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

// Judge holds a gate against the comparison and keeps the verdict.
//
// A change in percent counts as 0 % unless the metric is found changed: noise trips no
// gate. Where there are too few runs to know, the plain difference of the medians
// counts, and the reason says so. From 0 to more is an infinite change. An amount is
// held against B's median as it is.
func (c *Comparison) Judge(g Gate) Verdict {
	v := Verdict{Gate: g.String()}
	m, ok := c.Metric(g.Metric)
	switch {
	case !ok:
		v.Reason = "no node of A or B has that GPU"
	case m.B == nil:
		v.Reason = "B lacks the metric: " + m.whyB
	case g.Percent && m.A == nil:
		v.Reason = "A lacks the metric: " + m.whyA
	case g.Percent:
		change, reason := m.judged()
		fired := g.holds(change)
		v.Fired, v.Reason = &fired, reason
	default:
		fired := g.holds(*m.B)
		v.Fired, v.Reason = &fired, fmt.Sprintf("B has %s", amount(*m.B, m.Unit))
	}

	c.Gates = append(c.Gates, v)
	return v
}

// holds tells whether the condition is true of a value.
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

// judged is the change that counts for a gate, in percent, and how it was found.
func (m Metric) judged() (change float64, how string) {
	plain := 0.0
	switch {
	case m.ChangePct != nil:
		plain = *m.ChangePct
	case *m.A != *m.B:
		plain = math.Inf(int(math.Copysign(1, *m.B-*m.A)))
	}

	how = fmt.Sprintf("from %s to %s", figure(*m.A), amount(*m.B, m.Unit))
	if finite(plain) {
		how = changeText(plain, 4) + ", " + how
	}

	switch {
	case m.Changed == nil:
		return plain, how + fmt.Sprintf("; too few runs to know the noise (A %d, B %d), so by the plain difference", m.NA, m.NB)
	case *m.Changed:
		return plain, how + fmt.Sprintf(" (p %s, %d and %d runs)", probability(*m.P), m.NA, m.NB)
	}

	return 0, fmt.Sprintf("no change that can be told from noise (p %s, %d and %d runs): %s", probability(*m.P), m.NA, m.NB, how)
}
