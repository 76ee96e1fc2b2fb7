package terminal

import (
	"math"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// valueText writes a value of a column in so many cells: where there is no room for
// the blank and the unit, without; where there is none for all digits, as … alone.
func valueText(c collector.Column, v float64, room int) string {
	for _, words := range valueForms(c, v) {
		if text.Width(words) <= room {
			return words
		}
	}
	return "…"
}

// valueForms are the ways to write a value, the longest first. Only MiB may be left out
// of a rate: it is what a number without a unit is taken for.
func valueForms(c collector.Column, v float64) []string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []string{text.Absent}
	}
	if c.Percent() {
		number, unit, _ := strings.Cut(text.Percent(v), " ")
		return []string{number + " " + unit, number + unit, number}
	}

	switch c.Info().Unit {
	case collector.CPUs:
		number := cpusText(v)
		return []string{number + " CPUs", number}
	case collector.Mebibytes:
		number, unit := sizeText(v)
		return []string{number + " " + unit, number + unit, number + unit[:1]}
	}

	number, unit := rateText(v)
	forms := []string{number + " " + unit, number + unit, number + unit[:1]}
	if unit == "MiB/s" {
		forms = append(forms, number)
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

// sizeText writes MiB with the binary unit that keeps it short.
func sizeText(v float64) (number, unit string) {
	if math.Abs(v) < 999.95 {
		number, unit = strconv.FormatFloat(v, 'f', 1, 64), "MiB/s"
	} else {
		number, unit = rateText(v)
	}
	return number, strings.TrimSuffix(unit, "/s")
}

// rateText writes MiB per second with the binary unit that keeps it short: at most
// 999.9 GiB/s.
func rateText(v float64) (number, unit string) {
	if math.Abs(v) < 999.95 {
		number, unit, _ = strings.Cut(text.Rate(v), " ")
		return number, unit
	}

	units := [...]string{"MiB/s", "GiB/s", "TiB/s", "PiB/s", "EiB/s"}
	i := 0
	for ; math.Abs(v) >= 1023.5 && i < len(units)-1; i++ {
		v /= 1024
	}

	switch a := math.Abs(v); {
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64), units[i]
	case a < 999.95:
		return strconv.FormatFloat(v, 'f', 1, 64), units[i]
	case a < 9999.5:
		return strconv.FormatFloat(v, 'f', 0, 64), units[i]
	}
	return strconv.FormatFloat(v, 'e', 1, 64), units[i]
}
