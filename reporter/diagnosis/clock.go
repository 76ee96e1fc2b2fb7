package diagnosis

import (
	"fmt"
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// The thresholds of CPUs that were clocked down for their heat.
const (
	clockedShare  = 1  // percent of the run
	clockedMuch   = 5  // percent: less is not worth a warning
	clockedEvents = 10 // times, where the kernel does not count the time
)

// judgeClockedDown fires if the node's CPUs were too hot to run at their speed.
func judgeClockedDown(e *ruleInput) *reporter.Finding {
	events, seconds := e.Metric(reporter.MetricCPUThrottleEvents), e.Metric(reporter.MetricCPUThrottleSeconds)
	celsius, pct := e.Metric(reporter.MetricCPUTemperature), min(100, 100*seconds/e.wall)
	words, severity := "", ""
	switch {
	case pct >= clockedShare:
		words = fmt.Sprintf("The node's CPUs were clocked down for their heat, one of them for %s (%s of the run)",
			text.Seconds(seconds), text.Percent(pct))
		if pct < clockedMuch {
			severity = SeverityInfo
		}
	case math.IsNaN(seconds) && events >= clockedEvents:
		words, severity = "The node's CPUs were clocked down for their heat", SeverityInfo
	default:
		return nil
	}

	if positive(events) {
		words += ", " + text.Count(events, "time", "times")
	}
	if positive(celsius) {
		words += ", at up to " + text.Fixed(celsius, 0) + " " + collector.Celsius.Symbol()
	}
	return &reporter.Finding{Severity: severity,
		Text: words + ": the job may be faster on a node that is cooled better, or with fewer busy CPUs.",
		Evidence: evidence("throttle_seconds", seconds, "throttle_pct", pct, "throttle_events", events,
			"temperature_celsius", celsius)}
}

// clockedDown returns for which share of the run the node's CPUs were clocked down, in percent; 0 if that is not
// known.
func (e *ruleInput) clockedDown() float64 {
	return finite(min(100, 100*e.Metric(reporter.MetricCPUThrottleSeconds)/e.wall))
}
