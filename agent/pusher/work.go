package pusher

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"path"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/book"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// maxOperations is how many operations of a node are pushed: those that took most time in all.
const maxOperations = 16

// workMetrics returns the numbers of a node's operations and transfers that are pushed, as op/NAME/count and so on.
func workMetrics(n *reporter.Node) []mlflow.Metric {
	w := n.Work()
	if w == nil {
		return nil
	}
	return append(numbersOf(w, reporter.OpKind, maxOperations), numbersOf(w, reporter.TransferKind, math.MaxInt)...)
}

// numbersOf returns the numbers of the first series of a kind. Each has the key that it has if all are pushed, which is
// the same on all nodes with the same series.
func numbersOf(w *reporter.Work, kind reporter.WorkKind, most int) (out []mlflow.Metric) {
	numbers, all := reporter.WorkNumbers(kind, reporter.Pushed), w.Series(kind)
	var ends []string
	for _, n := range numbers {
		ends = append(ends, n.Name)
	}
	keys, taken := make(map[string]string), make(names)
	for _, series := range slices.Sorted(slices.Values(all)) {
		keys[series] = taken.take(string(kind)+"/", series, ends...)
	}

	for _, series := range all[:min(len(all), most)] {
		for _, n := range numbers {
			if v, _ := n.Of(w, series); v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) {
				out = append(out, mlflow.Metric{Key: keys[series] + "/" + n.Name, Value: *v})
			}
		}
	}

	return out
}

// A jobSeries is an operation, counter, gauge or transfer that has time lines.
type jobSeries struct {
	kind reporter.WorkKind
	name string
}

// drawn returns the series of the job among the keys of an envelope in the order in which they began, so that none gets
// another name in MLflow when more of them begin. began returns the first sample that has something of a key.
func drawn(keys iter.Seq[string], began func(key string) int) []jobSeries {
	first := make(map[jobSeries]int)
	for key := range keys {
		l, ok := reporter.WorkLineOf(key)
		if !ok {
			continue
		}
		s := jobSeries{l.Kind, l.Series}
		before, there := first[s]
		if now := began(key); !there || now < before {
			first[s] = now
		}
	}

	all := slices.SortedFunc(maps.Keys(first), func(a, b jobSeries) int {
		return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})

	return all[:min(len(all), book.MaxCharts)]
}

// drawnInReport returns the series of the job that a report has time lines of.
func drawnInReport(e reporter.Envelope) []jobSeries {
	return drawn(maps.Keys(e), func(key string) int {
		values := e[key].Mean
		i := slices.IndexFunc(values, func(v float64) bool { return !math.IsNaN(v) })
		if i < 0 {
			return len(values)
		}
		return i
	})
}

// drawnInRecording returns the series of the job that a Recording has time lines of.
func drawnInRecording(rec *collector.Recording) []jobSeries {
	if rec.Work == nil || rec.Work.Lines == nil {
		return nil
	}
	keys, lines := rec.Work.Keys, rec.Work.Lines
	return drawn(slices.Values(keys), func(key string) int {
		place := slices.Index(keys, key)
		i := 0
		for i < lines.Len() && lines.Bucket(i).Stats[place].Count == 0 {
			i++
		}
		return i
	})
}

// workSources returns the sources of the job's time lines.
func (s nodeSeries) workSources() []source {
	var out []source
	taken := make(names)
	for _, of := range s.job {
		var rows []reporter.WorkLineKind
		var numbers []string
		for _, row := range reporter.WorkLineKinds() {
			if row.Kind == of.kind {
				rows, numbers = append(rows, row), append(numbers, row.Number)
			}
		}

		key := taken.take(folder(s.node)+string(of.kind)+"/", of.name, numbers...)
		for _, row := range rows {
			l := reporter.WorkLine{Kind: of.kind, Series: of.name, Number: row.Number}
			band, ok := s.envelope[l.Key()]
			if !ok {
				continue
			}
			src := source{key: path.Join(key, row.Number), job: true,
				values: []values{{mean: band.Mean, max: band.Max}}}
			if l.Number = row.Weight; row.Weight != "" {
				src.rate = s.envelope[l.Key()].Mean
			}
			out = append(out, src)
		}
	}

	return out
}
