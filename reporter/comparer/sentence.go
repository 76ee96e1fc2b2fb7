package comparer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// minNotablePct is the smallest difference shown, in percent, if there are too few runs to know the noise.
const minNotablePct = 5

// Sentence returns one line on how long B took, compared with A, and on changes of CPU time, memory and GPU.
func (c *Comparison) Sentence() string {
	words, noise := "how long the runs took is not known", ""
	wall, _ := c.Metric(reporter.MetricWall)
	switch {
	case c.A.Runs == 1 && c.B.Runs == 1:
		noise = " (one run a side: the noise is unknown)"
	case wall.Changed == nil:
		noise = " (too few runs: the noise is unknown)"
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

	for _, change := range []string{
		c.changeOf("CPU time", reporter.MetricJobCPU),
		c.changeOf("memory", reporter.MetricJobMemoryPeak, reporter.MetricJobMaxRSS),
		c.changeOfGPUs(),
	} {
		if change != "" {
			words += ", " + change
		}
	}

	return words + noise
}

// durationText returns how long B took: "12 % longer", "12 % less time", "2.1 × as long", "as long as A".
func (m Metric) durationText() string {
	if *m.A <= 0 || m.ChangePct == nil {
		return text.Seconds(*m.B) + ", and A " + text.Seconds(*m.A)
	}

	pct, times := *m.ChangePct, *m.B / *m.A
	switch percent := percentText(math.Abs(pct)); {
	case times >= 9.95:
		return strconv.FormatFloat(times, 'f', 0, 64) + " × as long"
	case times >= 2:
		return strconv.FormatFloat(times, 'f', 1, 64) + " × as long"
	case percent == "0":
		return "as long as A"
	case pct > 0:
		return percent + " % longer"
	default:
		return percent + " % less time"
	}
}

// percentText returns a percentage without a sign, from 10 on without decimals. Less than 100 is never rounded to 100.
func percentText(pct float64) string {
	if pct >= 10 && (pct < 99 || pct >= 100) {
		return strconv.FormatFloat(pct, 'f', 0, 64)
	}
	if pct > 99 && pct < 100 {
		pct = min(pct, 99.9)
	}

	return strings.TrimSuffix(strconv.FormatFloat(pct, 'f', 1, 64), ".0")
}

// pValueText returns a p-value as "p 0.01".
func pValueText(p float64) string {
	switch {
	case p < 0.001:
		return "p < 0.001"
	case p < 0.01:
		return "p " + strconv.FormatFloat(p, 'f', 3, 64)
	}

	return "p " + strconv.FormatFloat(p, 'f', 2, 64)
}

// changeOf returns the change of the first named metric that both sides have, such as "memory -32 %"; "" if it has not
// changed.
func (c *Comparison) changeOf(label string, names ...string) string {
	for _, name := range names {
		m, _ := c.Metric(name)
		if m.A == nil || m.B == nil {
			continue
		}

		percent := ""
		if m.ChangePct != nil {
			percent = percentText(math.Abs(*m.ChangePct))
		}
		switch {
		case !m.hasNotableChange() || percent == "0":
			return ""
		case percent == "":
			return label + " from " + amount(*m.A, m.Unit) + " to " + amount(*m.B, m.Unit)
		case *m.ChangePct < 0:
			return label + " -" + percent + " %"
		default:
			return label + " +" + percent + " %"
		}
	}

	return ""
}

// changeOfGPUs returns the change of the GPU's utilization, or for several GPUs the first change.
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

// hasNotableChange reports whether m has changed or, if there are too few runs to know, whether the difference is worth
// showing.
func (m Metric) hasNotableChange() bool {
	switch {
	case m.A == nil || m.B == nil:
		return false
	case m.Changed != nil:
		return *m.Changed
	case *m.A == *m.B:
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

// Commands returns one line on the different commands of A and B; "" if they are equal, or if a side has none.
func (c *Comparison) Commands() string {
	if len(c.commandsA) == 0 || len(c.commandsB) == 0 || slices.Equal(c.commandsA, c.commandsB) {
		return ""
	}

	a, b := trimCommonPrefix(c.commandsA[0], c.commandsB[0])
	return "the commands differ: A " + a + andOthers(c.commandsA) + " | B " + b + andOthers(c.commandsB)
}

// andOthers returns how many commands a side has after the first, as text.
func andOthers(commands []string) string {
	if len(commands) < 2 {
		return ""
	}
	return fmt.Sprintf(" and %d more", len(commands)-1)
}

// maxCommand is the maximum number of characters shown of a command.
const maxCommand = 80

// trimCommonPrefix shortens two long commands so that their difference is visible: an ellipsis replaces the words at
// the beginning of both.
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

// listedMetrics returns the metrics of the tables, in the order of their groups: all of them or, if all is false, those
// that changed or that a gate uses.
func (c *Comparison) listedMetrics(all bool) []Metric {
	list := slices.DeleteFunc(c.visibleMetrics(), func(m Metric) bool { return !all && !m.gated && !m.hasNotableChange() })
	slices.SortStableFunc(list, func(a, b Metric) int { return reporter.ByGroup(*a.definition, *b.definition) })

	return list
}
