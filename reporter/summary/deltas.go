package summary

import (
	"fmt"
	"math"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// A Delta is the difference of a run from the median of earlier runs of the same command.
type Delta struct {
	Label   string // "time"
	Text    string // "+16 %"
	From    string // the median: "14.1 s"
	Outside bool   // this run is outside the range of the earlier runs
}

// minSpreadRuns is the minimum number of earlier runs for which a comparison with their range is useful.
const minSpreadRuns = 3

// Deltas returns the differences of a run from earlier runs in time, CPU time and peak memory, and a note on these
// runs. Both are empty if there are no earlier runs, or if the run failed, is incomplete or has several nodes. Tiny
// amounts, which are mostly noise, are left out.
func Deltas(r *reporter.Report) (list []Delta, note string) {
	n := onlyNode(r)
	if len(r.Nodes) != 1 || HasFailed(r) || r.Run.Incomplete != "" || n.Earlier == nil {
		return nil, ""
	}

	add := func(label string, now float64, before *reporter.Spread, least float64, format func(float64) string) {
		if before == nil || !(now > 0 && before.Median > 0) || max(now, before.Median) < least {
			return
		}
		d := Delta{Label: label, From: format(before.Median), Text: "±0 %"}
		if change := math.Round(text.PercentChange(before.Median, now)); change != 0 {
			d.Text = fmt.Sprintf("%+.0f %%", change)
			if change >= 1000 {
				d.Text = ">+999 %"
			}
			d.Outside = n.Earlier.Runs >= minSpreadRuns && (now < before.Min || now > before.Max)
		}
		list = append(list, d)
	}
	add("time", r.Run.Wall(), &n.Earlier.WallSeconds, reporter.MinComparedSeconds, text.Seconds)
	add("CPU time", n.Job.KnownCPUSeconds(), n.Earlier.CPUSeconds, reporter.MinComparedSeconds, text.Seconds)
	add("peak memory", n.Job.KnownPeakMemoryMB(), n.Earlier.PeakMemoryMB, 1, text.SizeText)
	if list == nil {
		return nil, ""
	}

	if n.Earlier.Runs == 1 {
		return list, "the previous run"
	}
	return list, fmt.Sprintf("median of %d runs", n.Earlier.Runs)
}
