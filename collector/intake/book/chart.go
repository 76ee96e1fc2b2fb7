package book

import (
	"math"
	"slices"
	"strings"
	"time"
)

// A chartKind is the kind of a charted series.
type chartKind uint8

const (
	opChart chartKind = iota
	counterChart
	gaugeChart
	transferChart
)

// A chart is a series with a time line.
type chart struct {
	kind     chartKind
	name     string
	interval *interval
}

// A Figure is what a column was in an interval. A mean over several intervals weighs each with its Weight: of a rate and
// a gauge seconds, of a time the number of operations. All are NaN, and Weight is 0, where nothing was measured.
type Figure struct{ Min, Mean, Max, Weight float64 }

// nothing is the Figure of what was not measured.
func nothing() Figure { return Figure{math.NaN(), math.NaN(), math.NaN(), 0} }

// even is the Figure of what was the same over the interval.
func even(v, weight float64) Figure { return Figure{v, v, v, weight} }

// An interval is what came since the last Take. A nil one is that of a series without a time line, and counts nothing.
type interval struct {
	n, sum, min, max float64
	bytes            float64 // of transfers
	area, from       float64 // of a gauge: value × seconds since the last Take, up to from
	touched          bool    // min and max are there
}

// add counts n times a value.
func (i *interval) add(v, n float64) {
	if i == nil {
		return
	}
	i.sum += v * n
	i.n += n
	i.touch(v)
}

// addMany counts n values of which only the sum is known.
func (i *interval) addMany(sum, n float64) {
	if i == nil || n <= 0 {
		return
	}
	i.sum += sum
	i.n += n
	i.touch(sum / n)
}

// touch widens the range.
func (i *interval) touch(v float64) {
	if i == nil {
		return
	}
	if !i.touched {
		i.min, i.max, i.touched = v, v, true
	}
	i.min, i.max = min(i.min, v), max(i.max, v)
}

// hold says that a gauge had a value from one moment to another.
func (i *interval) hold(v, from, to float64, known bool) {
	if i == nil || !known {
		return
	}
	i.area += v * max(0, to-max(from, i.from))
	i.touch(v)
}

// vllmCharts has the names of vLLM's metrics that are charted without patterns, without their prefix.
var vllmCharts = [...]string{
	"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prompt_tokens_total",
	"generation_tokens_total", "request_success_total", "time_to_first_token_seconds", "inter_token_latency_seconds",
	"e2e_request_latency_seconds", "num_preemptions_total",
}

// charted reports whether a series gets a time line.
func (b *Book) charted(series string) bool {
	if len(b.options.Charts) > 0 {
		return len(b.charts) < MaxCharts &&
			slices.ContainsFunc(b.options.Charts, func(pattern string) bool { return matches(pattern, series) })
	}

	name, _, _ := strings.Cut(series, "{")
	if own, vllm := cutVLLM(name); vllm && !slices.Contains(vllmCharts[:], own) {
		return false
	}
	return len(b.charts) < DefaultCharts
}

// cutVLLM returns a name without the prefix of vLLM's metrics. It reports whether it was there.
func cutVLLM(name string) (string, bool) {
	if own, found := strings.CutPrefix(name, "vllm:"); found {
		return own, true
	}
	return strings.CutPrefix(name, "vllm_")
}

// chartOf returns the interval of a new series, or nil if it gets no time line.
func (b *Book) chartOf(kind chartKind, series string) *interval {
	if !b.charted(series) {
		return nil
	}
	i := &interval{from: unixSeconds(b.took)}
	b.charts = append(b.charts, chart{kind, series, i})

	return i
}

// Columns returns the keys of the time lines, as a report's envelope has them: "op:SERIES:time_ms" and
// "op:SERIES:per_second", "counter:SERIES:per_second", "gauge:SERIES", "transfer:NAME:mb_per_second" and
// "transfer:NAME:time_ms". New ones come at the end, and none goes away.
func (b *Book) Columns() []string {
	var keys []string
	for _, c := range b.charts {
		switch c.kind {
		case opChart:
			keys = append(keys, "op:"+c.name+":time_ms", "op:"+c.name+":per_second")
		case counterChart:
			keys = append(keys, "counter:"+c.name+":per_second")
		case gaugeChart:
			keys = append(keys, "gauge:"+c.name)
		case transferChart:
			keys = append(keys, "transfer:"+c.name+":mb_per_second", "transfer:"+c.name+":time_ms")
		}
	}
	return keys
}

// NumColumns returns how many Columns there are.
func (b *Book) NumColumns() int {
	n := 0
	for _, c := range b.charts {
		n++
		if c.kind == opChart || c.kind == transferChart {
			n++
		}
	}
	return n
}

// Take appends what each of the Columns was since the last Take, or since the start, and begins a new interval. It
// allocates nothing if there is room in figures.
func (b *Book) Take(at time.Time, figures []Figure) []Figure {
	seconds := at.Sub(b.took).Seconds()
	b.took = at
	end := unixSeconds(at)

	for _, c := range b.charts {
		i := c.interval
		switch c.kind {
		case opChart:
			figures = append(figures, i.times(), i.rate(i.n, seconds))
		case counterChart:
			figures = append(figures, i.rate(i.sum, seconds))
		case gaugeChart:
			figures = append(figures, b.gauges[c.name].take(end, seconds))
		case transferChart:
			figures = append(figures, i.rate(i.bytes/(1<<20), seconds), i.times())
		}
		*i = interval{from: end}
	}

	return figures
}

// times returns the times of an interval, in milliseconds.
func (i *interval) times() Figure {
	if i.n == 0 {
		return nothing()
	}
	mean := min(max(i.sum/i.n, i.min), i.max)
	return Figure{i.min, mean, i.max, i.n}
}

// rate returns so much per second.
func (i *interval) rate(v, seconds float64) Figure {
	if !(seconds > 0) {
		return nothing()
	}
	return even(v/seconds, seconds)
}

// take returns how a gauge stood.
func (g *gauge) take(end, seconds float64) Figure {
	i := g.interval
	begun := max(g.First, i.from)
	i.hold(g.Last, g.Since, end, true)
	if !(end > begun) || !(seconds > 0) {
		return even(g.Last, 0)
	}
	mean := i.area / (end - begun)

	return Figure{i.min, min(max(mean, i.min), i.max), i.max, end - begun}
}
