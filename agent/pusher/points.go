package pusher

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// windowLength is the time that one point of a series covers. The number of the window since the start is the step of
// the point.
const windowLength = 10 * time.Second

// A window holds the points of one 10 s interval: one timestamp, one step, one value per series. It is sent in one
// request or, if it is split, with its last point last.
type window struct {
	end, step int64 // end is in ms since 1970
	points    []mlflow.Metric
}

// A nodeSeries is a node's recording over time. Its windows become points in MLflow.
type nodeSeries struct {
	node  string
	start int64 // of the recording, in ms since 1970
	from  int64 // start of the time that the first kept sample covers, in ms since 1970

	samples  reporter.Samples
	envelope reporter.Envelope
	gpus     []reporter.GPU
	job      []reporter.OperationTimeline // series of the job with timelines, in the order in which they start

	thinned bool // a kept sample may represent several samples, so live points may be finer
	running bool // more samples follow, so the last window is not full, and the length of the run is unknown

	maxWindows int // 0 means no limit

	filter seriesFilter
}

// A seriesFilter selects some of a node's series.
type seriesFilter int

const (
	wholeNode seriesFilter = iota
	hostOnly               // without the job's series, which cover one of several ranks
	jobOnly
)

// matches reports whether the filter selects src.
func (p seriesFilter) matches(src *source) bool {
	ofJob := src.job || len(src.columns) > 0 && src.columns[0].Info().Scope == collector.ScopeJob
	return p == wholeNode || ofJob == (p == jobOnly)
}

// newNodeSeries returns the recording of node n in a report. name is the node's name in MLflow.
func newNodeSeries(name string, n *reporter.Node) nodeSeries {
	s := nodeSeries{
		node: name, samples: n.Samples, envelope: n.Envelope, gpus: n.GPUs, job: reportJobSeries(n.Envelope),
	}
	s.thinned = n.Sampling != nil && int64(n.Samples.Len()) < n.Sampling.Samples
	if n.Sampling != nil && !n.Sampling.Start.IsZero() {
		s.start = n.Sampling.Start.UnixMilli()
	} else if ends := s.ends(); len(ends) > 0 {
		s.start = ends[0]
	}
	s.from = s.start
	return s
}

// windows returns the points of all series by window, in the order of time. A kept sample covers the time since the
// previous one, and belongs to the window in which it ends. A value that is not finite was not measured, and has no
// point.
func (s nodeSeries) windows() []window {
	ends := s.ends()
	steps := s.steps(ends)
	sources := s.sources()

	var out []window
	for i := 0; i < len(ends) && (s.maxWindows == 0 || len(out) < s.maxWindows); {
		if ends[i] <= 0 { // a sample without a time
			i++
			continue
		}
		if s.running && steps[i] == steps[len(steps)-1] {
			break
		}
		next := i + 1
		for next < len(ends) && steps[next] == steps[i] {
			next++
		}
		w := window{end: ends[next-1], step: steps[i]}
		if w.points = s.points(w, sources, ends, i, next); len(w.points) > 0 {
			out = append(out, w)
		}
		i = next
	}
	return out
}

// ends returns, for each kept sample, the time of the last sample that it covers, in ms since 1970. The times never
// decrease.
func (s nodeSeries) ends() []int64 {
	times := []float64(s.envelope[collector.Timestamp.Key()].Max)
	if times == nil {
		times = s.samples.Column(collector.Timestamp.Key())
	}

	out := make([]int64, len(times))
	before := s.from
	for i, ts := range times {
		if ts > 0 && ts < 1<<40 {
			before = max(before, int64(math.Round(ts*1000)))
		}
		out[i] = before
	}
	return out
}

// steps returns the step of each kept sample. MLflow draws a line only from step 1 on, so a recording of 1 s to 10 s is
// split into two windows: a sample gets step 1 if the middle of its time is in the second half.
func (s nodeSeries) steps(ends []int64) []int64 {
	out := make([]int64, len(ends))
	for i, end := range ends {
		out[i] = max(0, end-s.start) / windowLength.Milliseconds()
	}
	if len(ends) == 0 || s.from != s.start || s.running {
		return out
	}

	length := ends[len(ends)-1] - s.start
	if length < 1000 || length >= windowLength.Milliseconds() {
		return out
	}
	for i, end := range ends {
		if s.begin(ends, i)+end-2*s.start > length {
			out[i] = 1
		}
	}
	return out
}

