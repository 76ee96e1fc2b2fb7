package aggregate

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// A Kind is the kind of a series. It is the first word of the series' timeline keys and metric names.
type Kind string

// The kinds of series that have numbers, in the order of output.
const (
	OpKind       Kind = "op"
	CounterKind  Kind = "counter"
	GaugeKind    Kind = "gauge"
	ValueKind    Kind = "value"
	TransferKind Kind = "transfer"
)

// Noun returns the word for a series of the kind: operation, counter, gauge, value or transfer.
func (k Kind) Noun() string {
	if k == OpKind {
		return "operation"
	}
	return string(k)
}

// The numbers of a series with a timeline.
const (
	TimelineRate       = "per_second"
	TimelineTime       = "time_ms"
	TimelineThroughput = "mb_per_second"
)

// timelinesOf maps each kind with timelines to the numbers in these timelines, in the order of Collect. A gauge has one
// number, without a name.
var timelinesOf = map[Kind][]string{
	OpKind: {TimelineTime, TimelineRate}, CounterKind: {TimelineRate}, GaugeKind: {""},
	TransferKind: {TimelineThroughput, TimelineTime},
}

// TimelineKey returns the key of a timeline in the envelope of a report, such as op:SERIES:time_ms or gauge:SERIES.
func TimelineKey(kind Kind, series, number string) string {
	return strings.TrimSuffix(string(kind)+":"+series+":"+number, ":")
}

// A chart is a series with a timeline.
type chart struct {
	kind     Kind
	name     string
	interval *interval
}

// statOf returns the Stat of the values in one interval. weight is the weight in a mean over several intervals: the
// seconds for rates and gauges, and the number of operations for times.
func statOf(least, mean, greatest, weight float64) (s series.Stat) {
	if s.Add(mean, weight); s.Count > 0 {
		s.Min, s.Max = least, greatest
	}
	return s
}

// An interval accumulates the values since the last Collect.
type interval struct {
	n, sum, min, max float64
	bytes            float64 // of transfers
	area, from       float64 // of a gauge: value × seconds since the last Collect, and the time of that Collect
	touched          bool    // min and max are valid
}

// add counts a value n times.
func (i *interval) add(v, n float64) {
	i.sum += v * n
	i.n += n
	i.touch(v)
}

// addMany counts n values with the given sum.
func (i *interval) addMany(sum, n float64) {
	if n <= 0 {
		return
	}
	i.sum += sum
	i.n += n
	i.touch(sum / n)
}

// touch widens the range from min to max to include v.
func (i *interval) touch(v float64) {
	if !i.touched {
		i.min, i.max, i.touched = v, v, true
	}
	i.min, i.max = min(i.min, v), max(i.max, v)
}

// addConstant adds the value v that a gauge had between two times.
func (i *interval) addConstant(v, from, to float64) {
	i.area += v * max(0, to-max(from, i.from))
	i.touch(v)
}

// vllmCharts lists the metrics of vLLM that have a timeline by default, without vLLM's prefix.
var vllmCharts = [...]string{
	"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prompt_tokens_total",
	"generation_tokens_total", "request_success_total", "time_to_first_token_seconds", "inter_token_latency_seconds",
	"e2e_request_latency_seconds", "num_preemptions_total",
}

// charted reports whether a new series gets a timeline.
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

// cutVLLM returns name without the prefix of vLLM's metrics, and whether it had the prefix.
func cutVLLM(name string) (string, bool) {
	if own, found := strings.CutPrefix(name, "vllm:"); found {
		return own, true
	}
	return strings.CutPrefix(name, "vllm_")
}

// matches reports whether a pattern of path.Match matches the whole text. "/" is treated as an ordinary character.
func matches(pattern, text string) bool {
	slash := strings.NewReplacer("/", "\x00")
	fits, err := path.Match(slash.Replace(pattern), slash.Replace(text))
	return fits && err == nil
}

// chartOf adds a timeline for a new series if the series should have one, and returns the interval of the series.
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

// TimelineKeys returns the keys of the timelines, see [TimelineKey]. New keys are appended, and no key is ever removed.
func (b *Aggregator) TimelineKeys() []string { return slices.Clip(b.timelineKeys) }

// Collect appends to stats the Stat of each timeline since the last Collect, or since the start, and begins a new
// interval. It does not allocate if stats has enough capacity.
func (b *Aggregator) Collect(at time.Time, stats []series.Stat) []series.Stat {
	seconds := at.Sub(b.took).Seconds()
	b.took = at
	end := unixSeconds(at)

	for _, c := range b.charts {
		i := c.interval
		switch c.kind {
		case OpKind:
			stats = append(stats, i.times(), rate(i.n, seconds))
		case CounterKind:
			stats = append(stats, rate(i.sum, seconds))
		case GaugeKind:
			stats = append(stats, b.Gauges[c.name].take(end, seconds))
		case TransferKind:
			stats = append(stats, rate(i.bytes/(1<<20), seconds), i.times())
		}
		*i = interval{from: end}
	}

	return stats
}

// times returns the Stat of an interval's times, in milliseconds.
func (i *interval) times() series.Stat {
	if i.n == 0 {
		return series.Stat{}
	}
	return statOf(i.min, min(max(i.sum/i.n, i.min), i.max), i.max, i.n)
}

// rate returns the Stat of v per second.
func rate(v, seconds float64) (s series.Stat) {
	if seconds > 0 {
		s.Add(v/seconds, seconds)
	}
	return s
}

// take returns the Stat of a gauge since the last Collect.
func (g *gauge) take(end, seconds float64) series.Stat {
	i := g.interval
	begun := max(g.First, i.from)
	i.addConstant(g.Last, g.Since, end)
	if !(end > begun) || !(seconds > 0) {
		return statOf(g.Last, g.Last, g.Last, 0)
	}
	mean := i.area / (end - begun)

	return statOf(i.min, min(max(mean, i.min), i.max), i.max, end-begun)
}
