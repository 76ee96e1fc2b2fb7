package terminal

import (
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// valueText formats v, a value of c, in at most room cells. If necessary it omits the space and the unit. If there is
// no room for all digits, it returns "…".
func valueText(c collector.Column, v float64, room int) string {
	for _, words := range valueForms(c, v) {
		if text.Width(words) <= room {
			return words
		}
	}
	return "…"
}

// valueForms formats v, a value of c, in several forms, from longest to shortest.
func valueForms(c collector.Column, v float64) []string {
	q := text.Speed(v)
	if v == 0 {
		q.Number = "0"
	}
	switch unit := c.Info().Unit; {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return []string{text.Absent}
	case c.IsPercent():
		if q = (text.Quantity{Number: text.Fixed(v, 0), Unit: "%"}); v > 0 && v < 0.5 {
			q.Number = "<1"
		}
	case unit == collector.CPUs:
		q = text.Quantity{Number: text.UsedCPUs(v), Unit: string(unit)}
	case unit == collector.Mebibytes:
		q = text.Size(v)
	case unit == collector.Processes:
		q = text.Quantity{Number: text.Fixed(v, 0)}
	}

	forms := []string{q.String(), q.Number + q.Unit}
	switch q.Unit {
	case "%", "CPUs", "":
		return append(forms, q.Number)
	case "MiB/s":
		return append(forms, q.Number+q.Unit[:1], q.Number)
	}
	return append(forms, q.Number+q.Unit[:1])
}