// begin returns the start of the time that kept sample i covers.
func (s nodeSeries) begin(ends []int64, i int) int64 {
	if i == 0 {
		return s.from
	}
	return ends[i-1]
}

// A source supplies the values of one series.
type source struct {
	Series
	key    string // of its points in MLflow
	values []columnValues

	job  bool      // one of the job's series, in any unit
	rate []float64 // events per second, by kept sample, used as weights; nil means weighted only by time
}

// weight returns the weight in a mean of kept sample k, which covers the given number of seconds.
func (src *source) weight(k int, seconds float64) float64 {
	switch {
	case src.rate == nil:
		return seconds
	case k < len(src.rate) && src.rate[k] > 0:
		return seconds * src.rate[k]
	}
	return 0
}

// rounded rounds v to the digits that are worth sending. More digits would be noise that makes the requests larger.
func (src *source) rounded(v float64) float64 {
	if src.job {
		return text.RoundSignificant(v)
	}
	return text.Round(v, 6)
}

// sources returns the sources of all series. The host's sources come last, because they have points in every window
// (see anchors in remote.go). So if the server has the last point of a window, it also has the others.
func (s nodeSeries) sources() []source {
	var all []Series
	for i, d := range s.gpus[:min(len(s.gpus), collector.MaxGPUs)] {
		for _, g := range gpuTable() {
			if series, ok := g.forDevice(i, d); ok {
				all = append(all, series)
			}
		}
	}

	out := s.jobSources()
	for _, series := range slices.Concat(all, columnSeries(false), hostSeries()) {
		src := source{Series: series, key: folder(s.node) + series.Name}
		for _, c := range series.columns {
			src.values = append(src.values, s.values(c))
		}
		out = append(out, src)
	}
	return slices.DeleteFunc(out, func(src source) bool { return !s.filter.matches(&src) })
}

// points returns the points of a window, one per measured series, from the kept samples i to j−1.
func (s nodeSeries) points(w window, sources []source, ends []int64, i, j int) (out []mlflow.Metric) {
	for _, src := range sources {
		weight := func(k int) float64 { return src.weight(k, float64(ends[k]-s.begin(ends, k))/1000) }
		sum := 0.0
		for _, v := range src.values {
			sum += v.reduce(src.reduction, i, j, weight)
		}
		value := src.rounded(sum * cmp.Or(src.scale, 1))
		if isFinite(value) {
			out = append(out, mlflow.Metric{Key: src.key, Value: value, Timestamp: w.end, Step: w.step})
		}
	}
	return out
}

// columnValues holds the mean and the maximum of a column for each kept sample.
type columnValues struct{ mean, max []float64 }

// values returns the values of column c.
func (s nodeSeries) values(c collector.Column) columnValues {
	if band, ok := s.envelope[c.Key()]; ok {
		return columnValues{mean: band.Mean, max: band.Max}
	}
	kept := s.samples.Column(c.Key())
	if s.envelope == nil && slices.Contains(collector.Counters(), c) { // perf.py's counters start at boot
		kept = sinceFirst(kept)
	}
	return columnValues{mean: kept, max: kept}
}

// sinceFirst subtracts the first measured value of a counter from all values.
func sinceFirst(counter []float64) []float64 {
	out, first := slices.Clone(counter), math.NaN()
	for i, v := range out {
		if math.IsNaN(first) {
			first = v
		}
		out[i] = v - first
	}
	return out
}

// reduce returns the mean, maximum or last value of the kept samples i to j−1. The result is NaN if no value was
// measured.
func (v columnValues) reduce(r reduction, i, j int, weight func(k int) float64) float64 {
	sum, total, most, end := 0.0, 0.0, math.NaN(), math.NaN()
	for k := i; k < min(j, len(v.mean), len(v.max)); k++ {
		if math.IsNaN(v.mean[k]) || math.IsNaN(v.max[k]) {
			continue
		}
		w := max(0.001, weight(k))
		sum, total, end = sum+v.mean[k]*w, total+w, v.max[k]
		if !(most >= v.max[k]) {
			most = v.max[k]
		}
	}

	switch {
	case total == 0:
		return math.NaN()
	case r == mean:
		return sum / total
	case r == peak:
		return most
	}
	return end
}

