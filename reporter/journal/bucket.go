package journal

import (
	"math"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// A bucket is the form of a ring's bucket in a snapshot. It is compact because a thousand buckets are written
// repeatedly. Its numbers keep few decimals (ColumnInfo.Digits), because random digits do not compress: with all
// digits, a journal with every column in use would exceed its maximum size. The summaries, from which metrics are
// computed, are written exactly.
type bucket struct {
	Values reporter.Numbers `json:"v"`
	// Weight and Count apply to columns without a weight and a count in Stats.
	Weight float64 `json:"w"`
	Count  int64   `json:"n"`
	// Stats has a list for each column: [] if minimum, mean and maximum equal the value in Values; [mean, max] if only
	// the minimum equals it; otherwise [min, mean, max]. If the column has another weight or count, the list is [min,
	// mean, max, weight, count]. [0] means that nothing was measured.
	Stats []reporter.Numbers `json:"s"`
}

func newBucket(b series.Bucket, columns []collector.Column) bucket {
	out := bucket{Values: make(reporter.Numbers, len(columns)), Stats: make([]reporter.Numbers, len(columns))}
	for i, c := range columns {
		s, digits := b.Stats[c], c.Info().Digits
		value := text.Round(b.Values[c], digits)
		out.Values[i] = value
		if s.Count == 0 {
			out.Stats[i] = notMeasured()
			continue
		}
		if out.Count == 0 {
			out.Weight, out.Count = s.Weight, s.Count
		}
		round := func(v float64) float64 { return text.Round(v, digits) }
		least, mean, most := round(s.Min), round(s.Mean()), round(s.Max)
		switch {
		case s.Weight != out.Weight || s.Count != out.Count:
			out.Stats[i] = reporter.Numbers{least, mean, most, text.Round(s.Weight, 9), float64(s.Count)}
		case least == value && most == least:
			out.Stats[i] = reporter.Numbers{}
		case least == value:
			out.Stats[i] = reporter.Numbers{mean, most}
		default:
			out.Stats[i] = reporter.Numbers{least, mean, most}
		}
	}

	return out
}

// append appends the bucket as JSON. It is written by hand because each rewrite of a journal contains
// thousands of buckets.
func (b bucket) append(out []byte) []byte {
	out = text.AppendFloats(append(out, `{"v":`...), b.Values)
	out = text.AppendFloat(append(out, `,"w":`...), b.Weight)
	out = strconv.AppendInt(append(out, `,"n":`...), b.Count, 10)
	out = append(out, `,"s":[`...)
	for i, s := range b.Stats {
		if i > 0 {
			out = append(out, ',')
		}
		out = text.AppendFloats(out, s)
	}
	return append(out, "]}\n"...)
}

// toSeries is the inverse of newBucket. RestoreRing rejects invalid values.
func (b bucket) toSeries() series.Bucket {
	out := series.Bucket{Values: b.Values, Stats: make([]series.Stat, len(b.Stats))}
	for i, f := range b.Stats {
		s := series.Stat{Weight: b.Weight, Count: b.Count}
		value := math.NaN()
		if i < len(b.Values) {
			value = b.Values[i]
		}
		mean := value
		switch len(f) {
		case 0:
			s.Min, s.Max = value, value
		case 2:
			s.Min, mean, s.Max = value, f[0], f[1]
		case 3:
			s.Min, mean, s.Max = f[0], f[1], f[2]
		case 5:
			s.Min, mean, s.Max, s.Weight, s.Count = f[0], f[1], f[2], f[3], int64(f[4])
		default:
			out.Stats[i] = series.Stat{Min: math.NaN(), Max: math.NaN()}
			continue
		}
		s.Sum = mean * s.Weight
		if s.Weight == 0 { // the sum is unweighted
			s.Sum = mean * float64(s.Count)
		}
		out.Stats[i] = s
	}

	return out
}

// notMeasured returns the entry in Stats of an unmeasured column.
func notMeasured() reporter.Numbers { return reporter.Numbers{0} }
