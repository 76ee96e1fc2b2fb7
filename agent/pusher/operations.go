package pusher

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"path"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// maxOperations limits how many operations of a node are pushed: those with the longest total time.
const maxOperations = 16

// operationMetrics returns the statistics of n's operations and transfers, as op/NAME/count and so on.
func operationMetrics(n *reporter.Node) []mlflow.Metric {
	w := n.PooledOperations()
	if w == nil {
		return nil
	}
	return append(operationNumbers(w, reporter.OpKind, maxOperations),
		operationNumbers(w, reporter.TransferKind, math.MaxInt)...)
}

// operationNumbers returns the statistics of the first series of the given kind, but of at most most series. Keys are
// reserved for all series, so that they are the same on all nodes with the same series.
func operationNumbers(w *reporter.Operations, kind reporter.OperationKind, most int) (out []mlflow.Metric) {
	numbers, all := reporter.OperationNumbers(kind, reporter.OutputPush), w.Series(kind)
	var ends []string
	for _, n := range numbers {
		ends = append(ends, n.Name)
	}
	keys, taken := make(map[string]string), make(keySet)
	for _, series := range slices.Sorted(slices.Values(all)) {
		keys[series] = taken.reserve(string(kind)+"/", series, ends...)
	}

	for _, series := range all[:min(len(all), most)] {
		for _, n := range numbers {
			if v, _ := n.Value(w, series); v != nil && isFinite(*v) {
				out = append(out, mlflow.Metric{Key: keys[series] + "/" + n.Name, Value: *v})
			}
		}
	}

	return out
}

// chartedSeries returns the job's series to which keys, the keys of an envelope, belong. They are in the order in which
// they started, so that a series keeps its name in MLflow when more series start. Their Number is not set. began(key)
// is the index of the first sample with a value under key.
func chartedSeries(keys iter.Seq[string], began func(key string) int) []reporter.OperationTimeline {
	first := make(map[reporter.OperationTimeline]int)
	for key := range keys {
		l, ok := reporter.ParseTimelineKey(key)
		if !ok {
			continue
		}
		l.Number = ""
		before, there := first[l]
		if now := began(key); !there || now < before {
			first[l] = now
		}
	}

	all := slices.SortedFunc(maps.Keys(first), func(a, b reporter.OperationTimeline) int {
		return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Series, b.Series))
	})

	return all[:min(len(all), aggregate.MaxCharts)]
}

// reportJobSeries returns the job's series that have timelines in the envelope of a report.
func reportJobSeries(e reporter.Envelope) []reporter.OperationTimeline {
	return chartedSeries(maps.Keys(e), func(key string) int {
		values := e[key].Mean
		i := slices.IndexFunc(values, func(v float64) bool { return !math.IsNaN(v) })
		if i < 0 {
			return len(values)
		}
		return i
	})
}

// recordingJobSeries returns the job's series that have timelines in a Recording.
func recordingJobSeries(rec *collector.Recording) []reporter.OperationTimeline {
	if rec.Operations == nil || rec.Operations.Timelines == nil {
		return nil
	}
	keys, lines := rec.Operations.Keys, rec.Operations.Timelines
	return chartedSeries(slices.Values(keys), func(key string) int {
		place := slices.Index(keys, key)
		i := 0
		for i < lines.Len() && lines.Bucket(i).Stats[place].Count == 0 {
			i++
		}
		return i
	})
}

// jobSources returns the sources of the job's timelines.
func (s nodeSeries) jobSources() []source {
	var out []source
	taken := make(keySet)
	for _, of := range s.job {
		var rows []reporter.TimelineKind
		var numbers []string
		for _, row := range reporter.TimelineKinds() {
			if row.Kind == of.Kind {
				rows, numbers = append(rows, row), append(numbers, row.Number)
			}
		}

		key := taken.reserve(folder(s.node)+string(of.Kind)+"/", of.Series, numbers...)
		for _, row := range rows {
			l := of
			l.Number = row.Number
			band, ok := s.envelope[l.Key()]
			if !ok {
				continue
			}
			src := source{key: path.Join(key, row.Number), job: true,
				values: []columnValues{{mean: band.Mean, max: band.Max}}}
			if l.Number = row.Weight; row.Weight != "" {
				src.rate = s.envelope[l.Key()].Mean
			}
			out = append(out, src)
		}
	}

	return out
}
