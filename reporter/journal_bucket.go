package reporter

import (
	"math"

	"github.com/perfagent/perfagent/series"
)

// journalBucket is a bucket of the ring in a snapshot, as short as can be: a
// thousand of them are written again and again. Means keep 9 decimals; they are
// only drawn. What metrics come from, the summaries, is written exactly.
type journalBucket struct {
	Values Numbers `json:"v"`
	// Weight and Count are those of the columns whose Stats don't tell.
	Weight float64 `json:"w"`
	Count  int64   `json:"n"`
	// Stats has per column: [] what one measured value gives; [mean, max] when min
	// is the value; [min, mean, max]; with weight and count appended where these
	// differ; [0] when nothing was measured.
	Stats []Numbers `json:"s"`
}

func newJournalBucket(b series.Bucket) journalBucket {
	out := journalBucket{Values: b.Values, Stats: make([]Numbers, len(b.Stats))}
	for i, s := range b.Stats {
		if s.Count == 0 {
			out.Stats[i] = Numbers{0}
			continue
		}
		if out.Count == 0 {
			out.Weight, out.Count = s.Weight, s.Count
		}
		mean := rounded(s.Mean(), 9)
		switch {
		case s.Weight != out.Weight || s.Count != out.Count:
			out.Stats[i] = Numbers{s.Min, mean, s.Max, s.Weight, float64(s.Count)}
		case s.Min == b.Values[i] && s.Max == s.Min:
			out.Stats[i] = Numbers{}
		case s.Min == b.Values[i]:
			out.Stats[i] = Numbers{mean, s.Max}
		default:
			out.Stats[i] = Numbers{s.Min, mean, s.Max}
		}
	}
	return out
}

// bucket is the inverse. What makes no sense in it is for RestoreRing to refuse.
func (b journalBucket) bucket() series.Bucket {
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
		if s.Weight == 0 { // the sum is then of the values themselves
			s.Sum = mean * float64(s.Count)
		}
		out.Stats[i] = s
	}
	return out
}
