package diagnosis

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// stragglers returns the finding on the part that ended last, if that was long after the median.
func stragglers(parts []part, r *reporter.Report) []found {
	late := lateParts(parts, r)
	if len(late) == 0 {
		return nil
	}

	last := late[0]
	for _, p := range late {
		if p.end.After(last.end) {
			last = p
		}
	}
	after := last.end.Sub(medianEnd(parts)).Seconds()
	return []found{{last, lateFinding(&last, after, r.Run.Wall(), len(late), len(parts))}}
}

// lateParts returns the parts that ended long after the median. The ends in a run that failed say nothing:
// there the first failure decides.
func lateParts(parts []part, r *reporter.Report) []part {
	noEnd := func(p part) bool { return p.end.IsZero() }
	length := r.Run.Wall()
	switch {
	case len(parts) < 2 || slices.ContainsFunc(parts, noEnd) || r.Run.Incomplete != "":
		return nil
	case r.Run.ExitCode == nil || *r.Run.ExitCode != 0:
		return nil
	case !positive(length) || length < findStragglerLength:
		return nil
	}

	var out []part
	middle := medianEnd(parts)
	for _, p := range parts {
		if p.end.Sub(middle).Seconds() > findStragglerShare*length {
			out = append(out, p)
		}
	}
	return out
}

// medianEnd returns the median of the ends.
func medianEnd(parts []part) time.Time {
	times := make([]time.Time, 0, len(parts))
	for _, p := range parts {
		times = append(times, p.end)
	}
	slices.SortFunc(times, time.Time.Compare)
	low, high := times[(len(times)-1)/2], times[len(times)/2]
	return low.Add(high.Sub(low) / 2)
}

// lateFinding returns the finding on the part that ended last, one of count that were late.
func lateFinding(p *part, late, length float64, count, of int) *reporter.Finding {
	subject := "The job of this node"
	if p.rank != nil {
		subject = fmt.Sprintf("Rank %d", p.rank.Rank)
	}
	share := text.Percent(100*late/length) + " of the run"
	if count > 1 {
		share += "; " + text.Count(count, "was", "were") + " late"
	}

	f := &reporter.Finding{
		Text: fmt.Sprintf("%s ended %s after the median of %d %s (%s): what the others had asked for was idle meanwhile. "+
			"Give it less to do, or find what it waited for.",
			subject, text.Seconds(late), of, p.kind(), share),
		Evidence: p.evidence(of),
	}
	maps.Copy(f.Evidence, evidence("late", count, "late_seconds", late, "run_seconds", length))
	return f
}
