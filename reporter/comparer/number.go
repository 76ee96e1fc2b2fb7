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

// changeText formats pct, a change, with a sign: +20.3 %.
func changeText(pct float64, digits int) string {
	switch a := math.Abs(pct); {
	case a == 0:
		return "0 %"
	case a >= 1e6 || a < 0.001:
		return fmt.Sprintf("%+.1e %%", pct)
	case a < 0.1:
		return fmt.Sprintf("%+.1g %%", pct)
	case a >= 1000:
		return fmt.Sprintf("%+.0f %%", pct)
	case digits > 3:
		return fmt.Sprintf("%+.2f %%", pct)
	}
	return fmt.Sprintf("%+.1f %%", pct)
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

// roughly formats v, which is not negative: with one digit below 1, otherwise as a whole number.
func roughly(v float64) string {
	if v < 1 || v >= 1e6 {
		return strconv.FormatFloat(v, 'g', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
