package comparer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// The minimum differences that are shown if there are too few runs to estimate the noise: in percent, and in the
// metric's unit.
const (
	minNotablePct     = 5
	minNotableMB      = 1
	minNotableSeconds = 0.05
)

// Sentence returns one sentence that compares the durations of A and B, and lists changes of CPU time, memory and GPU.
func (c *Comparison) Sentence() string {
	words, joint := "How long the runs took is not known", ". "
	wall, _ := c.Metric(reporter.MetricWall)
	if wall.A != nil && wall.B != nil {
		joint = ": "
	}
	switch {
	case wall.A == nil || wall.B == nil:
	case wall.Changed == nil:
		words = "B took " + wall.durationText()
	case *wall.Changed:
		words = "B took " + wall.durationText() + " (" + pValueText(*wall.P) + ")"
	default:
		words = "B took as long as A (" + pValueText(*wall.P) + ")"
	}

	var changes []string
	for _, change := range []string{
		c.changeOf("CPU time", reporter.MetricJobCPU),
		c.changeOf("peak memory", reporter.MetricJobMemoryPeak, reporter.MetricJobMaxRSS),
		c.changeOfGPUs(),
	} {
		if change != "" {
			changes = append(changes, change)
		}
	}
	if len(changes) > 0 {
		words += joint + strings.Join(changes, ", ")
	}

	return words + "."
}

// Noise returns a warning that there are too few runs to estimate the noise; "" if there are enough.
func (c *Comparison) Noise() string {
	few := "With so few runs"
	switch wall, _ := c.Metric(reporter.MetricWall); {
	case c.A.Runs == 1 && c.B.Runs == 1:
		few = "With one run on each side"
	case wall.Changed != nil || min(c.A.Runs, c.B.Runs) >= RunsNeeded():
		return ""
	}
	return fmt.Sprintf("%s, this may be noise: repeat each; %d runs are enough.", few, RunsNeeded())
}

// durationText describes the duration of B: "12 % longer than A", "12 % less time than A", "2.1 × as long as A".
func (m Metric) durationText() string {
	if *m.A <= 0 || m.ChangePct == nil {
		return shownAmount(*m.B, m.Unit) + ", and A " + shownAmount(*m.A, m.Unit)
	}

	times := *m.B / *m.A
	switch change := changeText(*m.A, *m.B, *m.ChangePct); {
	case times >= 9.95:
		return strconv.FormatFloat(times, 'f', 0, 64) + " × as long as A"
	case times >= 2:
		return strconv.FormatFloat(times, 'f', 1, 64) + " × as long as A"
	case change == "0 %" || strings.HasSuffix(change, "<0.1 %"):
		return "as long as A"
	case change[0] == '+':
		return change[1:] + " longer than A"
	default:
		return change[1:] + " less time than A"
	}
}

// percentText formats a percentage without a sign. Percentages of at least 10 have no decimals. A percentage below 100
// is never rounded to 100.
func percentText(pct float64) string {
	if pct >= 10 && (pct < 99 || pct >= 100) {
		return strconv.FormatFloat(pct, 'f', 0, 64)
	}
	if pct > 99 && pct < 100 {
		pct = min(pct, 99.9)
	}

	return strings.TrimSuffix(strconv.FormatFloat(pct, 'f', 1, 64), ".0")
}

// pValueText returns a p-value as "p 0.012".
func pValueText(p float64) string { return "p " + strings.Replace(pValueCell(p), "<.", "< 0.", 1) }

// changeOf returns the change of the first named metric that both sides have, such as "memory -32 %"; "" if that metric
// has not changed.
func (c *Comparison) changeOf(label string, names ...string) string {
	for _, name := range names {
		m, _ := c.Metric(name)
		if m.A == nil || m.B == nil {
			continue
		}

		switch {
		case !m.hasNotableChange():
			return ""
		case m.ChangePct == nil:
			return label + " from " + shownAmount(*m.A, m.Unit) + " to " + shownAmount(*m.B, m.Unit)
		default:
			return label + " " + changeText(*m.A, *m.B, *m.ChangePct)
		}
	}

	return ""
}

// changeOfGPUs returns the change of the GPU's utilization. If there are several GPUs, it returns the first change.
func (c *Comparison) changeOfGPUs() string {
	var names []string
	for _, m := range c.Metrics {
		if strings.HasPrefix(m.Name, "gpu_") && strings.HasSuffix(m.Name, "_avg_utilization_pct") {
			names = append(names, m.Name)
		}
	}

	for _, name := range names {
		label := "GPU"
		if len(names) > 1 {
			label += " " + strings.Split(name, "_")[1]
		}
		if change := c.changeOf(label, name); change != "" {
			return change
		}
	}

	return ""
}

// hasNotableChange reports whether m has changed. If there are too few runs for a test, it reports whether the
// difference is large enough to be shown.
func (m Metric) hasNotableChange() bool {
	switch {
	case m.A == nil || m.B == nil:
		return false
	case m.Changed != nil:
		return *m.Changed
	case *m.A == *m.B:
		return false
	}

	switch difference := math.Abs(*m.B - *m.A); {
	case m.Unit == collector.Mebibytes && difference < minNotableMB:
		return false
	case m.Unit == collector.Seconds && difference < minNotableSeconds:
		return false
	}
	return m.ChangePct == nil || math.Abs(*m.ChangePct) >= minNotablePct
}