// A Series describes one time series below system/<node>/. docs/mlflow.md lists them all.
type Series struct {
	Name string

	columns   []collector.Column // their values are summed
	reduction reduction
	scale     float64 // factor of the columns' values; 0 means 1
}

// A reduction is a way to reduce the samples of a window to one point.
type reduction int

const (
	mean reduction = iota // weighted by time
	peak                  // the greatest value
	last                  // the value at the end, for counters
)

// megabyte converts MiB to MLflow's unit, 10^6 bytes.
const megabyte = collector.MiB / 1e6

// AllSeries returns the series of the host and of the job, without GPUs. No name is the folder of another.
func AllSeries() []Series { return append(hostSeries(), columnSeries(false)...) }

// hostSeries returns the series that every node has.
func hostSeries() []Series {
	return append(columnSeries(true),
		Series{Name: "network_receive_megabytes", reduction: last, scale: megabyte,
			columns: []collector.Column{collector.NetExtRecv, collector.NetLoRecv}},
		Series{Name: "network_transmit_megabytes", reduction: last, scale: megabyte,
			columns: []collector.Column{collector.NetExtSent, collector.NetLoSent}})
}

// columnSeries returns the series of the columns that every node has or, if always is false, of the other columns: the
// job and its limits, delays of tasks, and devices other than GPUs. A node has only the series that were measured.
func columnSeries(always bool) []Series {
	var out []Series
	for c := range collector.NumColumns {
		row := c.Info()
		if row.MLflow == "" || row.Always != always {
			continue
		}
		s := newSeries(row)
		s.columns = []collector.Column{c}
		out = append(out, s)
		if row.MLflowPeak {
			s.Name, s.reduction = s.Name+"_max", peak
			out = append(out, s)
		}
	}
	return out
}

// newSeries returns the series of a column's mean, in the unit of MLflow's system metrics.
func newSeries(row collector.ColumnInfo) Series {
	s := Series{Name: row.MLflow}
	if row.Unit == collector.Mebibytes || row.Unit == collector.MebibytesPerSecond {
		s.scale = megabyte
	}
	return s
}

// A gpuSeries is a series that each GPU has.
type gpuSeries struct {
	Series
	key collector.GPUKey

	// share is the bound that a relative value is divided by, or NoBound if the value is absolute.
	share collector.Bound
}

// gpuTable returns the series that each GPU of a node has. {i} in their names is the position of the device among the
// node's GPUs, from 0.
func gpuTable() []gpuSeries {
	var table []gpuSeries
	for key := range collector.GPUKey(collector.NumGPUKeys) {
		row := key.Info()
		s := gpuSeries{key: key, Series: newSeries(row)}
		table = append(table, s)
		if row.MLflowShare == "" {
			continue
		}
		s.Name, s.share = row.MLflowShare, row.Bound
		table = append(table, s)
	}
	return table
}

// forDevice returns the series of GPU i, which is d. ok is false if the value is a share of an unknown bound.
func (s gpuSeries) forDevice(i int, d reporter.GPU) (series Series, ok bool) {
	series = s.Series
	series.Name = strings.Replace(series.Name, "{i}", strconv.Itoa(i), 1)
	series.columns = []collector.Column{collector.GPUColumn(i, s.key)}
	if s.share == collector.NoBound {
		return series, true
	}
	whole := float64(d.PowerLimitWatts)
	if s.share == collector.BoundDeviceMemory {
		whole = float64(d.MemoryMB)
	}
	series.scale = 100 / whole
	return series, whole > 0
}

// seriesPrefix is the prefix of the names of all series.
const seriesPrefix = "system/"

// folder returns the folder of a node's series.
func folder(node string) string { return seriesPrefix + node + "/" }
