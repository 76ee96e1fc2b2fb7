package comparer

import (
	"fmt"
	"math"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// amount formats v with its unit, if there is one.
func amount(v float64, unit collector.Unit) string {
	return text.Quantity{Number: text.Number(v), Unit: unit.Symbol()}.String()
}

// shownAmount formats v with its unit in three digits: "14.1 s", "243 MiB", "1,868". Counts have no unit.
func shownAmount(v float64, unit collector.Unit) string {
	q := text.Quantity{Number: threeDigits(v), Unit: unit.Symbol()}
	switch unit {
	case collector.Seconds:
		if a := math.Abs(v); a < 0.9995 || a >= 59.95 {
			q = text.Duration(v)
		}
	case collector.Mebibytes:
		if unit := text.Size(v).Unit; perMebibyte[unit] > 0 {
			q = text.Quantity{Number: threeDigits(v * perMebibyte[unit]), Unit: unit}
		}
	case collector.PercentOfPeriods:
		q.Unit = "%"
	case collector.Processes, collector.Threads, collector.Tasks, collector.Times:
		q.Unit = ""
	}
	return q.Normalize().String()
}

// perMebibyte is the number of each unit in a MiB.
var perMebibyte = map[string]float64{"B": 1024 * 1024, "KiB": 1024, "MiB": 1, "GiB": 1. / 1024, "TiB": 1. / 1024 / 1024}

// threeDigits formats v with three significant digits, or as a whole number.
func threeDigits(v float64) string {
	if math.Abs(v) >= 1000 {
		return text.Number(math.Round(v))
	}
	return text.Number(text.ThreeDigits(v))
}

// changeText formats the change from a to b, which is pct percent, with a sign: +20 %. It shows the change between the
// displayed three digits of a and b, unless these are equal.
func changeText(a, b, pct float64) string {
	shown := text.PercentChange(a, b)
	if shown == 0 || !isComputable(shown) {
		shown = pct
	}
	sign := "+"
	if shown < 0 {
		sign = "-"
	}
	switch number := percentText(math.Abs(shown)); {
	case pct == 0:
		return "0 %"
	case math.Abs(pct) >= 1e6:
		return fmt.Sprintf("%+.1e %%", pct)
	case number == "0":
		return sign + "<0.1 %"
	default:
		return sign + number + " %"
	}
}

// gateChangeText formats the change pct with two decimals: +20.31 %.
func gateChangeText(pct float64) string {
	switch a := math.Abs(pct); {
	case a == 0:
		return "0 %"
	case a >= 1e6 || a < 0.001:
		return fmt.Sprintf("%+.1e %%", pct)
	case a < 0.1:
		return fmt.Sprintf("%+.1g %%", pct)
	case a >= 1000:
		return fmt.Sprintf("%+.0f %%", pct)
	}
	return fmt.Sprintf("%+.2f %%", pct)
}

// pValueCell formats a p-value with three decimals.
func pValueCell(p float64) string {
	if p < 0.0005 {
		return "<.001"
	}
	return strconv.FormatFloat(p, 'f', 3, 64)
}

// spread formats the distance from the median to the farther end of its confidence interval: in percent of the median,
// or in the metric's unit if the median is 0. A single run has no spread.
func spread(median, low, high *float64, n int) string {
	switch {
	case median == nil || n < 2:
		return ""
	case low == nil || high == nil:
		return "±?"
	}

	reach := max(*high-*median, *median-*low)
	switch pct := 100 * reach / math.Abs(*median); {
	case reach == 0:
		return "±0%"
	case !isComputable(pct):
		return "±" + roughly(reach)
	case pct >= 999.5:
		return "±>999%"
	case pct < 0.5:
		return "±<1%"
	default:
		return fmt.Sprintf("±%.0f%%", pct)
	}
}

// roughly formats v, which must not be negative: with one significant digit if v is below 1 or very large, and
// otherwise as a whole number.
func roughly(v float64) string {
	if v < 1 || v >= 1e6 {
		return strconv.FormatFloat(v, 'g', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
