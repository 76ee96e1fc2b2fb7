package aggregate

import (
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// A Kind is what a series is: the first word of the keys of its time lines and of the names of its numbers.
type Kind string

// The kinds of series that have numbers, in the order of output.
const (
	OpKind       Kind = "op"
	CounterKind  Kind = "counter"
	GaugeKind    Kind = "gauge"
	ValueKind    Kind = "value"
	TransferKind Kind = "transfer"
)

// Noun returns what people call a series of the kind: operation, counter, gauge, value, transfer.
func (k Kind) Noun() string {
	if k == OpKind {
		return "operation"
	}
	return string(k)
}

// The numbers of a series that have a time line.
const (
	TimelineRate       = "per_second"
	TimelineTime       = "time_ms"
	TimelineThroughput = "mb_per_second"
)

// timelinesOf has the numbers of each kind that have a time line, in the order of Take. A gauge is one number.
var timelinesOf = map[Kind][]string{
	OpKind: {TimelineTime, TimelineRate}, CounterKind: {TimelineRate}, GaugeKind: {""},
	TransferKind: {TimelineThroughput, TimelineTime},
}

// TimelineKey returns the key of a time line, as a report's envelope has it: op:SERIES:time_ms, gauge:SERIES.
func TimelineKey(kind Kind, series, number string) string {
	return strings.TrimSuffix(string(kind)+":"+series+":"+number, ":")
}

// A chart is a series with a time line.
type chart struct {
	kind     Kind
	name     string
	interval *interval
}

// A WeightedMean is what a column was in an interval. A mean over several intervals weighs each with its Weight: of a
// rate and a gauge seconds, of a time the number of operations. All are NaN, and Weight is 0, where nothing was
// measured.
type WeightedMean struct{ Min, Mean, Max, Weight float64 }

// unmeasured is the Figure of what was not measured.
func unmeasured() WeightedMean { return WeightedMean{math.NaN(), math.NaN(), math.NaN(), 0} }

// constantMean is the Figure of what was the same over the interval.
func constantMean(v, weight float64) WeightedMean { return WeightedMean{v, v, v, weight} }

// An interval is what came since the last Take.
type interval struct {
	n, sum, min, max float64
	bytes            float64 // of transfers
	area, from       float64 // of a gauge: value × seconds since the last Take, up to from
	touched          bool    // min and max are there
}

// add counts n times a value.
func (i *interval) add(v, n float64) {
	i.sum += v * n
	i.n += n
	i.touch(v)
}

// addMany counts n values of which only the sum is known.
func (i *interval) addMany(sum, n float64) {
	if n <= 0 {
		return
	}
	i.sum += sum
	i.n += n
	i.touch(sum / n)
}

// touch widens the range.
func (i *interval) touch(v float64) {
	if !i.touched {
		i.min, i.max, i.touched = v, v, true
	}
	i.min, i.max = min(i.min, v), max(i.max, v)
}

// addConstant says that a gauge had a value from one moment to another.
func (i *interval) addConstant(v, from, to float64, known bool) {
	if !known {
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
func (b *Aggregator) charted(series string) bool {
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

// matches reports whether a pattern of path.Match fits the whole text, in which "/" is a character like others.
func matches(pattern, text string) bool {
	slash := strings.NewReplacer("/", "\x00")
	fits, err := path.Match(slash.Replace(pattern), slash.Replace(text))
	return fits && err == nil
}

// chartOf returns the interval of a new series.
func (b *Aggregator) chartOf(kind Kind, series string) *interval {
	if !b.charted(series) {
		return &b.discard
	}
	i := &interval{from: unixSeconds(b.took)}
	b.charts = append(b.charts, chart{kind, series, i})
	for _, number := range timelinesOf[kind] {
		b.timelineKeys = append(b.timelineKeys, TimelineKey(kind, series, number))
	}

	return i
}

// TimelineKeys returns the keys of the time lines: see [TimelineKey]. New ones come at the end, and none goes away.
func (b *Aggregator) TimelineKeys() []string { return slices.Clip(b.timelineKeys) }

// Collect appends what each of the Columns was since the last Take, or since the start, and begins a new interval. It
// allocates nothing if there is room in figures.
func (b *Aggregator) Collect(at time.Time, figures []WeightedMean) []WeightedMean {
	seconds := at.Sub(b.took).Seconds()
	b.took = at
	end := unixSeconds(at)

	for _, c := range b.charts {
		i := c.interval
		switch c.kind {
		case OpKind:
			figures = append(figures, i.times(), i.rate(i.n, seconds))
		case CounterKind:
			figures = append(figures, i.rate(i.sum, seconds))
		case GaugeKind:
			figures = append(figures, b.Gauges[c.name].take(end, seconds))
		case TransferKind:
			figures = append(figures, i.rate(i.bytes/(1<<20), seconds), i.times())
		}
		*i = interval{from: end}
	}

	return figures
}

// times returns the times of an interval, in milliseconds.
func (i *interval) times() WeightedMean {
	if i.n == 0 {
		return unmeasured()
	}
	mean := min(max(i.sum/i.n, i.min), i.max)
	return WeightedMean{i.min, mean, i.max, i.n}
}

// rate returns so much per second.
func (i *interval) rate(v, seconds float64) WeightedMean {
	if !(seconds > 0) {
		return unmeasured()
	}
	return constantMean(v/seconds, seconds)
}

// take returns how a gauge stood.
func (g *gauge) take(end, seconds float64) WeightedMean {
	i := g.interval
	begun := max(g.First, i.from)
	i.addConstant(g.Last, g.Since, end, true)
	if !(end > begun) || !(seconds > 0) {
		return constantMean(g.Last, 0)
	}
	mean := i.area / (end - begun)

	return WeightedMean{i.min, min(max(mean, i.min), i.max), i.max, end - begun}
}
