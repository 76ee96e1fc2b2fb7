package collector

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// This file is the only place where counters become rates: bytes of disks, network, swap and the job, CPU seconds of
// the job, seconds of stalls.

// measureCounter sets the two columns of a counter: its count since the start and, if now is set, its rate.
func (p *CounterState) measureCounter(st measurement, c Column, counted float64, now bool) {
	row := c.row()
	st.sample.Values[c] = counted / row.Unit.size()
	if now {
		p.measureRate(st, row.Rate, counted, 1/row.Unit.size())
	}
}

// measureRate sets column c to the increase of a counter per second, times scale. Percentages are capped at 100.
func (p *CounterState) measureRate(st measurement, c Column, counter, scale float64) {
	perSecond, seconds, ok := p.meters[c].rate(st.now, counter, st.minWindow)
	if !ok {
		return
	}
	v := perSecond * scale
	if c.IsPercent() {
		v = round3(min(100, v))
	}
	st.sample.Values[c], st.sample.Weights[c] = roundToByte(v), seconds
}

// A meter measures the rate of a counter over consecutive windows.
type meter struct {
	counter series.Counter // since the start of the window
	since   time.Duration  // start of the window
	begun   bool
	known   bool // a window has been measured
}

// rate returns the counter's increase per second of the window, and the window's length in seconds. It reports false
// while the window is too short, or if the counter is unknown (NaN).
func (m *meter) rate(
	now time.Duration, counter float64, minWindow time.Duration,
) (perSecond, seconds float64, ok bool) {
	window := now - m.since
	switch {
	case math.IsNaN(counter):
		return 0, 0, false
	case !m.begun:
		m.begin(now, counter)
		return 0, 0, false
	case tooShort(window, minWindow, m.known):
		return 0, 0, false
	}

	increase := m.counter.Increase(counter)
	m.begin(now, counter)
	m.known = true
	return float64(increase) / window.Seconds(), window.Seconds(), true
}

// begin starts a window.
func (m *meter) begin(now time.Duration, counter float64) {
	m.counter.Rebase(0, counter)
	m.since, m.begun = now, true
}

// tooShort reports whether a window is too short to measure. The first window of a job may be shorter, because there is
// no longer window to compare it with.
func tooShort(window, minWindow time.Duration, known bool) bool {
	if !known {
		minWindow = min(minWindow, FirstWindow)
	}
	return window <= 0 || window < minWindow
}

// roundToByte rounds a rate to 1e-6 MiB/s, about one byte per second. Further digits are noise that would fill the
// journal.
func roundToByte(rate float64) float64 { return math.Round(rate*1e6) / 1e6 }

// round3 rounds to three decimals.
func round3(v float64) float64 { return math.Round(v*1000) / 1000 }
