package terminal

import (
	"math"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// valueText writes a value of a column in so many cells. Without room for the blank and
// the unit it leaves them out. Without room for all digits it writes only ….
func valueText(c collector.Column, v float64, room int) string {
	for _, words := range valueForms(c, v) {
		if text.Width(words) <= room {
			return words
		}
	}
	return "…"
}

// valueForms returns the ways to write a value, the longest first. A rate may be written
// without its unit only if that is MiB/s, the unit that readers assume.
func valueForms(c collector.Column, v float64) []string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []string{text.Absent}
	}
	if c.Percent() {
		q := text.Percentage(v)
		return []string{q.String(), q.Number + q.Unit, q.Number}
	}

	switch c.Info().Unit {
	case collector.CPUs:
		number := cpusText(v)
		return []string{number + " CPUs", number}
	case collector.Mebibytes:
		q := size(v)
		return []string{q.String(), q.Number + q.Unit, q.Number + q.Unit[:1]}
	}

	q := rate(v)
	forms := []string{q.String(), q.Number + q.Unit, q.Number + q.Unit[:1]}
	if q.Unit == "MiB/s" {
		forms = append(forms, q.Number)
	}
	return forms
}

// cpusText writes a number of CPUs.
func cpusText(v float64) string {
	if a := math.Abs(v); a < 99.995 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	} else if a < 99999.5 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'e', 1, 64)
}

// size returns MiB in the binary unit that keeps it short.
func size(v float64) text.Quantity {
	if math.Abs(v) < 999.95 {
		return text.Quantity{Number: strconv.FormatFloat(v, 'f', 1, 64), Unit: "MiB"}
	}
	return scaled(v)
}

// rate returns MiB per second in the binary unit that keeps it short: at most 999.9 GiB/s.
func rate(v float64) text.Quantity {
	if math.Abs(v) < 999.95 {
		return text.Speed(v)
	}
	q := scaled(v)
	q.Unit += "/s"
	return q
}

// scaled returns many MiB in a larger unit, with four digits at most.
func scaled(v float64) text.Quantity {
	units := [...]string{"MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; math.Abs(v) >= 1023.5 && i < len(units)-1; i++ {
		v /= 1024
	}

	q := text.Quantity{Unit: units[i]}
	switch a := math.Abs(v); {
	case a < 9.995:
		q.Number = strconv.FormatFloat(v, 'f', 2, 64)
	case a < 999.95:
		q.Number = strconv.FormatFloat(v, 'f', 1, 64)
	case a < 9999.5:
		q.Number = strconv.FormatFloat(v, 'f', 0, 64)
	default:
		q.Number = strconv.FormatFloat(v, 'e', 1, 64)
	}
	return q
}