// commandsOf returns the commands of runs as text, without duplicates.
func commandsOf(runs []*run) []string {
	var out []string
	for _, r := range runs {
		if len(r.Command) > 0 {
			out = append(out, summary.CommandLine(r.Command))
		}
	}
	slices.Sort(out)

	return slices.Compact(out)
}

// Commands returns one line that shows the commands of A and B; "" if they are equal, or if a side has none.
func (c *Comparison) Commands() string {
	if len(c.commandsA) == 0 || len(c.commandsB) == 0 || slices.Equal(c.commandsA, c.commandsB) {
		return ""
	}

	a, b := trimCommonPrefix(c.commandsA[0], c.commandsB[0])
	return "the commands differ: A " + a + andOthers(c.commandsA) + " | B " + b + andOthers(c.commandsB)
}

// andOthers returns a text with the number of commands after the first.
func andOthers(commands []string) string {
	if len(commands) < 2 {
		return ""
	}
	return fmt.Sprintf(" and %d more", len(commands)-1)
}

// maxCommand is the maximum number of characters of a command that are shown.
const maxCommand = 80

// trimCommonPrefix shortens two long commands so that their difference is visible: an ellipsis replaces the words at
// their beginning that are the same.
func trimCommonPrefix(a, b string) (shortA, shortB string) {
	if utf8.RuneCountInString(a) > maxCommand || utf8.RuneCountInString(b) > maxCommand {
		common := 0
		for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
			if a[i] == ' ' {
				common = i + 1
			}
		}
		if common > len("… ") {
			a, b = "… "+a[common:], "… "+b[common:]
		}
	}

	return text.Clip(a, maxCommand), text.Clip(b, maxCommand)
}

// listedMetrics returns the metrics of the tables, in the order of their groups. If all is false, these are only time,
// CPU time and peak memory, the changed metrics of the job, and the metrics that gates use.
func (c *Comparison) listedMetrics(all bool) []Metric {
	list := slices.DeleteFunc(c.visibleMetrics(), func(m Metric) bool { return !all && !c.leads(&m) })
	slices.SortStableFunc(list, func(a, b Metric) int { return reporter.ByGroup(*a.definition, *b.definition) })

	return list
}

// leads reports whether m belongs in the first table.
func (c *Comparison) leads(m *Metric) bool {
	always := m.Name == reporter.MetricWall || m.Name == reporter.MetricJobCPU || m.Name == reporter.MetricJobMemoryPeak
	return m.gated || c.isOfJob(m) && (always && m.A != nil && m.B != nil || m.hasNotableChange())
}

// isOfJob reports whether m is a number of the job or its GPUs, and cannot be computed from other numbers.
func (c *Comparison) isOfJob(m *Metric) bool {
	if of := m.definition; of.Group == reporter.GroupNode || of.Group == reporter.GroupBoot {
		return false
	}
	switch name := cmp.Or(m.definition.Number, m.Name); name {
	case reporter.MetricJobCores, reporter.MetricLimitCPU: // computed from CPU time and wall time
		return false
	case reporter.MetricJobMaxRSS, reporter.MetricLimitMemory:
		peak, _ := c.Metric(reporter.MetricJobMemoryPeak)
		return peak.A == nil || peak.B == nil
	}
	return true
}

// otherLines returns lines about the metrics that the short table omits: the job's metrics that did not change, the
// metrics that only one side has, and how to see the rest.
func (c *Comparison) otherLines(list []Metric) []string {
	var same, alike, onlyA, onlyB labels
	for _, m := range c.visibleMetrics() {
		if !c.isOfJob(&m) || slices.ContainsFunc(list, func(l Metric) bool { return l.Name == m.Name }) {
			continue
		}
		switch {
		case m.A == nil && m.B == nil:
		case m.B == nil:
			onlyA.add(&m, list)
		case m.A == nil:
			onlyB.add(&m, list)
		case m.Changed == nil:
			same.add(&m, list)
		default:
			alike.add(&m, list)
		}
	}

	var out []string
	for _, group := range []struct {
		title string
		labels
	}{
		{fmt.Sprintf("The same, or differing by less than %d %%, %d MiB or %s",
			minNotablePct, minNotableMB, text.Seconds(minNotableSeconds)), same},
		{fmt.Sprintf("No significant change (p > %v)", Alpha), alike}, {"Only in A", onlyA}, {"Only in B", onlyB},
	} {
		if len(group.labels) > 0 {
			out = append(out, group.title+": "+text.List(group.labels, maxLabels)+".")
		}
	}
	return append(out, "The node and all metrics: perfagent diff --all.")
}

// maxLabels is the maximum number of metrics that a line names.
const maxLabels = 10

// labels is a list of metric names for people. All numbers of a phase or of a series share one name.
type labels []string

// add adds the name of m unless the name is already there. If list has a metric of the same phase or series, add uses
// the name of the single number.
func (l *labels) add(m *Metric, list []Metric) {
	name, of := m.label(), m.definition
	switch single := slices.ContainsFunc(list, func(o Metric) bool {
		return o.definition.Phase == of.Phase && o.definition.Kind == of.Kind && o.definition.Series == of.Series
	}); {
	case single && of.Phase != "":
		name = strings.TrimSuffix(of.Label, ", "+of.Phase) + " in " + of.Phase // without a comma, which separates names
	case single:
	case of.Phase != "":
		name = "phase " + of.Phase
	case of.Kind != "":
		name = of.Series
	}
	if name = text.Clip(name, maxName); !slices.Contains(*l, name) {
		*l = append(*l, name)
	}
}
